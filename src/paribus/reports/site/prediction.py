"""Whether small verdicts predict large ones, in the words of the page over scales and of the Markdown page."""

from __future__ import annotations

from typing import Any

from paribus.reports.decision_accuracy import Prediction
from paribus.verdict.decision_accuracy import SignalToNoise, SignShare

GROUP_NAMES = ("contrasts", "studies", "same sign", "95%, by contrast", "95%, by study", "rank correlation")
COLUMN_NAMES = ("column", "same sign", "95%, by contrast", "signal over noise, smaller scale", "larger scale")
NOTHING = "-"


def tell_prediction(prediction: Prediction | None) -> dict[str, Any] | None:
    """Sentences, published shares as (sentence, id of its table), and two tables in words; None for no contrast."""
    if prediction is None:
        return None
    contrasts = prediction.contrasts
    barred = sum(one.small.barred for one in contrasts)
    moved = sum(one.other_tasks for one in contrasts)
    sentences = [
        f"{len(contrasts)} contrasts were measured at two scales. An effect keeps its sign if the same arm is better "
        "at both; 50% is chance.",
        f"{barred} of them have no verdict at the smaller scale for another reason than the number of seeds, such as "
        f"a run still on its plateau. {moved} are means over other tasks at the larger scale.",
    ]
    published = [
        (
            f"{share.median:g}%"
            + (f" (median of {share.rows} tasks; {share.low:g}% to {share.high:g}%)" if share.rows > 1 else "")
            + f" of pairs of data recipes keep their order from 150 million to 1 billion parameters: {share.source}",
            share.table,
        )
        for share in prediction.published
    ]
    groups = [
        [
            group.name,
            str(group.studies),
            _tell_share(group.signs),
            _tell_percent(group.signs.ci_low, group.signs.ci_high),
            _tell_percent(*(group.signs.ci_studies or (None, None))),
            _tell_correlation(group.spearman.value, group.spearman.ci_studies),
        ]
        for group in prediction.groups
    ]
    columns = [
        [
            one.column,
            _tell_share(one.signs),
            _tell_percent(one.signs.ci_low, one.signs.ci_high),
            _tell_signal(one.small),
            _tell_signal(one.large),
        ]
        for one in prediction.columns
    ]
    return {
        "sentences": sentences,
        "published": published,
        "group_names": GROUP_NAMES,
        "groups": groups,
        "column_names": COLUMN_NAMES,
        "columns": columns,
    }


def _tell_share(signs: SignShare) -> str:
    """Such as `19 of 50 (38%)`."""
    ties = f", {signs.ties} at 0" if signs.ties else ""
    return NOTHING + ties if signs.share is None else f"{signs.same} of {signs.count} ({signs.share:.0%}){ties}"


def _tell_percent(low: float | None, high: float | None) -> str:
    return NOTHING if low is None or high is None else f"{low:.0%} to {high:.0%}"


def _tell_correlation(value: float | None, interval: tuple[float, float] | None) -> str:
    if value is None:
        return NOTHING
    return f"{value:.2f}" + (f" [{interval[0]:.2f}, {interval[1]:.2f}]" if interval else "")


def _tell_signal(signal: SignalToNoise) -> str:
    """Such as `0.9 (0.5 without an effect)`."""
    return NOTHING if signal.ratio is None else f"{signal.ratio:.1f} ({signal.alone:.1f} without an effect)"
