"""Weights & Biases: runs as frames, any project's runs, and a workspace for a sweep."""
