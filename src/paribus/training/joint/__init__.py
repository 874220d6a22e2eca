"""Several tasks on one encoder: the settings, the steps over the rows of all tasks, and the training."""
