"""What may change in fine-tuning."""
