"""What reads hidden states: sums of losses with a named denominator."""
