"""Text that an encoder writes after the text that it reads, in one row.   UniLM (arXiv 1905.03197), section 2.3

Any text for a text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from paribus.core.errors import UserError
from paribus.core.noise import Noise
from paribus.core.settings import FineTuning
from paribus.corruption.masking.single_tokens import choose_lowest, number_each
from paribus.corruption.views.replace import Replace
from paribus.data.sequences import Array, Arrays, Marks, Text
from paribus.tasks.prompts import Fields, encode_sources, encode_targets
from paribus.tasks.rows import FramedRows, count_tokens, head_tokens
from paribus.tasks.types.base import Pooler, TaskType
from paribus.tasks.types.verbal import TransferType

if TYPE_CHECKING:
    from paribus.data.tokens.tokenizer import Tokenizer
    from paribus.data.tokens.vocabulary import Vocabulary
    from paribus.models.heads.head import Head
    from paribus.models.network import Network
    from paribus.models.spec import ModelSpec

SHOWN = Replace()  # what is read at a masked place: BERT's 80 % mask, 10 % random, 10 % unchanged


@dataclass(frozen=True)
class SourceTargetRows(FramedRows):
    """Rows `[CLS] source [SEP] target [SEP]`.

    Attributes:
        source_N: int64, tokens up to the first [SEP], which all places see; those behind it see what is on their left.
        masking: share of the target's tokens that are masked and predicted, its [SEP] among the candidates: round(share
            * tokens without [SEP]) of a row, at least 1, drawn anew in each pass (UniLM, section 3.1; its
            `seq2seq_loader.py`). None: nothing is masked, and each token of the target is predicted to its right.
        most: tokens that the model writes at most by itself.
        keys: of the noise: the fine-tuning's seed and the pass.
    """

    source_N: Array
    vocabulary: Vocabulary
    tokenizer: Tokenizer
    masking: float | None
    most: int
    keys: tuple[int, int] = (0, 0)

    def drawn(self, seed: int, epoch: int) -> SourceTargetRows:
        return replace(self, keys=(seed, epoch))

    def batch(self, row_B: Array, multiple: int) -> Arrays:
        """Also `source_length_B`, `most`, `slot_P` and `target_P`, and with masks `rank_BL`, as `MixedAttention`."""
        found = super().batch(row_B, multiple)
        ids_BL, source_B = found["ids_BL"], self.source_N[row_B]
        behind_BL = np.arange(ids_BL.shape[1]) - source_B[:, None] + 1
        written_BL = (behind_BL > 0) & (np.arange(ids_BL.shape[1]) < found["length_B"][:, None])
        if self.masking is None:
            place_P = np.flatnonzero(written_BL)
            asked = {"slot_P": place_P - 1, "target_P": ids_BL.reshape(-1)[place_P]}
        else:
            asked = self._mask(found, written_BL, row_B)
            asked["rank_BL"] = np.maximum(behind_BL, 0).astype(np.int32)
        counts = {**found["counts"], "predicted": len(asked["slot_P"])}
        return {**found, **asked, "source_length_B": source_B, "most": np.array(self.most), "counts": counts}

    def _mask(self, found: Arrays, written_BL: Array, row_B: Array) -> Arrays:
        """The ids with masks, where they are, and what they hide."""
        ids_BL, noise = found["ids_BL"], Noise.of(self.keys[0], [self.keys[1]], row_B)
        wanted_B = np.maximum(1, np.rint((written_BL.sum(axis=1) - 1) * (self.masking or 0.0))).astype(np.int64)
        marks = Marks(number_each(choose_lowest(noise.bits("masking", ids_BL.shape[1]), written_BL, wanted_B)))
        text = Text(ids_BL, found["length_B"], written_BL, written_BL, found["part_BL"], found["part_BL"])
        shown_BL = SHOWN.corrupt_ids(text, marks, noise, self.vocabulary)
        place_P = marks.noise_P
        return {"ids_BL": shown_BL, "slot_P": place_P, "target_P": ids_BL.reshape(-1)[place_P]}


@dataclass(frozen=True)
class WrittenText(TransferType):
    """Any text for a text, written by an encoder.

    A bidirectional encoder is trained to fill masks in the target, where each position sees the source and what is on
    its left, and writes by filling a mask after what it has written (UniLM, sections 2.3 and 3.1). One that sees
    the left alone is trained as a language model whose loss counts in the target (GPT-1, section 3.3).

    Attributes:
        left: whether the encoder sees the left alone.
    """

    left: bool = False
    speaks: ClassVar[bool] = True

    def find_unread(self, settings: FineTuning) -> list[str]:
        found = [name for name in super().find_unread(settings) if name != "target_masking"]
        return [*found, "target_masking"] if self.left else found

    def row_length(self, settings: FineTuning) -> int:
        return settings.length + settings.target_length

    def check_tokenizer(self, tokenizer: Tokenizer, settings: FineTuning) -> None:
        super().check_tokenizer(tokenizer, replace(settings, length=settings.length - 1))  # [CLS] is read, too
        if not 0 < settings.target_masking <= 1:
            raise UserError(
                f"finetune.target_masking={settings.target_masking} is out of range", "give a share above 0, at most 1"
            )

    def encode(  # type: ignore[override]  # rows of another kind
        self, examples: Sequence[Any], tokenizer: Tokenizer, vocabulary: Vocabulary, settings: FineTuning
    ) -> SourceTargetRows:
        parts, texts = [self.source(row) for row in examples], [self.target(row) for row in examples]
        read = encode_sources(parts, tokenizer, vocabulary, settings.length - 1, head_tokens(settings.truncation))
        write = encode_targets(texts, tokenizer, vocabulary, settings.target_length)
        source_N, target_N = 1 + count_tokens(read), count_tokens(write)
        length_N = source_N + target_N
        both = np.stack([source_N, target_N], axis=1).reshape(-1)
        begin = [vocabulary.cls]
        return SourceTargetRows(
            np.concatenate([part for row in zip(read, write, strict=True) for part in (begin, *row)]).astype(np.int32),
            np.repeat(np.tile(np.array([0, 1], np.uint8), len(length_N)), both),
            np.cumsum(length_N) - length_N,
            length_N,
            np.zeros(len(length_N), np.int64),
            vocabulary.pad,
            source_N,
            vocabulary,
            tokenizer,
            None if self.left else settings.target_masking,
            self.most_tokens(tokenizer, settings),
        )

    def make_head(self, settings: FineTuning, model: Network, seed: int, pooler: Pooler | None = None) -> Head:
        """The head on tokens; `pooler`: its weights after pre-training, if it has been trained."""
        from paribus.models.heads.vocabulary import MaskedLMHead, start_head

        return start_head(MaskedLMHead(model), model, seed, pooler)


@dataclass(frozen=True)
class FreeText(TransferType):
    """A summary, a translation: the model writes it."""

    def verbalize(self, fields: Fields, single: bool) -> FreeText:
        return replace(self, single=single)

    def fit(self, model: ModelSpec, key: str) -> TaskType:
        if model.attention not in ("full", "left") or not model.open_layers:
            cause = f"{key} needs a model that writes text, which this encoder cannot"
            raise UserError(cause, "set model=t5_tiny, or model=bert_tiny with model.attention=full or left")
        return WrittenText(self.fields, False, self.metrics, left=model.attention == "left")
