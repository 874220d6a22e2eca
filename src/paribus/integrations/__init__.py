"""Other tools: runs of other frameworks as rows, and what Weights & Biases holds."""
