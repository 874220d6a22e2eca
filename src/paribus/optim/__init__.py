"""Parameter groups, optimizers, learning-rate schedules."""
