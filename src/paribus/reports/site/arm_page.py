"""The page of one arm: its runs by seed, their curves, the config, and examples that `paribus show` corrupts."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from paribus.core.console import duration
from paribus.core.errors import UserError
from paribus.data.tokens.prepare import Data
from paribus.reports.plots.curves import draw_metric, reaches
from paribus.reports.site.collect import Entry
from paribus.reports.tables.blocks import format_number
from paribus.reports.tables.curves import thin
from paribus.reports.tables.html import render_page
from paribus.reports.tables.schema import AnchorRow, ArmRow, Band, Cell, Table
from paribus.runs.folder import CONFIG, FAILED, RECORD, StoredRun
from paribus.runs.record import Record
from paribus.runs.store import find_stored
from paribus.sweeps.control import describe_changes
from paribus.sweeps.sweep import SCRATCH
from paribus.training.description import Run

_OF_ONE_RUN = re.compile(r"^(seed|run_dir|  runs): .*\n", re.MULTILINE)
_POINTS = 24  # of a run's curve
_PANELS = 2
# the meaning of each color of `paribus show`
_KINDS = {"1;31": "mask", "1;35": "random", "1;34": "keep", "33": "silent", "2": "special"}
Piece = tuple[str, str]  # (kind, text); plain text has no kind
_PAINTED = re.compile("\x1b\\[([0-9;]+)m(.*?)\x1b\\[0m", re.DOTALL)


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
    # curves of the first metrics, losses before the others, with one line per run
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
        curves=[draw_metric(metric, names, bands[metric], "each run") for metric in wanted],
        sample=sample,
        configs=configs,
    )


def _describe_run(table: Table, record: Record, here: bool, configs: Sequence[ConfigView]) -> RunView:
    config = next((one for one in configs if record.seed in one.seeds), None)
    budget = record.budget
    logger = (config.content.get("logger") if config else None) or {}
    entity, project = logger.get("entity"), logger.get("project")
    tracked = record.wandb_id is not None and entity and project
    return RunView(
        record,
        status=record.status + (f": {record.error}" if record.error else ""),
        values={column: format_number(table, column, _find_value(table, record, column)) for column in table.columns},
        tokens=f"{budget['input_tokens']:,.0f}" if "input_tokens" in budget else "",
        training=duration(budget["train_seconds"]) if "train_seconds" in budget else "",
        config=config,
        file=name_record(record.arm, record.seed) if here else "",
        wandb=f"https://wandb.ai/{quote(f'{entity}/{project}/runs/{record.wandb_id}')}" if tracked else "",
    )


def _find_value(table: Table, record: Record, column: str) -> float | None:
    """A run's value on a column; of what no record holds, such as the mean over tasks, the table's."""
    if column in record.metrics:
        return record.metrics[column]
    rows: list[ArmRow | AnchorRow] = [*table.arms, *table.anchors]
    cells = (row.metrics.get(column) for row in rows if row.name.replace(" ", "_") == record.arm)
    cell = next(cells, None)
    return dict(zip(cell.seeds, cell.values, strict=False)).get(record.seed) if isinstance(cell, Cell) else None


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


class Sample(NamedTuple):
    """Examples, each as pieces of text with their kinds, or why there is none."""

    lines: tuple[list[Piece], ...] = ()
    reason: str = ""


@dataclass
class Samples:
    """Draws `count` examples per arm; the data of a corpus are prepared once for all arms."""

    count: int
    cache: str
    _data: dict[str, Data | UserError] = field(default_factory=dict)

    def draw(self, entry: Entry, arm: str) -> Sample:
        """The first examples of the arm's first finished run, or the reason if its text is not available."""
        done = [record for record in entry.records if record.arm == arm and record.done]
        stored = find_stored(done[0], entry.roots) if done else None
        config = stored.read_config() if stored else None
        if self.count == 0 or not done or config is None:
            reason = "No examples were requested." if self.count == 0 else "No config of a finished run was found."
            return Sample(reason=reason)
        try:
            return Sample(self._draw_pieces(config, done[0].text))
        except UserError as error:
            return Sample(reason=f"Left out: {error}")
        except Exception as error:  # a config of another version must not stop the site
            return Sample(reason=f"Left out: this config cannot be composed here ({type(error).__name__}: {error})")

    def _draw_pieces(self, config: dict[str, Any], fingerprint: str | None) -> tuple[list[Piece], ...]:
        from paribus.reports.examples import show_examples
        from paribus.training.streams import training_examples

        run = Run.of({**config, "paths": {"cache": self.cache, "runs": "runs"}})
        key = repr((run.corpus, run.tokenizer, run.trainer.train_tokens, run.annotator))
        if key not in self._data:
            try:
                self._data[key] = run.data()
            except UserError as error:
                self._data[key] = error
        data = self._data[key]
        if isinstance(data, UserError):  # also for the next arm with the same text
            raise data
        if fingerprint is not None and data.fingerprint["text"] != fingerprint:
            raise UserError(
                f"the text here ({data.fingerprint['text']}) differs from the record's",
                "run `paribus audit` on the sweep",
            )
        screen = io.StringIO()
        with redirect_stdout(io.StringIO()), redirect_stderr(screen):
            show_examples(training_examples(run, data), data.tokenizer, self.count, color=True)
        return tuple(split_colors(line) for line in screen.getvalue().split("\n") if line.strip())


def split_colors(line: str) -> list[Piece]:
    """The pieces of a line that is colored for a terminal."""
    pieces, end = [], 0
    for painted in _PAINTED.finditer(line):
        pieces += [("", line[end : painted.start()]), (_KINDS.get(painted[1], "text"), painted[2])]
        end = painted.end()
    return [(kind, text) for kind, text in [*pieces, ("", line[end:])] if text]


def find_cache() -> str:
    """Where prepared text is kept by default."""
    from paribus.core.config import compose

    return str(Path(compose(["scale=null"]).paths.cache).expanduser())
