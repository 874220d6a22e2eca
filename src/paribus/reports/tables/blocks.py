"""The rows, columns and numbers of a table as text, the same in every format.

`verdict/metrics` says of each metric whether it is printed in points, and with how many decimals.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from string import ascii_lowercase
from typing import NamedTuple

from paribus.core.files import at_scale
from paribus.reports.tables.evidence import BUDGETS
from paribus.reports.tables.schema import (
    RUNS,
    TUNINGS,
    AnchorRow,
    ArmRow,
    Cell,
    ClaimRow,
    ContrastRow,
    OwnLoss,
    Table,
)
from paribus.sweeps.control import describe_changes
from paribus.sweeps.sweep import SCRATCH, TRIAL, UNMATCHED
from paribus.verdict.checks import CHECKS, FAILS, NOT_APPLICABLE, NOT_KNOWN, PASSES, Check
from paribus.verdict.controls import FALLING, LEFT
from paribus.verdict.metrics import find_metric, lower_is_better
from paribus.verdict.rules import NOT_RUN

NONE = "-"
ABSENT = "n/a"  # of an arm in a column that was not run
NOT_RUN_HERE = f"{ABSENT}: not run here."
_READ = (
    "Interval: the one behind the verdict; its level allows for the table's other claims. p (zero): of the {test} "
    "against zero, not adjusted. p of the claim: against its margin, adjusted for all claims and looks; below "
    "0.05 the contrast is decided. The two test different things, so either can be the smaller one."
)
_UNPAIRED = (
    "n = `8 v 4`: the arms do not share all their seeds, so all their runs count, by Welch's t-test; if they share "
    "three seeds or more, these are paired within it."
)
_ORDER = (
    "P(better): the chance that a run of the first arm is better than one of the second. Order: by how much the first "
    "arm may fail to be better at every quantile, an upper bound; below 0.5 it is called better (almost stochastic "
    "order). No verdict rests on them."
)
CHECK_MARKS = {PASSES: "✓", FAILS: "✗", NOT_KNOWN: "?", NOT_APPLICABLE: "–"}
_BREAKS = (" [", " p=", " p<")  # a cell continues below before these
_ALIKE = 0.05  # of the logarithm of a ratio of FLOPs
_COSTS = (("FLOPs", "flops"), ("predictions", "predicted_tokens"))  # what verdicts compare arms by


class CellText(NamedTuple):
    """The text of a cell; `best`: set in bold; `arm`, `paper`: whose runs, and which published table, it is from."""

    text: str
    best: bool = False
    arm: str | None = None
    paper: str | None = None


class Block(NamedTuple):
    """A rectangular part of the table: a heading, a header line, lines, and sentences below."""

    heading: str
    header: list[str]
    lines: list[list[CellText]]
    below: list[str]
    left: int = 1  # columns of words, set flush left
    last: int = 0  # columns of words at the end, which a page may wrap


def format_number(table: Table, column: str, value: float | None, extra: int = 0, sign: bool = False) -> str:
    """A value in the unit that the column is read in: accuracies in points, losses in their own unit."""
    if value is None:
        return NONE
    return format_value(column, value * table.about[column].factor, extra, sign)


def format_value(column: str, value: float, extra: int = 0, sign: bool = False) -> str:
    """A value that is already in that unit."""
    decimals = extra + find_metric(column).decimals
    text = f"{value:{'+' if sign else ''}.{decimals}f}"
    return text if float(text) != 0.0 else f"{0.0:.{decimals}f}"


def format_interval(
    table: Table, column: str, low: float | None, high: float | None, extra: int = 0, space: str = " "
) -> str:
    """`[low, high]` after a space, or nothing if one seed has none."""
    if low is None:
        return ""
    return f"{space}[{format_number(table, column, low, extra)}, {format_number(table, column, high, extra)}]"


def format_heading(table: Table, column: str) -> str:
    """`sst2/accuracy ↑`, with a mark if the column decides no claim."""
    about = table.about[column]
    return f"{column} {'↑' if about.higher_is_better else '↓'}" + ("" if about.decides else " †")


def format_p(p: float | None) -> str:
    """A p-value with three decimals."""
    return NONE if p is None else "<0.001" if p < 0.001 else f"{p:.3f}"


def break_cell(text: str) -> str:
    """A mean, and below it the interval and the p-value."""
    for start in _BREAKS:
        text = text.replace(start, f"\n{start.strip()}")
    return text


def break_head(text: str) -> str:
    """`docs_package/accuracy ↑` with the task above the metric, `paper: sst2_acc` with the paper above its metric."""
    return text.replace("/", "/\n").replace("paper: ", "paper:\n")


def make_blocks(table: Table) -> list[Block]:
    """The table's parts in reading order: our results with the paper's numbers, and what compares them."""
    return [make_results(table), *make_comparisons(table)]


def make_comparisons(table: Table) -> list[Block]:
    """Differences from the baseline, all tasks together, what pre-training came to, and orders of the arms."""
    from paribus.reports.tables.factorial_blocks import make_factorial  # which are made of the cells here
    from paribus.reports.tables.universe_blocks import make_universe

    parts = (_make_differences(table), _make_overall(table), _make_own_losses(table), _make_orders(table))
    return [*make_factorial(table), *make_universe(table), *(block for block in parts if block.lines)]


def find_footnotes(table: Table) -> dict[str, tuple[str, str]]:
    """{arm: (mark, text)} of the arms that failed, miss seeds, were left out or were tuned."""
    remarks: dict[str, list[str]] = {}
    for arm in table.arms:
        starts = (f"{arm.name}/seed", f"{arm.name}:")
        texts = [note.rstrip(".") for note in table.notes if note.startswith(starts)]
        if tuned := table.tuned.get(arm.name):
            chosen = ", ".join(f"{key}={value}" for key, value in tuned.chosen.items())
            texts.append(f"tuned with {tuned.trials} trials" + (f": {chosen}" if chosen else ""))
        if texts:
            remarks[arm.name] = texts
    marks = [*ascii_lowercase, *map(str, range(27, len(remarks) + 1))]
    return {arm: (mark, "; ".join(texts)) for mark, (arm, texts) in zip(marks, remarks.items(), strict=False)}


def make_results(table: Table) -> Block:
    """Our means with their intervals, beside them the paper's numbers of the same metrics, then its other numbers."""
    header = ["arm", "n"]
    for column in table.columns:
        header.append(format_heading(table, column))
        if column in table.beside:
            header.append(f"paper: {table.beside[column]}")
    for column, metric in table.absent.items():
        header += [f"{column} {'↓' if lower_is_better(column) else '↑'}", f"paper: {metric}"]
    other_metrics = table.paper.own if table.paper else ()
    header += [f"paper: {metric}" for metric in other_metrics]
    rows: tuple[ArmRow | AnchorRow, ...] = (*table.arms, *table.anchors)
    lines = []
    for row in rows:
        arm = find_source(row)
        line = [CellText(format_name(table, row), arm=arm), CellText(NONE if row.n is None else str(row.n), arm=arm)]
        for column in table.columns:
            line.append(_make_cell(table, row, column)._replace(arm=arm))
            if column in table.beside:
                line.append(_make_printed(table, row, table.beside[column]))
        for metric in table.absent.values():
            line += [CellText(ABSENT if isinstance(row, ArmRow) else NONE), _make_printed(table, row, metric)]
        lines.append(line + [_make_printed(table, row, metric) for metric in other_metrics])
    return Block(f"Results{at_scale(table.scale)}", header, lines, _describe_results(table))


def _describe_results(table: Table) -> list[str]:
    """How to read the results: units, marks, footnotes, and where the paper's numbers are from."""
    units = f"n {table.replication}"
    if any(about.unit == "points" for about in table.about.values()):
        what = "scores and error rates from 0 to 1" if table.replication == RUNS else "accuracies"
        units += f"; {what} in points"
    if any(column.endswith("_loss") for column in table.columns):
        units += "; losses in nats"
    below = [f"Mean (standard deviation) [95% t interval of the mean] over {units}."]
    if any(arm.best for arm in table.arms):
        below.append("Bold: better than every other arm, by the paired 95% interval.")
    if table.replication == TUNINGS:
        below.append("The intervals say nothing about other checkpoints.")
    if table.replication == RUNS:
        below.append("Runs of another framework: their settings, budgets and texts were not compared.")
    if not all(about.decides for about in table.about.values()):
        below.append("† This column decides no claim; the notes say why.")
    if table.absent:
        below.append(NOT_RUN_HERE)
    below += [f"[{mark}] {text}." for mark, text in find_footnotes(table).values()]
    if (paper := table.paper) is not None:
        below.append(f"Paper: {paper.source}; {paper.setting.rstrip('.')}.")
        rows = "; ".join(f"{arm.name} is '{paper.rows[arm.name]}'" for arm in table.arms if arm.name in paper.rows)
        below += [f"In the paper, {rows}."] if rows else []
        below += [f"Flag: {flag.rstrip('.')}." for flag in paper.flags]
    return below


def _make_cell(table: Table, row: ArmRow | AnchorRow, column: str) -> CellText:
    """`mean (sd) [95% interval]`, with n if it is not that of the row."""
    cell = row.metrics.get(column)
    if cell is None:
        return CellText(NONE)
    text = format_number(table, column, cell.mean)
    if isinstance(cell, Cell):
        text += f" ({format_number(table, column, cell.sd)})" if cell.sd is not None else ""
        text += format_interval(table, column, cell.ci_low, cell.ci_high)
        text += "" if len(cell.values) == row.n else f" n={len(cell.values)}"
    return CellText(text, isinstance(row, ArmRow) and column in row.best)


def _make_printed(table: Table, row: ArmRow | AnchorRow, metric: str) -> CellText:
    """The paper's number in the row of an arm."""
    printed = row.published.get(metric) if isinstance(row, ArmRow) else None
    return (
        CellText(NONE) if printed is None or table.paper is None else CellText(printed.shown, paper=table.paper.table)
    )


def find_source(row: ArmRow | AnchorRow) -> str | None:
    """The arm whose runs a row is made of; None if it has none."""
    if isinstance(row, ArmRow):
        return row.name
    return SCRATCH if row.name == "from scratch" else None


def format_name(table: Table, row: ArmRow | AnchorRow) -> str:
    """An arm with its status if it is not done, `(baseline)` and the mark of its footnote; an anchor in brackets."""
    if isinstance(row, AnchorRow):
        return f"({row.name})"
    words = ["baseline"] * (row.name == table.baseline) + [row.status] * (row.status != "done")
    mark, _ = find_footnotes(table).get(row.name, ("", ""))
    return row.name + (f" ({', '.join(words)})" if words else "") + (f" [{mark}]" if mark else "")


def _make_differences(table: Table) -> Block:
    lines = []
    for arm in table.arms:
        texts = [arm.name]
        for column in table.columns:
            paired = arm.versus_baseline.get(column)
            if paired is None:
                texts.append(NONE)
                continue
            difference = format_number(table, column, paired.difference, 1, sign=True)
            interval = format_interval(table, column, paired.ci_low, paired.ci_high, 1)
            p = "" if paired.p is None else f" p={format_p(paired.p)}".replace("=<", "<")
            texts.append(f"{difference}{interval}{p} n={paired.n_text}")
        if arm.versus_baseline:
            lines.append([CellText(text, arm=arm.name) for text in texts])
    differences = [difference for arm in table.arms for difference in arm.versus_baseline.values()]
    unit = "seed" if table.universe is None else "setting"
    below = [
        f"Paired by {unit}: difference [95% interval], p of the paired t-test against zero (before Holm), n pairs."
    ]
    if not any(difference.counts is None for difference in differences):
        below = ["Difference [95% interval], p of the t-test against zero (before Holm), n runs of both arms."]
    below += [_UNPAIRED] * any(difference.counts for difference in differences)
    header = [f"arm - {table.baseline}", *(format_heading(table, column) for column in table.columns)]
    return Block("Difference from the baseline", header, lines, below)


def _make_overall(table: Table) -> Block:
    if table.aggregate is None:
        return Block("", [], [], [])
    lines = []
    for row in table.aggregate.arms:
        estimates = [
            NONE if one is None else _format_estimate(one.value, one.ci_low, one.ci_high, 100.0)
            for one in (row.mean, row.gain)
        ]
        lines.append([CellText(row.name, arm=row.name), CellText(str(row.n), arm=row.name), *map(CellText, estimates)])
    header = ["arm", "n", "mean over tasks ↑", f"gain over {table.baseline}"]
    below = (
        f"Over {', '.join(table.aggregate.columns)}; [95% t interval over n {table.replication}, paired for the gain]."
    )
    return Block("All tasks", header, lines, [below])


def _format_estimate(value: float, low: float | None, high: float | None, unit: float = 1.0) -> str:
    """`value [low, high]`, times the unit."""
    decimals = 1 if unit == 100.0 else 2
    interval = "" if low is None or high is None else f" [{low * unit:.{decimals}f}, {high * unit:.{decimals}f}]"
    return f"{value * unit:.{decimals}f}{interval}"


def _make_own_losses(table: Table) -> Block:
    """What each arm learned on its own noise, beside a model that knows only frequencies and kinds of neighbors."""
    groups: dict[OwnLoss, list[str]] = {}  # arms that share their pre-trainings have one row
    for arm in table.arms:
        if arm.own is not None:
            groups.setdefault(arm.own, []).append(arm.name)
    lines = []
    for loss, names in groups.items():
        texts = [
            _join_arms(table, names),
            str(loss.n),
            f"{loss.loss:.2f}",
            f"{loss.floor:.2f}",
            f"{loss.below:.2f}",
            f"{loss.left} of {loss.n}" + (f", {loss.memorized} memorized" if loss.memorized else ""),
            _format_span(loss.steps),
            _format_span(loss.tokens),
            NONE if loss.fall is None else f"{loss.falling} of {loss.n} ({loss.fall:.2f})",
        ]
        lines.append([CellText(text, arm=names[0] if len(names) == 1 else None) for text in texts])
    header = ["arm", "n", "own loss", "trivial floor", "nats below", "left it", "at step", "tokens", "still falling"]
    held_out = _join_arms(table, [arm.name for arm in table.arms if arm.own and arm.own.held_out])
    written = _join_arms(table, [arm.name for arm in table.arms if arm.own and arm.own.written])
    same = f"; in {held_out} it is the loss of the held-out evaluation" if held_out else ""
    to_the_end = f" (in {written} to the end, because a generator writes ever harder text)" if written else ""
    below = [
        f"Own loss: the loss on held-out text under the arm's own input format and noise, in nats{same}. "
        "Trivial floor: the loss of a model that knows only how frequent tokens are and what kind their neighbors are. "
        f"Left it: runs that were more than {LEFT:.0%} below the floor at some point{to_the_end}; "
        "memorized: other runs that ended that far above their first loss, because they memorized their training "
        f"text. Still falling: runs whose loss fell by more than {FALLING} nats over the last quarter of their tokens, "
        "and the mean fall.",
        "A contrast decides nothing if one of its runs has neither left its floor nor memorized its text."
        if table.universe is None
        else "A setting counts, for all arms, if the baseline's run left its floor or memorized its text.",
    ]
    return Block("Pre-training of each arm", header, lines, below)


def _join_arms(table: Table, names: Sequence[str]) -> str:
    """The names of arms, or `all arms`."""
    return "all arms" if len(names) == len(table.arms) > 1 else ", ".join(names)


def _format_span(span: tuple[int, int] | None) -> str:
    """Such as `800 to 2,000`."""
    return NONE if span is None else " to ".join(f"{value:,}" for value in dict.fromkeys(span))


def _make_orders(table: Table) -> Block:
    """How well our order of the arms agrees with the paper's."""
    paper = table.paper
    lines = (
        []
        if paper is None
        else [
            [
                CellText(row.column),
                CellText(row.metric, paper=paper.table),
                CellText(", ".join(row.arms)),
                CellText(_format_estimate(row.tau, row.ci_low, row.ci_high)),
                CellText(str(row.n)),
            ]
            for row in paper.orders
        ]
    )
    below = ["Kendall's tau: 1 is the paper's order, -1 its reverse; [95% interval over seeds]."]
    header = ["column", "the paper's metric", "arms", "tau", "n"]
    return Block("Order of the arms, ours and the paper's", header, lines, below, left=3)


def make_evidence(table: Table, claim: ClaimRow) -> Block:
    """The evidence of a claim; with the paper's own difference if it prints one in the same unit."""
    header = [
        "column", "contrast", "difference", "interval", "level", "margin", "p (zero)", "p of the claim", "n", "verdict",
    ]  # fmt: skip
    lines = []
    for row in claim.contrasts:
        column = row.column
        texts = [
            column,
            row.pair,
            format_number(table, column, row.difference, 1, sign=True),
            format_interval(table, column, row.ci_low, row.ci_high, 1, space="") or NONE,
            NONE if row.level is None else f"{100.0 * row.level:.4g}%",
            format_number(table, column, row.margin, 1),
            format_p(row.p),
            format_p(row.p_holm),
            row.n_text,
            row.verdict + (f" ({row.reason})" if row.reason else ""),
        ]
        lines.append([CellText(text, arm=row.arm if at in (1, 2, 3, 4) else None) for at, text in enumerate(texts)])
    if table.paper and any(row.published is not None for row in claim.contrasts):
        header.insert(5, "the paper's difference")
        for line, row in zip(lines, claim.contrasts, strict=True):
            value = format_number(table, row.column, row.published, sign=True)
            line.insert(5, CellText(value, paper=None if value == NONE else table.paper.table))
    if any(row.superiority is not None for row in claim.contrasts):
        header[-1:-1] = ["P(better)", "order"]
        for line, row in zip(lines, claim.contrasts, strict=True):
            line[-1:-1] = [
                CellText(NONE if row.superiority is None else f"{row.superiority:.0%}"),
                CellText(NONE if row.order is None else f"{row.order:.2f}"),
            ]
    if claim.checks:
        header.insert(-1, "checks")
        for line, row in zip(lines, claim.contrasts, strict=True):
            line.insert(-1, CellText(mark_checks(row.checks) or NONE))
    unpaired = any(row.counts for row in claim.contrasts)
    below = [_READ.format(test="t-test" if unpaired else "paired t-test"), *[_UNPAIRED] * unpaired]
    below += [_ORDER] * any(row.superiority is not None for row in claim.contrasts)
    below += explain_checks(table, claim)
    return Block(claim.text, header, lines, below, left=2, last=1)


def mark_checks(checks: Sequence[Check]) -> str:
    """A mark for each check, in the order of `CHECKS`, such as `✓✗✓✓–✓`."""
    return "".join(CHECK_MARKS[check.state] for check in checks)


def describe_marks() -> str:
    """What the marks say."""
    asked = ", ".join(f"({at}) {what}" for at, what in enumerate(CHECKS.values(), 1))
    states = ", ".join(f"{mark} {state}" for state, mark in CHECK_MARKS.items())
    return f"Checks: {asked}; {states}."


def explain_checks(table: Table, claim: ClaimRow) -> list[str]:
    """Each reason for which a check fails or is not known, and what is shown beside it."""
    lines = []
    for at in range(len(CHECKS)):
        for state, verb in ((FAILS, "fails"), (NOT_KNOWN, "is not known")):
            checks = [row.checks[at] for row in claim.contrasts if row.checks and row.checks[at].state == state]
            reasons = list(dict.fromkeys(check.reason for check in checks))
            lines += [f"Check {at + 1} {verb}: {'; '.join(reasons)}."] if reasons else []
    return lines + list(dict.fromkeys(said for row in claim.contrasts if (said := say_after_exit(row))))


def say_after_exit(row: ContrastRow) -> str:
    """The arms at equal tokens after their exits, in a sentence; empty if their exits are alike."""
    after = row.after_exit
    if after is None:
        return ""
    first, second = after.below
    interval = "" if after.ci_low is None else f" [{after.ci_low:.2f}, {after.ci_high:.2f}]"
    unlike = "" if after.comparable else "; the arms differ in what this loss asks"
    return (
        f"Without a verdict: {after.tokens:,} tokens after each run left the plateau, the own loss is {first:.2f} nats "
        f"below its floor in {row.arm} and {second:.2f} in {row.versus}, a difference of "
        f"{after.difference:+.2f}{interval} (n={after.n}){unlike}."
    )


def say_claim(table: Table, claim: ClaimRow) -> str:
    """The verdict of a claim, its words over settings, whether it explores or confirms, and the ratios of its arms'
    FLOPs and predictions if these are not alike.
    """
    stage = [table.stage] if table.stage and claim.verdict != NOT_RUN else []
    return "; ".join([claim.said, *claim.words, *stage, *compare_costs(table, claim)])


def compare_costs(table: Table, claim: ClaimRow) -> list[str]:
    """The ratios of FLOPs and predictions, for each pair of a claim's arms in which they are not alike."""
    matched = table.budget.matched
    unequal = matched == UNMATCHED or table.scale == TRIAL
    equal = "" if unequal else f"at equal {'FLOPs' if matched == 'flops' else matched}, "
    comparisons = []
    for arm, versus in dict.fromkeys((row.arm, row.versus) for row in claim.contrasts if row.sides is None):
        first, second = (table.budget.arms.get(name, {}) for name in (arm, versus))
        ratios = {unit: first[key] / second[key] for unit, key in _COSTS if first.get(key) and second.get(key)}
        unlike = [f"{ratio:.2f} times the {unit}" for unit, ratio in ratios.items() if abs(math.log(ratio)) > _ALIKE]
        if unlike:
            comparisons.append(f"{equal}{arm} used {' and '.join(unlike)} of {versus}")
    return comparisons


def describe_budget(table: Table) -> str:
    """One line on budgets: what is matched and what each arm really used."""
    if table.replication == TUNINGS:
        return "No arm was pre-trained: all fine-tune the same checkpoint."
    if table.replication == RUNS:
        return "Budgets were not compared."
    budget = table.budget
    spent = {arm.name: budget.arms.get(arm.name, {}) for arm in table.arms}
    key = BUDGETS.get(budget.matched, budget.matched)
    used = {arm: f"{values[key]:,.0f}" for arm, values in spent.items() if key in values}
    alike = len(used) == len(table.arms) and len(set(used.values())) == 1
    parts = [f"{next(iter(used.values()))} by all arms"] if alike else [" ".join(pair) for pair in used.items()]
    unmatched = budget.matched == UNMATCHED
    matched = "Budgets differ by design" if unmatched else f"Matched {budget.matched} (within 1%)"
    return f"{matched}. Used: {'; '.join(parts)}."


def describe_arms(table: Table) -> list[str]:
    """One line per arm: the config keys in which it differs from the baseline."""
    lines = []
    for arm in table.arms:
        if arm.name in table.audit.differences and arm.name != table.baseline:
            changes = "; ".join(describe_changes(table.audit.differences[arm.name]))
            lines.append(f"{arm.name} differs from the baseline in {changes or 'nothing'}.")
    return lines


def list_notes(table: Table) -> list[str]:
    """Everything that is listed below a table."""
    sources = [f"Source of the paper's numbers: {source}" for source in table.sources]
    checked = any(claim.checks for claim in table.claims)
    return [*[describe_marks()] * checked, *table.notes, describe_budget(table), *describe_arms(table), *sources]
