"""Corruption: the choice of noise, what the model reads and writes, and the arrays of a batch."""
