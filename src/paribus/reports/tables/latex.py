"""The table for a paper: booktabs in one type size, for `\input`. A table that is too wide continues below."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import compress, groupby, zip_longest
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined

from paribus.reports.tables.blocks import (
    NONE,
    NOT_RUN_HERE,
    Block,
    CellText,
    describe_budget,
    describe_marks,
    explain_checks,
    format_heading,
    format_interval,
    format_name,
    format_number,
    make_comparisons,
    make_evidence,
    make_results,
    say_claim,
)
from paribus.reports.tables.facts import write_line
from paribus.reports.tables.schema import BOTH, STYLES, AnchorRow, ArmRow, Cell, Table
from paribus.verdict.metrics import is_task

_WIDE = 340.0  # points, a little less than the line of an article
_LETTER, _GAP = 4.3, 6.0  # points: of a letter in that size, about; between columns
_NARROW = 8  # letters up to which a heading is not broken
_LONG = 80  # letters of a line of words from which on it is broken
TASKS = {  # names that papers print
    "sst2": "SST-2", "mnli": "MNLI", "qnli": "QNLI", "qqp": "QQP", "rte": "RTE", "mrpc": "MRPC", "cola": "CoLA",
    "stsb": "STS-B", "boolq": "BoolQ", "squad_v1": "SQuAD 1.1", "squad_v2": "SQuAD 2.0", "imdb": "IMDb",
    "ag_news": "AG News", "wnut_17": "WNUT-17", "race": "RACE", "nli_stsb": "STS-B",
}  # fmt: skip
WORDS = {
    "mlm": "MLM", "clm": "CLM", "nsp": "NSP", "sop": "SOP", "f1": "F1", "em": "EM", "mcc": "MCC", "rouge": "ROUGE",
    "bleu": "BLEU",
}  # fmt: skip
_GREEK = {
    "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "epsilon", "ζ": "zeta", "η": "eta", "θ": "theta",
    "ι": "iota", "κ": "kappa", "λ": "lambda", "μ": "mu", "ν": "nu", "ξ": "xi", "π": "pi", "ρ": "rho", "σ": "sigma",
    "ς": "varsigma", "τ": "tau", "υ": "upsilon", "φ": "phi", "χ": "chi", "ψ": "psi", "ω": "omega",
}  # fmt: skip
_CAPITALS = "ΓΔΘΛΞΠΣΥΦΨΩ"  # the other ones look like Latin letters
_ESCAPES = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
    "†": r"$\dagger$",
    "≥": r"$\geq$",
    "…": r"\ldots{}",
    "’": "'",
    "–": "--",
    "×": r"$\times$",
    "±": r"$\pm$",
    "−": "$-$",
    "≤": r"$\leq$",
    "≈": r"$\approx$",
    "≠": r"$\neq$",
    "→": r"$\to$",
    "✓": r"$\surd$",
    "✗": r"$\times$",
    "∞": r"$\infty$",
    **{letter: rf"$\{name}$" for letter, name in _GREEK.items()},
    **{letter: rf"$\{_GREEK[letter.lower()].capitalize()}$" for letter in _CAPITALS},
}


class LatexColumn(NamedTuple):
    """A column: its cells, each of one line or more; `group`: the heading above its own; `words`: flush left."""

    head: str
    cells: Sequence[Sequence[CellText]]
    group: str = ""
    words: bool = False

    @property
    def width(self) -> float:
        """In points, with the gap."""
        lines = [len(text.text) for cell in self.cells for text in cell]
        return max([*lines, *map(len, self.heading)]) * _LETTER + _GAP

    @property
    def heading(self) -> list[str]:
        """The heading in lines that are hardly wider than the cells."""
        most = max([_NARROW, *(len(text.text) for cell in self.cells for text in cell)])
        lines = [""]
        for word in re.findall(r"[^\s/_]+[/_]*", self.head):
            glue = "" if not lines[-1] or lines[-1].endswith(("/", "_")) else " "
            if lines[-1] and len(lines[-1] + glue + word) > most:
                lines.append(word)
            else:
                lines[-1] += glue + word
        return lines


def render_latex(table: Table, style: str = BOTH) -> str:
    """Results beside the paper's numbers, as one float.

    style: of a mean; one of `STYLES`.
    """
    caption = f"{_make_caption(table, make_results(table), style)} {write_line(table.facts)}".rstrip()
    rows: tuple[ArmRow | AnchorRow, ...] = (*table.arms, *table.anchors)
    printed = [row.published if isinstance(row, ArmRow) else {} for row in rows]
    stub = [
        LatexColumn("arm", [_split_name(name_arm(format_name(table, row))) for row in rows], words=True),
        LatexColumn("n", [[CellText(NONE if row.n is None else str(row.n))] for row in rows]),
    ]
    columns = []  # ours and then the paper's; a column that was not run has the paper's number alone
    for column in table.columns:
        heading = format_heading(table, column).replace(column, name_column(column))
        columns.append(LatexColumn(heading, [_make_cell(table, row, column, style) for row in rows], "ours"))
    metrics = {metric: name_column(column) for column, metric in {**table.beside, **table.absent}.items()}
    metrics |= {metric: name_metric(metric) for metric in (table.paper.own if table.paper else ())}
    for metric, name in metrics.items():
        texts = [values[metric].shown if metric in values else NONE for values in printed]
        columns.append(LatexColumn(name, [[CellText(text)] for text in texts], "paper"))
    return _render(table, [_make_float(stub, columns, caption, _make_label(table))])


def render_evidence(table: Table) -> str:
    """Comparisons and the evidence of each claim, as one float each."""
    blocks = [(block, _make_caption(table, block)) for block in make_comparisons(table)]
    for claim in table.claims:
        if claim.contrasts:
            said = [f"{claim.sentence}: {say_claim(table, claim)}.", describe_budget(table)]
            said += [describe_marks(), *explain_checks(table, claim)] if claim.checks else []
            blocks.append((make_evidence(table, claim), " ".join(said)))
    label = _make_label(table)
    return _render(table, [_lay_out_block(block, said, f"{label}-{at}") for at, (block, said) in enumerate(blocks, 2)])


def _render(table: Table, floats: Sequence[Mapping[str, Any]]) -> str:
    """The floats, and the notes and sources as comments."""
    remarks = [_join_lines(note) for note in (*table.notes, *table.sources)]
    return _make_environment().get_template("table.tex").render(floats=floats, remarks=remarks)


@cache
def _make_environment() -> Environment:
    """Jinja with commands as its delimiters, because LaTeX itself uses braces and percent signs."""
    made = Environment(
        loader=PackageLoader("paribus.reports"),
        block_start_string=r"\BLOCK{",
        block_end_string="}",
        variable_start_string=r"\VAR{",
        variable_end_string="}",
        comment_start_string=r"\COMMENT{",
        comment_end_string="}",
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters["escape"] = escape
    return made


def _make_label(table: Table) -> str:
    return f"tab:{table.study}-{table.scale}".replace("_", "-").rstrip("-")


def _make_caption(table: Table, block: Block, style: str = BOTH) -> str:
    below = " ".join(said for said in block.below if said != NOT_RUN_HERE).replace(STYLES[BOTH], STYLES[style])
    return f"{table.study}. {block.heading}. {below}"


def _split_name(name: str) -> list[CellText]:
    """An arm, and below it what follows its name in brackets."""
    head, bracket, tail = name.partition(" (")
    return [CellText(head), CellText(f"({tail}")] if bracket else [CellText(name)]


def _make_cell(table: Table, row: ArmRow | AnchorRow, column: str, style: str) -> list[CellText]:
    """Mean (standard deviation), and below it the interval; or with one of them on one line."""
    cell = row.metrics.get(column)
    mean = format_number(table, column, None if cell is None else cell.mean)
    if not isinstance(cell, Cell):
        return [CellText(mean)]
    best = isinstance(row, ArmRow) and column in row.best
    sd = "" if cell.sd is None else format_number(table, column, cell.sd)
    interval = format_interval(table, column, cell.ci_low, cell.ci_high, space="")
    if style != BOTH:
        beside = f" ± {sd}" if sd and style == "sd" else f" {interval}" if style == "interval" else ""
        return [CellText((mean + beside).rstrip(), best)]
    first = CellText(mean + (f" ({sd})" if sd else ""), best)
    return [first, CellText(interval)] if interval else [first]


def name_column(column: str) -> str:
    """A column as a paper prints it."""
    task, _, metric = column.rpartition("/") if is_task(column) else ("", "", column)
    words = " ".join(WORDS.get(word, word) for word in metric.split("_"))
    return " ".join(filter(None, (TASKS.get(task, task.replace("_", " ")), words)))


def name_metric(metric: str) -> str:
    """A metric of a published table, such as `sst2_acc`, as a paper prints it."""
    return " ".join(TASKS.get(word, WORDS.get(word, word)) for word in metric.split("_"))


def name_arm(arm: str) -> str:
    """An arm as a paper prints it."""
    return arm.replace("_", " ")


def _name_words(text: str) -> str:
    """Columns and arms in a text as a paper prints them."""
    return " ".join(name_column(w) if "/" in w or w.endswith("_loss") else name_arm(w) for w in text.split(" "))


def _lay_out_block(block: Block, caption: str, label: str) -> dict[str, Any]:
    """A block; if it has several columns of words, each line as words above a line of numbers."""
    columns, end = [], len(block.header) - block.last
    for at, head in enumerate(block.header):
        is_words, cells = at < block.left, [line[at] for line in block.lines]
        named = [cell._replace(text=_name_words(cell.text)) if is_words else cell for cell in cells]
        columns.append(LatexColumn(_name_words(head), [[cell] for cell in named], words=is_words))
    if block.left == 1:
        return _make_float(columns[:1], columns[1:], caption, label)
    words = [(*line[: block.left], *line[end:]) for line in block.lines]
    titles = [": ".join(_name_words(text.text).partition(" (")[0] for text in line) for line in words]
    panels = [_make_tabular(panel, titles) for panel in _split([], columns[block.left : end])]
    return {"caption": caption, "label": label, "panels": panels}


def _make_float(stub: Sequence[LatexColumn], rest: Sequence[LatexColumn], caption: str, label: str) -> dict[str, Any]:
    """Panels that fit a line, each with the stub, without the rows of which it has no number."""
    panels = []
    for panel in _split(stub, rest):
        rows = zip(*(column.cells for column in panel), strict=True)
        full = [any(cell[0].text != NONE for cell in row) for row in rows]
        kept = [column._replace(cells=list(compress(column.cells, full))) for column in (*stub, *panel)]
        panels.append(_make_tabular(kept))
    return {"caption": caption, "label": label, "panels": panels}


def _split(stub: Sequence[LatexColumn], rest: Sequence[LatexColumn]) -> list[list[LatexColumn]]:
    """Columns in panels that fit a line beside the stub."""
    panels: list[list[LatexColumn]] = [[]]
    for column in rest:
        used = sum(one.width for one in (*stub, *panels[-1], column))
        if panels[-1] and used > _WIDE:
            panels.append([])
        panels[-1].append(column)
    return panels


def _make_tabular(columns: Sequence[LatexColumn], titles: Sequence[str] = ()) -> dict[str, Any]:
    """Columns that stand beside each other; a cell with fewer lines than its neighbors is empty below.

    titles: words above the lines of each row. Columns that follow each other, numbered from 1, have one heading as a
    group; there are no groups if all columns have the same source.
    """
    lines = []
    for at, cells in enumerate(zip(*(column.cells for column in columns), strict=True)):
        printed = list(zip_longest(*cells, fillvalue=CellText("")))
        title = titles[at] if titles else ""
        lines.append({"printed": printed, "title": title, "long": len(title) >= _LONG})
    groups: list[dict[str, Any]] = []
    if len({column.group for column in columns if column.group}) > 1:
        for name, members in groupby(enumerate(columns, 1), lambda numbered: numbered[1].group):
            numbers = [number for number, _ in members]
            groups.append({"name": name, "first": numbers[0], "last": numbers[-1]})
    return {"columns": columns, "groups": groups, "lines": lines}


def escape(text: str) -> str:
    """CellText as LaTeX sets it literally; letters that its fonts lack are kept, and only some engines set them."""
    signed = re.sub(r"(?<![\w.-])-(?=\d)", "−", _join_lines(text))
    letters = "".join(_ESCAPES.get(letter, letter) for letter in signed)
    return re.sub(r"(?<!\\)\$\$", "", letters)  # signs that follow each other are one formula


def _join_lines(text: str) -> str:
    return " ".join(text.split())
