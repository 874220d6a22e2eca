"""What is predicted from a corrupted text, and its loss."""
