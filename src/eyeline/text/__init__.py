"""From bytes to ids and back: lines, pairs, normalisation, tokenizers. Knows no batches, no models and no settings file."""
