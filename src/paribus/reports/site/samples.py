"""Corrupted examples of an arm, drawn by `paribus show` from a record's own config."""

from __future__ import annotations

import io
import re
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from paribus.core.errors import UserError
from paribus.data.tokens.prepare import Data
from paribus.reports.site.collect import Entry
from paribus.runs.store import find_stored
from paribus.training.description import Run

# the meaning of each color of `paribus show`
_KINDS = {"1;31": "mask", "1;35": "random", "1;34": "keep", "33": "silent", "2": "special"}
Piece = tuple[str, str]  # (kind, text); plain text has no kind
_PAINTED = re.compile("\x1b\\[([0-9;]+)m(.*?)\x1b\\[0m", re.DOTALL)


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
            return Sample(self._draw(config, done[0].text))
        except UserError as error:
            return Sample(reason=f"Left out: {error}")
        except Exception as error:  # a config of another version must not stop the site
            return Sample(reason=f"Left out: this config cannot be composed here ({type(error).__name__}: {error})")

    def _draw(self, config: dict[str, Any], fingerprint: str | None) -> tuple[list[Piece], ...]:
        from paribus.reports.examples import show_examples
        from paribus.training.streams import training_examples

        run = Run.of({**config, "paths": {"cache": self.cache, "runs": "runs"}})
        data = self._prepare(run)
        if fingerprint is not None and data.fingerprint["text"] != fingerprint:
            raise UserError(
                f"the text here ({data.fingerprint['text']}) differs from the record's",
                "run `paribus audit` on the sweep",
            )
        screen = io.StringIO()
        with redirect_stdout(io.StringIO()), redirect_stderr(screen):
            show_examples(training_examples(run, data), data.tokenizer, self.count, color=True)
        return tuple(split_colors(line) for line in screen.getvalue().split("\n") if line.strip())

    def _prepare(self, run: Run) -> Data:
        """The data of a config. Raises UserError, also the second time, if they cannot be prepared."""
        key = repr((run.corpus, run.tokenizer, run.trainer.train_tokens, run.annotator))
        if key not in self._data:
            try:
                self._data[key] = run.data()
            except UserError as error:
                self._data[key] = error
        prepared = self._data[key]
        if isinstance(prepared, UserError):
            raise prepared
        return prepared


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
