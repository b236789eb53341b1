"""Slow float64 formulas, written from the papers with loops over plain arrays. They know nothing of eyeline's parts."""
