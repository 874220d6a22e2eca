"""The notes of a table: caveats about its columns, seeds, contrasts and tuning."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from paribus.core.files import at_scale
from paribus.reports.history import GENERATION
from paribus.reports.tables.checks import list_above_chance
from paribus.reports.tables.design import Design
from paribus.reports.tables.evidence import Evidence
from paribus.reports.tables.schema import About, ClaimRow, ContrastRow
from paribus.runs.record import Record
from paribus.sweeps.lock import CONFIRMED
from paribus.sweeps.sweep import TRIAL
from paribus.verdict.checks import COLLAPSED, LEARNED
from paribus.verdict.metrics import MEAN
from paribus.verdict.power import POWER
from paribus.verdict.rules import UNDECIDED
from paribus.verdict.sequential import FIRST, Looks
from paribus.verdict.statistics import ALPHA, mean_sd

REVISED = "Changed after results had been seen"
_RANGE = "A range of seeds covers effects and spreads anywhere in their 80% intervals."
_MORE = "To add seeds at a controlled error rate: `paribus run {sweep} scale={scale} --until-decided max_seeds={most}`."
READ_AGAIN = 0.065  # false tables if a table is read at the full rate before seeds are added (analysis/calibrate.py)
_REACH = 20  # seeds; a claim that needs more is not worth waiting for
_UNCHECKED = (
    "Not checked, because the runs were made elsewhere: that the arms differ only in what their names say, that their "
    "budgets and texts are equal, and that the columns are sensitive to what was changed (no model from scratch). The "
    "verdicts rest on the numbers alone."
)
_WORTH = 0.05  # a share of an interval's width that is worth a note


def write_notes(
    design: Design, evidence: Evidence, about: Mapping[str, About], claims: Sequence[ClaimRow]
) -> tuple[str, ...]:
    """All notes, one sentence or two each."""
    notes = [_UNCHECKED] if design.foreign else []
    notes += [*design.frozen, *describe_revised(design)]
    if design.scale == TRIAL:
        notes.append("Two training steps show that the sweep runs, and nothing else; budgets are not compared.")
    notes += [f"{column}: {one.reason}." for column, one in about.items() if one.reason is not None]
    if absent := [column for column in design.columns if column not in about]:
        notes.append(f"Not run{at_scale(design.scale)}: {', '.join(absent)}.")
    if MEAN in about:
        notes.append(f"{MEAN} averages {', '.join(evidence.find_averaged())} for each seed.")
    notes += design.factorial.describe_aliases() if design.factorial is not None else []
    notes += _note_seeds(design, evidence)
    notes += _note_stuck(design, evidence)
    notes += _note_contrasts([contrast for claim in claims for contrast in claim.contrasts], about)
    least = [claim.seeds_range[0] for claim in claims if claim.open and claim.seeds_range]
    if least and design.looks is None and not design.foreign and design.stage != CONFIRMED:
        near = [seeds for seeds in least if seeds <= _REACH]  # as many as the claims within reach may need, or three
        most = max(len(design.seeds) + 3, *near) if near else 0
        more = _MORE.format(sweep=design.sweep or design.study, scale=design.scale, most=most)
        notes.append(f"{_RANGE} {more}" if near else _RANGE)
    notes += _note_tuning(design)
    notes += _note_overlaps(design, evidence)
    notes += describe_leaks(run for arm in design.arms for run in evidence.done(arm).values())
    notes += _note_trained(design, evidence)
    notes += _note_noise_scales(design, evidence)
    done = [run for arm in evidence.runs for run in evidence.done(arm).values()]
    changed = sum(run.changed for run in done)
    tree = "were made from a tree with uncommitted changes, so that their commit does not say what ran"
    notes += [f"{changed} of {len(done)} runs {tree}."] if changed else []
    excluded = Counter(evidence.excluded.values())
    notes += [
        f"{count} of {len(design.list_settings(design.seeds))} settings do not count, for no arm: {why}."
        for why, count in excluded.items()
    ]
    return tuple(map(design.name_unit, (*notes, *evidence.notes)))


def describe_revised(design: Design) -> list[str]:
    """What the sweep file says was changed after results had been seen."""
    return [f"{REVISED}: {design.revised}"] if design.revised else []


def find_changes(notes: Iterable[str]) -> list[str]:
    """The notes on what was run and changed before, in the sweep file's words and by its history."""
    return [note for note in notes if note.startswith((REVISED, GENERATION))]


def _note_seeds(design: Design, evidence: Evidence) -> list[str]:
    notes = [] if design.looks is None else [_describe_looks(design, evidence, design.looks)]
    unit = "pre-training run" if evidence.count_pretrained() and not design.foreign else "run"
    if single := [arm for arm in design.arms if len(evidence.done(arm)) == 1]:
        notes.append(f"No interval, because there is only one seed: {', '.join(single)}.")
    runs = [run for arm in design.arms for run in evidence.done(arm).values()]
    counts = {count for run in runs for count in Counter(tuning.task for tuning in run.task_runs).values()}
    if counts and max(counts) > 1:
        words = " to ".join(str(count) for count in sorted({min(counts), max(counts)}))
        notes.append(f"Task scores are means over {words} fine-tuning seeds per {unit}; n counts the {unit}s.")
    return notes


def _describe_looks(design: Design, evidence: Evidence, looks: Looks) -> str:
    n = len(design.seeds)
    level = f"{looks.level(ALPHA, n):.4f} instead of {ALPHA:.2f}"
    settled = [f"{arm} ({len(evidence.done(arm))})" for arm in design.settled]
    more = f" No more seeds were needed of {', '.join(settled)}." if settled else ""
    if looks.first > FIRST:
        more += (
            f" A table of the first {looks.first} that was read before is a chance to err of its own: in simulations, "
            f"up to {READ_AGAIN:.1%} of identical arms were called different in one table or the other."
        )
    return (
        f"Seeds were added while claims were open. Looks after {looks.first} to at most {looks.most} seeds; the "
        f"last was after {n}. A claim's verdict and interval use the level of the look that decided it, or of the last "
        f"one ({level}; alpha spending of Lan and DeMets), so that all looks together keep the error rate.{more}"
    )


def _note_stuck(design: Design, evidence: Evidence) -> list[str]:
    """Arms of which some fine-tuning runs learned a task and others nothing: their scores are then mostly luck."""
    described = []
    for column in design.columns:
        for arm in design.arms:
            gains = list_above_chance(evidence.done(arm).values(), column) or []
            stuck = sum(gain <= COLLAPSED for gain in gains)
            if stuck and max(gains) >= LEARNED:
                described.append(f"{arm} {stuck} of {len(gains)} on {column}")
    if not described:
        return []
    listed = "; ".join(described)
    return [
        f"Some fine-tuning runs are no better than a constant answer, while others of the same arm are: {listed}. "
        "Longer fine-tuning on such a task makes its scores depend less on luck."
    ]


def _note_contrasts(contrasts: Sequence[ContrastRow], about: Mapping[str, About]) -> list[str]:
    """What n and the fine-tuning seeds cannot settle."""
    notes, powers = [], []
    for row in contrasts:
        name, points = f"{row.pair} on {row.column}", about[row.column].unit == "points"
        if row.detectable is not None:
            least = _format_size(row.detectable, points)
            if row.published is not None and abs(row.published) < row.detectable:
                papers = _format_size(row.published, points)
                notes.append(f"{name}: the paper's effect of {papers} is too small for n = {row.n_text} ({least}).")
            elif row.verdict == UNDECIDED:
                powers.append(f"{name} {least} (n = {row.n_text})")
        if row.components is not None and row.verdict == UNDECIDED and row.components.narrower >= _WORTH:
            share = f"{100 * row.components.narrower:.0f}%"
            notes.append(f"{name}: more fine-tuning seeds would narrow the interval by at most {share}.")
    if powers:
        listed = "; ".join(dict.fromkeys(powers))
        notes.append(f"Smallest differences that n seeds detect with a power of {100 * POWER:.0f}%: {listed}.")
    return list(dict.fromkeys(notes))


def _format_size(value: float, points: bool) -> str:
    return f"{abs(value) * 100:.1f} points" if points else f"{abs(value):.3g}"


def _note_tuning(design: Design) -> list[str]:
    """How the arms were tuned; a value at an end of those tried may not be the best there is.

    If they were not: arms that differ in batch or optimizer may need different learning rates.
    """
    if not design.tuning.arms:
        odd = [key for key in design.varies if key.startswith(("batch.", "optimizer")) and key != "optimizer.lr"]
        if not odd or design.foreign or design.scale == TRIAL:
            return []
        return [f"No learning rate was searched for each arm: it may suit one {' or '.join(odd)} better than another."]
    spec = design.tuning.spec
    space = "; ".join(f"{key} in {text}" for key, text in spec["space"].items())
    seeds = ", ".join(map(str, spec["seeds"]))
    tunings = {arm: tuning for arm in design.arms if (tuning := design.tuning.arms.get(arm))}
    return [
        f"Tuned with {spec['trials']} trials per arm ({spec['sampler']} over {space}) "
        f"by {spec['on']} of seed {seeds}, which no column uses.",
        *(f"{arm}: {'; '.join(tuning.faults)}." for arm, tuning in tunings.items() if tuning.faults),
    ]


def _note_overlaps(design: Design, evidence: Evidence) -> list[str]:
    """For each task, how much of its evaluation text the arms have read; arms with equal shares are grouped."""
    tasks: dict[str, dict[str, list[str]]] = {}  # {task: {share: arms}}
    for arm in design.arms:
        overlaps = [run.overlap or {} for run in evidence.done(arm).values()]
        for task in sorted({task for overlap in overlaps for task in overlap}):
            share, _ = mean_sd([overlap[task] for overlap in overlaps if task in overlap])
            tasks.setdefault(task, {}).setdefault(f"{100 * share:.1f}%", []).append(arm)
    return [
        f"Evaluation texts of {task} that also occur in the pre-training text: {_list_shares(arms)}."
        for task, arms in sorted(tasks.items())
    ]


def describe_leaks(runs: Iterable[Record]) -> list[str]:
    """For each evaluation set of a task, how many of its texts are also in the task's training set, if any are."""
    shared: dict[tuple[str, str], set[str]] = {}  # {(task, set): counts}, of which runs on the same data have one
    for run in runs:
        for task, counted in (run.task_examples or {}).items():
            for split, count in counted["leaked"].items():
                if count:
                    shared.setdefault((task, split), set()).add(f"{count:,} of {counted['examples'][split]:,}")
    return [
        f"Evaluation texts of {task} ({split}) that are also in its training set: {', '.join(sorted(counts))}."
        for (task, split), counts in sorted(shared.items())
    ]


def _note_trained(design: Design, evidence: Evidence) -> list[str]:
    """How many weights the arms train on a task if they differ in that; arms that train as many together."""
    arms: dict[str, list[str]] = {}
    for arm in design.arms:
        counts = [tuned for run in evidence.done(arm).values() if (tuned := run.further.get("tuned"))]
        if counts:
            head = counts[0].get("head_parameters")
            trained = f"{counts[0]['trained_parameters']:,}" + (f", {head:,} of them in the head" if head else "")
            arms.setdefault(trained, []).append(arm)
    return [f"Weights trained in fine-tuning: {_list_shares(arms)}."] if len(arms) > 1 else []


def _list_shares(arms: Mapping[str, Sequence[str]]) -> str:
    if len(arms) == 1:
        return next(iter(arms))
    return "; ".join(f"{share} ({', '.join(names)})" for share, names in arms.items())


def _note_noise_scales(design: Design, evidence: Evidence) -> list[str]:
    """The gradient noise scale of each arm that measured it, over its seeds."""
    described = []
    for arm in design.arms:
        scales = [run.realised.get("noise_scale") for run in evidence.done(arm).values()]
        if measured := [scale for scale in scales if scale and scale["measured"]]:
            described.append(f"{arm} {_describe_noise(measured)}")
    if not described:
        return []
    about = "Gradient noise scale (McCandlish et al. 2018, appendix A), second half of training"
    meaning = "Below it, a larger batch costs few extra examples; above it, a larger batch saves few steps."
    return [f"{about}: {'; '.join(described)}. {meaning}"]


def _describe_noise(measured: Sequence[Mapping[str, float]]) -> str:
    """Such as `64 sequences (3,900 tokens; batch 16)`: the seeds' mean noise over their mean signal."""
    noise, signal = (math.fsum(scale[key] for scale in measured) for key in ("noise", "signal"))
    batch, length = (mean_sd([scale[key] for scale in measured])[0] for key in ("batch", "tokens_per_sequence"))
    if noise <= 0.0 or signal <= 0.0:
        return f"not measurable (batch {batch:.4g}: noise hides the gradient)"
    ratio = noise / signal
    return f"{_two_digits(ratio)} sequences ({_two_digits(ratio * length)} tokens; batch {batch:.4g})"


def _two_digits(value: float) -> str:
    """The measurement allows no more."""
    return f"{float(f'{value:.2g}'):,.4g}" if value < 100 else f"{float(f'{value:.2g}'):,.0f}"
