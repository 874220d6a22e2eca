"""What stands behind a table's numbers: configs, budgets, text, versions, code, and whether each number follows."""
