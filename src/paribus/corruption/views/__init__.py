"""Corruption views: what the model reads and writes, given a row and its noise."""
