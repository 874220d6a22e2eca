"""Blocks in a sweep file that generate arms: leave one part out, or change one at a time.

    arms:
      leave_one_out: [masking=whole_word, objective=mlm_nsp]      # full, without_masking, without_objective
      one_at_a_time: [masking.rate=0.4, optimizer.lr=1e-3]        # base, rate_0.4, lr_1e-3

A mapping {name: override or overrides} names the parts: `leave_one_out: {nsp: objective=mlm_nsp}` gives without_nsp.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from paribus.core.errors import UserError

FULL, BASE = "full", "base"
Parts = dict[str, list[str]]  # {name: overrides}


def expand_arms(path: Path, arms: Mapping[str, Any]) -> dict[str, Any]:
    """The arms with these blocks written out. Raises UserError for a block without parts, and for a name twice."""
    found: dict[str, Any] = {}
    for name, value in arms.items():
        block = {name: value} if name not in BLOCKS else BLOCKS[name](_read_parts(path, name, value))
        if taken := found.keys() & block.keys():
            raise UserError(f"{path}: two arms are named '{min(taken)}'", "name the parts: {NAME: key=value}")
        found |= block
    return found


def _leave_one_out(parts: Parts) -> Parts:
    kept = {f"without_{name}": [other for other in parts if other != name] for name in parts}
    return {arm: [text for name in names for text in parts[name]] for arm, names in {FULL: [*parts], **kept}.items()}


def _one_at_a_time(parts: Parts) -> Parts:
    return {BASE: [], **parts}


BLOCKS: Mapping[str, Callable[[Parts], Parts]] = {"leave_one_out": _leave_one_out, "one_at_a_time": _one_at_a_time}


def _read_parts(path: Path, block: str, value: object) -> Parts:
    if isinstance(value, dict) and value:
        return {str(name): own if isinstance(own, list) else [own] for name, own in value.items()}
    if not isinstance(value, list) or not value or not all(isinstance(text, str) for text in value):
        raise UserError(f"{path}: 'arms.{block}' is not a list of overrides", f"write {block}: [key=value, key=value]")
    names = [_name(text, short=block == "leave_one_out") for text in value]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UserError(f"{path}: two parts of 'arms.{block}' are named '{twice}'", "name the parts: {NAME: key=value}")
    return {name: [text] for name, text in zip(names, value, strict=True)}


def _name(override: str, short: bool) -> str:
    """`rate` of masking.rate=0.4 if it is short, else rate_0.4."""
    key, _, value = override.lstrip("+~").partition("=")
    last = re.split(r"[./@]", key)[-1]
    return last if short or not value else f"{last}_{re.sub(r'[^A-Za-z0-9_.-]+', '_', value)}"
