"""The page of one arm: its runs by seed, their curves, the config, corrupted examples."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

from paribus.core.console import duration
from paribus.reports.plots.curves import draw_metric, reaches
from paribus.reports.plots.panel import Panel
from paribus.reports.rendering import render_page
from paribus.reports.site.collect import Entry
from paribus.reports.site.samples import Sample
from paribus.reports.tables.blocks import format_number
from paribus.reports.tables.curves import thin
from paribus.reports.tables.schema import AnchorRow, ArmRow, Band, Cell, Table
from paribus.runs.folder import CONFIG, FAILED, RECORD, StoredRun
from paribus.runs.record import Record
from paribus.runs.store import find_stored
from paribus.sweeps.control import describe_changes
from paribus.sweeps.sweep import SCRATCH

_OF_ONE_RUN = re.compile(r"^(seed|run_dir|  runs): .*\n", re.MULTILINE)
_POINTS = 24  # of a run's curve
_PANELS = 2


class ConfigView(NamedTuple):
    """A resolved config with the seeds that share it; `place`: its id in the page."""

    place: str
    seeds: tuple[int, ...]
    text: str
    content: Mapping[str, Any]


class RunView(NamedTuple):
    """A run as a row; what is not known is empty. `values`: {column: number}; `file`: its record, below this page."""

    record: Record
    status: str
    values: Mapping[str, str]
    tokens: str
    training: str
    config: ConfigView | None
    file: str
    wandb: str


def list_records(entry: Entry, arm: str) -> dict[int, bytes]:
    """{seed: the record of the run} of an arm's runs that are here."""
    records = [record for record in entry.records if record.arm == arm]
    runs = {record.seed: run for record in records if (run := find_stored(record, entry.roots))}
    return {seed: content for seed, run in runs.items() if (content := run.read(RECORD) or run.read(FAILED))}


def name_record(arm: str, seed: int) -> str:
    """The file of a run's record, below the folder of its table's page."""
    return f"runs/{arm}-seed{seed}.json"


def render_arm(entry: Entry, arm: str, sample: Sample) -> bytes:
    """The page at <study>/<scale>/<arm>.html."""
    table = entry.table
    records = [record for record in entry.records if record.arm == arm]
    stored = {record.seed: run for record in records if (run := find_stored(record, entry.roots))}
    configs = _group_configs(stored)
    row = next((row for row in table.arms if row.name == arm), None)
    return render_page(
        "arm.html",
        f"{entry.place}/{arm}.html",
        f"{arm} in {entry.study} at {entry.scale} scale",
        entry=entry,
        arm=arm,
        changes=describe_changes(table.audit.differences.get(arm, {})),
        is_scratch=arm == SCRATCH,
        overrides=row.overrides if row else (),
        runs=[_describe_run(table, record, record.seed in stored, configs) for record in records],
        curves=_draw_curves(entry, records),
        sample=sample,
        configs=configs,
    )


def _describe_run(table: Table, record: Record, here: bool, configs: Sequence[ConfigView]) -> RunView:
    config = next((one for one in configs if record.seed in one.seeds), None)
    budget = record.budget
    return RunView(
        record,
        status=record.status + (f": {record.error}" if record.error else ""),
        values={column: format_number(table, column, _find_value(table, record, column)) for column in table.columns},
        tokens=f"{budget['input_tokens']:,.0f}" if "input_tokens" in budget else "",
        training=duration(budget["train_seconds"]) if "train_seconds" in budget else "",
        config=config,
        file=name_record(record.arm, record.seed) if here else "",
        wandb=_find_wandb(record, config),
    )


def _find_value(table: Table, record: Record, column: str) -> float | None:
    """A run's value on a column; of what no record holds, such as the mean over tasks, the table's."""
    if column in record.metrics:
        return record.metrics[column]
    rows: list[ArmRow | AnchorRow] = [*table.arms, *table.anchors]
    cells = (row.metrics.get(column) for row in rows if row.name.replace(" ", "_") == record.arm)
    cell = next(cells, None)
    return dict(zip(cell.seeds, cell.values, strict=False)).get(record.seed) if isinstance(cell, Cell) else None


def _find_wandb(record: Record, config: ConfigView | None) -> str:
    """The address of the run on W&B; empty if its config does not have it."""
    logger = (config.content.get("logger") if config else None) or {}
    entity, project = logger.get("entity"), logger.get("project")
    if record.wandb_id is None or not entity or not project:
        return ""
    return f"https://wandb.ai/{quote(f'{entity}/{project}/runs/{record.wandb_id}')}"


def _draw_curves(entry: Entry, records: Sequence[Record]) -> list[Panel]:
    """Curves of the first metrics, losses before the others, with one line per run."""
    bands: dict[str, dict[str, Band]] = {}
    for record in records:
        for metric, curve in entry.curves.get((record.arm, record.seed), {}).items():
            short = thin(curve, _POINTS)
            empty = (None,) * len(short.tokens)
            one = Band(tuple(short.tokens), tuple(short.values), empty, empty)
            bands.setdefault(metric, {})[f"seed {record.seed}"] = one
    bands = {metric: runs for metric, runs in bands.items() if any(map(reaches, runs.values()))}
    wanted = sorted(bands, key=lambda metric: (not metric.endswith("_loss"), metric))[:_PANELS]
    names = [f"seed {record.seed}" for record in records]
    return [draw_metric(metric, names, bands[metric], "each run") for metric in wanted]


def _group_configs(stored: Mapping[int, StoredRun]) -> list[ConfigView]:
    """The resolved configs; seeds whose configs differ in nothing else share one."""
    texts: dict[str, list[int]] = {}
    for seed, run in stored.items():
        if (content := run.read(CONFIG)) is not None:
            texts.setdefault(_OF_ONE_RUN.sub("", content.decode("utf-8")), []).append(seed)
    return [
        ConfigView(f"config{number}", tuple(seeds), text, stored[seeds[0]].read_config() or {})
        for number, (text, seeds) in enumerate(texts.items(), 1)
    ]
