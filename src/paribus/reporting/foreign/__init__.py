"""Runs of other frameworks: read as rows, then judged by the same code as our own."""
