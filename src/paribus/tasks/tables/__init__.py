"""Tasks whose examples are rows of tables."""
