"""The page of one arm: its runs, seed by seed, their curves, the config, corrupted examples."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any

from paribus.reporting.plots import curves as drawing
from paribus.reporting.site.collect import Entry
from paribus.reporting.site.frame import Row, framed, link, listing
from paribus.reporting.site.samples import Sample
from paribus.reporting.tables.curves import read, thinned
from paribus.reporting.tables.page import figure
from paribus.reporting.tables.words import number
from paribus.runs.store import CONFIG, Record, folder_of
from paribus.sweeps.board import duration

_OWN = re.compile(r"^(seed|run_dir|  runs): .*\n", re.MULTILINE)
_POINTS = 24  # of a run's curve
_PANELS = 2


def page(entry: Entry, arm: str, sample: Sample) -> bytes:
    """The page at <study>/<scale>/<arm>.html."""
    title = f"{arm} in {entry.study} at {entry.scale} scale"
    return framed(f"{entry.place}/{arm}.html", title, _body(entry, arm, title, sample))


def _body(entry: Entry, arm: str, title: str, sample: Sample) -> Iterator[str]:
    own = [record for record in entry.found.records if record["arm"] == arm]
    folders = {record["seed"]: folder for record in own if (folder := folder_of(record, entry.roots))}
    home = link("index.html", f"{entry.study} at {entry.scale} scale")
    yield f'<p class="crumbs">{link("../../index.html", "Claims")} / {home} / {escape(arm)}</p>'
    yield f"<h1>{escape(title)}</h1>"
    row = next((row for row in entry.table["arms"] if row["name"] == arm), None)
    yield f"<pre>{escape(' '.join(row['overrides']) or 'no override: the base of the sweep')}</pre>" if row else ""
    yield "<h2>Runs</h2>"
    yield listing(_columns(entry), [_row(entry, record) for record in own], sortable=False)
    yield figure("Curves of each run", _panels(own, folders))
    yield from _examples(sample)
    yield from _configs(own, folders)


def _columns(entry: Entry) -> dict[str, str]:
    named = ["seed", "status", *entry.table["columns"], "input tokens", "training", "signature"]
    return {name: name for name in named}


def _row(entry: Entry, record: Record) -> Row:
    table, metrics, budget = entry.table, record["metrics"], record["budget"]
    values = [number(table, column, metrics.get(column)) for column in table["columns"]]
    tokens = f"{budget['input_tokens']:,.0f}" if "input_tokens" in budget else ""
    seconds = duration(budget["train_seconds"]) if "train_seconds" in budget else ""
    status = record["status"] + (f": {record['error']}" if record.get("error") else "")
    signature = f"<code>{escape(record['signature'])}</code>"
    words = [escape(text) for text in (str(record["seed"]), status, *values, tokens, seconds)]
    return Row([*words, signature], {})


def _panels(own: Sequence[Record], folders: dict[int, Path]) -> list[Any]:
    """Curves of the metrics that most runs have, a line a run."""
    found: dict[str, dict[str, Any]] = {}
    for record in own:
        for metric, curve in (read(folders[record["seed"]]) if record["seed"] in folders else {}).items():
            short = thinned(curve, _POINTS)
            empty = [None] * len(short.tokens)
            drawn = {"tokens": short.tokens, "mean": short.values, "ci_low": empty, "ci_high": empty}
            found.setdefault(metric, {})[f"seed {record['seed']}"] = drawn
    wanted = sorted(found, key=lambda metric: (not metric.endswith("_loss"), metric))[:_PANELS]
    names = [f"seed {record['seed']}" for record in own]
    return [drawing.panel(metric, names, found[metric], "each run") for metric in wanted]


def _examples(sample: Sample) -> Iterator[str]:
    yield "<h2>Corrupted examples</h2>"
    if sample.reason:
        yield f"<p>{escape(sample.reason)}</p>"
    for line in sample.lines:
        yield f'<p class="sample">{line}</p>'


def _configs(own: Sequence[Record], folders: dict[int, Path]) -> Iterator[str]:
    """The resolved configs; seeds whose configs differ in nothing else share one."""
    texts: dict[str, list[int]] = {}
    for record in own:
        path = folders.get(record["seed"], Path()) / CONFIG
        if path.is_file():
            texts.setdefault(_OWN.sub("", path.read_text(encoding="utf-8")), []).append(record["seed"])
    yield "<h2>Config</h2>"
    if not texts:
        yield "<p>No config of these runs is here.</p>"
    for text, seeds in texts.items():
        which = ", ".join(map(str, seeds))
        yield f"<details open><summary>seed {which}</summary><pre>{escape(text)}</pre></details>"
