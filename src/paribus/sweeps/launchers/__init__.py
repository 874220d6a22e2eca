"""Where the runs of a sweep are started: slots of this machine, or the queue of a cluster."""
