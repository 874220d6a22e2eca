"""How near written texts are to what was to be written, by torchmetrics. Needs torch."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from paribus.tasks.example import normalized
from paribus.tasks.squad import overlap

ROUGE = ("rouge1", "rouge2", "rougeL")
TEXT_METRICS = (*ROUGE, "bleu", "exact_match", "f1")


def text_scores(metrics: Sequence[str], written: Sequence[str], targets: Sequence[str]) -> dict[str, float]:
    """Metrics by name, between 0 and 1.

    ROUGE is the mean F1 of the texts, without stemming (T5's stems); BLEU that of the whole set by sacreBLEU's
    tokens "13a", without smoothing; `exact_match` is of texts in one case with single spaces; `f1` is SQuAD's.
    """
    found: dict[str, float] = {}
    for name in metrics:
        if name in ROUGE:
            found[name] = _rouge(name, written, targets)
        elif name == "bleu":
            found[name] = _bleu(written, targets)
        else:
            score = overlap if name == "f1" else _same
            found[name] = fmean(score(ours, theirs) for ours, theirs in zip(written, targets, strict=True))
    return found


def _same(ours: str, theirs: str) -> float:
    return float(normalized(ours) == normalized(theirs))


def _rouge(name: str, written: Sequence[str], targets: Sequence[str]) -> float:
    from torchmetrics.functional.text import rouge_score

    return float(rouge_score(list(written), list(targets), rouge_keys=name)[f"{name}_fmeasure"])


def _bleu(written: Sequence[str], targets: Sequence[str]) -> float:
    from torchmetrics.functional.text import sacre_bleu_score

    return float(sacre_bleu_score(list(written), [[text] for text in targets], tokenize="13a"))
