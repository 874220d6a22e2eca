"""Results of lm-evaluation-harness: a JSON file per model, and the answers that `--log_samples` writes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from paribus.core.errors import UserError
from paribus.integrations import delimited
from paribus.integrations.column_kinds import AT
from paribus.integrations.numbers import read_cell
from paribus.integrations.source import ForeignRow, ForeignSource, flatten, join
from paribus.integrations.text_files import read_text

SAMPLES = "samples_*.jsonl*"
NO_FILTER = "none"
_SAMPLES_OF = re.compile(r"samples_(?P<task>.+?)(?:_(?P<time>[0-9]{4}-[0-9]{2}-[0-9]{2}T.+?))?\.jsonl(?:\.gz)?")
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_PRETRAINED = re.compile(r"(?:^|,)pretrained=([^,]+)")

Settings = dict[str, dict[str, Any]]  # {task: {key: value}}


def read(name: str) -> ForeignSource:
    """One row per file: `TASK/METRIC` of each task, and the settings of the evaluation.

    A metric of a filter other than `none` is `TASK/METRIC@FILTER`. Tasks of a group are parts of the group's own score,
    which the harness writes beside them. Versions of the harness before 0.4 know no filters and no groups. Raises
    UserError for a file of another layout.
    """
    given = Path(name).expanduser()
    folder = given.parent if given.is_file() else given
    higher: dict[str, bool] = {}
    groups: dict[str, str] = {}
    rows = []
    for path in [given] if given.is_file() else list_results(folder):
        content = _load(path)
        for task, metrics in content.get("higher_is_better", {}).items():
            higher |= {f"{task}/{metric}": bool(up) for metric, up in (metrics or {}).items() if up is not None}
        groups |= {task: group for group, tasks in content.get("group_subtasks", {}).items() for task in tasks or ()}
        rows.append(_read_row(str(path.relative_to(folder)), content))
    known = {column for row in rows for column in row.values}
    filtered = {column: higher[plain] for column in known if (plain := column.partition(AT)[0]) in higher}
    parts = {}  # {column of a task: that of its group, if the group has a score}
    for column in known:
        task, _, metric = column.partition("/")
        if task in groups and (whole := f"{groups[task]}/{metric}") in known:
            parts[column] = whole
    return ForeignSource(folder.resolve().name, rows, filtered, parts, whole=True)


def list_results(folder: Path) -> list[Path]:
    """The files of results below a folder: `results*.json`, or else all files in JSON that hold results."""
    named = sorted(folder.rglob("results*.json"))
    return named or [path for path in sorted(folder.rglob("*.json")) if _find_results(path)]


def _load(path: Path) -> dict[str, Any]:
    content = _find_results(path)
    if content is None:
        raise UserError(f"{path} holds no results of lm-eval", "remove it, or give the folder of the results alone")
    return content


def _find_results(path: Path) -> dict[str, Any] | None:
    """What a file holds; None if it has no results of tasks."""
    with suppress(UserError, ValueError, KeyError, TypeError, AttributeError):
        content = json.loads(read_text(path))
        if content["results"] and all(isinstance(metrics, dict) for metrics in content["results"].values()):
            return dict(content)
    return None


def _read_row(place: str, content: Mapping[str, Any]) -> ForeignRow:
    scores = {}
    before_filters = not any("," in key for metrics in content["results"].values() for key in metrics)
    for task, metrics in content["results"].items():
        for key, value in metrics.items():
            metric, comma, kind = key.partition(",")
            score = comma or (before_filters and isinstance(value, int | float))
            if score and "_stderr" not in key:
                scores[_name_column(task, metric, kind)] = value
    config = content.get("config") or {}
    model = str(content.get("model_name") or "")
    settings = {**dict(flatten(config)), "model_name": model}
    aliases = (_find_pretrained(config.get("model_args")), _name_file(Path(place)), Path(place).parent.name)
    name, *others = [text for text in dict.fromkeys((model, *aliases)) if text] or [""]
    return ForeignRow(place, join(settings, scores), name, aliases=tuple(others), settings=_list_settings(content))


def _name_column(task: str, metric: str, kind: str) -> str:
    return f"{task}/{metric}" if kind in ("", NO_FILTER) else f"{task}/{metric}{AT}{kind}"


def _find_pretrained(model_args: object) -> str:
    if isinstance(model_args, Mapping):
        return str(model_args.get("pretrained", ""))
    found = _PRETRAINED.search(str(model_args or ""))
    return found[1] if found else ""


def _name_file(path: Path) -> str:
    """What the file is named after, if that is not the time."""
    text = path.name.removesuffix(".json").removeprefix("results").lstrip("_-")
    return "" if _TIME.match(text) else text


def _list_settings(content: Mapping[str, Any]) -> Settings:
    """What changes the score of a model on each task, as far as it is said: its version, examples and prompts."""
    config = content.get("config") or {}
    limit = {"limit": config["limit"]} if "limit" in config else {}  # None: all examples
    settings: Settings = {}
    for task in content["results"]:
        shots = (content.get("n-shot") or {}).get(task, config.get("num_fewshot"))
        counted = (content.get("n-samples") or {}).get(task) or {}
        version = (content.get("versions") or {}).get(task)
        said = {"version": version, "num_fewshot": shots, "examples": counted.get("effective")}
        settings[task] = {**{key: value for key, value in said.items() if value is not None}, **limit}
    return settings


class Samples(NamedTuple):
    """A file of answers. `settings`: of the evaluation, if its results lie beside it."""

    task: str
    rows: tuple[ForeignRow, ...]
    settings: Mapping[str, Any]


def read_samples(path: Path) -> Samples | None:
    """The answers of a model to the examples of a task; None if the file is not named as such a file is."""
    named = _SAMPLES_OF.fullmatch(path.name)
    if named is None:
        return None
    settings: Mapping[str, Any] = {}
    beside = path.parent / f"results_{named['time']}.json"
    if named["time"] and (content := _find_results(beside)):
        settings = _list_settings(content).get(named["task"], {})
    return Samples(named["task"], tuple(delimited.read(str(path)).rows), settings)


def average_samples(name: str) -> ForeignSource:
    """One row per file and filter below a folder: the means over the examples, as `TASK/METRIC@FILTER`."""
    folder = Path(name).expanduser()
    rows = []
    for path in sorted(folder.rglob(SAMPLES)):
        if (samples := read_samples(path)) is None:
            continue
        place = path.relative_to(folder)
        own = {samples.task: samples.settings} if samples.settings else {}
        for kind, answers in split_filters(samples.rows).items():
            means = {
                _name_column(samples.task, metric, kind): sum(numbers) / len(numbers)
                for metric in list_metrics(answers)
                if (numbers := [n for row in answers if (n := read_cell(row.values.get(metric), {})) is not None])
            }
            values = {"task": samples.task, "filter": kind, **means}
            run = place.parent.as_posix() if place.parent.name else folder.resolve().name
            rows.append(ForeignRow(f"{place} ({kind})", values, run, settings=own))
    return ForeignSource(folder.resolve().name, rows, notes=("Scores are means over the examples in samples_*.jsonl.",))


def split_filters(rows: tuple[ForeignRow, ...]) -> dict[str, tuple[ForeignRow, ...]]:
    """{filter: its rows}: the harness writes a row for each example and filter."""
    kinds = dict.fromkeys(str(row.values.get("filter", NO_FILTER)) for row in rows)
    return {kind: tuple(row for row in rows if str(row.values.get("filter", NO_FILTER)) == kind) for kind in kinds}


def list_metrics(rows: tuple[ForeignRow, ...]) -> Iterator[str]:
    """The metrics that the rows name."""
    listed = (row.values.get("metrics") for row in rows)
    yield from dict.fromkeys(str(name) for names in listed if isinstance(names, list) for name in names)
