"""Paribus: ablations of language-model pre-training and fine-tuning, all else equal.

`collators`: masks for the `transformers` Trainer and for a DataLoader · `load_runs`: the runs of a study as a frame ·
`table`: the table of a sweep · `judge`: the same table of runs of another framework · `compare`: two models example by
example · `plan_seeds`: how many seeds a claim needs. Importing the package loads none of them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from paribus import collators
    from paribus.core.errors import UserError
    from paribus.reports.api import compare, judge, load_runs, table
    from paribus.verdict.power import plan_seeds

__version__ = "0.1.0"
__all__ = ["UserError", "collators", "compare", "judge", "load_runs", "plan_seeds", "table"]
_HOMES = {
    "UserError": "paribus.core.errors",
    "compare": "paribus.reports.api",
    "judge": "paribus.reports.api",
    "load_runs": "paribus.reports.api",
    "plan_seeds": "paribus.verdict.power",
    "table": "paribus.reports.api",
}


def __getattr__(name: str) -> Any:
    if name == "collators":
        return import_module("paribus.collators")
    if name not in _HOMES:
        raise AttributeError(f"module 'paribus' has no attribute '{name}'")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
