"""Config, building components, errors, noise, files and processes: what every room uses."""
