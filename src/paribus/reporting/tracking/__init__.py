"""What Weights & Biases is told, and how it is read back; the records stay the truth."""
