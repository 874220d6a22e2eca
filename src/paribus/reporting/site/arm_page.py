"""The page of one arm: its runs by seed, their curves, the config, corrupted examples."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple
from urllib.parse import quote

from paribus.core.console import duration
from paribus.reporting.plots.curves import draw_metric, reaches
from paribus.reporting.plots.scene import Scene
from paribus.reporting.site.collect import Entry
from paribus.reporting.site.frame import Row, render_bullets, render_frame, render_link, render_list
from paribus.reporting.site.samples import Sample
from paribus.reporting.tables.blocks import format_number
from paribus.reporting.tables.curves import thin
from paribus.reporting.tables.html import render_figure, render_scroll
from paribus.reporting.tables.schema import AnchorRow, ArmRow, Band, Cell, Table
from paribus.runs.folder import CONFIG, FAILED, RECORD, StoredRun
from paribus.runs.record import Record
from paribus.runs.store import find_stored
from paribus.sweeps.control import describe_changes
from paribus.sweeps.sweep import SCRATCH


class Config(NamedTuple):
    """A resolved config with the seeds that share it; `place`: its id in the page."""

    place: str
    seeds: tuple[int, ...]
    text: str
    content: Mapping[str, Any]


_OWN = re.compile(r"^(seed|run_dir|  runs): .*\n", re.MULTILINE)
_POINTS = 24  # of a run's curve
_PANELS = 2


def list_records(entry: Entry, arm: str) -> dict[int, bytes]:
    """{seed: the record of the run} of an arm's runs that are here."""
    own = [record for record in entry.found.records if record.arm == arm]
    runs = {record.seed: run for record in own if (run := find_stored(record, entry.roots))}
    return {seed: content for seed, run in runs.items() if (content := run.read(RECORD) or run.read(FAILED))}


def name_record(arm: str, seed: int) -> str:
    """The file of a run's record, below the folder of its table's page."""
    return f"runs/{arm}-seed{seed}.json"


def render_arm(entry: Entry, arm: str, sample: Sample) -> bytes:
    """The page at <study>/<scale>/<arm>.html."""
    title = f"{arm} in {entry.study} at {entry.scale} scale"
    return render_frame(f"{entry.place}/{arm}.html", title, _render_body(entry, arm, title, sample))


def _render_body(entry: Entry, arm: str, title: str, sample: Sample) -> Iterator[str]:
    own = [record for record in entry.found.records if record.arm == arm]
    stored = {record.seed: run for record in own if (run := find_stored(record, entry.roots))}
    configs = _group_configs(stored)
    home = render_link("index.html", f"{entry.study} at {entry.scale} scale")
    yield f'<p class="crumbs">{render_link("../../index.html", "Claims")} / {home} / {escape(arm)}</p>'
    yield f"<h1>{escape(title)}</h1>"
    yield from _render_difference(entry, arm)
    yield "<h2>Runs</h2>"
    rows = [_render_row(entry, record, record.seed in stored, configs) for record in own]
    yield render_scroll(render_list(_name_columns(entry), rows, f"Runs of {arm}", sortable=False), f"Runs of {arm}")
    yield render_figure("Curves of each run", _draw_curves(entry, own))
    yield from _render_examples(sample)
    yield from _render_configs(configs)


def _render_difference(entry: Entry, arm: str) -> Iterator[str]:
    """The differences from the baseline, which are the point of the sweep."""
    yield "<h2>Difference from the baseline</h2>"
    row = next((row for row in entry.table.arms if row.name == arm), None)
    changes = describe_changes(entry.table.audit.differences.get(arm, {}))
    if arm == entry.table.baseline:
        yield "<p>This arm is the baseline.</p>"
    elif changes:
        yield render_bullets(changes)
    elif arm == SCRATCH:
        yield "<p>The baseline's model, fine-tuned without pre-training.</p>"
    overrides = " ".join(row.overrides) if row else ""
    yield f"<p>Overrides in the sweep file:</p><pre>{escape(overrides)}</pre>" if overrides else ""


def _name_columns(entry: Entry) -> dict[str, str]:
    named = ["seed", "status", *entry.table.columns, "input tokens", "training", "config", "record", "W&B", "signature"]
    return {name: name for name in named}


def _render_row(entry: Entry, record: Record, here: bool, configs: Sequence[Config]) -> Row:
    table, budget = entry.table, record.budget
    values = [format_number(table, column, _find_value(table, record, column)) for column in table.columns]
    tokens = f"{budget['input_tokens']:,.0f}" if "input_tokens" in budget else ""
    seconds = duration(budget["train_seconds"]) if "train_seconds" in budget else ""
    status = record.status + (f": {record.error}" if record.error else "")
    words = [escape(text) for text in (f"seed {record.seed}", status, *values, tokens, seconds)]
    config = next((one for one in configs if record.seed in one.seeds), None)
    links = [
        render_link(f"#{config.place}", "config") if config else "",
        render_link(name_record(record.arm, record.seed), "result.json") if here else "",
        _link_wandb(record, config),
        f"<code>{escape(record.signature)}</code>",
    ]
    return Row([*words, *links], {}, place=f"seed{record.seed}")


def _find_value(table: Table, record: Record, column: str) -> float | None:
    """A run's value on a column; of what no record holds, such as the mean over tasks, the table's."""
    if column in record.metrics:
        return record.metrics[column]
    rows: list[ArmRow | AnchorRow] = [*table.arms, *table.anchors]
    cells = (row.metrics.get(column) for row in rows if row.name.replace(" ", "_") == record.arm)
    cell = next(cells, None)
    return dict(zip(cell.seeds, cell.values, strict=False)).get(record.seed) if isinstance(cell, Cell) else None


def _link_wandb(record: Record, config: Config | None) -> str:
    """A link to the run on W&B if its config has the address, otherwise its id."""
    if record.wandb_id is None:
        return ""
    own = (config.content.get("logger") if config else None) or {}
    entity, project = own.get("entity"), own.get("project")
    if not entity or not project:
        return f"<code>{escape(record.wandb_id)}</code>"
    return render_link(f"https://wandb.ai/{quote(f'{entity}/{project}/runs/{record.wandb_id}')}", record.wandb_id)


def _draw_curves(entry: Entry, own: Sequence[Record]) -> list[Scene]:
    """Curves of the first metrics, losses before the others, with one line per run."""
    found: dict[str, dict[str, Band]] = {}
    for record in own:
        for metric, curve in entry.curves.get((record.arm, record.seed), {}).items():
            short = thin(curve, _POINTS)
            empty = (None,) * len(short.tokens)
            band = Band(tuple(short.tokens), tuple(short.values), empty, empty)
            found.setdefault(metric, {})[f"seed {record.seed}"] = band
    found = {metric: bands for metric, bands in found.items() if any(map(reaches, bands.values()))}
    wanted = sorted(found, key=lambda metric: (not metric.endswith("_loss"), metric))[:_PANELS]
    names = [f"seed {record.seed}" for record in own]
    return [draw_metric(metric, names, found[metric], "each run") for metric in wanted]


def _render_examples(sample: Sample) -> Iterator[str]:
    yield "<h2>Corrupted examples</h2>"
    if sample.reason:
        yield f"<p>{escape(sample.reason)}</p>"
    for line in sample.lines:
        yield f'<p class="sample">{line}</p>'


def _group_configs(stored: Mapping[int, StoredRun]) -> list[Config]:
    """The resolved configs; seeds whose configs differ in nothing else share one."""
    texts: dict[str, list[int]] = {}
    for seed, run in stored.items():
        if (content := run.read(CONFIG)) is not None:
            texts.setdefault(_OWN.sub("", content.decode("utf-8")), []).append(seed)
    return [
        Config(f"config{number}", tuple(seeds), text, stored[seeds[0]].read_config() or {})
        for number, (text, seeds) in enumerate(texts.items(), 1)
    ]


def _render_configs(configs: Sequence[Config]) -> Iterator[str]:
    yield "<h2>Whole config</h2>"
    if not configs:
        yield "<p>No config of these runs was found.</p>"
    for config in configs:
        which = ", ".join(map(str, config.seeds))
        text = f"<pre>{escape(config.text)}</pre>"
        yield f'<details id="{config.place}" open><summary>seed {which}</summary>{text}</details>'
