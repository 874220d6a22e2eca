"""Arrays of an encoder that also predicts spans from their boundaries.   SpanBERT (arXiv 1907.10529), section 3.2"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from paribus.corruption.collators.encoder import Encoder
from paribus.corruption.masking.units import begins
from paribus.data.text import Array, Arrays, Views


@dataclass(frozen=True)
class Boundary(Encoder):
    """As an encoder's, and S targets with the places around their span and the place in it.

    A span is a run of noise: what touches is one. It has no term where it touches the first or last token of its
    segment, that is where a special token of the frame stands beside it. Only its first `most` tokens are targets.
    """

    most: int = 20
    semantics: ClassVar[int] = 1

    def pack(self, views: Views, vocabulary: Any) -> Arrays:
        """`Encoder.pack`, and int64: left_S, right_S (flat into B x L), place_S (from 0), inside_S, the target."""
        arrays, text = super().pack(views, vocabulary), views.text
        left_P, right_P = _around(views.marks.span_BL > 0)
        slot_P = views.marks.slot_P
        left_S, right_S = left_P[slot_P], right_P[slot_P]
        place_S, framed_P = slot_P - left_S - 1, (text.sentence_BL < 0).reshape(-1)
        kept_S = ~framed_P[left_S] & ~framed_P[right_S] & (place_S < self.most)
        names = {"left_S": left_S, "right_S": right_S, "place_S": place_S, "inside_S": arrays["target_P"]}
        counts = {**arrays["counts"], "boundary": int(np.count_nonzero(kept_S))}
        return {**arrays, **{name: column_S[kept_S] for name, column_S in names.items()}, "counts": counts}


def _around(noise_BL: Array) -> tuple[Array, Array]:
    """For each flat place, those before and behind its run of noise; any number where there is no noise.

    The first token of a row and the last before padding are specials, so that a run lies within its row.
    """
    begin_P = np.flatnonzero(begins(noise_BL))
    end_P = np.flatnonzero(begins(noise_BL[:, ::-1])[:, ::-1])
    run_P = np.cumsum(begins(noise_BL)) - 1
    if not len(begin_P):
        return run_P, run_P
    return begin_P[run_P] - 1, end_P[run_P] + 1
