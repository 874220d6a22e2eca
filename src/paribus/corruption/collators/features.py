"""Collators for tokenized examples of `transformers`: the masks of a run's training, for any training loop."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from paribus.core.errors import UserError
from paribus.core.noise import Noise
from paribus.corruption.collators.encoder import EncoderCollator
from paribus.corruption.collators.text_to_text import IGNORED, EncoderDecoderCollator
from paribus.corruption.corruption import Corruption
from paribus.data.formats.input_format import WIDTH
from paribus.data.mask_schedule import Copies, Dynamic, MaskSchedule, Static
from paribus.data.sequences import Flags, Ints, Text, Views
from paribus.data.tokens.pretrained import wrap
from paribus.data.tokens.tokenizer import Tokenizer

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedTokenizerFast, TrainerCallback, TrainerControl, TrainerState, TrainingArguments

Redrawn = Literal["dynamic", "static"] | int  # a number: so many masks in turn
Features = Mapping[str, Any]

ID, STARTS = "example_id", "word_start"  # optional columns of an example
_PER_TOKEN = ("input_ids", "token_type_ids", STARTS)
_READ = (*_PER_TOKEN, ID, "attention_mask", "special_tokens_mask")
_LABELS = ("labels", "label", "label_ids")  # the Trainer keeps them whatever the model takes
_UNSET = -1


def make_schedule(redrawn: Redrawn) -> MaskSchedule:
    """When masks are drawn again. Raises UserError for an unknown word."""
    if isinstance(redrawn, int):
        return Copies(redrawn)
    if redrawn not in ("dynamic", "static"):
        raise UserError(f"masks={redrawn} is not valid", "choose dynamic, static or a number of masks in turn")
    return Dynamic() if redrawn == "dynamic" else Static()


class FeatureCollator(ABC):
    """Turns a list of tokenized examples into a batch of tensors; masks are a pure function of (seed, epoch, example).

    An example is {"input_ids": [...]}. If it has an `attention_mask`, its padding is dropped, on either side. Batches,
    workers, processes and interruptions change no mask. Two columns are optional: `example_id`, an integer that names
    the example (else a hash of its tokens does), and `word_start`, one 0 or 1 for each token (else the tokenizer says
    where words start). The Trainer keeps them with `remove_unused_columns=False`. Further columns of numbers, such as
    `position_ids` and `next_sentence_label`, are part of the batch.

    Args:
        tokenizer: a fast one of `transformers`; it is not changed.
        corruption: what is noise, what is read and what is written.
        seed: of the masks only.

    Raises:
        UserError: for a tokenizer that is not fast or lacks a special token.
    """

    in_place: ClassVar[bool]  # whether what is read has the tokens of the example in their places

    def __init__(self, tokenizer: PreTrainedTokenizerFast, corruption: Corruption, seed: int) -> None:
        import torch

        self.check(corruption)
        self.corruption, self.seed = corruption, seed
        self.tokenizer = tokenizer  # the Trainer saves it with each checkpoint
        self.wrapped: Tokenizer = wrap(tokenizer)
        self._epoch = torch.full((1,), _UNSET, dtype=torch.int64)
        self._epoch.share_memory_()  # type: ignore[no-untyped-call]  # workers see it change
        self._require_tokens(tokenizer)

    def _require_tokens(self, tokenizer: PreTrainedTokenizerFast) -> None:
        if tokenizer.pad_token is None:
            raise UserError("the tokenizer has no pad token", "set tokenizer.pad_token")
        masked = self.corruption.targets is None or self.corruption.inputs.writes_mask
        if masked and tokenizer.mask_token is None:
            raise UserError(
                "the tokenizer has no mask token", "add one: tokenizer.add_special_tokens({'mask_token': ...})"
            )

    @abstractmethod
    def check(self, corruption: Corruption) -> None:
        """Raise UserError for a corruption that this kind of model cannot be trained on."""

    def set_epoch(self, epoch: int) -> None:
        """Set the number of the next pass over the data, counted from 0."""
        self._epoch[0] = epoch

    def follow(self) -> TrainerCallback:
        """A callback for the Trainer that tells the collator the epoch."""
        from transformers import TrainerCallback

        collator = self

        class Follow(TrainerCallback):
            def on_train_begin(
                self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **more: object
            ) -> None:
                collator.set_epoch(math.floor((state.epoch or 0.0) + 1e-6))

            on_epoch_begin = on_train_begin

        return Follow()

    def __call__(self, features: Sequence[Features]) -> dict[str, torch.Tensor]:
        """The batch as int64 tensors [B, L]: input_ids, attention_mask and labels, which are -100 if not predicted.

        Raises UserError if masks are drawn anew in every epoch, and `set_epoch` was never called, and for a column that
        cannot be part of the batch.
        """
        import torch

        unpadded = [_unpad(feature) for feature in features]
        arrays = self.pack(self.views(unpadded))
        width = arrays["input_ids"].shape[1] if self.in_place else None
        arrays |= pack_further(unpadded, width)
        return {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()}

    def views(self, features: Sequence[Features]) -> Views:
        """The original of these examples, their noise, and what is read and written."""
        features, schedule = [_unpad(feature) for feature in features], self.corruption.masking.schedule
        text, epoch = self.frame(features), int(self._epoch[0])
        if epoch == _UNSET and not isinstance(schedule, Static):
            mend = "call set_epoch(epoch), give the Trainer callbacks=[collator.follow()], or use masks='static'"
            raise UserError("masks change with the epoch, but the collator does not know the epoch", mend)
        self.corruption.check(int(text.length_B.max(initial=1)), self.wrapped.vocabulary)
        noise = Noise.of(self.seed, (0, schedule(max(epoch, 0))), identify(features))
        return self.corruption(text, noise, self.wrapped.vocabulary)

    @abstractmethod
    def frame(self, features: Sequence[Features]) -> Text:
        """The examples as rows of text, with the special tokens that frame them."""

    @abstractmethod
    def pack(self, views: Views) -> dict[str, Ints]:
        """The arrays of the batch."""

    def find_starts(self, features: Sequence[Features], ids: Sequence[Ints], free: Sequence[Flags]) -> list[Flags]:
        """bool [L] of each example: where words start; special tokens start one."""
        starts = [~free_L for free_L in free]
        if all(STARTS in feature for feature in features):
            given = (np.asarray(feature[STARTS], np.bool_) for feature in features)
            return [start_L | given_L[: len(start_L)] for start_L, given_L in zip(starts, given, strict=True)]
        if self.corruption.masking.by_words:
            backend = self.wrapped.backend
            model = type(backend.model).__name__
            if backend.decoder is None and model != "WordLevel":  # its ids cannot be decoded to text
                mend = f"set tokenizer.backend_tokenizer.decoder, or give each example the column {STARTS}"
                raise UserError(f"this {model} tokenizer has no decoder, so word boundaries are unknown", mend)
            rows = [ids_L[free_L].tolist() for ids_L, free_L in zip(ids, free, strict=True)]
            for start_L, free_L, start_T in zip(starts, free, self.wrapped.find_starts(rows), strict=True):
                start_L[free_L] = start_T
        return starts


def identify(features: Sequence[Features]) -> NDArray[np.uint64]:
    """uint64 [B]: the examples' ids, or hashes of their tokens."""
    numbers = []
    for feature in features:
        if ID in feature:
            numbers.append(int(feature[ID]) & ((1 << 64) - 1))
        else:
            tokens = np.asarray(feature["input_ids"], "<i8").tobytes()
            numbers.append(int.from_bytes(blake2b(tokens, digest_size=8).digest(), "little"))
    return np.array(numbers, np.uint64)


def pack_further(features: Sequence[Features], width: int | None) -> dict[str, NDArray[Any]]:
    """The columns that collators do not read: [B], or [B, width] with zeros at padding for one value per token.

    width: None if the tokens do not stay in their places. Raises UserError for a column that cannot be packed.
    """
    batch = {}
    for name in dict.fromkeys(name for feature in features for name in feature if name not in _READ):
        if name in _LABELS:
            raise UserError(f"the examples have {name}, which the masks replace", f"remove_columns('{name}')")
        if any(name not in feature for feature in features):
            raise UserError(f"only some examples have {name}", "give it to all or to none")
        rows = [np.asarray(feature[name]) for feature in features]
        rows = [row.astype(np.float32) if row.dtype == np.float64 else row for row in rows]
        numbers = all(row.dtype.kind in "biuf" for row in rows)
        if numbers and all(row.ndim == 0 for row in rows):
            batch[name] = np.stack(rows)
        elif (
            numbers
            and width
            and all(row.shape == np.shape(f["input_ids"]) for row, f in zip(rows, features, strict=True))
        ):
            batch[name] = pad_rows(rows, 0, rows[0].dtype.type, width)
        else:
            kinds = "one number per example" + " or token" * bool(width)
            raise UserError(f"the examples have {name}, which is not {kinds}", f"remove_columns('{name}')")
    return batch


def pad_rows(rows: Sequence[NDArray[Any]], padding: int, dtype: type, width: int) -> NDArray[Any]:
    """[B, L]: rows padded on the right."""
    padded_BL: NDArray[Any] = np.full((len(rows), width), padding, dtype)
    for padded_L, row in zip(padded_BL, rows, strict=True):
        padded_L[: len(row)] = row
    return padded_BL


def make_text(
    ids: Sequence[Ints],
    free: Sequence[Flags],
    starts: Sequence[Flags],
    parts: Sequence[NDArray[Any]],
    pad: int,
    width: int,
) -> Text:
    """Rows of one sentence each, padded to a width; `free`: what is no special token."""
    free_BL = pad_rows(free, 0, np.bool_, width)
    return Text(
        ids_BL=pad_rows(ids, pad, np.int64, width),
        length_B=np.array([len(row) for row in ids], np.int64),
        free_BL=free_BL,
        start_BL=pad_rows(starts, 0, np.bool_, width),
        sentence_BL=np.where(free_BL, 0, -1).astype(np.int16),
        part_BL=pad_rows(parts, 0, np.int8, width),
    )


class InPlaceCollator(FeatureCollator):
    """For encoders that predict masked tokens in place; the examples keep their special tokens."""

    in_place = True

    def check(self, corruption: Corruption) -> None:
        EncoderCollator().check(corruption)

    def frame(self, features: Sequence[Features]) -> Text:
        vocabulary = self.wrapped.vocabulary
        ids = [np.asarray(feature["input_ids"], np.int64) for feature in features]
        free = [~np.isin(ids_L, vocabulary.specials) for ids_L in ids]
        starts = self.find_starts(features, ids, free)
        width = -(-max(map(len, ids), default=1) // WIDTH) * WIDTH
        segments = (np.asarray(feature.get("token_type_ids", [0]), np.int8) for feature in features)
        parts = [part_L[: len(row)] for part_L, row in zip(segments, ids, strict=True)]
        return make_text(ids, free, starts, parts, vocabulary.pad, width)

    def pack(self, views: Views) -> dict[str, Ints]:
        arrays = EncoderCollator().arrays(views, self.wrapped.vocabulary)
        label_BL = np.full(arrays["ids_BL"].shape, IGNORED, np.int64)
        label_BL.reshape(-1)[arrays["slot_P"]] = arrays["target_P"]
        batch = {"input_ids": arrays["ids_BL"], "attention_mask": _attend(arrays), "labels": label_BL}
        return {**batch, "token_type_ids": arrays["part_BL"]} if arrays["part_BL"].any() else batch


class TextToTextCollator(FeatureCollator):
    """For encoder-decoders; a first special token such as BART's <s> begins what is read and what is written."""

    in_place = False

    def _require_tokens(self, tokenizer: PreTrainedTokenizerFast) -> None:
        super()._require_tokens(tokenizer)
        views = (self.corruption.inputs, self.corruption.targets)
        if not any(view is not None and view.sentinels == "each" for view in views):
            return
        mend = (
            "add them: tokenizer.add_special_tokens({'additional_special_tokens': "
            "[f'<extra_id_{k}>' for k in reversed(range(100))]})"
        )
        sentinels = self.wrapped.vocabulary.sentinels
        if sentinels == 0:
            raise UserError("the tokenizer has no sentinels <extra_id_0>, <extra_id_1>, ...", mend)
        if sentinels == 1 and "<extra_id_1>" in self.wrapped.backend.get_vocab():
            raise UserError("the sentinel ids do not descend from <extra_id_0>, as they do in T5", mend)

    def check(self, corruption: Corruption) -> None:
        EncoderDecoderCollator().check(corruption)

    def raw_length(self, budget: int) -> int:
        """Tokens of the text that an example may have, so that the model reads at most `budget` tokens."""
        return self.corruption.raw_length(budget)

    def frame(self, features: Sequence[Features]) -> Text:
        vocabulary = self.wrapped.vocabulary
        whole = [np.asarray(feature["input_ids"], np.int64) for feature in features]
        kept = [~np.isin(ids_L, vocabulary.specials) | (ids_L == vocabulary.unk) for ids_L in whole]
        starts = self.find_starts(features, whole, kept)
        starts = [start_L[kept_L] for start_L, kept_L in zip(starts, kept, strict=True)]
        ids = [ids_L[kept_L] for ids_L, kept_L in zip(whole, kept, strict=True)]
        free = [np.ones(len(row), np.bool_) for row in ids]
        parts = [np.zeros(len(row), np.int64) for row in ids]
        return make_text(ids, free, starts, parts, vocabulary.pad, max(map(len, ids), default=1))

    def __call__(self, features: Sequence[Features]) -> dict[str, torch.Tensor]:
        import torch

        unpadded = [_unpad(feature) for feature in features]
        batch, first = super().__call__(unpadded), self.wrapped.vocabulary.cls
        if any(len(feature["input_ids"]) == 0 or feature["input_ids"][0] != first for feature in unpadded):
            return batch
        begins = {"input_ids": first, "attention_mask": 1, "labels": first}
        first_B1 = {name: batch[name].new_full((len(features), 1), value) for name, value in begins.items()}
        return batch | {name: torch.cat([column, batch[name]], 1) for name, column in first_B1.items()}

    def pack(self, views: Views) -> dict[str, Ints]:
        arrays = EncoderDecoderCollator().arrays(views, self.wrapped.vocabulary)
        return {"input_ids": arrays["ids_BL"], "attention_mask": _attend(arrays), "labels": arrays["label_BT"]}


def _unpad(feature: Features) -> Features:
    """Without the padding, left or right, that the example's own attention mask shows."""
    if (mask := feature.get("attention_mask")) is None:
        return feature
    real_L = np.asarray(mask, np.bool_)
    columns = {name: feature[name] for name in feature if name != "attention_mask"}
    shapes = {name: np.shape(value) for name, value in columns.items() if not isinstance(value, str)}
    per_token = [name for name, shape in shapes.items() if name in _PER_TOKEN or shape == real_L.shape]
    return columns | {name: np.asarray(columns[name])[real_L] for name in per_token}


def _attend(arrays: Mapping[str, Any]) -> Ints:
    """int64 [B, L]: 1 at tokens, 0 at padding."""
    attend_BL: Ints = (np.arange(arrays["ids_BL"].shape[1]) < arrays["length_B"][:, None]).astype(np.int64)
    return attend_BL
