"""The papers' numbers as data: one YAML file a table, each number with its source and its flags."""
