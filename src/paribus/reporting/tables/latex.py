"""The table for a paper: booktabs, for `\\input`."""

from __future__ import annotations

from paribus.reporting.tables.blocks import Block, Text, describe_budget, make_blocks, make_evidence, say_claim
from paribus.reporting.tables.schema import Table

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


def render_latex(table: Table) -> str:
    """Results and claims as one float each; needs the packages booktabs and graphicx (for \\resizebox)."""
    parts = ["% needs \\usepackage[utf8]{inputenc} \\usepackage{booktabs} \\usepackage{graphicx}"]
    parts += [
        _render_float(block, f"{table.study}. {block.heading}. {' '.join(block.below)}") for block in make_blocks(table)
    ]
    parts += [
        _render_float(
            make_evidence(table, claim), f"{claim.sentence}: {say_claim(table, claim)}. {describe_budget(table)}"
        )
        for claim in table.claims
        if claim.contrasts
    ]
    parts += [f"% {_join_lines(note)}" for note in (*table.notes, *table.sources)]
    return "\n".join(parts) + "\n"


def escape(text: str) -> str:
    """Text as LaTeX sets it literally."""
    return "".join(_ESCAPES.get(letter, letter if ord(letter) < _FOREIGN else "?") for letter in _join_lines(text))


def _join_lines(text: str) -> str:
    return " ".join(text.split())


def _render_float(block: Block, caption: str) -> str:
    rows = [" & ".join(_render_cell(cell) for cell in line) + r" \\" for line in block.lines]
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


def _render_cell(cell: Text) -> str:
    return rf"\textbf{{{escape(cell.text)}}}" if cell.best else escape(cell.text)
