"""Input formats: which stretches of the token store make one example."""
