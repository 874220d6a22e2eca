"""Left-to-right language modeling on the whole text as a stream, with or without memory (Transformer-XL, arXiv
1901.02860).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from paribus.core.settings import HeldOut
from paribus.corruption.collators.stream import StreamCollator
from paribus.corruption.corruption import Corruption
from paribus.corruption.masking.whole_row import NoNoise
from paribus.corruption.views.replace import Unchanged
from paribus.data.formats.streams import Streams
from paribus.data.mask_schedule import Static
from paribus.objectives.mlm import CausalLM
from paribus.objectives.spec import HeldOutText


@dataclass(frozen=True)
class StreamLM(CausalLM):
    """Predict each token of the text from those before it, in rows without [CLS] and [SEP].

    With `input=streams` rows go on where those of the step before ended, and a model with memory remembers them;
    with `input=windows` they are shuffled. The held-out evaluation reads the validation split as one stream, each
    segment from the memory of the one before, and predicts all of its tokens but the first.

    late: train on the targets of the later half of each row alone ("half loss" in the paper's table 6).
    """

    late: bool = False
    semantics: ClassVar[int] = 1
    framed: ClassVar[bool] = False

    @property
    def collator(self) -> StreamCollator:
        return StreamCollator(self.late)

    def held_out(self, settings: HeldOut) -> HeldOutText:
        corruption = Corruption(NoNoise(schedule=Static()), Unchanged())
        targets = "every token of the stream but its first"
        return HeldOutText(Streams(settings.input.length), corruption, StreamCollator(), targets)
