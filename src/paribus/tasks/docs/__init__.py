"""Tasks that installed packages label themselves, so that no network is needed."""
