"""Encodings: how a view shows the noise."""
