"""The metrics of every table.

A held-out loss favors the arm that trained on its mask distribution and input format. Accuracies on pairs (NSP, SOP)
are different: all arms are evaluated on the same segments, so input and objective may vary, as in ALBERT's table 5. A
trained probe has its encoder read the pairs without masks, so that masks may vary too; a model's own head reads them
under the held-out masks, so that they may not. What the pairs are made of may never vary: the text, the tokenizer, the
evaluation, and `input.length`, to which segments are filled. Forgetting is by how many nats the held-out loss on the
text of the first stage rises, through the later stages and, with a task before it, through fine-tuning on that task
too. Training on the question helps an arm to answer it: such a
column shows that, and is not a fair scale for the quality of an encoder.
"""

from __future__ import annotations

from paribus.core.settings import LONGER
from paribus.verdict.metrics import FAVORS, MASKS, MEAN, METRICS, Measurements, Metric

_PAIRS = ("corpus", "tokenizer", "evaluation", "input.length")
_OTHERS = "they are not asked about the same pairs"


def _read_forgetting(run: Measurements) -> float | None:
    """Of a run with a single stage: nothing is forgotten."""
    return run.metrics.get("stage_forgetting", None if "stages" in run.further else 0.0)


METRICS.add(Metric("", points=True, decimals=1, fixed=MASKS, reason=FAVORS))  # accuracies and the like
for _name in ("loss", "ppl", "bits_per_byte", "error", "seconds", "unknown_rate"):
    METRICS.add(Metric(_name, lower_is_better=True, fixed=MASKS, reason=FAVORS))
METRICS.add(Metric("mlm_loss", held_out_loss=True, rank=-1))  # named first
for _name in ("clm_loss", "denoising_loss"):
    METRICS.add(Metric(_name, held_out_loss=True))
for _name in ("mlm_loss", "clm_loss", "denoising_loss"):
    for _times in LONGER:
        _longer = f"{_name}_x{_times}"
        METRICS.add(Metric(_longer, lower_is_better=True, held_out=True, fixed=MASKS, reason=FAVORS, whole=True))
METRICS.add(Metric(MEAN, points=True, decimals=1))  # of tasks, which any two arms may be compared by
METRICS.add(Metric("perplexity", lower_is_better=True, decimals=2, fixed=MASKS, reason=FAVORS))
for _name in ("nsp_accuracy", "sop_accuracy", "sentence_accuracy"):
    _fixed = (*_PAIRS, "masking", "objective.view")
    METRICS.add(Metric(_name, points=True, decimals=1, fixed=_fixed, reason=_OTHERS, pairs=True))
METRICS.add(Metric("forgetting", lower_is_better=True, held_out=True, fixed=MASKS, reason=FAVORS))
METRICS.add(
    Metric("stage_forgetting", lower_is_better=True, held_out=True, fixed=MASKS, reason=FAVORS, read=_read_forgetting)
)
for _name in ("mix", "centre_of_gravity", "mix_kl"):  # of the layers that a head with learned weights reads
    METRICS.add(Metric(_name))
METRICS.add(Metric("_probe_accuracy", points=True, decimals=1, fixed=_PAIRS, reason=_OTHERS, pairs=True))
