"""The held-out loss of permutation language models. It asks for tokens in spans and in fixed orders, each from all text
that is not asked for and from what comes before it in the order: no loss of a masked language model.
"""

from __future__ import annotations

from paribus.verdict.metrics import METRICS, Metric

METRICS.add(Metric("plm_loss", held_out_loss=True))
