"""Any text for a text, such as a summary or a translation: written by a text-to-text model, or by an encoder.

An encoder writes after the text that it reads, in one row.   UniLM (arXiv 1905.03197), section 2.3
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from paribus.core.errors import UserError
from paribus.core.noise import Noise
from paribus.core.settings import FineTuning
from paribus.corruption.masking.single_tokens import choose_lowest, number_each
from paribus.corruption.views.replace import Replace
from paribus.data.sequences import Array, Arrays, Marks, Text
from paribus.tasks.baselines import retrieve_targets
from paribus.tasks.examples import GenerationExample
from paribus.tasks.metrics import TEXT_METRICS, score_texts
from paribus.tasks.prompts import Fields, Parts, encode_sources, encode_targets
from paribus.tasks.rows import FramedRows, count_tokens, frame, head_tokens
from paribus.tasks.types.base import Pooler, TaskType
from paribus.tasks.types.text_to_text import TextTaskType

if TYPE_CHECKING:
    from paribus.data.tokens.tokenizer import Tokenizer
    from paribus.data.tokens.vocabulary import Vocabulary
    from paribus.models.heads.head import Head
    from paribus.models.network import Network
    from paribus.models.spec import ModelSpec

SHOWN = Replace()  # what is read at a masked place: BERT's 80 % mask, 10 % random, 10 % unchanged


@dataclass(frozen=True)
class FreeText(TextTaskType):
    """Any text for a text, scored against the one target; the model writes it."""

    fields: Fields
    single: bool = False
    metrics: tuple[str, ...] = ("rougeL", "exact_match")
    known_metrics: ClassVar[tuple[str, ...]] = TEXT_METRICS
    example_class: ClassVar[type] = GenerationExample

    def verbalize(self, fields: Fields, single: bool) -> FreeText:
        return replace(self, single=single)

    def fit(self, model: ModelSpec, key: str) -> TaskType:
        if model.attention not in ("full", "left") or not model.open_layers:
            cause = f"{key} needs a model that writes text, which this encoder cannot"
            raise UserError(cause, "set model=t5_tiny, or model=bert_tiny with model.attention=full or left")
        return WrittenText(self.fields, False, self.metrics, left=model.attention == "left")

    def check_examples(self, rows: Sequence[GenerationExample], key: str) -> None:
        if len({row.target for row in rows}) < 2:
            raise UserError(f"{key}: all training examples have the same target", "use a train split with others")

    def count_labels(self, rows: Sequence[GenerationExample]) -> dict[str, int]:
        """The words of all targets, and the number of different targets."""
        return {"words": sum(len(row.target.split()) for row in rows), "different": len({row.target for row in rows})}

    def source(self, example: GenerationExample) -> Parts:
        return self.fields.announce(example.text, example.pair)

    def target(self, example: GenerationExample) -> str:
        return example.target

    def parse(self, texts: Sequence[str], tokenizer: Tokenizer) -> Sequence[str]:
        return texts

    def score(self, predictions: Sequence[str] | Array, examples: Sequence[GenerationExample]) -> dict[str, float]:
        return score_texts(self.metrics, list(predictions), [row.target for row in examples])

    def predict_baselines(
        self, train: Sequence[GenerationExample], validation: Sequence[GenerationExample]
    ) -> Mapping[str, Any]:
        """The most frequent target, and that of the most similar training text."""
        most = Counter(row.target for row in train).most_common(1)[0][0]
        return {"majority": [most] * len(validation), "bag_of_words": retrieve_targets(train, validation)}


@dataclass(frozen=True)
class WrittenText(FreeText):
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
        unread = [name for name in super().find_unread(settings) if name != "target_masking"]
        return [*unread, "target_masking"] if self.left else unread

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
        sources = encode_sources(parts, tokenizer, vocabulary, settings.length - 1, head_tokens(settings.truncation))
        targets = encode_targets(texts, tokenizer, vocabulary, settings.target_length)
        bare = [[ids[:-1] for ids in side] for side in (sources, targets)]  # the frame has the [SEP] of both
        return SourceTargetRows(
            **vars(frame(bare, np.zeros(len(examples), np.int64), vocabulary)),
            source_N=1 + count_tokens(sources),
            vocabulary=vocabulary,
            tokenizer=tokenizer,
            masking=None if self.left else settings.target_masking,
            most=self.most_tokens(tokenizer, settings),
        )

    def make_head(self, settings: FineTuning, model: Network, seed: int, pooler: Pooler | None = None) -> Head:
        """The head on tokens; `pooler`: its weights after pre-training, if it has been trained."""
        from paribus.models.heads.vocabulary import MaskedLMHead, start_head

        return start_head(MaskedLMHead(model), model, seed, pooler)


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
        batch = super().batch(row_B, multiple)
        ids_BL, length_B, part_BL = batch["ids_BL"], batch["length_B"], batch["part_BL"]
        source_B, column_L = self.source_N[row_B], np.arange(ids_BL.shape[1])
        behind_BL = column_L - source_B[:, None] + 1  # 1 at the first token of the target
        target_BL = (behind_BL > 0) & (column_L < length_B[:, None])
        if self.masking is None:
            place_P = np.flatnonzero(target_BL)
            asked = {"slot_P": place_P - 1}
        else:
            noise = Noise.of(self.keys[0], [self.keys[1]], row_B)
            wanted_B = np.maximum(1, np.rint((target_BL.sum(axis=1) - 1) * self.masking)).astype(np.int64)
            chosen_BL = choose_lowest(noise.bits("masking", len(column_L)), target_BL, wanted_B)
            marks = Marks(number_each(chosen_BL))
            text = Text(ids_BL, length_B, target_BL, target_BL, part_BL, part_BL)
            place_P = marks.noise_P
            asked = {
                "ids_BL": SHOWN.corrupt_ids(text, marks, noise, self.vocabulary),
                "slot_P": place_P,
                "rank_BL": np.maximum(behind_BL, 0).astype(np.int32),
            }
        return {
            **batch,
            **asked,
            "target_P": ids_BL.reshape(-1)[place_P],
            "source_length_B": source_B,
            "most": np.array(self.most),
            "counts": {**batch["counts"], "predicted": len(place_P)},
        }
