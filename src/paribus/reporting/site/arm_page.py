"""The page of one arm: its runs by seed, their curves, the config, corrupted examples."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from paribus.reporting.plots.curves import draw_panel
from paribus.reporting.plots.scene import Scene
from paribus.reporting.site.collect import Entry
from paribus.reporting.site.frame import Row, render_frame, render_link, render_list
from paribus.reporting.site.samples import Sample
from paribus.reporting.tables.blocks import format_number
from paribus.reporting.tables.curves import read_curves, read_points, thin
from paribus.reporting.tables.html import render_figure
from paribus.reporting.tables.schema import Band
from paribus.runs.record import Record
from paribus.runs.store import CONFIG, find_folder
from paribus.sweeps.board import duration

_OWN = re.compile(r"^(seed|run_dir|  runs): .*\n", re.MULTILINE)
_POINTS = 24  # of a run's curve
_PANELS = 2


def render_arm(entry: Entry, arm: str, sample: Sample) -> bytes:
    """The page at <study>/<scale>/<arm>.html."""
    title = f"{arm} in {entry.study} at {entry.scale} scale"
    return render_frame(f"{entry.place}/{arm}.html", title, _render_body(entry, arm, title, sample))


def _render_body(entry: Entry, arm: str, title: str, sample: Sample) -> Iterator[str]:
    own = [record for record in entry.found.records if record.arm == arm]
    folders = {record.seed: folder for record in own if (folder := find_folder(record, entry.roots))}
    home = render_link("index.html", f"{entry.study} at {entry.scale} scale")
    yield f'<p class="crumbs">{render_link("../../index.html", "Claims")} / {home} / {escape(arm)}</p>'
    yield f"<h1>{escape(title)}</h1>"
    row = next((row for row in entry.table.arms if row.name == arm), None)
    yield f"<pre>{escape(' '.join(row.overrides) or 'no override: the base of the sweep')}</pre>" if row else ""
    yield "<h2>Runs</h2>"
    yield render_list(_name_columns(entry), [_render_row(entry, record) for record in own], sortable=False)
    yield render_figure("Curves of each run", _draw_curves(own, folders))
    yield from _render_examples(sample)
    yield from _render_configs(own, folders)


def _name_columns(entry: Entry) -> dict[str, str]:
    named = ["seed", "status", *entry.table.columns, "input tokens", "training", "signature"]
    return {name: name for name in named}


def _render_row(entry: Entry, record: Record) -> Row:
    table, metrics, budget = entry.table, record.metrics, record.budget
    values = [format_number(table, column, metrics.get(column)) for column in table.columns]
    tokens = f"{budget['input_tokens']:,.0f}" if "input_tokens" in budget else ""
    seconds = duration(budget["train_seconds"]) if "train_seconds" in budget else ""
    status = record.status + (f": {record.error}" if record.error else "")
    signature = f"<code>{escape(record.signature)}</code>"
    words = [escape(text) for text in (str(record.seed), status, *values, tokens, seconds)]
    return Row([*words, signature], {})


def _draw_curves(own: Sequence[Record], folders: dict[int, Path]) -> list[Scene]:
    """Curves of the first metrics, losses before the others, with one line per run."""
    found: dict[str, dict[str, Band]] = {}
    for record in own:
        measured = read_curves(folders[record.seed]) if record.seed in folders else {}
        for metric, curve in (measured | read_points(record)).items():
            short = thin(curve, _POINTS)
            empty = (None,) * len(short.tokens)
            band = Band(tuple(short.tokens), tuple(short.values), empty, empty)
            found.setdefault(metric, {})[f"seed {record.seed}"] = band
    wanted = sorted(found, key=lambda metric: (not metric.endswith("_loss"), metric))[:_PANELS]
    names = [f"seed {record.seed}" for record in own]
    return [draw_panel(metric, names, found[metric], "each run") for metric in wanted]


def _render_examples(sample: Sample) -> Iterator[str]:
    yield "<h2>Corrupted examples</h2>"
    if sample.reason:
        yield f"<p>{escape(sample.reason)}</p>"
    for line in sample.lines:
        yield f'<p class="sample">{line}</p>'


def _render_configs(own: Sequence[Record], folders: dict[int, Path]) -> Iterator[str]:
    """The resolved configs; seeds whose configs differ in nothing else share one."""
    texts: dict[str, list[int]] = {}
    for record in own:
        path = folders.get(record.seed, Path()) / CONFIG
        if path.is_file():
            texts.setdefault(_OWN.sub("", path.read_text(encoding="utf-8")), []).append(record.seed)
    yield "<h2>Config</h2>"
    if not texts:
        yield "<p>No config of these runs is here.</p>"
    for text, seeds in texts.items():
        which = ", ".join(map(str, seeds))
        yield f"<details open><summary>seed {which}</summary><pre>{escape(text)}</pre></details>"
