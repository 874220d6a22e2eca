"""Collators: views as the arrays that one kind of architecture takes."""
