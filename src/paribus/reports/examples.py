"""What `paribus show` does with corrupted examples: draws them for a terminal, writes them as rows, counts them."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain, groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from paribus.core.console import say
from paribus.core.errors import UserError
from paribus.corruption.collators.text_to_text import IGNORED, written_rows
from paribus.corruption.examples import ROWS, Examples, Measured
from paribus.corruption.masking.units import word_starts
from paribus.corruption.views.view import real_tokens
from paribus.data.sequences import Sequences, Text, Views

if TYPE_CHECKING:
    from paribus.data.tokens.tokenizer import Tokenizer

NEW_LINE = "\u21b5"  # drawn for a new line that is a token
DRAWN = 8  # examples that are drawn if the rows go to a file
COUNTS = ("raw_tokens", "input_tokens", "target_tokens", "padding", "noise", "spans", "predicted")

_COLORS = {"mask": "1;31", "random": "1;35", "keep": "1;34", "silent": "33", "moved": "36", "special": "2"}
_MARKS = {
    "mask": "{shown}({text})",
    "random": "~{shown}~({text})",
    "keep": "={text}=",
    "silent": "{shown}<{text}>",
    "moved": "^{shown}^({text})",
}


def show_examples(
    examples: Examples,
    tokenizer: Tokenizer,
    n: int,
    epoch: int = 0,
    out: Path | None = None,
    color: bool | None = None,
) -> dict[str, Any]:
    """Draw the first n examples of a pass, write them to `out` as Parquet; prints and returns the measured rates.

    color None: if the drawing goes to a terminal. With `out`, only the first few are drawn.
    """
    size = examples.size(epoch)
    if n > size:
        say(f"n={n}: the corpus has {size} examples, all of them are shown")
    rows, screen = np.arange(min(n, size)), sys.stdout if sys.stdout.isatty() else sys.stderr
    drawn = rows[:DRAWN] if out else rows
    _draw_rows(examples, tokenizer, drawn, epoch, screen, screen.isatty() if color is None else color)
    if out:
        _write(examples, rows, epoch, out)
        say(f"{len(drawn)} of {len(rows)} examples drawn, all of them in {out}")
    total, vocabulary, words = Measured(examples.collator), examples.vocabulary, 0
    for chunk in _chunks(rows):
        views = examples.views(epoch, chunk)
        total.add(examples.collator.pack(views, vocabulary), vocabulary)
        words += int(np.count_nonzero(word_starts(views.text)))
    names = {str(tokenizer.backend.id_to_token(special)): int(special) for special in vocabulary.specials}
    counts = {name: int(total.counts[name]) for name in COUNTS if name in total.counts}
    objective = {} if examples.corruption.targets is None else {"objective": examples.corruption.name}
    measured = {**total.rates(), **counts, "words": words}
    report = {**objective, "examples": len(rows), "epoch": epoch, **measured, "special_tokens": names}
    print(json.dumps(report), flush=True)
    return report


def draw_examples(examples: Examples, tokenizer: Tokenizer, n: int) -> None:
    """Draw the first n examples of the first pass on stderr."""
    rows = np.arange(min(n, examples.size(0)))
    _draw_rows(examples, tokenizer, rows, 0, sys.stderr, sys.stderr.isatty())


def _chunks(rows: np.ndarray[Any, Any]) -> Iterator[np.ndarray[Any, Any]]:
    for at in range(0, len(rows), ROWS):
        yield rows[at : at + ROWS]


def _draw_rows(
    examples: Examples, tokenizer: Tokenizer, rows: np.ndarray[Any, Any], epoch: int, screen: TextIO, color: bool
) -> None:
    if examples.corruption.targets is not None:
        print(f"{examples.corruption.name}, windows of {examples.raw} tokens", file=screen)
        for chunk in _chunks(rows):
            _draw_written(examples.views(epoch, chunk), chunk, tokenizer, screen, color)
        return
    legend = {
        "mask": _MARKS["mask"].format(shown=_piece(tokenizer, examples.vocabulary.mask), text="original"),
        "random": _MARKS["random"].format(shown="random", text="original"),
        "keep": _MARKS["keep"].format(shown="kept", text="kept"),
    }
    if examples.thinned:
        legend["silent"] = _MARKS["silent"].format(shown="corrupted", text="not predicted")
    if examples.corruption.shuffling is not None:
        legend["moved"] = _MARKS["moved"].format(shown="out of order", text="original")
    painted = "  ".join(_paint(text, kind, color) for kind, text in legend.items())
    whole = "every token, predicted from those to its left"
    print(f"predicted tokens: {painted if examples.corruption.masking.rate else whole}", file=screen)
    for chunk in _chunks(rows):
        views = examples.views(epoch, chunk)
        for row, example in enumerate(np.repeat(chunk, examples.readings)):
            line = _line(views, row, tokenizer, examples.vocabulary.mask, color)
            # of a pair: 0 if its second segment follows the first
            label = "" if views.text.label_B is None else f"label {views.text.label_B[row]}  "
            print(f"\n#{example}  {label}{line}", file=screen)
    print(file=screen, flush=True)


def _draw_written(views: Views, rows: np.ndarray[Any, Any], tokenizer: Tokenizer, screen: TextIO, color: bool) -> None:
    """The text of each row of a text-to-text objective, what is read of it and what is written."""
    parts = (("text", views.text), ("inputs", views.inputs), ("targets", written_rows(views)))
    for row, example in enumerate(rows):
        print(f"\n#{example}", file=screen)
        for name, sequences in parts:
            ids = sequences.ids_BL[row, : sequences.length_B[row]].tolist()
            pieces = _split_specials(ids, tokenizer)
            drawn = " ".join(_paint(text, "mask" if special else "text", color) for text, special in pieces)
            print(f"  {name:<9}{drawn}", file=screen)
    print(file=screen, flush=True)


def _split_specials(ids: list[int], tokenizer: Tokenizer) -> Iterator[tuple[str, bool]]:
    """(text, whether it is a special token): ordinary tokens as running text, special ones by their names."""
    specials = set(tokenizer.vocabulary.specials)
    for special, run in groupby(ids, specials.__contains__):
        if special:
            yield from ((str(tokenizer.backend.id_to_token(token)), True) for token in run)
        else:
            yield str(tokenizer.backend.decode(list(run), skip_special_tokens=False)).strip(), False


def _line(views: Views, row: int, tokenizer: Tokenizer, mask: int, color: bool) -> str:
    """One example as running text, with spaces between words but not within them.

    If white space is text, it is drawn as it stands, and a new line by a sign.
    """
    text, words, width, predicted_P = views.text, [], views.text.ids_BL.shape[1], _predicted(views)
    predicted = set((predicted_P[predicted_P // width == row] % width).tolist())
    for at in range(int(text.length_B[row])):
        original, shown = int(text.ids_BL[row, at]), int(views.inputs.ids_BL[row, at])
        kind = _kind(views, row, at, shown == mask, shown == original, at in predicted)
        form = _MARKS.get(kind, "{text}")
        drawn = form.format(shown=_piece(tokenizer, shown), text=_piece(tokenizer, original))
        starts_word = text.start_BL[row, at] and not tokenizer.vocabulary.spaces
        apart = starts_word or not text.free_BL[row, at - 1]
        words.append((" " if at and apart else "") + _paint(drawn, kind, color))
    return "".join(words)


def _predicted(views: Views) -> np.ndarray[Any, Any]:
    """Flat indices of all that is predicted: noise, and words out of order."""
    marks = views.marks
    return marks.slot_P if marks.moved_P is None else np.concatenate([marks.slot_P, marks.moved_P])


def _kind(views: Views, row: int, at: int, masked: bool, same: bool, predicted: bool) -> str:
    if not views.text.free_BL[row, at]:
        return "special"
    if not views.marks.span_BL[row, at]:
        return "moved" if predicted and views.marks.moved_P is not None else "text"
    if not predicted:
        return "silent"
    return "mask" if masked else "keep" if same else "random"


def _piece(tokenizer: Tokenizer, token: int) -> str:
    """A token for a reader, without the vocabulary's word markers; bytes of incomplete characters stay."""
    text = str(tokenizer.backend.decode([token], skip_special_tokens=False))
    if tokenizer.vocabulary.spaces:
        text = text.replace("\n", NEW_LINE)
    else:
        text = text.strip()
        text = text.removeprefix("##") or text
    return text if text and "\ufffd" not in text else str(tokenizer.backend.id_to_token(token))


def _paint(text: str, kind: str, color: bool) -> str:
    return f"\x1b[{_COLORS[kind]}m{text}\x1b[0m" if color and kind in _COLORS else text


def _write(examples: Examples, rows: np.ndarray[Any, Any], epoch: int, out: Path) -> None:
    """One row per example (and per reading, if it is read several times), unpadded; the file is whole or absent.

    Raises UserError if it cannot be written.
    """
    import pyarrow.parquet as pq

    part = out.with_name(f".{out.name}.{os.getpid()}")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        tables = (
            _tabulate(examples.views(epoch, chunk), np.repeat(chunk, examples.readings)) for chunk in _chunks(rows)
        )
        first = next(tables)
        with pq.ParquetWriter(part, first.schema) as writer:
            for table in chain([first], tables):
                writer.write_table(table)
        os.replace(part, out)
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else str(error)  # Arrow's own texts name `part`
        raise UserError(f"out={out} cannot be written ({why})", "choose another file") from error
    finally:
        with suppress(OSError):
            part.unlink()


def _tabulate(views: Views, rows: np.ndarray[Any, Any]) -> Any:
    """One row per example, unpadded."""
    import pyarrow as pa

    if views.targets is not None:
        return _tabulate_written(views, rows)
    text = views.text
    label_BL = np.full_like(text.ids_BL, IGNORED)
    predicted_P = _predicted(views)
    label_BL.reshape(-1)[predicted_P] = text.ids_BL.reshape(-1)[predicted_P]
    edges, starts = _flat(text, text.start_BL)
    columns: dict[str, Any] = {"example_id": pa.array(rows, pa.int64())}
    if text.label_B is not None:
        columns["pair_label"] = pa.array(text.label_B, pa.int8())
    lists = {
        "input_ids": views.inputs.ids_BL,
        "labels": label_BL,
        "original_ids": text.ids_BL,
        "token_type_ids": text.part_BL,
    }
    columns |= {name: _lists(*_flat(text, column_BL)) for name, column_BL in lists.items()}
    return pa.table({**columns, "word_starts": pa.ListArray.from_arrays(edges, starts)})


def _tabulate_written(views: Views, rows: np.ndarray[Any, Any]) -> Any:
    """The same of a text-to-text objective: the columns of the drawing in place, and what the decoder should write.

    original_ids and word_starts are those of the raw window; labels and token_type_ids go with input_ids.
    """
    import pyarrow as pa

    read, whole = _flat(views.inputs, views.inputs.ids_BL), real_tokens(views.text)
    edges, ids = read
    columns: dict[str, Any] = {
        "example_id": pa.array(rows, pa.int64()),
        "input_ids": _lists(edges, ids),
        "labels": _lists(edges, np.full_like(ids, IGNORED)),
        "decoder_labels": _lists(*_flat(written_rows(views), written_rows(views).ids_BL)),
        "original_ids": _lists(*_flat(views.text, views.text.ids_BL)),
        "token_type_ids": _lists(edges, np.zeros_like(ids)),
        "word_starts": pa.ListArray.from_arrays(_flat(views.text, views.text.ids_BL)[0], views.text.start_BL[whole]),
    }
    return pa.table(columns)


def _flat(rows: Text | Sequences, values_BL: Any) -> tuple[Any, Any]:
    """(where each row starts, int32, and their end; the values without padding)."""
    edges = np.concatenate([[0], np.cumsum(rows.length_B)]).astype(np.int32)
    return edges, values_BL[np.arange(values_BL.shape[1]) < rows.length_B[:, None]]


def _lists(edges: Any, values: Any) -> Any:
    import pyarrow as pa

    return pa.ListArray.from_arrays(edges, values.astype(np.int32))
