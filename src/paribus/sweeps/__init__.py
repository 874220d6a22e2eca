"""Arms, signatures, the control audit, the store of runs, launchers."""
