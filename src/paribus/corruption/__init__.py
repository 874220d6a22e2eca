"""What is noise, what the model reads and writes of it, and the arrays that it becomes."""
