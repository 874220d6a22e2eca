"""Arrays of an encoder-decoder: one row that is read, one that is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from paribus.core.errors import UserError
from paribus.corruption.views.sequences import Ints
from paribus.data.text import Arrays, Sequences, Text, Views

if TYPE_CHECKING:
    from paribus.corruption.corruption import Corruption

IGNORED: Final = -100  # label of a position that is not predicted


@dataclass(frozen=True)
class EncoderDecoder:
    """What T5 reads and writes; the decoder starts with the pad token."""

    semantics: ClassVar[int] = 1

    def pack(self, views: Views, vocabulary: Any) -> Arrays:
        """The arrays of `joined` · where targets keep their places in the text: position_BT, the column of each; they
        are then read behind the tokens that stand before them there · counts: ints.
        """
        written = written_of(views)
        arrays = self.joined(views.inputs, written, vocabulary.pad)
        if written.place_BL is not None:
            before_BT = np.take_along_axis(views.text.ids_BL, np.maximum(written.place_BL - 1, 0), axis=1)
            arrays["decoder_ids_BT"] = np.where(written.place_BL > 0, before_BT, vocabulary.pad)
            arrays["position_BT"] = written.place_BL
        return {**arrays, "counts": counts(views, written)}

    def joined(self, read: Sequences | Text, written: Sequences, pad: int) -> Arrays:
        """ids_BL [B, L], length_B: read · decoder_ids_BT [B, T]: the labels shifted right · label_BT: what is written,
        -100 at padding · slot_P, target_P: flat places of the labels that are no padding, and these · target_length_B.
        All int64; L and T are those of the longest row.
        """
        label_BT = labels(written)
        return {
            "ids_BL": read.ids_BL,
            "length_B": read.length_B,
            "decoder_ids_BT": shifted(written, pad),
            "label_BT": label_BT,
            **slots(label_BT),
            "target_length_B": written.length_B,
        }

    def raw_length(self, budget: int, corruption: Corruption) -> int:
        """Tokens of text whose view read fills `budget`."""
        return corruption.raw_length(budget)

    def read_lengths(self, raw_N: NDArray[np.int32], corruption: Corruption) -> NDArray[np.int32]:
        """int32 [N]: tokens read of windows of these lengths; the most where the noise of a row varies."""
        return corruption.read_lengths(raw_N)

    def taken(self, read_N: Ints, written_N: Ints) -> Ints:
        """[N]: tokens put through the model of rows that are read and written so long."""
        return read_N

    def predicted_share(self, raw: int, corruption: Corruption) -> float:
        """Tokens written for each token read, end-of-sequence tokens included."""
        read, written = corruption.lengths(raw)
        return written / read

    def check(self, corruption: Corruption) -> None:
        """Raise UserError for a corruption that an encoder-decoder cannot be trained on."""
        if corruption.targets is None:
            raise UserError("the objective predicts in place, but the model writes", "take objective=denoising")
        if corruption.inputs.letter == "n":
            raise UserError("objective/inputs=nothing leaves the encoder without text", "take masking=prefix")

    def shown(self, arrays: Arrays, vocabulary: Any) -> dict[str, int]:
        """Nothing of it is predicted in place."""
        return {}

    def rates(self, counts: Mapping[str, int]) -> dict[str, float]:
        """See `text_to_text_rates`."""
        return text_to_text_rates(counts)


def written_of(views: Views) -> Sequences:
    """The rows that are written."""
    assert isinstance(views.targets, Sequences)
    return views.targets


def labels(written: Sequences) -> NDArray[np.int64]:
    """[B, T]: the rows, IGNORED at padding."""
    width = written.ids_BL.shape[1]
    if (written.length_B == width).all():
        return written.ids_BL
    return np.where(np.arange(width) < written.length_B[:, None], written.ids_BL, IGNORED)


def slots(label_BT: NDArray[np.int64]) -> Arrays:
    """slot_P: flat places of the labels that are predicted, ascending · target_P: what they are."""
    slot_P = np.flatnonzero(label_BT != IGNORED)
    return {"slot_P": slot_P, "target_P": label_BT.reshape(-1)[slot_P]}


def shifted(written: Sequences, start: int) -> NDArray[np.int64]:
    """[B, T]: the token before each, `start` before the first."""
    out_BT = np.empty_like(written.ids_BL)
    out_BT[:, 0], out_BT[:, 1:] = start, written.ids_BL[:, :-1]
    return out_BT


def counts(views: Views, written: Sequences) -> dict[str, int]:
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


def text_to_text_rates(counts: Mapping[str, int]) -> dict[str, float]:
    """Share of the text's tokens that are noise (corruption_rate), tokens a span, spans a row, tokens written for each
    one read, padding's share of positions.
    """
    positions = counts["padding"] + counts["input_tokens"] + counts["target_tokens"]
    return {
        "corruption_rate": counts["noise"] / max(counts["raw_tokens"], 1),
        "mean_span_length": counts["noise"] / max(counts["spans"], 1),
        "spans_per_row": counts["spans"] / max(counts["sequences"], 1),
        "targets_per_input": counts["target_tokens"] / max(counts["input_tokens"], 1),
        "padding_share": counts["padding"] / max(positions, 1),
    }
