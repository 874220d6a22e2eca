"""`python -m ceteris` is the command `ceteris`."""

from ceteris.cli import main

raise SystemExit(main())
