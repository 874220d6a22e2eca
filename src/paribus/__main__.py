"""`python -m paribus` is the command `paribus`."""

from paribus.commands.cli import main

raise SystemExit(main())
