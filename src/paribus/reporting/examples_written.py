"""How `paribus show` draws and writes the examples of text-to-text objectives: what is read, what is written."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from paribus.corruption.collators.text_to_text import IGNORED, written_rows
from paribus.corruption.views.view import real_tokens
from paribus.data.sequences import Sequences, Text, Views

if TYPE_CHECKING:
    from paribus.data.tokens.tokenizer import Tokenizer


def lines(views: Views, row: int, tokenizer: Tokenizer) -> Iterator[tuple[str, list[tuple[str, bool]]]]:
    """(name, pieces of text) of a row's text, inputs and targets; a piece that is a special token is marked True."""
    for name, rows in (("text", views.text), ("inputs", views.inputs), ("targets", written_rows(views))):
        ids = rows.ids_BL[row, : rows.length_B[row]].tolist()
        yield name, list(pieces(ids, tokenizer))


def pieces(ids: list[int], tokenizer: Tokenizer) -> Iterator[tuple[str, bool]]:
    """Ordinary tokens as running text, special ones by their names."""
    specials = set(tokenizer.vocabulary.specials)
    for special, run in groupby(ids, specials.__contains__):
        if special:
            yield from ((str(tokenizer.backend.id_to_token(token)), True) for token in run)
        else:
            yield str(tokenizer.backend.decode(list(run), skip_special_tokens=False)).strip(), False


def table(views: Views, rows: np.ndarray[Any, Any]) -> Any:
    """One row per example, unpadded: the columns of the drawing in place, and what the decoder should write.

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
