"""Forms of tasks: how examples become rows, which head reads them, what its outputs say, and how that is scored."""
