"""A table of runs that no sweep file describes, such as a multirun: one row per setting, one column per metric."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from paribus.core.errors import UserError
from paribus.runs.folder import RECORD, RunFolder
from paribus.runs.record import Record, read_record
from paribus.sweeps.control import list_settings
from paribus.sweeps.status import align
from paribus.verdict.metrics import find_metric, is_pairs, is_score
from paribus.verdict.statistics import mean_sd

NAMING = (
    "study", "arm", "seed", "sweep", "sweep_hash", "run_dir", "trial", "paths", "profile", "logger", "table_seeds",
    "exit_tokens",
)  # fmt: skip
NONE = "-"
LONGEST = 30  # characters of a setting
ABOUT = "Mean (standard deviation) over n runs. No verdicts: a sweep file fixes claims before the first run."

Settings = dict[str, Any]


def find_runs(places: Iterable[Path]) -> list[Path]:
    """The folders of finished runs at or below these places. Raises UserError if there are none."""
    places = list(places)
    folders = sorted({path.parent for place in places for path in place.rglob(RECORD)})
    if not folders:
        raise UserError(
            f"no finished run below {', '.join(map(str, places))}", "give the folder of runs, such as runs/single"
        )
    return folders


def tabulate(folders: Sequence[Path]) -> str:
    """The runs of these folders, grouped by the settings in which they differ, as plain lines."""
    records = {folder: record for folder in folders if (record := read_record(folder / RECORD)[0]) is not None}
    settings = {folder: list_settings(RunFolder(folder).read_config() or {}, NAMING) for folder in records}
    keys = find_differing(list(settings.values()))
    groups: dict[tuple[str, ...], list[Record]] = defaultdict(list)
    for folder, record in records.items():
        groups[tuple(_show(settings[folder].get(key)) for key in keys)].append(record)
    metrics = dict.fromkeys(name for record in records.values() for name in record.metrics)
    columns = [name for name in metrics if name.endswith("loss") or is_score(name) or is_pairs(name)]
    rows = []
    for values, group in sorted(groups.items(), key=lambda item: list(map(_order, item[0]))):
        shown = [text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..." for text in values]
        rows.append([*shown, str(sum(one.done for one in group)), *(_cell(group, name) for name in columns)])
    header = [*keys, "n", *(f"{name} {'↓' if find_metric(name).lower_is_better else '↑'}" for name in columns)]
    return "\n".join([*align([header, *rows]), ABOUT])


def find_differing(settings: Sequence[Settings]) -> list[str]:
    """The keys in which runs differ; of keys that always have equal values only the shortest, and none that only
    follows from a different choice of its group.
    """
    known = [key for key in dict.fromkeys(key for run in settings for key in run) if not _follows(key, settings)]
    differing: dict[tuple[str, ...], str] = {}
    for key in sorted(known, key=lambda key: (len(key), key)):
        values = tuple(_show(run.get(key)) for run in settings)
        if len(set(values)) > 1:
            differing.setdefault(values, key)
    return sorted(differing.values())


def _follows(key: str, settings: Sequence[Settings]) -> bool:
    """Whether only some runs have a key, always with the same value, since they chose the group that it belongs to."""
    values = {_show(run[key]) for run in settings if key in run}
    parts = key.split(".")
    groups = [".".join(parts[:at]) for at in range(1, len(parts))]
    chosen = any(len({_show(run.get(group)) for run in settings}) > 1 for group in groups)
    empty = values == {"{}"} and any(other.startswith(f"{key}.") for run in settings for other in run)
    return empty or (chosen and len(values) == 1 and any(key not in run for run in settings))


def _order(text: str) -> tuple[bool, float, str]:
    """Numbers by their size, then texts."""
    try:
        return False, float(text), ""
    except ValueError:
        return True, 0.0, text


def _show(value: object) -> str:
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _cell(group: Sequence[Record], column: str) -> str:
    values = [float(value) for record in group if record.done and (value := record.metrics.get(column)) is not None]
    if not values:
        return NONE
    kind = find_metric(column)
    mean, sd = mean_sd([value * (100.0 if kind.points else 1.0) for value in values])
    return f"{mean:.{kind.decimals}f}" + (f" ({sd:.{kind.decimals}f})" if sd is not None and len(values) > 1 else "")
