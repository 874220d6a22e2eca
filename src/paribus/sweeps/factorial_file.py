"""A sweep file whose arms are combinations of levels: `design` and `factors` in the place of `arms` and `varies`.

    design: full                      # or fractional, plackett_burman
    factors:
      extractor: {lstm: [model=lstm_tiny], transformer: [model=bert_tiny]}
      size: {small: [], large: [model.hidden=256]}

gives the arms lstm-small, lstm-large, transformer-small and transformer-large, which vary what their levels set.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product
from pathlib import Path
from typing import Any, Final

from paribus.core.config_names import is_group
from paribus.core.errors import UserError, located, suggest
from paribus.sweeps.universe import find_key
from paribus.verdict.factorial import BY, KINDS, Factorial, make_factorial

FACTORIAL_KEYS: Final = ("design", "folded", "factors", "generators")
_REPLACED: Final = {  # what a design generates: what to type instead
    "arms": "remove it: the arms are the combinations of the levels",
    "varies": "remove it: the arms vary what their levels set",
}
_FACTOR, _LEVEL = re.compile(r"[A-Za-z]\w*", re.ASCII), re.compile(r"\w[\w.]*", re.ASCII)


def read_factorial(content: Mapping[str, Any]) -> Factorial | None:
    """The design of a file, or None if it has none. Raises UserError as `make_factorial` does, for levels that are not
    lists of overrides, and for keys that a design replaces or that belong to one.
    """
    if "design" not in content:
        if given := [key for key in FACTORIAL_KEYS if key in content]:
            raise UserError(
                f"'{given[0]}' belongs to a design", f"write design: {', '.join(KINDS[:-1])} or {KINDS[-1]}"
            )
        scales = content.get("scales") or {}
        if given := [name for name, block in scales.items() if isinstance(block, dict) and "factors" in block]:
            raise UserError(f"'scales.{given[0]}.factors' refines a design that the sweep does not have", "write arms")
        return None
    for key, mend in _REPLACED.items():
        if key in content:
            raise UserError(f"'{key}' and 'design' exclude each other", mend)
    factors = _read_levels("factors", content.get("factors"))
    _refuse_shared(factors)
    folded = content.get("folded", False)
    if not isinstance(folded, bool):
        raise UserError(f"'folded: {folded}' is neither true nor false", "write folded: true")
    generators = content.get("generators")
    if generators is not None and not (
        isinstance(generators, dict) and all(isinstance(text, str) for text in generators.values())
    ):
        raise UserError("'generators' is not a mapping of products", "write generators: {last: first x second}")
    parents = None if generators is None else {str(name): text.split(BY) for name, text in generators.items()}
    levels = {factor: tuple(of_factor) for factor, of_factor in factors.items()}
    return make_factorial(str(content["design"]), levels, parents, folded)


def _read_levels(key: str, value: object) -> dict[str, dict[str, list[str]]]:
    """{factor: {level: its overrides}}."""
    if not isinstance(value, dict) or not value:
        raise UserError(f"'{key}' is not a mapping of factors", "write NAME: {LEVEL: [key=value], LEVEL: []} below it")
    for factor, levels in value.items():
        if not isinstance(factor, str) or not _FACTOR.fullmatch(factor):
            raise UserError(
                f"'{factor}' in '{key}' cannot name a factor", "use a letter first, then letters, digits, _"
            )
        if not isinstance(levels, dict):
            raise UserError(f"'{key}.{factor}' is not a mapping of levels", "write {LEVEL: [key=value], LEVEL: []}")
        for level, overrides in levels.items():
            if not isinstance(level, str) or not _LEVEL.fullmatch(level):
                cause = f"'{level}' in '{key}.{factor}' cannot name a level"
                raise UserError(cause, "use letters, digits, _ and ., and quote on, off, yes, no and numbers")
            if not isinstance(overrides, list) or not all(isinstance(text, str) for text in overrides):
                raise UserError(f"'{key}.{factor}.{level}' is not a list of overrides", "write [key=value], or []")
    return value


def _refuse_shared(factors: Mapping[str, Mapping[str, list[str]]]) -> None:
    """Raises UserError for two factors that set the same key, so that an arm would not be what its name says."""
    for (one, of_one), (two, of_two) in combinations(factors.items(), 2):
        pairs = product(_list_keys(of_one), _list_keys(of_two))
        if shared := [key for key, other in pairs if _collide(key, other)]:
            cause = f"the factors '{one}' and '{two}' both set '{shared[0][0]}'"
            raise UserError(cause, "make them one factor with a level for each combination")


def _list_keys(levels: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, bool]]:
    """(key, whether it chooses a group) of each override of a factor."""
    for overrides in levels.values():
        for text in overrides:
            yield find_key(text), is_group(text.partition("=")[0].lstrip("+~").partition("@")[0])


def _collide(one: tuple[str, bool], two: tuple[str, bool]) -> bool:
    """Whether two settings undo each other: of one key, or one of what the other sets as a whole.

    Within the choice of a group, a value outlasts it.
    """
    (key, is_choice), (other, is_other_choice) = one, two
    if key == other:
        return True
    inside, outside = f"{key}.".startswith(f"{other}."), f"{other}.".startswith(f"{key}.")
    return (inside and not is_other_choice) or (outside and not is_choice)


def generate_arms(path: Path, content: Mapping[str, Any], factorial: Factorial) -> dict[str, Any]:
    """The content with the arms and what they vary written out, and the first arm as the baseline if none is named.

    `scales.SCALE.factors` becomes what it adds to the arms at a scale. Raises UserError for a factor or a level there
    that the design does not have.
    """
    factors: dict[str, dict[str, list[str]]] = content["factors"]
    keys = dict.fromkeys(key for levels in factors.values() for key, _ in _list_keys(levels))
    scales: dict[str, Any] = {}
    for scale, block in (content.get("scales") or {}).items():
        scales[scale] = block
        if not isinstance(block, dict) or "factors" not in block:
            continue
        where = f"scales.{scale}.factors"
        with located(str(path)):
            refined = _read_levels(where, block["factors"])
            for factor, levels in refined.items():
                if factor not in factors:
                    raise UserError(f"'{where}' names the unknown factor '{factor}'", suggest(factor, list(factors)))
                for level in levels:
                    if level not in factors[factor]:
                        known = suggest(level, list(factors[factor]))
                        raise UserError(f"'{where}.{factor}' names the unknown level '{level}'", known)
            _refuse_shared(
                {
                    factor: {
                        level: [*texts, *refined.get(factor, {}).get(level, [])] for level, texts in levels.items()
                    }
                    for factor, levels in factors.items()
                }
            )
        keys |= dict.fromkeys(key for levels in refined.values() for key, _ in _list_keys(levels))
        given = block.get("arms") or {}
        added = {
            arm: [text for factor, level in chosen.items() for text in refined.get(factor, {}).get(level, [])]
            for arm, chosen in factorial.arms.items()
        }
        arms = {**given, **{arm: [*texts, *given.get(arm, [])] for arm, texts in added.items() if texts}}
        scales[scale] = {**{key: value for key, value in block.items() if key != "factors"}, "arms": arms}
    written: dict[str, Any] = {
        **content,
        "varies": list(keys),
        "arms": {
            arm: [text for factor, level in chosen.items() for text in factors[factor][level]]
            for arm, chosen in factorial.arms.items()
        },
    }
    if scales:
        written["scales"] = scales
    if content.get("baseline") is None:
        written["baseline"] = next(iter(factorial.arms))
    return written
