"""Collators of unmasked text with labels that come from the text itself, per row or per token."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from paribus.corruption.collators.collator import Collator, Places
from paribus.corruption.corruption import Corruption
from paribus.data.text import Arrays, Views
from paribus.data.tokens.vocabulary import Vocabulary


@dataclass(frozen=True)
class _Labels(Collator):
    """The text as it is; no entry of the vocabulary is predicted."""

    def arrays(self, views: Views, vocabulary: Vocabulary) -> Arrays:
        """ids_BL, part_BL [B, L], length_B: int64; counts: ints."""
        text, taken = views.text, int(views.text.length_B.sum())
        counts = {"raw_tokens": text.tokens, "input_tokens": taken, "padding": text.ids_BL.size - taken}
        none = dict.fromkeys(("predicted", "noise", "spans"), 0)
        return {
            "ids_BL": text.ids_BL,
            "length_B": text.length_B,
            "part_BL": text.part_BL.astype(np.int64),
            "counts": {**counts, **none, "sequences": len(text.length_B)},
        }

    def check(self, corruption: Corruption) -> None:
        """Any text will do."""

    def find_places(self, arrays: Arrays) -> Places:
        """None."""
        return Places(np.zeros(0, np.int64), [])

    def rates(self, counts: Mapping[str, int]) -> dict[str, float]:
        """padding_share: of positions."""
        return {"padding_share": counts["padding"] / max(counts["padding"] + counts["input_tokens"], 1)}


@dataclass(frozen=True)
class RowLabels(_Labels):
    """Rows with the label that the input format gives them."""

    def arrays(self, views: Views, vocabulary: Vocabulary) -> Arrays:
        """Also label_B, int64 [B]."""
        arrays, label_B = super().arrays(views, vocabulary), views.text.label_B
        assert label_B is not None
        return {**arrays, "label_B": label_B, "counts": {**arrays["counts"], "rows": len(label_B)}}


@dataclass(frozen=True)
class TokenLabels(_Labels):
    """Tokens with the label 1 if they are annotated, else 0; special tokens have none."""

    def arrays(self, views: Views, vocabulary: Vocabulary) -> Arrays:
        """Also tag_BL, int64 [B, L], -1 without a label."""
        arrays, text = super().arrays(views, vocabulary), views.text
        assert text.annotated_BL is not None
        tag_BL = np.where(text.free_BL, text.annotated_BL > 0, -1).astype(np.int64)
        return {**arrays, "tag_BL": tag_BL, "counts": {**arrays["counts"], "words": int((tag_BL >= 0).sum())}}
