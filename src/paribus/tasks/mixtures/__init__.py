"""Mixtures: tasks in the stream of pre-training."""
