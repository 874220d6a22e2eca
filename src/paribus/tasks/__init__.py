"""Downstream tasks: labelled examples, their encoding for a model, metrics and baselines."""
