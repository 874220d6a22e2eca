"""The table for a paper: booktabs in one type size, for `\\input`. What is too wide for a column goes on below."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import compress, groupby
from typing import NamedTuple

from paribus.reporting.tables.blocks import (
    NONE,
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
from paribus.reporting.tables.schema import AnchorRow, ArmRow, Cell, Table

_SIZE = r"\footnotesize"
_WIDE = 340.0  # points, a little less than the line of an article
_LETTER, _GAP = 4.3, 6.0  # points: of a letter in that size, about; between columns
_NARROW = 8  # letters up to which a heading is not broken
_LONG = 80  # letters of a line of words, which is broken beyond
_FOREIGN = 0x180  # letters from here on are not in LaTeX's usual fonts
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
}


class Column(NamedTuple):
    """A column: its cells, each of one line or more; `group`: what stands above its heading; `words`: flush left."""

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


def render_latex(table: Table) -> str:
    """Results beside the paper's numbers, comparisons, and the evidence of each claim, as one float each."""
    results = make_results(table)
    parts = ["% needs \\usepackage[utf8]{inputenc} \\usepackage{booktabs}"]
    parts.append(_render_float(*_list_results(table), _make_caption(table, results)))
    parts += [_render_block(block, _make_caption(table, block)) for block in make_comparisons(table)]
    for claim in table.claims:
        if claim.contrasts:
            caption = f"{claim.sentence}: {say_claim(table, claim)}. {describe_budget(table)}"
            parts.append(_render_block(make_evidence(table, claim), caption))
    parts += [f"% {_join_lines(note)}" for note in (*table.notes, *table.sources)]
    return "\n".join(parts) + "\n"


def _make_caption(table: Table, block: Block) -> str:
    paper = "" if table.paper is None else f" Paper: {table.paper.source}; {table.paper.setting}"
    return f"{table.study}. {block.heading}. {' '.join(block.below)}{paper}"


def _list_results(table: Table) -> tuple[list[Column], list[Column]]:
    """(arm and n, our columns and then the paper's)."""
    rows: tuple[ArmRow | AnchorRow, ...] = (*table.arms, *table.anchors)
    stub = [
        Column("arm", [_split_name(format_name(table, row)) for row in rows], words=True),
        Column("n", [[Text(NONE if row.n is None else str(row.n))] for row in rows]),
    ]
    ours = [
        Column(format_heading(table, column), [_make_cell(table, row, column) for row in rows], "ours")
        for column in table.columns
    ]
    metrics = (*table.beside.values(), *(table.paper.own if table.paper else ()))
    papers = [Column(metric, [[_make_printed(row, metric)] for row in rows], "paper") for metric in metrics]
    return stub, [*ours, *papers]


def _split_name(name: str) -> list[Text]:
    """An arm, and below it what stands behind it in brackets."""
    head, found, tail = name.partition(" (")
    return [Text(head), Text(f"({tail}")] if found else [Text(name)]


def _make_cell(table: Table, row: ArmRow | AnchorRow, column: str) -> list[Text]:
    """Mean (standard deviation), and below it the interval."""
    found = row.metrics.get(column)
    mean = format_number(table, column, None if found is None else found.mean)
    if not isinstance(found, Cell):
        return [Text(mean)]
    sd = f" ({format_number(table, column, found.sd)})" if found.sd is not None else ""
    first = Text(mean + sd, isinstance(row, ArmRow) and column in row.best)
    ends = format_interval(table, column, found.ci_low, found.ci_high, space="")
    return [first, Text(ends)] if ends else [first]


def _make_printed(row: ArmRow | AnchorRow, metric: str) -> Text:
    found = row.published.get(metric) if isinstance(row, ArmRow) else None
    return Text(NONE if found is None else found.shown)


def _list_columns(block: Block) -> list[Column]:
    return [
        Column(head, [[line[at]] for line in block.lines], words=at < block.left)
        for at, head in enumerate(block.header)
    ]


def _render_block(block: Block, caption: str) -> str:
    """A block; if it has several columns of words, each line as words above a line of numbers."""
    columns, end = _list_columns(block), len(block.header) - block.last
    if block.left == 1:
        return _render_float(columns[:1], columns[1:], caption)
    words = [(*line[: block.left], *line[end:]) for line in block.lines]
    titles = [": ".join(text.text.partition(" (")[0] for text in line) for line in words]
    return _render_float([], columns[block.left : end], caption, titles)


def _render_float(stub: Sequence[Column], rest: Sequence[Column], caption: str, titles: Sequence[str] = ()) -> str:
    panels = [
        _render_tabular([*stub, *panel] if titles else _drop_empty(stub, panel), titles) for panel in _split(stub, rest)
    ]
    lines = [
        r"\begin{table}[t]",
        r"\centering",
        _SIZE,
        r"\setlength{\tabcolsep}{3pt}",
        rf"\caption{{{escape(caption)}}}",
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
    """Text as LaTeX sets it literally."""
    return "".join(_ESCAPES.get(letter, letter if ord(letter) < _FOREIGN else "?") for letter in _join_lines(text))


def _join_lines(text: str) -> str:
    return " ".join(text.split())


def _render_cell(cell: Text) -> str:
    return rf"\textbf{{{escape(cell.text)}}}" if cell.best else escape(cell.text)
