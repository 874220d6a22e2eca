"""Maskings: which tokens are noise, and when the noise is redrawn."""
