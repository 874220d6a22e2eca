"""How numbers and rows of a table are written, the same in every format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from paribus.reporting.tables.build import BUDGETS, Table
from paribus.sweeps.sweep import SCRATCH, UNMATCHED

NONE = "-"


class Cell(NamedTuple):
    """Text of a cell; `best`: to be set in bold; `arm`, `paper`: whose runs, and which published table, it is from."""

    text: str
    best: bool = False
    arm: str | None = None
    paper: str | None = None


class Block(NamedTuple):
    """A rectangular part of the table: a heading, a header line, lines, and what is said below."""

    heading: str
    header: list[str]
    lines: list[list[Cell]]
    below: list[str]
    left: int = 1  # columns of words, set flush left
    last: int = 0  # columns of words at the end, which a page may wrap


def number(table: Table, column: str, value: float | None, extra: int = 0, sign: bool = False) -> str:
    """A value in the unit that the column is read in: accuracies in points, losses in their own unit."""
    if value is None:
        return NONE
    points = table["about"][column]["unit"] == "points"
    decimals = extra + (1 if points else 2 if column.endswith("perplexity") else 3)
    text = f"{value * (100 if points else 1):{'+' if sign else ''}.{decimals}f}"
    return text if float(text) != 0.0 else f"{0.0:.{decimals}f}"


def interval(table: Table, column: str, cell: Mapping[str, Any], extra: int = 0) -> str:
    """`[low, high]`, or nothing where one seed has none."""
    if cell.get("ci_low") is None:
        return ""
    return f" [{number(table, column, cell['ci_low'], extra)}, {number(table, column, cell['ci_high'], extra)}]"


def cell(table: Table, row: Mapping[str, Any], column: str) -> Cell:
    """`mean (sd) [95 % interval]`, with n where it is not that of the row."""
    found = row["metrics"].get(column)
    if found is None:
        return Cell(NONE)
    sd = f" ({number(table, column, found['sd'])})" if found.get("sd") is not None else ""
    text = number(table, column, found["mean"]) + sd + interval(table, column, found)
    n = len(found["values"]) if "values" in found else row["n"]
    text += "" if n == row["n"] else f" n={n}"
    return Cell(text, column in row.get("best", ()))


def label(table: Table, column: str) -> str:
    """`sst2/accuracy ↑`, with a mark where the column decides nothing."""
    about = table["about"][column]
    return f"{column} {'↑' if about['higher_is_better'] else '↓'}" + ("" if about["decides"] else " †")


def p_value(p: float | None) -> str:
    return NONE if p is None else "<0.001" if p < 0.001 else f"{p:.3f}"


def blocks(table: Table) -> list[Block]:
    """The table's parts in reading order: ours beside the paper's, differences to the baseline, the paper's own."""
    parts = (ours(table), differences(table), overall(table), papers(table), orders(table))
    return [block for block in parts if block.lines]


def footnotes(table: Table) -> dict[str, tuple[str, str]]:
    """{arm: (mark, text)} of arms that are not simply all seeds done: failed, missing, kept out, tuned."""
    found: dict[str, list[str]] = {}
    for arm in table["arms"]:
        said = [
            note.rstrip(".") for note in table["notes"] if note.startswith((f"{arm['name']}/seed", f"{arm['name']}:"))
        ]
        if tuned := table.get("tuned", {}).get(arm["name"]):
            chosen = ", ".join(f"{key}={value}" for key, value in tuned.get("chosen", {}).items())
            said.append(f"tuned, {tuned['trials']} trials" + (f": {chosen}" if chosen else ""))
        if said:
            found[arm["name"]] = said
    return {arm: (_mark(at), "; ".join(said)) for at, (arm, said) in enumerate(found.items())}


def _mark(at: int) -> str:
    return chr(ord("a") + at) if at < 26 else str(at + 1)


def ours(table: Table) -> Block:
    beside = table["paper"].get("beside", {})
    header = ["arm", "n"]
    for column in table["columns"]:
        header += [label(table, column)] + ([f"paper: {beside[column]}"] if column in beside else [])
    lines = [_line(table, row, beside) for row in (*table["arms"], *table["anchors"])]
    said = "Mean over pre-training seeds (standard deviation) [95 % interval of the mean, by t]; accuracies in points."
    below = [said, "Bold: better than every other arm by the paired 95 % interval."]
    if not all(about["decides"] for about in table["about"].values()):
        below.append("† decides no claim, see the notes.")
    below += [f"[{mark}] {text}." for mark, text in footnotes(table).values()]
    return Block(f"Results at {table['scale']} scale", header, lines, below)


def _line(table: Table, row: Mapping[str, Any], beside: Mapping[str, str]) -> list[Cell]:
    arm = whose(row)
    line = [Cell(name(table, row), arm=arm), Cell(NONE if row["n"] is None else str(row["n"]), arm=arm)]
    for column in table["columns"]:
        line.append(cell(table, row, column)._replace(arm=arm))
        if column in beside:
            line.append(_papers_cell(table, row, beside[column]))
    return line


def whose(row: Mapping[str, Any]) -> str | None:
    """The arm whose runs a row is made of; None where there are none."""
    if "overrides" in row:
        return str(row["name"])
    return SCRATCH if row["name"] == "from scratch" else None


def _papers_cell(table: Table, row: Mapping[str, Any], metric: str) -> Cell:
    text = paper_number(row, metric)
    return Cell(text, paper=None if text == NONE else table["paper"]["table"])


def name(table: Table, row: Mapping[str, Any]) -> str:
    """An arm with what is amiss with it; the baseline and the anchors say what they are."""
    if "overrides" not in row:
        return f"({row['name']})"
    words = (["baseline"] if row["name"] == table["baseline"] else []) + (
        [] if row["status"] == "done" else [row["status"]]
    )
    mark = footnotes(table).get(row["name"], ("", ""))[0]
    return str(row["name"]) + (f" ({', '.join(words)})" if words else "") + (f" [{mark}]" if mark else "")


def paper_number(row: Mapping[str, Any], metric: str) -> str:
    found = row.get("published", {}).get(metric)
    return NONE if found is None else f"{found['value']}"


def differences(table: Table) -> Block:
    """Each arm less the baseline over their shared seeds."""
    columns = table["columns"]
    lines = [
        [
            Cell(arm["name"], arm=arm["name"]),
            *(
                Cell(_difference(table, arm["versus_baseline"].get(column), column), arm=arm["name"])
                for column in columns
            ),
        ]
        for arm in table["arms"]
        if arm["versus_baseline"]
    ]
    below = ["Paired over shared seeds, [95 % interval], p of the paired t-test against zero (before Holm), n pairs."]
    header = [f"arm - {table['baseline']}", *(label(table, column) for column in columns)]
    return Block("Difference to the baseline", header, lines, below)


def _difference(table: Table, found: Mapping[str, Any] | None, column: str) -> str:
    if found is None:
        return NONE
    text = number(table, column, found["difference"], 1, sign=True) + interval(table, column, found, 1)
    return f"{text} p={p_value(found['p'])} n={found['n']}" if found["p"] is not None else f"{text} n={found['n']}"


def overall(table: Table) -> Block:
    """Each arm over all tasks that decide."""
    found = table.get("aggregate") or {"columns": [], "arms": []}
    lines = [
        [Cell(row["name"], arm=row["name"]), Cell(str(row["n"]), arm=row["name"])]
        + [_estimate(row.get(name), 100.0 if name != "improvement" else 1.0) for name in ("iqm", "gain", "improvement")]
        for row in found["arms"]
    ]
    header = ["arm", "n", "interquartile mean ↑", f"gain over {table['baseline']}", "probability of improvement"]
    below = [f"Over {', '.join(found['columns'])}; [95 % interval by a bootstrap over seeds, stratified by task]."]
    return Block("Over all tasks", header, lines, below)


def _estimate(found: Mapping[str, Any] | None, unit: float) -> Cell:
    if found is None:
        return Cell(NONE)
    value, low, high = (None if x is None else x * unit for x in (found["value"], found["ci_low"], found["ci_high"]))
    decimals = 1 if unit == 100.0 else 2
    ends = "" if low is None else f" [{low:.{decimals}f}, {high:.{decimals}f}]"
    return Cell(f"{value:.{decimals}f}{ends}")


def orders(table: Table) -> Block:
    """How far our order of the arms is the paper's."""
    found = table["paper"].get("orders", [])
    lines = [
        [
            Cell(row["column"]),
            Cell(row["metric"], paper=table["paper"]["table"]),
            Cell(", ".join(row["arms"])),
            _estimate({**row, "value": row["tau"]}, 1.0),
            Cell(str(row["n"])),
        ]
        for row in found
    ]
    below = ["Kendall's tau: 1 is the paper's order, -1 its reverse; [95 % interval over seeds]."]
    header = ["column", "the paper's metric", "arms", "tau", "n"]
    return Block("Order of the arms beside the paper's", header, lines, below, left=3)


def papers(table: Table) -> Block:
    """The paper's columns that have no counterpart of ours: its own metrics, under its own names."""
    paper = table["paper"]
    if not paper:
        return Block("", [], [], [])
    lines = [
        [
            Cell(arm["name"], arm=arm["name"]),
            Cell(paper["rows"][arm["name"]], paper=paper["table"]),
            *(_papers_cell(table, arm, metric) for metric in paper["own"]),
        ]
        for arm in table["arms"]
        if arm["name"] in paper["rows"]
    ]
    below = [f"Setting: {paper['setting']}", *(f"Flag: {flag}" for flag in paper["flags"])]
    heading = f"In the paper ({paper['source']})"
    return Block(heading, ["arm", "the paper's row", *paper["own"]], lines if paper["own"] else [], below, left=2)


def contrasts(table: Table, claim: Mapping[str, Any]) -> Block:
    """The evidence of a claim; with the paper's own difference where there is one in the same unit."""
    header = [
        "column",
        "contrast",
        "difference",
        "95 % interval",
        "margin",
        "p",
        "p for the claim (Holm)",
        "n",
        "verdict",
    ]
    lines = [_contrast(table, found) for found in claim["contrasts"]]
    if any(found.get("published") is not None for found in claim["contrasts"]):
        header.insert(4, "the paper's difference")
        for line, found in zip(lines, claim["contrasts"], strict=True):
            value = number(table, found["column"], found.get("published"), sign=True)
            line.insert(4, Cell(value, paper=None if value == NONE else table["paper"]["table"]))
    return Block(claim["text"], header, lines, [], left=2, last=1)


def _contrast(table: Table, found: Mapping[str, Any]) -> list[Cell]:
    column = found["column"]
    reason = f" ({found['reason']})" if found["reason"] and table["about"][column]["decides"] else ""
    mark = "" if table["about"][column]["decides"] else " †"
    texts = [
        column,
        f"{found['arm']} - {found['versus']}",
        number(table, column, found["difference"], 1, sign=True),
        interval(table, column, found, 1).strip() or NONE,
        number(table, column, found["margin"], 1),
        p_value(found["p"]),
        p_value(found["p_holm"]),
        str(found["n"]),
        found["verdict"] + reason + mark,
    ]
    return [Cell(text, arm=found["arm"] if at in (1, 2, 3) else None) for at, text in enumerate(texts)]


def spent(table: Table) -> str:
    """One line on budgets: what is matched and what was really used."""
    budget = table["budget"]
    key = BUDGETS[budget["matched"]]
    spent = {arm["name"]: budget["arms"].get(arm["name"], {}) for arm in table["arms"]}
    used = [f"{arm} {values[key]:,.0f}" for arm, values in spent.items() if key in values]
    said = (
        "Budgets differ as the arms do"
        if budget["matched"] == UNMATCHED
        else f"Matched {budget['matched']} (within 1 %)"
    )
    return f"{said}, used: {'; '.join(used)}."


def differing(table: Table) -> Sequence[str]:
    """One line an arm: in which keys of the config it differs from the baseline."""
    lines = []
    differences = table["audit"]["differences"]
    for arm in (row["name"] for row in table["arms"] if row["name"] in differences):
        changes = [f"{key} = {own} (baseline: {base})" for key, (base, own) in sorted(differences[arm].items())]
        if arm != table["baseline"]:
            lines.append(f"{arm} differs in " + ("; ".join(changes) if changes else "nothing"))
    return lines
