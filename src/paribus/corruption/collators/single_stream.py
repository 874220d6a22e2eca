"""Arrays of a decoder-only model: what is read and written as one stream.   T5 (arXiv 1910.10683), section 3.2.1"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from paribus.core.errors import UserError
from paribus.corruption.collators.encoder_decoder import (
    IGNORED,
    EncoderDecoder,
    counts,
    slots,
    text_to_text_rates,
    written_of,
)
from paribus.corruption.views.sequences import Ints
from paribus.data.formats.segments import runs
from paribus.data.text import Arrays, Sequences, Text, Views

if TYPE_CHECKING:
    from paribus.corruption.corruption import Corruption


@dataclass(frozen=True)
class SingleStream(EncoderDecoder):
    """A language model, or a prefix LM that reads the inputs in both directions; only targets are predicted."""

    def pack(self, views: Views, vocabulary: Any) -> Arrays:
        """The arrays of `joined`, and counts: ints."""
        written = written_of(views)
        arrays = self.joined(views.inputs, written, vocabulary.pad)
        tokens = int(arrays["length_B"].sum())
        padding = arrays["ids_BL"].size - tokens
        return {**arrays, "counts": counts(views, written) | {"input_tokens": tokens, "padding": padding}}

    def joined(self, read: Sequences | Text, written: Sequences, pad: int) -> Arrays:
        """ids_BL [B, L], length_B: start (the pad token), inputs, targets without their last token · label_BL: the
        token that follows each, -100 where that is none of the targets · slot_P, target_P: flat places of the others,
        and these · prefix_length_B: start and inputs, which may see each other; 0 where nothing is read. All int64; L
        is that of the longest row.
        """
        stream_BL, target_P = stream(read, written, pad)
        label_BL = np.full_like(stream_BL, IGNORED)
        label_BL.reshape(-1)[target_P] = stream_BL.reshape(-1)[target_P]
        ids_BL = np.empty_like(stream_BL)
        ids_BL[:, 0], ids_BL[:, 1:] = pad, stream_BL[:, :-1]
        length_B = read.length_B + written.length_B
        ids_BL[np.arange(stream_BL.shape[1]) >= length_B[:, None]] = pad
        return {
            "ids_BL": ids_BL,
            "length_B": length_B,
            "label_BL": label_BL,
            **slots(label_BL),
            "prefix_length_B": np.where(read.length_B > 0, read.length_B + 1, 0),
        }

    def read_lengths(self, raw_N: NDArray[np.int32], corruption: Corruption) -> NDArray[np.int32]:
        """int32 [N]: tokens of the stream; expected ones, rounded up, where the noise of a row varies."""
        found, at_N = np.unique(raw_N, return_inverse=True)
        return np.array([np.ceil(sum(corruption.lengths(int(raw)))) for raw in found], np.int32)[at_N]

    def taken(self, read_N: Ints, written_N: Ints) -> Ints:
        """[N]: tokens of the stream of rows that are read and written so long."""
        return read_N + written_N

    def predicted_share(self, raw: int, corruption: Corruption) -> float:
        """Tokens written of all tokens of the stream."""
        read, written = corruption.lengths(raw)
        return written / (read + written)

    def rates(self, counts: Mapping[str, int]) -> dict[str, float]:
        """See `text_to_text_rates`; the stream holds what is written, too."""
        read = counts.get("input_tokens", 0) - counts.get("target_tokens", 0)
        return text_to_text_rates(Counter({**counts, "input_tokens": read}))

    def check(self, corruption: Corruption) -> None:
        """Raise UserError for a corruption that a single stream cannot be trained on."""
        if corruption.targets is None:
            raise UserError("the objective predicts in place, but the model writes", "take objective=denoising")
        if corruption.targets.letter == "fragment":
            raise UserError("objective/targets=fragment needs a decoder of its own", "take an encoder-decoder")


def stream(read: Sequences | Text, written: Sequences, pad: int) -> tuple[Ints, Ints]:
    """(the rows of both, one behind the other, padded; flat places of what is written)."""
    width = int((read.length_B + written.length_B).max(initial=1))
    first_B = np.arange(len(read.length_B)) * width
    stream_BL = np.full((len(first_B), width), pad, np.int64)
    target_P = runs(first_B + read.length_B, written.length_B)
    for rows, place_P in ((read, runs(first_B, read.length_B)), (written, target_P)):
        real_BL = np.arange(rows.ids_BL.shape[1]) < rows.length_B[:, None]
        stream_BL.reshape(-1)[place_P] = rows.ids_BL[real_BL]
    return stream_BL, target_P
