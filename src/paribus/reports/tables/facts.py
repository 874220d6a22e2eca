"""The setting of a table in one line: text, budget, model, vocabulary, seeds, processor and overrides."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from paribus.runs.provenance import name_text
from paribus.runs.record import Record
from paribus.runs.store import find_stored, portable_overrides
from paribus.verdict.controls import TOLERANCE

NOTHING = "no pre-training"
MOST = 3  # different values that are listed
ORDER = ("text", "budget", "model", "vocabulary", "seeds", "processor", "overrides")
_SIZES = ((1e9, "B"), (1e6, "M"), (1e3, "K"))
_NO_EFFECT = re.compile(r"[+~]*(profile|logger)([.=]|$)")  # overrides that cannot change a conclusion

Config = Mapping[str, Any]


def find_facts(
    arms: Iterable[str],
    records: Sequence[Record],
    roots: Sequence[Path],
    overrides: Sequence[str] = (),
    settings: bool = False,
) -> dict[str, str]:
    """{what: in words}; arms that differ have their values listed. Empty without readable configs.

    overrides: the user's own, of the last command; those of speed and logging are left out. settings: whether the seeds
    are settings of a universe, which differ in all of this.
    """
    done = [record for record in records if record.done and record.arm in set(arms)]
    first = {(record.arm, record.seed if settings else 0): record for record in reversed(done)}
    known: list[tuple[Record, Config]] = []
    for record in (first[key] for arm in arms for key in sorted(first) if key[0] == arm):
        run = find_stored(record, roots)
        if config := (run.read_config() if run else None):
            known.append((record, config))
    if not known:
        return {}
    facts = {
        "text": _join_texts([_name_texts(config) for _, config in known]),
        "budget": _join_budgets([record for record, _ in known]),
        "model": _join(_describe_model(record, config["model"]) for record, config in known),
        "vocabulary": _join(_describe_vocabulary(config["tokenizer"]) for _, config in known),
        "seeds": _count(len({record.seed for record in done}), "setting" if settings else "seed"),
        "processor": _join(str(record.profile.get("device", "")) for record in done),
        "overrides": ", ".join(
            override for override in portable_overrides(overrides) if not _NO_EFFECT.match(override)
        ),
    }
    return {name: text for name, text in facts.items() if text}


def write_line(facts: Mapping[str, str]) -> str:
    """The facts as one line; empty if there are none."""
    known = [(name, facts[name]) for name in ORDER if name in facts]  # a table that was read has them by the alphabet
    texts = [f"overrides: {text}" if name == "overrides" else text for name, text in known]
    return "; ".join(texts) + "." * bool(texts)


def _join(values: Iterable[str]) -> str:
    """The different texts in order; a word if there are many."""
    texts = list(dict.fromkeys(text for text in values if text))
    return " or ".join(texts) if len(texts) <= MOST else f"{' or '.join(texts[:MOST])} or others"


def _count(number: int, unit: str) -> str:
    return f"{number} {unit}{'s' * (number != 1)}"


def _join_texts(chains: Sequence[Sequence[str]]) -> str:
    """The text that all arms begin with, and those that follow; without a common one the chains."""
    if len({chain[0] for chain in chains}) > 1:
        return _join(", then ".join(chain) for chain in chains)
    further = _join(", then ".join(chain[1:]) for chain in chains)
    some = " in some arms" if any(len(chain) == 1 for chain in chains) else ""
    return f"{chains[0][0]}, then {further}{some}" if further else chains[0][0]


def _name_texts(config: Config) -> list[str]:
    """The text of the first stage, and those that later stages read instead."""
    further = [stage["corpus"] for stage in (config.get("stages") or {}).values() if (stage or {}).get("corpus")]
    return list(dict.fromkeys(name_text(corpus) for corpus in (config["corpus"], *further)))


def _join_budgets(records: Sequence[Record]) -> str:
    """The different budgets, or the least and the most if there are many; those that match count as one."""
    budgets: dict[str, float] = {}
    for record in records:
        tokens = record.budget.get("raw_tokens", 0.0)
        if not any(abs(tokens - known) <= TOLERANCE * known for known in budgets.values() if known):
            budgets[_describe_budget(record)] = tokens
    if len(budgets) <= MOST:
        return _join(budgets)
    least, *_, most = sorted((text for text in budgets if budgets[text]), key=budgets.__getitem__)
    return f"{least.removesuffix(' tokens')} to {most}{f' or {NOTHING}' if NOTHING in budgets else ''}"


def _describe_budget(record: Record) -> str:
    """Such as `400K tokens × 12 epochs`; of several stages all tokens."""
    tokens, epochs = record.budget.get("raw_tokens", 0.0), record.realised.get("epochs")
    if not tokens:
        return NOTHING
    if not epochs or epochs <= 1.0 or "stages" in record.further:
        return f"{_shorten(tokens)} tokens"
    return f"{_shorten(tokens / epochs)} tokens × {epochs:.3g} epochs"


def _describe_model(record: Record, model: Config) -> str:
    """Such as `2 layers × 128 (0.5M parameters)`, or the name of a checkpoint."""
    parameters = record.realised.get("parameters")
    size = f" ({_shorten(parameters)} parameters)" if parameters else ""
    if "layers" in model and "hidden" in model:
        return f"{_count(int(model['layers']), 'layer')} × {model['hidden']}{size}"
    return f"{_name(model)}{size}"


def _describe_vocabulary(tokenizer: Config) -> str:
    """Such as `8,192 entries (WordPiece)`, or the name of a tokenizer that exists."""
    if tokenizer.get("name"):
        return f"tokenizer of {_name(tokenizer)}"
    kind = str(tokenizer["_target_"]).rpartition(".")[2]
    most = "at most " if kind in ("Characters", "Bytes", "Words") else ""
    return f"{most}{int(tokenizer['vocab_size']):,} entries ({kind})"


def _name(node: Config) -> str:
    name = str(node.get("name") or str(node.get("_target_")).rpartition(".")[2])
    return Path(name).name if Path(name).is_absolute() else name


def _shorten(value: float) -> str:
    """Such as `400K`, `4.8M`."""
    size, letter = next(((size, letter) for size, letter in _SIZES if value >= size), (1.0, ""))
    return f"{value / size:.3g}{letter}"
