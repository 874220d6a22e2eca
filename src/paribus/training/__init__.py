"""One run: steps, the LightningModule, callbacks, the record."""

from paribus.core.processes import use_huge_pages

use_huge_pages()  # in every process that trains: runs, their helpers, jobs of a cluster
