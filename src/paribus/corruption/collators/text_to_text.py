"""Collators of text-to-text models: an encoder-decoder, and a decoder that reads and writes one stream."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from paribus.core.errors import UserError
from paribus.corruption.collators.collator import Collator, Places
from paribus.corruption.corruption import Corruption
from paribus.data.sequences import Arrays, Ints, Sequences, Text, Views, concatenate_ranges
from paribus.data.tokens.vocabulary import Vocabulary

IGNORED: Final = -100  # label of a position that is not predicted


@dataclass(frozen=True)
class EncoderDecoderCollator(Collator):
    """One row to read and one to write; the decoder starts with the pad token, as in T5."""

    def arrays(self, views: Views, vocabulary: Vocabulary) -> Arrays:
        """The arrays of `join`, and counts: ints.

        If targets keep their places in the text, the decoder reads the token that precedes each there, and shown_BL,
        bool [B, L], says which places of what is read it sees: not those of the mask, as in MASS's code. MASS tells the
        decoder the places too; T5's positions are relative, and those of consecutive targets the same everywhere.
        """
        written = written_rows(views)
        arrays = self.join(views.inputs, written, vocabulary.pad)
        if written.place_BL is not None:
            last = views.text.ids_BL.shape[1] - 1  # the padding of place_BL may lie beyond the text
            before_BT = np.take_along_axis(views.text.ids_BL, np.clip(written.place_BL - 1, 0, last), axis=1)
            arrays["decoder_ids_BT"] = np.where(written.place_BL > 0, before_BT, vocabulary.pad)
            read_BL = views.inputs.ids_BL
            real_BL = np.arange(read_BL.shape[1]) < views.inputs.length_B[:, None]
            arrays["shown_BL"] = real_BL & ~np.isin(read_BL, (vocabulary.mask, vocabulary.first_sentinel))
        return {**arrays, "counts": _count(views, written)}

    def join(self, read: Sequences | Text, written: Sequences, pad: int) -> Arrays:
        """ids_BL [B, L], length_B: read · decoder_ids_BT [B, T]: the labels shifted right · label_BT: what is written,
        -100 at padding · slot_P, target_P: flat places of the labels that are not padding, and these · target_length_B.
        All int64; L and T are those of the longest row.
        """
        label_BT, width = written.ids_BL, written.ids_BL.shape[1]
        if (written.length_B < width).any():
            label_BT = np.where(np.arange(width) < written.length_B[:, None], label_BT, IGNORED)
        return {
            "ids_BL": read.ids_BL,
            "length_B": read.length_B,
            "decoder_ids_BT": _shift(written.ids_BL, pad),
            "label_BT": label_BT,
            **_find_slots(label_BT),
            "target_length_B": written.length_B,
        }

    def raw_length(self, budget: int, corruption: Corruption) -> int:
        return corruption.raw_length(budget)

    def read_lengths(self, raw_N: NDArray[np.int32], corruption: Corruption) -> NDArray[np.int32]:
        """int32 [N]: tokens that the model reads of windows of these lengths; the most if the noise varies."""
        return corruption.read_lengths(raw_N)

    def model_lengths(self, read_N: Ints, written_N: Ints) -> Ints:
        """[N]: tokens put through the model of rows with these tokens read and written."""
        return read_N

    def check(self, corruption: Corruption) -> None:
        _check_writes(corruption)
        if corruption.inputs.empty:
            raise UserError("objective/inputs=nothing leaves the encoder without text", "use masking=prefix")

    def find_places(self, arrays: Arrays) -> Places:
        """The token that the decoder reads before; also the one that is read in the same place, if all rows are written
        as long as they are read.
        """
        places, read_BL = _find_written(arrays, arrays["decoder_ids_BT"]), arrays["ids_BL"]
        if read_BL.shape != arrays["label_BT"].shape or (arrays["length_B"] != arrays["target_length_B"]).any():
            return places
        return places._replace(shown_P=read_BL.reshape(-1)[arrays["slot_P"]])

    def rates(self, counts: Mapping[str, int]) -> dict[str, float]:
        """corruption_rate: noise share of the text · mean_span_length: tokens · spans_per_row · targets_per_input:
        tokens written for each token read · padding_share: of positions.
        """
        positions = counts["padding"] + counts["input_tokens"] + counts["target_tokens"]
        return {
            "corruption_rate": counts["noise"] / max(counts["raw_tokens"], 1),
            "mean_span_length": counts["noise"] / max(counts["spans"], 1),
            "spans_per_row": counts["spans"] / max(counts["sequences"], 1),
            "targets_per_input": counts["target_tokens"] / max(counts["input_tokens"], 1),
            "padding_share": counts["padding"] / max(positions, 1),
        }


@dataclass(frozen=True)
class SingleStreamCollator(EncoderDecoderCollator):
    """A language model, or a prefix LM that reads the inputs in both directions; only targets are predicted.

    T5 (arXiv 1910.10683), section 3.2.1
    """

    def arrays(self, views: Views, vocabulary: Vocabulary) -> Arrays:
        """The arrays of `join`, and counts: ints."""
        written = written_rows(views)
        arrays = self.join(views.inputs, written, vocabulary.pad)
        tokens = int(arrays["length_B"].sum())
        padding = arrays["ids_BL"].size - tokens
        return {**arrays, "counts": _count(views, written) | {"input_tokens": tokens, "padding": padding}}

    def join(self, read: Sequences | Text, written: Sequences, pad: int) -> Arrays:
        """ids_BL [B, L], length_B: start (the pad token), inputs, targets without their last token · label_BL: the next
        token, -100 if it is not a target · slot_P, target_P: flat places of the other labels, and these ·
        prefix_length_B: start and inputs, which may see each other; 0 if nothing is read. All int64; L is that of the
        longest row.
        """
        stream_BL, target_P = _concatenate(read, written, pad)
        label_BL = np.full_like(stream_BL, IGNORED)
        label_BL.reshape(-1)[target_P] = stream_BL.reshape(-1)[target_P]
        ids_BL = _shift(stream_BL, pad)
        length_B = read.length_B + written.length_B
        ids_BL[np.arange(stream_BL.shape[1]) >= length_B[:, None]] = pad
        return {
            "ids_BL": ids_BL,
            "length_B": length_B,
            "label_BL": label_BL,
            **_find_slots(label_BL),
            "prefix_length_B": np.where(read.length_B > 0, read.length_B + 1, 0),
        }

    def find_places(self, arrays: Arrays) -> Places:
        """The token of the stream before."""
        return _find_written(arrays, arrays["ids_BL"])

    def read_lengths(self, raw_N: NDArray[np.int32], corruption: Corruption) -> NDArray[np.int32]:
        """int32 [N]: tokens of the stream; means, rounded up, if the noise of a row varies."""
        raw_U, at_N = np.unique(raw_N, return_inverse=True)
        return np.array([np.ceil(sum(corruption.lengths(int(raw)))) for raw in raw_U], np.int32)[at_N]

    def model_lengths(self, read_N: Ints, written_N: Ints) -> Ints:
        return read_N + written_N

    def rates(self, counts: Mapping[str, int]) -> dict[str, float]:
        """Those of an encoder-decoder; input tokens of the stream include the tokens written."""
        read = counts.get("input_tokens", 0) - counts.get("target_tokens", 0)
        return super().rates(Counter({**counts, "input_tokens": read}))

    def check(self, corruption: Corruption) -> None:
        _check_writes(corruption)
        if corruption.written.in_place:
            raise UserError("objective/targets=fragment needs a separate decoder", "use an encoder-decoder")


def _check_writes(corruption: Corruption) -> None:
    if corruption.targets is None:
        raise UserError("the objective predicts in place, but the model writes text", "use objective=denoising")


def written_rows(views: Views) -> Sequences:
    assert isinstance(views.targets, Sequences)
    return views.targets


def _find_slots(label_BT: Ints) -> Arrays:
    """slot_P: flat places of the labels that are predicted, ascending · target_P: their labels."""
    slot_P = np.flatnonzero(label_BT != IGNORED)
    return {"slot_P": slot_P, "target_P": label_BT.reshape(-1)[slot_P]}


def _find_written(arrays: Arrays, before_BT: Ints) -> Places:
    slot_P = arrays["slot_P"]
    return Places(arrays["target_P"], [before_BT.reshape(-1)[slot_P]], row_P=slot_P // before_BT.shape[1])


def _shift(ids_BT: Ints, start: int) -> Ints:
    """[B, T]: the token before each, `start` before the first."""
    shifted_BT = np.empty_like(ids_BT)
    shifted_BT[:, 0], shifted_BT[:, 1:] = start, ids_BT[:, :-1]
    return shifted_BT


def _concatenate(read: Sequences | Text, written: Sequences, pad: int) -> tuple[Ints, Ints]:
    """(rows of what is read, then what is written, padded; flat places of what is written)."""
    width = int((read.length_B + written.length_B).max(initial=1))
    first_B = np.arange(len(read.length_B)) * width
    stream_BL = np.full((len(first_B), width), pad, np.int64)
    target_P = concatenate_ranges(first_B + read.length_B, written.length_B)
    for rows, place_P in ((read, concatenate_ranges(first_B, read.length_B)), (written, target_P)):
        real_BL = np.arange(rows.ids_BL.shape[1]) < rows.length_B[:, None]
        stream_BL.reshape(-1)[place_P] = rows.ids_BL[real_BL]
    return stream_BL, target_P


def _count(views: Views, written: Sequences) -> dict[str, int]:
    """Of a batch; `predicted` are the tokens written, `padding` that of both rows."""
    read, targets = int(views.inputs.length_B.sum()), int(written.length_B.sum())
    return {
        "sequences": len(written.length_B),
        "raw_tokens": int(views.text.length_B.sum()),
        "input_tokens": read,
        "target_tokens": targets,
        "padding": views.inputs.ids_BL.size - read + written.ids_BL.size - targets,
        "predicted": targets,
        "noise": len(views.marks.noise_P),
        "spans": views.marks.spans,
    }
