"""Searches with Optuna that resume: one ledger of trials in a journal, SQLite or PostgreSQL, shared by any workers."""
