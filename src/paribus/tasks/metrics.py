"""Task metrics, computed by torchmetrics. Needs torch."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from paribus.core.errors import UserError

METRICS = ("accuracy", "matthews", "f1", "pearson", "spearman")


def score(task_metrics: tuple[str, ...], predictions: Any, targets: Any, classes: int) -> dict[str, float]:
    """Metrics by name for all predictions of one evaluation set.

    Args:
        predictions: arrays or tensors [N] of class numbers (or values, for regression), or scores [N, classes].
        targets: [N].
        classes: number of classes; 0 or 1 for regression.

    Returns:
        Values between -1 and 1. A correlation with a constant is 0. F1 is that of class 1 where there are two
        classes (as in GLUE), otherwise the unweighted mean over classes.

    Raises:
        UserError: for a metric that is not known.
    """
    import torch

    found = torch.as_tensor(predictions).detach().cpu()
    if found.ndim == 2:
        found = found.argmax(-1) if classes > 1 else found.squeeze(-1)
    functions = _functions(classes)
    unknown = [name for name in task_metrics if name not in functions]
    if unknown:
        raise UserError(f"metric {unknown[0]!r} is not known", f"choose from {', '.join(functions)}")
    target = torch.as_tensor(targets).cpu()
    return {name: _finite(functions[name](found, target)) for name in task_metrics}


def _functions(classes: int) -> dict[str, Callable[[Any, Any], Any]]:
    from torchmetrics.functional import classification as by_class
    from torchmetrics.functional import pearson_corrcoef, spearman_corrcoef

    def f1(p: Any, t: Any) -> Any:
        return by_class.binary_f1_score(p, t) if classes == 2 else by_class.multiclass_f1_score(p, t, classes)

    return {
        "accuracy": lambda p, t: by_class.multiclass_accuracy(p, t, classes, average="micro"),
        "matthews": lambda p, t: by_class.multiclass_matthews_corrcoef(p, t, classes),
        "f1": f1,
        "pearson": lambda p, t: pearson_corrcoef(p.double(), t.double()),
        "spearman": lambda p, t: spearman_corrcoef(p.double(), t.double()),
    }


def _finite(value: Any) -> float:
    number = float(value)
    return number if math.isfinite(number) else 0.0
