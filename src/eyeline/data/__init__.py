"""From ids to batches: corpora, their order, and sets of pairs made from rules. Knows nothing of models."""
