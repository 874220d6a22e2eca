"""Several tasks on one encoder: the settings, the rows of all tasks in one stream, and the training."""
