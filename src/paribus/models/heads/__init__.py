"""Heads: modules that read hidden states and return sums of losses with a named denominator."""
