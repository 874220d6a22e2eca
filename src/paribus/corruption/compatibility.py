"""Checks which noise patterns and views can be combined into a text-to-text objective."""

from __future__ import annotations

from paribus.core.errors import UserError
from paribus.corruption.masking.pattern import NoisePattern
from paribus.corruption.views.view import View


def check_views(masking: NoisePattern, inputs: View, targets: View) -> None:
    """Raise UserError if what is read and what is written do not fit each other or the noise pattern."""
    if masking.predict is not None:
        raise UserError(
            f"masking.predict={masking.predict} does not apply to text-to-text objectives",
            "leave it null: their targets contain all noise",
        )
    for name, view, side in (("inputs", inputs, "noise"), ("targets", targets, "text")):
        if view.side not in (None, side):
            raise UserError(f"objective.{name}.hides={view.side} is the wrong side", f"set it to {side}")
    _check_order(masking, inputs, targets)
    _check_kinds(masking, inputs, targets)


def _check_order(masking: NoisePattern, read: View, written: View) -> None:
    pattern = type(masking).__name__
    if masking.reorders and not written.whole:
        raise UserError(f"{pattern} reorders the text", "use objective/targets=full")
    if masking.reorders and masking.whole_row and not read.in_drawn_order:
        raise UserError(f"{pattern} hides no token", "use objective/inputs=permuted")
    if read.in_drawn_order and not masking.reorders:
        raise UserError(f"{pattern} does not reorder the text", "use masking=permute, sentence_permutation or rotation")
    if read.in_drawn_order and not masking.whole_row:
        raise UserError(f"objective/inputs=permuted would show the noise of {pattern}", "use objective/inputs=shared")
    if masking.whole_row and not masking.reorders and not read.empty:
        raise UserError(f"all tokens are noise under {pattern}", "use objective/inputs=nothing")


def _check_kinds(masking: NoisePattern, read: View, written: View) -> None:
    pattern = type(masking).__name__
    if read.empty and not (written.whole and masking.whole_row):
        raise UserError("objective/inputs=nothing reads no text", "use masking=all and objective/targets=full")
    if read.whole:
        raise UserError("objective/inputs=full shows the noise", "use unique, shared, drop, mask or permuted")
    shows_blanks = read.drops_spans or (read.marks_spans and read.sentinels != "each")
    if masking.inserts and not shows_blanks:
        raise UserError(f"{pattern} has spans of length 0", "use objective/inputs=shared or drop")
    if masking.inserts and written.marks_spans:
        raise UserError(f"the spans of {pattern} may touch or be empty", "use objective/targets=full or drop")
    if written.in_place and not masking.single_span:
        raise UserError("objective/targets=fragment needs noise of one span", "use masking=fragment")
