"""Statistics: intervals, paired contrasts over shared seeds, claims and their verdicts."""
