"""Sizes and architectures over transformers."""
