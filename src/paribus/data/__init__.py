"""Text on disk and in memory: corpora, tokens, annotators, input formats, the order of examples."""
