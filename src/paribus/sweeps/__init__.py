"""Sweeps and searches: their files, the audit of arms, tuning, where runs train, their status and their cost."""
