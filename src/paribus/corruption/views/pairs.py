"""Which maskings, inputs and targets make an objective together."""

from __future__ import annotations

from typing import Any

from paribus.core.errors import UserError


def check_pair(masking: Any, inputs: Any, targets: Any) -> None:
    """Raise UserError where what is read and what is written do not fit each other or the masking."""
    if getattr(masking, "predict", None) is not None:
        raise UserError(f"masking.predict={masking.predict}", "leave it null: text-to-text targets write all noise")
    for side, view, hides in (("inputs", inputs, "noise"), ("targets", targets, "text")):
        if getattr(view, "hides", hides) != hides:
            raise UserError(f"objective.{side}.hides={view.hides}", f"set it to {hides}")
    _check_order(masking, inputs.letter, targets.letter)
    _check_kinds(masking, inputs.letter, targets.letter)


def _check_order(masking: Any, read: str, written: str) -> None:
    kind = type(masking).__name__
    reorders, whole = getattr(masking, "reorders", False), getattr(masking, "whole", False)
    if reorders and written != "f":
        raise UserError(f"{kind} changes the order of what is read", "take objective/targets=full")
    if reorders and whole and read != "p":
        raise UserError(f"{kind} hides no token", "take objective/inputs=permuted")
    if read == "p" and not reorders:
        raise UserError(f"{kind} gives no order", "take masking=permute, sentence_permutation or rotation")
    if read == "p" and not whole:
        raise UserError(f"objective/inputs=permuted would show the noise of {kind}", "take objective/inputs=shared")
    if whole and not reorders and read != "n":
        raise UserError(f"all tokens are noise under {kind}", "take objective/inputs=nothing")


def _check_kinds(masking: Any, read: str, written: str) -> None:
    kind = type(masking).__name__
    if read == "n" and (written != "f" or not getattr(masking, "whole", False)):
        raise UserError("objective/inputs=nothing reads no text", "take masking=all and objective/targets=full")
    if read == "f":
        raise UserError("objective/inputs=full shows the noise", "take unique, shared, drop, mask or permuted")
    if getattr(masking, "inserts", False) and read not in ("s", "d"):
        raise UserError(f"{kind} has spans without length", "take objective/inputs=shared or drop")
    if getattr(masking, "inserts", False) and written in ("u", "s"):
        raise UserError(f"the spans of {kind} may touch or be empty", "take objective/targets=full or drop")
    if written == "fragment" and not getattr(masking, "single", False):
        raise UserError("objective/targets=fragment needs noise of one span", "take masking=fragment")
