"""The table for a paper: booktabs, to be read in by `\\input`."""

from __future__ import annotations

from paribus.reporting.tables.build import Table
from paribus.reporting.tables.words import Block, Cell, blocks, contrasts, spent

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


def latex(table: Table) -> str:
    """Results and claims as one float each; needs the packages booktabs and graphicx (for \\resizebox)."""
    parts = ["% needs \\usepackage[utf8]{inputenc} \\usepackage{booktabs} \\usepackage{graphicx}"]
    parts += [_float(block, f"{table['study']}. {block.heading}. {' '.join(block.below)}") for block in blocks(table)]
    parts += [
        _float(contrasts(table, claim), f"{claim['text']}: {claim['said']}. {spent(table)}")
        for claim in table["claims"]
        if claim["contrasts"]
    ]
    parts += [f"% {_one_line(note)}" for note in (*table["notes"], *table["sources"])]
    return "\n".join(parts) + "\n"


def escape(text: str) -> str:
    """Text as LaTeX sets it literally."""
    return "".join(_ESCAPES.get(letter, letter if ord(letter) < _FOREIGN else "?") for letter in _one_line(text))


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _float(block: Block, caption: str) -> str:
    rows = [" & ".join(_cell(cell) for cell in line) + r" \\" for line in block.lines]
    return "\n".join(
        [
            r"\begin{table}[t]",
            r"\centering",
            rf"\caption{{{escape(caption)}}}",
            r"\resizebox{\linewidth}{!}{%",
            rf"\begin{{tabular}}{{{'l' * block.left}{'r' * (len(block.header) - block.left)}}}",
            r"\toprule",
            " & ".join(escape(head) for head in block.header) + r" \\",
            r"\midrule",
            *rows,
            r"\bottomrule",
            r"\end{tabular}}",
            r"\end{table}",
        ]
    )


def _cell(cell: Cell) -> str:
    return rf"\textbf{{{escape(cell.text)}}}" if cell.best else escape(cell.text)
