"""The training loss around fine-tuned weights: how flat the place is in which a fine-tuning ends."""
