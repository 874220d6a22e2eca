"""Paribus: ablations of language-model pre-training and fine-tuning, all else equal."""

__version__ = "0.1.0"
