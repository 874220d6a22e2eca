"""The facts behind a table, from its records alone: runs, budgets, text, versions, code, and configs as trained."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from paribus.core.config import flat
from paribus.reporting.tables.build import BUDGETS
from paribus.reporting.tables.design import Design
from paribus.runs.store import CONFIG, Found, Record, folder_of
from paribus.sweeps.control import NAMES
from paribus.sweeps.sweep import SCRATCH, UNMATCHED, label
from paribus.verdict.controls import TOLERANCE, unmatched

_PLACES = ("paths", "profile", "logger", "run_dir")
_SHOWN = 4  # names of runs in a line


class Part(NamedTuple):
    """A part of an audit: `lines` for a reader."""

    heading: str
    lines: list[str]


class Facts(NamedTuple):
    """`findings`: what does not follow or is not controlled; empty where everything is in order."""

    parts: list[Part]
    findings: list[str]


def facts(design: Design, found: Found, roots: Sequence[Path]) -> Facts:
    """Read the records of a design, as `store.records` found them below the roots."""
    done = [record for record in found.records if record["status"] == "done"]
    differences, hidden = trained(design, done, roots)
    parts = [
        Part("Configs: what each arm differs in from the baseline", differences),
        Part("Runs", _runs(design, found.records)),
        Part("Budgets", _budgets(design, done)),
        Part("Text and tokenizer", [*_shared(done, "text", _text), *_shared(done, "tokenizer", _tokenizer)]),
        Part("Versions", _versions(done)),
        Part("Code and machine", [*_shared(done, "code", _code), *_shared(done, "machine", _machine)]),
        Part("Sweep file", _shared(done, "hash", _hash)),
    ]
    findings = [f"kept out: {why}" for why in found.left_out] + hidden
    return Facts(parts, [*findings, *_off_budget(design, done), *_mixed(design, done)])


def trained(design: Design, done: Sequence[Record], roots: Sequence[Path]) -> tuple[list[str], list[str]]:
    """(the differences of the stored configs in words, those that the sweep does not declare)."""
    configs = {arm: config for arm in design.arms if (config := _stored(arm, done, roots)) is not None}
    base = configs.get(design.baseline)
    if base is None:
        return ["no config of a finished run of the baseline is here"], []
    allowed = {arm: set(keys) for arm, keys in design.audit.get("differences", {}).items()}
    lines, hidden = [], []
    for arm, own in configs.items():
        if arm == design.baseline:
            continue
        odd = sorted(key for key in base.keys() | own.keys() if base.get(key) != own.get(key))
        changes = [f"{key} = {own.get(key)} (baseline: {base.get(key)})" for key in odd]
        lines.append(f"{arm}: " + ("; ".join(changes) or "nothing"))
        secret = [key for key in odd if not _declared(key, design.varies) and key not in allowed.get(arm, set())]
        hidden += [
            f"{arm} was trained with {key} = {own.get(key)}, the baseline with {base.get(key)}" for key in secret
        ]
    return lines, hidden


def _declared(key: str, varies: Iterable[str]) -> bool:
    names = [name.replace("/", ".") for name in varies]
    return any(f"{key}.".startswith(f"{name}.") or name.startswith(f"{key}.") for name in names)


def _stored(arm: str, done: Sequence[Record], roots: Sequence[Path]) -> dict[str, Any] | None:
    """The config of the arm's first finished run as dotted keys, without names and places."""
    for record in done:
        folder = folder_of(record, roots) if record["arm"] == arm else None
        if folder is not None and (config := read_config(folder)) is not None:
            return flat({key: value for key, value in config.items() if key not in (*NAMES, *_PLACES)})
    return None


def read_config(folder: Path) -> dict[str, Any] | None:
    """The resolved config of a run, or None where it cannot be read."""
    import yaml

    try:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        config = yaml.load((folder / CONFIG).read_text(encoding="utf-8"), Loader=loader)
    except (OSError, yaml.YAMLError):
        return None
    return config if isinstance(config, dict) else None


def _runs(design: Design, records: Sequence[Record]) -> list[str]:
    lines = []
    for arm in (*design.arms, SCRATCH):
        own = [record for record in records if record["arm"] == arm]
        states = Counter(record["status"] for record in own)
        missing = [seed for seed in design.seeds if seed not in {record["seed"] for record in own}]
        said = [f"{count} {state}" for state, count in sorted(states.items())]
        said += [f"no record of seed {', '.join(map(str, missing))}"] if missing and (own or arm != SCRATCH) else []
        lines += [f"{arm}: {'; '.join(said)}"] if said else []
    return lines


def _budgets(design: Design, done: Sequence[Record]) -> list[str]:
    """Means of what each arm used, and how far it is from the baseline in what is matched."""
    key = BUDGETS.get(design.matched, design.matched)
    used = {arm: _mean(done, arm, key) for arm in design.arms}
    base = used.get(design.baseline)
    lines = [f"matched: {design.matched}" + ("" if design.matched == UNMATCHED else f", within {TOLERANCE:.0%}")]
    for arm, amount in used.items():
        if amount is not None:
            off = f", {100 * (amount / base - 1):+.2f} % of the baseline's" if base and arm != design.baseline else ""
            flops, seconds = _mean(done, arm, "flops"), _mean(done, arm, "train_seconds")
            cost = [f"{flops:.3g} FLOPs"] if flops is not None else []
            cost += [f"{seconds:,.0f} s of training"] if seconds is not None else []
            lines.append(f"{arm}: {amount:,.0f} {key}{off}" + "".join(f", {part}" for part in cost))
    return lines


def _mean(done: Sequence[Record], arm: str, key: str) -> float | None:
    found = [float(r["budget"][key]) for r in done if r["arm"] == arm and r["budget"].get(key) is not None]
    return sum(found) / len(found) if found else None


def _off_budget(design: Design, done: Sequence[Record]) -> list[str]:
    key = BUDGETS.get(design.matched, design.matched)
    used = {label(r["arm"], r["seed"]): float(r["budget"][key]) for r in done if _matched(design, r, key)}
    why = None if design.matched == UNMATCHED else unmatched(used)
    return [f"budgets differ by more than {TOLERANCE:.0%} in {key}: {why}"] if why else []


def _matched(design: Design, record: Record, key: str) -> bool:
    return record["arm"] in design.arms and key in record["budget"]


def _shared(done: Sequence[Record], what: str, of: Any) -> list[str]:
    """A line for each value, with the runs that have it."""
    groups: dict[str, list[str]] = {}
    for record in done:
        if (value := of(record)) is not None:
            groups.setdefault(value, []).append(label(record["arm"], record["seed"]))
    if len(groups) == 1:
        return [f"{what}: {value} (all {len(runs)} runs)" for value, runs in groups.items()]
    return [f"{what}: {value} ({_some(runs)})" for value, runs in groups.items()]


def _some(runs: Sequence[str]) -> str:
    more = f" and {len(runs) - _SHOWN} more" if len(runs) > _SHOWN else ""
    return ", ".join(runs[:_SHOWN]) + more


def _text(record: Record) -> str | None:
    text: str | None = record["data"].get("fingerprint")
    return text


def _tokenizer(record: Record) -> str | None:
    name: str | None = record["data"].get("tokenizer")
    return name


def _hash(record: Record) -> str | None:
    found: str | None = record.get("sweep_hash")
    return found


def _code(record: Record) -> str | None:
    git = record.get("git")
    return f"commit {git['commit'][:12]}{' with changes' if git.get('dirty') else ''}" if git else None


def _machine(record: Record) -> str | None:
    profile: Mapping[str, Any] = record.get("profile", {})
    if not profile:
        return None
    return f"{profile.get('device')}, {profile.get('precision')}, {profile.get('threads')} threads"


def _versions(done: Sequence[Record]) -> list[str]:
    """One line for what all runs share, one for each package of which there are several versions."""
    packages = sorted({package for record in done for package in record.get("versions", {})})
    found = {p: Counter(str(record.get("versions", {}).get(p, "absent")) for record in done) for p in packages}
    same = [f"{package} {next(iter(counts))}" for package, counts in found.items() if len(counts) == 1]
    lines = ["in all runs: " + ", ".join(same)] if same else []
    mixed = {package: counts for package, counts in found.items() if len(counts) > 1}
    return lines + [f"{p}: " + ", ".join(f"{v} ({n} runs)" for v, n in sorted(c.items())) for p, c in mixed.items()]


def _mixed(design: Design, done: Sequence[Record]) -> list[str]:
    """Texts that differ though the sweep does not vary them, and runs of another version of the sweep file."""
    found = []
    varied = any(name.split(".")[0].split("/")[0] in ("corpus", "tokenizer") for name in design.varies)
    if not varied and len(texts := sorted({text for r in done if (text := _text(r))})) > 1:
        found.append(f"runs on different texts: {', '.join(texts)}")
    odd = [label(r["arm"], r["seed"]) for r in done if design.sweep_hash and _hash(r) not in (None, design.sweep_hash)]
    return found + ([f"made under another version of the sweep file: {_some(odd)}"] if odd else [])
