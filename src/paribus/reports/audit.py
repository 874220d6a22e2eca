"""Audits a table: its runs, budgets, text, versions, code and configs, and whether its numbers match the records."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from paribus.core.config_names import conf_dir
from paribus.core.errors import UserError
from paribus.core.git import ask_git
from paribus.core.jsonable import to_json
from paribus.core.recipes import name_recipe
from paribus.reports.history import derive_history, describe_history, read_history, write_history
from paribus.reports.tables.build import REPORTS, assemble
from paribus.reports.tables.design import Design, make_design
from paribus.reports.tables.evidence import (
    BUDGETS,
    find_foreign_text,
    find_mixed_precisions,
    find_off_budget,
    find_spent,
)
from paribus.reports.tables.notes import describe_leaks, describe_revised
from paribus.runs.manifest import find_manifest
from paribus.runs.record import Record
from paribus.runs.store import StudyRecords, find_records, find_stored
from paribus.sweeps.control import NAMES, describe_changes, list_settings
from paribus.sweeps.lock import CONFIRMED, find_early, list_records, read_lock
from paribus.sweeps.sweep import SCRATCH, UNMATCHED, Sweep
from paribus.verdict.controls import TOLERANCE

TABLE = "table.json"
IN_ORDER = "✓ the records are whole, on one text, within the budget, and differ as declared"
_PLACES = ("paths", "profile", "logger", "run_dir")
_SHOWN = 4  # names of runs in a line


class Section(NamedTuple):
    """A part of an audit: `lines` for a reader."""

    heading: str
    lines: list[str]


class Report(NamedTuple):
    """`findings`: numbers that do not match and uncontrolled differences; empty if everything is in order."""

    sections: list[Section]
    findings: list[str]


def audit_records(design: Design, stored: StudyRecords, roots: Sequence[Path]) -> Report:
    """The audit of a design's records, as `store.find_records` found them below the roots."""
    done = [record for record in stored.records if record.done]
    differences, hidden = _compare_configs(design, done, roots)
    text = [
        *_share("text", [(record, record.text) for record in done]),
        *_share("tokenizer", [(record, record.data.get("tokenizer")) for record in done]),
    ]
    code = [
        *_share("code", [(record, _describe_code(record)) for record in done]),
        *_share("machine", [(record, _describe_machine(record)) for record in done]),
    ]
    hashes = _share("hash", [(record, record.sweep_hash) for record in done])
    # one line for what all runs share, and one for each package with several versions
    packages = sorted({package for record in done for package in record.versions})
    versions = {package: Counter(record.versions.get(package, "absent") for record in done) for package in packages}
    same = [f"{package} {next(iter(counts))}" for package, counts in versions.items() if len(counts) == 1]
    lines = ["in all runs: " + ", ".join(same)] if same else []
    for package, counts in versions.items():
        if len(counts) > 1:
            lines.append(f"{package}: " + ", ".join(f"{one} ({n} runs)" for one, n in sorted(counts.items())))
    sections = [
        Section("Configs: how each arm differs from the baseline", differences),
        Section("Runs", _count_runs(design, stored.records)),
        Section("Budgets", _compare_budgets(design, done)),
        Section("Text and tokenizer", text),
        *([Section("Tasks: texts that are in both sets", leaks)] if (leaks := describe_leaks(done)) else []),
        Section("Versions", lines),
        Section("Code and machine", code),
        Section("Sweep file", hashes + describe_revised(design)),
    ]
    findings = [f"left out: {why}" for why in stored.left_out] + hidden
    if why := find_off_budget(design, (record for record in done if record.arm in design.arms)):
        unit = BUDGETS.get(design.matched, design.matched)
        findings.append(f"budgets differ by more than {TOLERANCE:.0%} in {unit}: {why}")
    findings += _find_mixed(design, done)
    if changed := [record.label for record in done if record.changed]:  # their commit is not the code that ran
        runs = f"{len(changed)} of {len(done)} runs"
        findings.append(f"{runs} from a tree with uncommitted changes: {', '.join(changed)}")
    return Report(sections, findings)


def _compare_configs(design: Design, done: Sequence[Record], roots: Sequence[Path]) -> tuple[list[str], list[str]]:
    """(how the stored configs differ from the baseline's, the differences that the sweep does not declare)."""
    if design.universe is not None:  # arms differ as declared within a setting
        first = min((record.seed for record in done if record.arm == design.baseline), default=0)
        done = [record for record in done if record.seed == first]
    configs = {arm: config for arm in design.arms if (config := _read_arm_config(arm, done, roots)) is not None}
    base = configs.pop(design.baseline, None)
    if base is None:
        return ["no config of a finished run of the baseline was found"], []
    varies = [name.replace("/", ".") for name in design.varies]
    lines, hidden = [], []
    for arm, config in configs.items():
        pairs = {key: (base.get(key), config.get(key)) for key in base.keys() | config.keys()}
        differing = {key: pair for key, pair in pairs.items() if pair[0] != pair[1]}
        lines.append(f"{arm}: " + ("; ".join(describe_changes(differing)) or "nothing"))
        allowed = set(design.audit.get("differences", {}).get(arm, ()))
        undeclared = {}
        for key, pair in differing.items():
            declared = any(f"{key}.".startswith(f"{name}.") or name.startswith(f"{key}.") for name in varies)
            if not declared and key not in allowed:
                undeclared[key] = pair
        hidden += [f"{arm} was trained with {change}" for change in describe_changes(undeclared)]
    return lines, hidden


def _read_arm_config(arm: str, done: Sequence[Record], roots: Sequence[Path]) -> dict[str, Any] | None:
    """The config of the arm's first finished run as dotted keys, without names and paths."""
    for record in done:
        run = find_stored(record, roots) if record.arm == arm else None
        if run is not None and (config := run.read_config()) is not None:
            return list_settings(config, (*NAMES, *_PLACES))
    return None


def _count_runs(design: Design, records: Sequence[Record]) -> list[str]:
    lines = []
    for arm in (*design.arms, SCRATCH):
        runs = [record for record in records if record.arm == arm]
        missing = design.find_missing(arm, {record.seed for record in runs})
        counts = [f"{count} {state}" for state, count in sorted(Counter(record.status for record in runs).items())]
        if missing and (runs or arm != SCRATCH):
            counts.append(f"no record of seed {', '.join(map(str, missing))}")
        lines += [f"{arm}: {'; '.join(counts)}"] if counts else []
    return lines


def _compare_budgets(design: Design, done: Sequence[Record]) -> list[str]:
    """The mean budget that each arm used, and its distance from the baseline in the matched budget."""
    key = BUDGETS.get(design.matched, design.matched)
    base = _average(done, design.baseline, design.matched)
    lines = [f"matched: {design.matched}" + ("" if design.matched == UNMATCHED else f", within {TOLERANCE:.0%}")]
    for arm in design.arms:
        amount = _average(done, arm, design.matched)
        if amount is not None:
            off = f", {100 * (amount / base - 1):+.2f}% from the baseline" if base and arm != design.baseline else ""
            flops, seconds = _average(done, arm, "flops"), _average(done, arm, "train_seconds")
            cost = [f"{flops:.3g} FLOPs"] if flops is not None else []
            cost += [f"{seconds:,.0f} s of training"] if seconds is not None else []
            lines.append(f"{arm}: {amount:,.0f} {key}{off}" + "".join(f", {part}" for part in cost))
    return lines


def _average(done: Sequence[Record], arm: str, matched: str) -> float | None:
    amounts = [spent for r in done if r.arm == arm and (spent := find_spent(r, matched)) is not None]
    return sum(amounts) / len(amounts) if amounts else None


def _share(what: str, values: Iterable[tuple[Record, str | None]]) -> list[str]:
    """One line per value, with the runs that have it."""
    groups: dict[str, list[str]] = {}
    for record, value in values:
        if value is not None:
            groups.setdefault(value, []).append(record.label)
    if len(groups) == 1:
        return [f"{what}: {value} (all {len(runs)} runs)" for value, runs in groups.items()]
    return [f"{what}: {value} ({_list_some(runs)})" for value, runs in groups.items()]


def _list_some(runs: Sequence[str]) -> str:
    more = f" and {len(runs) - _SHOWN} more" if len(runs) > _SHOWN else ""
    return ", ".join(runs[:_SHOWN]) + more


def _describe_code(record: Record) -> str | None:
    git = record.git
    return f"commit {git.commit[:12]}{' with changes' if git.dirty else ''}" if git else None


def _describe_machine(record: Record) -> str | None:
    profile = record.profile
    if not profile:
        return None
    return f"{profile.get('device')}, {profile.get('precision')}, threads per run: {profile.get('threads')}"


def _find_mixed(design: Design, done: Sequence[Record]) -> list[str]:
    """Texts and precisions that differ though the sweep does not vary them, and runs of a different version of the
    sweep file.
    """
    findings = []
    if not design.varies_text and find_foreign_text(done):
        findings.append(
            f"runs on different texts: {', '.join(sorted({record.text for record in done if record.text}))}"
        )
    for seed, groups in find_mixed_precisions(done).items():
        runs = "; ".join(f"{_list_some(labels)} in {precision}" for precision, labels in sorted(groups.items()))
        findings.append(f"runs of seed {seed} in different precisions: {runs}")
    same = (None, design.sweep_hash)
    older = [record.label for record in done if design.sweep_hash and record.sweep_hash not in same]
    if older:
        findings.append(f"made with a different version of the sweep file: {_list_some(older)}")
    return findings


def _audit_lock(sweep: Sweep, scale: str, design: Design, roots: Sequence[Path]) -> list[str]:
    """What speaks against confirming runs: nothing is locked, or runs are older than the lock."""
    manifest = find_manifest(roots, design.study, scale)
    if manifest is None or not manifest.lock:
        return []
    if design.stage != CONFIRMED or (lock := read_lock(sweep.path, scale)) is None:
        return [f"its runs were to confirm a lock: {' '.join(design.frozen)}"]
    early = find_early(lock, manifest.lock["commit"], sweep.path.parent, design.study, list_records(roots))
    return [f"older than the lock: {_list_some(early)}"] if early else []


def _audit_history(sweep: Sweep, scale: str, folder: Path, keep: bool) -> Report:
    """The generations of the study, as its commits say; a finding if its table says otherwise."""
    recipe = conf_dir() / "recipe" / f"{name_recipe(sweep.family, scale, sweep.recipes.get(scale))}.yaml"
    derived = derive_history(folder, sweep.path, recipe, scale)
    if keep and derived is None:
        if ask_git(folder, "rev-parse", "--git-dir") is None:
            raise UserError(f"{folder} is in no git repository", "`git init`, and commit the sweep file and its runs")
        raise UserError(f"the commits of {folder} are not all here", "clone the whole repository, without --depth")
    if keep and not derived:
        raise UserError(f"no commit has a run of {folder}", f"`git add {folder} {sweep.path}`, and commit them")
    if keep and derived is not None:
        write_history(folder, derived)
    kept = describe_history(read_history(folder))
    lines = kept if derived is None else describe_history(derived)
    mend = f"`paribus audit {sweep.path.stem} scale={scale} --history` keeps it, then build the table again"
    unsaid = [] if lines == kept else [f"the table does not say what was run and changed before it: {mend}"]
    unknown = ["not checked: the commits of its folder are not here"] if derived is None else []
    return Report(
        [Section("History", lines + unknown or ["run once, from a sweep file that stayed as it was"])], unsaid
    )


def find_unfollowed(kept: Mapping[str, Any], design: Design, roots: Sequence[Path]) -> tuple[list[str], int]:
    """(the values of a kept table.json that the records below the roots do not give, how many numbers it holds)."""
    return find_differences(kept, to_json(assemble(design, roots))), count_numbers(kept)


def find_differences(kept: Mapping[str, Any], rebuilt: Mapping[str, Any]) -> list[str]:
    """How two table.json differ, such as `arms[dynamic].n: 5 in the table, 4 from the records`."""
    return list(_list_differences("", kept, json.loads(json.dumps(rebuilt))))


def count_numbers(value: object) -> int:
    """How many numbers plain data holds."""
    if isinstance(value, Mapping):
        return sum(map(count_numbers, value.values()))
    if isinstance(value, list):
        return sum(map(count_numbers, value))
    return int(isinstance(value, int | float) and not isinstance(value, bool))


def _list_differences(path: str, kept: object, rebuilt: object) -> Iterator[str]:
    if isinstance(kept, Mapping) and isinstance(rebuilt, Mapping):
        for key in kept.keys() | rebuilt.keys() if len(kept) != len(rebuilt) else kept:
            yield from _list_differences(f"{path}[{key}]" if path else key, kept.get(key), rebuilt.get(key))
    elif isinstance(kept, list) and isinstance(rebuilt, list) and len(kept) == len(rebuilt):
        for at, (one, other) in enumerate(zip(kept, rebuilt, strict=True)):
            name = one.get("name", at) if isinstance(one, Mapping) else at
            yield from _list_differences(f"{path}[{name}]", one, other)
    elif kept != rebuilt:
        yield f"{path}: {_shorten(kept)} in the table, {_shorten(rebuilt)} from the records"


def _shorten(value: object) -> str:
    if isinstance(value, Mapping | list):
        return f"{len(value)} entries"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:59]}…"


def read_table(place: Path) -> dict[str, Any]:
    """A kept table.json. Raises UserError if it cannot be read."""
    try:
        table: dict[str, Any] = json.loads(place.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{place} is not a table", "build it with `paribus table`") from error
    return table


def summarize(
    sweep: Sweep, scale: str, study: str, runs: Path, results: Path, out: Path | None, keep_history: bool = False
) -> tuple[str, bool]:
    """(the audit, whether nothing is wrong).

    Args:
        runs, results: folders with the records.
        out: the folder of the table to check; None for those of the reports and of the committed results.
        keep_history: write what the commits say happened to the study beside its committed table.

    Raises:
        UserError: for a sweep whose arms differ in more than it declares, and if there is no record.
    """
    roots = [runs, results / scale]
    design = make_design(sweep, scale, study, find_manifest(roots, study, scale))
    stored = find_records(study, scale, roots)
    if not stored.records and not stored.left_out:
        mend = f"run `paribus run {sweep.path.stem} scale={scale}` first, or give runs="
        raise UserError(f"no run of {study} at scale={scale} to audit", mend)
    checked = audit_records(design, stored, roots)
    checked.findings.extend(_audit_lock(sweep, scale, design, roots))
    history = _audit_history(sweep, scale, results / scale / study, keep_history)
    checked = Report([*checked.sections, history.sections[0]], [*checked.findings, *history.findings])
    if out is None:
        places = [place for place in (REPORTS / study / scale, results / scale / study) if (place / TABLE).is_file()]
    else:
        places = [out]
    kept = []
    for table in (place / TABLE for place in places):
        below = [results / scale] if results / scale in table.parents else roots
        try:
            differing, count = find_unfollowed(read_table(table), design, below)
            match = f"✓ {table}: all {count} numbers match the records"
            kept += [f"✗ {table}: {line}" for line in differing] or [match]
        except UserError as error:
            kept.append(f"✗ {table}: {error}")
    right = not checked.findings and not any(line.startswith("✗") for line in kept)
    lines = [f"# Audit of {design.study} at {design.scale} scale"]
    for part in checked.sections:
        lines += ["", f"## {part.heading}", *(f"- {line}" for line in part.lines or ["nothing is recorded"])]
    lines += ["", "## Findings", *(f"✗ {finding}" for finding in checked.findings)]
    lines += [] if checked.findings else [IN_ORDER]
    return "\n".join([*lines, *(kept or ["- there is no table yet: `paribus table` writes one"])]), right
