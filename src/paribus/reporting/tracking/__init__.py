"""What is logged to Weights & Biases, and how it is read back."""
