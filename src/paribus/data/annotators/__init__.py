"""Annotators: spans of a sentence's text that may be noise as a whole."""
