"""Where `paribus run` starts the runs of a sweep: slots of this machine, Slurm, Ray, or a launcher of your own."""
