"""Imports Lightning without torchmetrics, of which it needs only the names of two classes.

torchmetrics takes half of the import time: it imports SciPy, matplotlib and CLIP. We give Lightning none of its
metrics, and our own metrics import the real one when a task is evaluated.
"""

from __future__ import annotations

from paribus.core.stand_in import stand_in

with stand_in("torchmetrics", type("Metric", (), {}), type("MetricCollection", (), {})):
    import pytorch_lightning as pl

__all__ = ["pl"]
