"""Tokenizers, trained or loaded, and the memory-mapped store of the tokens of a corpus."""
