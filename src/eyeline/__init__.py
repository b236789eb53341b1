"""eyeline: train, run, compare and understand sequence-to-sequence models."""

__version__ = "0.1.0"
