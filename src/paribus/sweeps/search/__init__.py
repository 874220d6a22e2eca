"""Searches of `conf/search` with Optuna: workers share one resumable study in a journal, SQLite or PostgreSQL."""
