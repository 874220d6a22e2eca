"""Noise patterns: which tokens are noise."""
