"""Where `paribus run` starts the runs of a sweep: slots of this machine, Slurm, Ray, or your own launcher."""
