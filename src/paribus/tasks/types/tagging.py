"""A tag for each word of a sentence."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, compress
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from paribus.core.errors import UserError
from paribus.core.settings import FineTuning
from paribus.tasks.baselines import tag_by_words
from paribus.tasks.examples import TaggedExample
from paribus.tasks.metrics import is_bio, score_spans
from paribus.tasks.rows import FramedRows, TaskRows, frame, locate, no_room
from paribus.tasks.types.base import LOSSES, Pooler, ProbeItems, TaskType, find_unread_by_tokens

if TYPE_CHECKING:
    from torch import Tensor

    from paribus.data.sequences import Array, Arrays
    from paribus.data.tokens.tokenizer import Tokenizer
    from paribus.data.tokens.vocabulary import Vocabulary
    from paribus.models.ensemble import Ensemble
    from paribus.models.heads.head import Head
    from paribus.models.network import Batch, Network

NO_TAG = -100  # of a token that starts no word
UNREAD = -1  # the answer for a word without a token
SPAN_METRICS = ("f1", "precision", "recall")


@dataclass(frozen=True)
class TaggedRows(FramedRows):
    """Rows of a sentence each, or of a part of a sentence that is too long. `label_N` is the number of the example."""

    tag_T: Array  # int64: the tag of a word at its first token, elsewhere `NO_TAG`
    word_T: Array  # int64: the place of a word in the sentence at its first token, elsewhere -1

    def batch(self, row_B: Array, multiple: int) -> Arrays:
        """Also `tag_BL`, and the count of `words`."""
        batch = super().batch(row_B, multiple)
        at_BL, real_BL = locate(self.start_N[row_B], self.length_N[row_B], multiple)
        tag_BL = np.where(real_BL, self.tag_T[at_BL], NO_TAG)
        counts = {**batch["counts"], "words": int((tag_BL != NO_TAG).sum())}
        return {**batch, "tag_BL": tag_BL, "counts": counts}


@dataclass(frozen=True)
class Tagging(TaskType):
    """Tags read off the first token of each word (BERT, section 5.3), word by word or by a CRF over the sentence.

    A sentence that is too long continues in further rows. A word without a token, such as a zero-width space, is left
    out when answers are scored: it is O, or continues the span that it is in.
    """

    classes: tuple[str, ...]
    metrics: tuple[str, ...] = ("f1",)
    crf: bool = False
    known_metrics: ClassVar[tuple[str, ...]] = (*SPAN_METRICS, "accuracy")
    example_class: ClassVar[type] = TaggedExample
    probed: ClassVar[bool] = True

    def check(self, key: str) -> None:
        super().check(key)
        self.check_classes(key)
        if set(SPAN_METRICS) & set(self.metrics) and not is_bio(self.classes):
            raise UserError(f"{key}.metrics: spans need the tags O, B-kind and I-kind", f"set {key}.metrics=[accuracy]")

    def check_ensemble(self, key: str) -> None:
        """The best paths of several CRFs have no mean."""
        if self.crf:
            raise UserError(
                f"{key}.crf=true does not work with an ensemble, since paths have no mean", f"set {key}.crf=false"
            )

    def find_unread(self, settings: FineTuning) -> list[str]:
        """A long sentence continues in a further row, each word is tagged separately, and a CRF has its own loss."""
        return [*super().find_unread(settings), *find_unread_by_tokens(settings), *(LOSSES if self.crf else ())]

    def check_examples(self, rows: Sequence[TaggedExample], key: str) -> None:
        if len({tag for row in rows for tag in row.tags}) < 2:
            raise UserError(f"{key}: all training words have the same tag", "use a train split with every tag")

    def count_labels(self, rows: Sequence[TaggedExample]) -> dict[str, int]:
        """{tag: number of words}."""
        counts = Counter(tag for row in rows for tag in row.tags)
        return {name: counts[tag] for tag, name in enumerate(self.classes)}

    def encode(
        self, examples: Sequence[TaggedExample], tokenizer: Tokenizer, vocabulary: Vocabulary, settings: FineTuning
    ) -> TaggedRows:
        """Words are joined by single spaces in every language."""
        room = settings.length - 2
        if room < 1:
            raise no_room(settings.length)
        batch, span_T2 = tokenizer.locate([" ".join(row.words) for row in examples])
        numbers: list[int] = []
        texts: list[Array] = []
        tags: list[ArrayLike] = []
        words: list[ArrayLike] = []
        end = 0
        for number, (row, length) in enumerate(zip(examples, batch.length_S.tolist(), strict=True)):
            here = slice(end, end := end + length)
            word_T = find_first_tokens(row.words, span_T2[here, 1])
            tag_T = np.where(word_T >= 0, np.array(row.tags)[word_T], NO_TAG)
            for at in range(0, max(1, length), room):
                part = slice(at, at + room)
                numbers.append(number)
                texts.append(batch.ids_T[here][part])
                tags += [NO_TAG], tag_T[part], [NO_TAG]  # [CLS] and [SEP] start no word
                words += [-1], word_T[part], [-1]
        rows = frame([texts], np.array(numbers, np.int64), vocabulary)
        return TaggedRows(**vars(rows), tag_T=np.concatenate(tags), word_T=np.concatenate(words))

    def make_head(self, settings: FineTuning, model: Network, seed: int, pooler: Pooler | None = None) -> Head:
        """The head reads no pooler."""
        from paribus.models.heads.head import loss_of
        from paribus.models.heads.tokens import CRFHead, TaggingHead

        def make(width: int) -> Head:
            if self.crf:
                return CRFHead(width, len(self.classes), settings.head.dropout)
            return TaggingHead(width, len(self.classes), settings.head.dropout, loss_of(settings))

        head: Head = settings.head.for_tokens(model, make, seed)
        return head

    def infer(self, model: Network | Ensemble, head: Head | Ensemble, batch: Batch) -> Array:
        """[B, L] tags, of which those of first tokens count."""
        from paribus.models.heads.head import name_places

        tag_BL: Array = head.answer(model(name_places([head], batch)), batch).cpu().numpy()
        return tag_BL

    def predict(self, outputs_N: Sequence[Any], rows: TaskRows, examples: Sequence[TaggedExample]) -> list[list[int]]:
        """A tag for each word, `UNREAD` for one without a token."""
        assert isinstance(rows, TaggedRows)
        tags = [np.full(len(row.words), UNREAD) for row in examples]
        places = zip(rows.label_N.tolist(), rows.start_N.tolist(), rows.length_N.tolist(), strict=True)
        for tag_L, (number, start, length) in zip(outputs_N, places, strict=True):
            word_L = rows.word_T[start : start + length]
            first_L = word_L >= 0
            tags[number][word_L[first_L]] = tag_L[:length][first_L]
        return [tag_W.tolist() for tag_W in tags]

    def list_probed(self, rows: TaskRows, examples: Sequence[TaggedExample]) -> ProbeItems:
        """One item for each word that has a token, read off its first; without a CRF."""
        assert isinstance(rows, TaggedRows)
        first_T = rows.word_T >= 0
        count_N = np.add.reduceat(first_T.astype(np.int64), rows.start_N)
        places = zip(np.repeat(rows.label_N, count_N).tolist(), rows.word_T[first_T].tolist(), strict=True)
        return ProbeItems(rows.tag_T[first_T], [examples[number].words[word] for number, word in places], count_N)

    def read_probed(self, state_BLD: Tensor, batch: Batch, summarize: object) -> Tensor:
        """The states of first tokens."""
        return state_BLD[batch["tag_BL"] >= 0]

    def predict_probed(self, value_I: Array, rows: TaskRows, examples: Sequence[TaggedExample]) -> list[list[int]]:
        assert isinstance(rows, TaggedRows)
        tag_T = np.zeros(len(rows.word_T), np.int64)
        tag_T[rows.word_T >= 0] = value_I
        return self.predict(np.split(tag_T, rows.start_N[1:]), rows, examples)

    def score(self, predictions: Sequence[Any] | Array, examples: Sequence[TaggedExample]) -> dict[str, float]:
        """Accuracy over words, the other metrics over spans."""
        read = [[tag != UNREAD for tag in row] for row in predictions]
        found = [list(compress(row, read_W)) for row, read_W in zip(predictions, read, strict=True)]
        given = [list(compress(row.tags, read_W)) for row, read_W in zip(examples, read, strict=True)]
        pairs = [g == p for g, p in zip(chain(*given), chain(*found), strict=True)]
        values = {"accuracy": sum(pairs) / max(1, len(pairs))}
        if set(SPAN_METRICS) & set(self.metrics):
            names = ([[self.classes[tag] for tag in row] for row in rows] for rows in (found, given))
            values |= score_spans(*names)
        return {name: values[name] for name in self.metrics}

    def predict_baselines(
        self, train: Sequence[TaggedExample], validation: Sequence[TaggedExample]
    ) -> Mapping[str, Any]:
        """The most frequent tag, that of each word, and a linear model on the words around."""
        counts: dict[str, Counter[int]] = defaultdict(Counter)
        for row in train:
            for word, tag in zip(row.words, row.tags, strict=True):
                counts[word][tag] += 1
        most = sum(counts.values(), Counter[int]()).most_common(1)[0][0]
        known = {word: tags.most_common(1)[0][0] for word, tags in counts.items()}
        return {
            "majority": [[most] * len(row.words) for row in validation],
            "most_frequent_tag": [[known.get(word, most) for word in row.words] for row in validation],
            "bag_of_words": tag_by_words(train, validation),
        }


def find_first_tokens(words: Sequence[str], end_T: Array) -> Array:
    """int64 [T]: the place of the word whose first token this is, or -1; the words are joined by single spaces.

    `end_T` is the character behind each token. It decides, since a token may begin with the space before its word.
    """
    begin_W = np.cumsum([0, *(len(word) + 1 for word in words[:-1])])
    word_T = np.searchsorted(begin_W, np.maximum(end_T - 1, 0), side="right") - 1
    first_T = np.diff(word_T, prepend=-1) > 0
    return np.where(first_T, word_T, -1)
