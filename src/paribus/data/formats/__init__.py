"""Input formats: which runs of the token store make one example."""
