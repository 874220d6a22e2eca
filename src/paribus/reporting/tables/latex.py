"""The table for a paper: booktabs in one type size, for `\\input`. A table that is too wide continues below."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import compress, groupby
from typing import NamedTuple

from paribus.reporting.tables.blocks import (
    NONE,
    NOT_RUN_HERE,
    Block,
    Text,
    describe_budget,
    format_heading,
    format_interval,
    format_name,
    format_number,
    make_comparisons,
    make_evidence,
    make_results,
    say_claim,
)
from paribus.reporting.tables.facts import write_line
from paribus.reporting.tables.names import name_arm, name_column, name_metric
from paribus.reporting.tables.schema import AnchorRow, ArmRow, Cell, Table
from paribus.reporting.tables.styles import BOTH, STYLES

_NEEDS = r"% needs \usepackage[utf8]{inputenc} \usepackage{booktabs}"
_SIZE = r"\footnotesize"
_WIDE = 340.0  # points, a little less than the line of an article
_LETTER, _GAP = 4.3, 6.0  # points: of a letter in that size, about; between columns
_NARROW = 8  # letters up to which a heading is not broken
_LONG = 80  # letters of a line of words, which is broken beyond
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
    "∞": r"$\infty$",
    **{letter: rf"$\{name}$" for letter, name in _GREEK.items()},
    **{letter: rf"$\{_GREEK[letter.lower()].capitalize()}$" for letter in _CAPITALS},
}


class Column(NamedTuple):
    """A column: its cells, each of one line or more; `group`: the heading above its own; `words`: flush left."""

    head: str
    cells: Sequence[Sequence[Text]]
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
        found = [""]
        for word in re.findall(r"[^\s/_]+[/_]*", self.head):
            glue = "" if not found[-1] or found[-1].endswith(("/", "_")) else " "
            if found[-1] and len(found[-1] + glue + word) > most:
                found.append(word)
            else:
                found[-1] += glue + word
        return found


def render_latex(table: Table, style: str = BOTH) -> str:
    """Results beside the paper's numbers, as one float.

    style: of a mean; one of `STYLES`.
    """
    caption = f"{_make_caption(table, make_results(table), style)} {write_line(table.facts)}".rstrip()
    parts = [_NEEDS, _render_float(*_list_results(table, style), caption, _make_label(table)), *_list_remarks(table)]
    return "\n".join(parts) + "\n"


def render_evidence(table: Table) -> str:
    """Comparisons and the evidence of each claim, as one float each."""
    blocks = [(block, _make_caption(table, block)) for block in make_comparisons(table)]
    for claim in table.claims:
        if claim.contrasts:
            caption = f"{claim.sentence}: {say_claim(table, claim)}. {describe_budget(table)}"
            blocks.append((make_evidence(table, claim), caption))
    floats = [_render_block(block, said, f"{_make_label(table)}-{at}") for at, (block, said) in enumerate(blocks, 2)]
    return "\n".join([_NEEDS, *floats, *_list_remarks(table)]) + "\n"


def _make_label(table: Table) -> str:
    return f"tab:{table.study}-{table.scale}".replace("_", "-").rstrip("-")


def _list_remarks(table: Table) -> list[str]:
    """The notes and sources as comments."""
    return [f"% {_join_lines(note)}" for note in (*table.notes, *table.sources)]


def _make_caption(table: Table, block: Block, style: str = BOTH) -> str:
    below = " ".join(said for said in block.below if said != NOT_RUN_HERE).replace(STYLES[BOTH], STYLES[style])
    return f"{table.study}. {block.heading}. {below}"


def _list_results(table: Table, style: str) -> tuple[list[Column], list[Column]]:
    """(arm and n, our columns and then the paper's). A column that was not run has the paper's number alone."""
    rows: tuple[ArmRow | AnchorRow, ...] = (*table.arms, *table.anchors)
    stub = [
        Column("arm", [_split_name(name_arm(format_name(table, row))) for row in rows], words=True),
        Column("n", [[Text(NONE if row.n is None else str(row.n))] for row in rows]),
    ]
    ours = [
        Column(_name_heading(table, column), [_make_cell(table, row, column, style) for row in rows], "ours")
        for column in table.columns
    ]
    named = {metric: name_column(column) for column, metric in {**table.beside, **table.absent}.items()}
    named |= {metric: name_metric(metric) for metric in (table.paper.own if table.paper else ())}
    papers = [Column(name, [[_make_printed(row, one)] for row in rows], "paper") for one, name in named.items()]
    return stub, [*ours, *papers]


def _split_name(name: str) -> list[Text]:
    """An arm, and below it what follows its name in brackets."""
    head, found, tail = name.partition(" (")
    return [Text(head), Text(f"({tail}")] if found else [Text(name)]


def _name_heading(table: Table, column: str) -> str:
    return format_heading(table, column).replace(column, name_column(column))


def _make_cell(table: Table, row: ArmRow | AnchorRow, column: str, style: str) -> list[Text]:
    """Mean (standard deviation), and below it the interval; or with one of them on one line."""
    found = row.metrics.get(column)
    mean = format_number(table, column, None if found is None else found.mean)
    if not isinstance(found, Cell):
        return [Text(mean)]
    best = isinstance(row, ArmRow) and column in row.best
    spread = "" if found.sd is None else format_number(table, column, found.sd)
    ends = format_interval(table, column, found.ci_low, found.ci_high, space="")
    if style != BOTH:
        beside = f" ± {spread}" if spread and style == "sd" else f" {ends}" if style == "interval" else ""
        return [Text((mean + beside).rstrip(), best)]
    first = Text(mean + (f" ({spread})" if spread else ""), best)
    return [first, Text(ends)] if ends else [first]


def _make_printed(row: ArmRow | AnchorRow, metric: str) -> Text:
    found = row.published.get(metric) if isinstance(row, ArmRow) else None
    return Text(NONE if found is None else found.shown)


def _list_columns(block: Block) -> list[Column]:
    named = [
        [cell._replace(text=_name_words(cell.text)) if at < block.left else cell for at, cell in enumerate(line)]
        for line in block.lines
    ]
    return [
        Column(_name_words(head), [[line[at]] for line in named], words=at < block.left)
        for at, head in enumerate(block.header)
    ]


def _name_words(text: str) -> str:
    """Columns and arms in a text as a paper prints them."""
    return " ".join(name_column(w) if "/" in w or w.endswith("_loss") else name_arm(w) for w in text.split(" "))


def _render_block(block: Block, caption: str, label: str) -> str:
    """A block; if it has several columns of words, each line as words above a line of numbers."""
    columns, end = _list_columns(block), len(block.header) - block.last
    if block.left == 1:
        return _render_float(columns[:1], columns[1:], caption, label)
    words = [(*line[: block.left], *line[end:]) for line in block.lines]
    titles = [": ".join(_name_words(text.text).partition(" (")[0] for text in line) for line in words]
    return _render_float([], columns[block.left : end], caption, label, titles)


def _render_float(
    stub: Sequence[Column], rest: Sequence[Column], caption: str, label: str, titles: Sequence[str] = ()
) -> str:
    panels = [
        _render_tabular([*stub, *panel] if titles else _drop_empty(stub, panel), titles) for panel in _split(stub, rest)
    ]
    lines = [
        r"\begin{table}[t]",
        r"\centering",
        _SIZE,
        r"\setlength{\tabcolsep}{3pt}",
        rf"\caption{{{escape(caption)}}}",
        rf"\label{{{label}}}",
    ]
    return "\n".join([*lines, "\n\\medskip\n\n".join(panels), r"\end{table}"])


def _drop_empty(stub: Sequence[Column], panel: Sequence[Column]) -> list[Column]:
    """Stub and panel without the rows of which the panel has no number."""
    full = [any(row[0].text != NONE for row in cells) for cells in zip(*(one.cells for one in panel), strict=True)]
    return [column._replace(cells=list(compress(column.cells, full))) for column in (*stub, *panel)]


def _split(stub: Sequence[Column], rest: Sequence[Column]) -> list[list[Column]]:
    """Columns in panels that fit a line beside the stub."""
    panels: list[list[Column]] = [[]]
    for column in rest:
        used = sum(one.width for one in (*stub, *panels[-1], column))
        if panels[-1] and used > _WIDE:
            panels.append([])
        panels[-1].append(column)
    return panels


def _render_tabular(columns: Sequence[Column], titles: Sequence[str]) -> str:
    spec = "".join("l" if column.words else "r" for column in columns)
    rows = [line for at in range(len(columns[0].cells)) for line in _render_row(columns, at, titles)]
    heads = [*_render_groups(columns), " & ".join(map(_render_head, columns)) + r" \\"]
    return "\n".join(
        [rf"\begin{{tabular}}{{{spec}}}", r"\toprule", *heads, r"\midrule", *rows, r"\bottomrule", r"\end{tabular}"]
    )


def _render_groups(columns: Sequence[Column]) -> Iterator[str]:
    """A line that says which columns are ours and which the paper's."""
    if len({column.group for column in columns if column.group}) < 2:
        return
    names, rules, at = [], [], 1
    for group, members in groupby(columns, lambda column: column.group):
        count = len(list(members))
        names.append(rf"\multicolumn{{{count}}}{{c}}{{{group}}}" if group else " & ".join([""] * count))
        rules += [rf"\cmidrule(lr){{{at}-{at + count - 1}}}"] if group else []
        at += count
    yield " & ".join(names) + r" \\"
    yield "".join(rules)


def _render_head(column: Column) -> str:
    lines = [escape(line) for line in column.heading]
    stacked = r"\\".join(lines)
    return lines[0] if len(lines) == 1 else rf"\shortstack[{'l' if column.words else 'r'}]{{{stacked}}}"


def _render_row(columns: Sequence[Column], at: int, titles: Sequence[str]) -> Iterator[str]:
    if titles:
        kind = "l" if len(titles[at]) < _LONG else r"p{.95\linewidth}"
        yield rf"\multicolumn{{{len(columns)}}}{{{kind}}}{{{escape(titles[at])}}} \\"
    for line in range(max(len(column.cells[at]) for column in columns)):
        cells = (column.cells[at][line] if line < len(column.cells[at]) else Text("") for column in columns)
        yield " & ".join(_render_cell(cell) for cell in cells) + r" \\"
    if at + 1 < len(columns[0].cells):
        yield r"\addlinespace"


def escape(text: str) -> str:
    """Text as LaTeX sets it literally; letters that its fonts lack are kept, and only some engines set them."""
    signed = re.sub(r"(?<![\w.-])-(?=\d)", "−", _join_lines(text))
    letters = "".join(_ESCAPES.get(letter, letter) for letter in signed)
    return re.sub(r"(?<!\\)\$\$", "", letters)  # signs that follow each other are one formula


def _join_lines(text: str) -> str:
    return " ".join(text.split())


def _render_cell(cell: Text) -> str:
    return rf"\textbf{{{escape(cell.text)}}}" if cell.best else escape(cell.text)
