"""Documents: installed docstrings, files of text, sets of the hub; their splits, sentences and fingerprint."""
