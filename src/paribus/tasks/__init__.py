"""Downstream tasks: labeled examples, their encoding for a model, metrics and baselines."""
