"""Corruption views: what the model reads and what it writes of a row and its noise."""
