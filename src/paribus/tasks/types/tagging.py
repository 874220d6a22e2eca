"""A tag for each word of a sentence."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from paribus.core.errors import UserError
from paribus.tasks.encode import Array, Encoded, frame
from paribus.tasks.example import Tagged
from paribus.tasks.spans import is_bio, span_scores
from paribus.tasks.types.base import Pooler, TaskType

if TYPE_CHECKING:
    from paribus.models.heads.head import Head
    from paribus.models.network import Batch

NO_TAG = -100  # of a token that starts no word
SPAN_SCORES = ("f1", "precision", "recall")


@dataclass(frozen=True)
class TaggedRows:
    """Framed rows, each a sentence or a part of one that is too long (T tokens, N rows)."""

    framed: Encoded  # label_N: the number of the example
    tag_T: Array  # int64: at the first piece of a word its tag, elsewhere `NO_TAG`
    word_T: Array  # int64: at the first piece of a word its place in the sentence, elsewhere -1

    @property
    def length_N(self) -> Array:
        """See `Rows.length_N`."""
        return self.framed.length_N

    def batch(self, row_B: Array, multiple: int) -> dict[str, Any]:
        """See `Rows.batch`: also `tag_BL`, and the count of `words`."""
        found = self.framed.batch(row_B, multiple)
        column_L = np.arange(found["ids_BL"].shape[1])
        real_BL = column_L < found["length_B"][:, None]
        at_BL = np.where(real_BL, self.framed.start_N[row_B][:, None] + column_L, 0)
        tag_BL = np.where(real_BL, self.tag_T[at_BL], NO_TAG)
        counts = {**found["counts"], "words": int((tag_BL != NO_TAG).sum())}
        return {**found, "tag_BL": tag_BL, "counts": counts}


@dataclass(frozen=True)
class Tagging(TaskType):
    """Tags read off the first piece of each word (BERT, section 5.3), word by word or by a CRF over the sentence.

    A sentence that is too long goes on in further rows. A word of which the tokenizer leaves nothing is predicted to
    have the first class.
    """

    classes: tuple[str, ...]
    metrics: tuple[str, ...] = ("f1",)
    crf: bool = False
    known: ClassVar[tuple[str, ...]] = (*SPAN_SCORES, "accuracy")
    example: ClassVar[type] = Tagged

    def __post_init__(self) -> None:
        for key in ("classes", "metrics"):  # a saved form has lists
            object.__setattr__(self, key, tuple(getattr(self, key)))

    def check(self, key: str) -> None:
        """See `TaskType.check`."""
        super().check(key)
        if len(set(self.classes)) != len(self.classes) or len(self.classes) < 2:
            raise UserError(f"{key}.classes: {list(self.classes)}", "name at least two different tags")
        if set(SPAN_SCORES) & set(self.metrics) and not is_bio(self.classes):
            raise UserError(f"{key}.metrics: spans need the tags O, B-kind and I-kind", f"{key}.metrics=[accuracy]")

    def check_ensemble(self, key: str) -> None:
        """See `TaskType.check_ensemble`: the best paths of several CRFs."""
        if self.crf:
            raise UserError(f"{key}.crf=true finds a path, of which an ensemble has no mean", "set it to false")

    def check_examples(self, rows: Sequence[Tagged], key: str) -> None:
        """See `TaskType.check_examples`."""
        if len({tag for row in rows for tag in row.tags}) < 2:
            raise UserError(f"{key}: all training words have the same tag", "give a train split with every tag")

    def counts(self, rows: Sequence[Tagged]) -> dict[str, int]:
        """See `TaskType.counts`: of words."""
        counts = Counter(tag for row in rows for tag in row.tags)
        return {name: counts[tag] for tag, name in enumerate(self.classes)}

    def encode(self, examples: Sequence[Tagged], tokenizer: Any, vocabulary: Any, settings: Any) -> TaggedRows:
        """See `TaskType.encode`: words apart by single spaces, whatever the language."""
        room = settings.length - 2
        if room < 1:
            raise UserError(f"fine-tuning length {settings.length} leaves no room for text", "raise it")
        batch, span_T2 = tokenizer.locate([" ".join(row.words) for row in examples])
        parts = _Parts([], [], [], [])
        end = 0
        for number, (row, length) in enumerate(zip(examples, batch.length_S.tolist(), strict=True)):
            here = slice(end, end := end + length)
            word_T = first_pieces(row.words, span_T2[here, 1])
            tag_T = np.where(word_T >= 0, np.array(row.tags)[word_T], NO_TAG)
            for at in range(0, max(1, length), room):
                piece = slice(at, at + room)
                parts.add(number, batch.ids_T[here][piece], tag_T[piece], word_T[piece])
        return parts.rows(vocabulary)

    def head(self, settings: Any, model: Any, seed: int, pooler: Pooler | None = None) -> Head:
        """See `TaskType.head`; no pooler is read."""
        from paribus.models.heads.loss import loss_of
        from paribus.models.heads.tokens import CRFHead, TaggingHead

        def make(width: int) -> Head:
            if self.crf:
                return CRFHead(width, len(self.classes), settings.head.dropout)
            return TaggingHead(width, len(self.classes), settings.head.dropout, loss_of(settings))

        head: Head = settings.head.for_tokens(model, make, seed)
        return head

    def outputs(self, model: Any, head: Any, batch: Batch) -> Sequence[Any]:
        """See `TaskType.outputs`: [B, L] tags, of which those of first pieces count."""
        tag_BL: Sequence[Any] = head.answer(model(batch), batch).cpu().numpy()
        return tag_BL

    def predictions(self, outputs_N: Sequence[Any], rows: TaggedRows, examples: Sequence[Tagged]) -> list[list[int]]:
        """See `TaskType.predictions`: a tag for each word."""
        found = [np.zeros(len(row.words), np.int64) for row in examples]
        framed = rows.framed
        starts = zip(framed.label_N.tolist(), framed.start_N.tolist(), framed.length_N.tolist(), strict=True)
        for tag_L, (number, start, length) in zip(outputs_N, starts, strict=True):
            word_L = rows.word_T[start : start + length]
            first_L = word_L >= 0
            found[number][word_L[first_L]] = tag_L[:length][first_L]
        return [tag_W.tolist() for tag_W in found]

    def score(self, predictions: Any, examples: Sequence[Tagged]) -> dict[str, float]:
        """See `TaskType.score`: accuracy over words, the others over spans."""
        given = [row.tags for row in examples]
        pairs = [g == p for g, p in zip(chain(*given), chain(*predictions), strict=True)]
        values = {"accuracy": sum(pairs) / len(pairs)}
        if set(SPAN_SCORES) & set(self.metrics):
            values |= span_scores(self._named(predictions), self._named(given))
        return {name: values[name] for name in self.metrics}

    def _named(self, rows: Sequence[Sequence[int]]) -> list[list[str]]:
        return [[self.classes[tag] for tag in row] for row in rows]

    def baselines(self, train: Sequence[Tagged], validation: Sequence[Tagged]) -> Mapping[str, Any]:
        """See `TaskType.baselines`: the most frequent tag, that of each word, and a linear model on the words around."""
        from paribus.tasks.baselines import tags_by_words

        counts: dict[str, Counter[int]] = defaultdict(Counter)
        for word, tag in ((w, t) for row in train for w, t in zip(row.words, row.tags, strict=True)):
            counts[word][tag] += 1
        most = sum(counts.values(), Counter[int]()).most_common(1)[0][0]
        known = {word: found.most_common(1)[0][0] for word, found in counts.items()}
        return {
            "majority": [[most] * len(row.words) for row in validation],
            "most_frequent_tag": [[known.get(word, most) for word in row.words] for row in validation],
            "bag_of_words": tags_by_words(train, validation),
        }


def first_pieces(words: Sequence[str], end_T: Array) -> Array:
    """int64 [T]: the place of the word of which a token is the first piece, or -1, for words apart by single spaces.

    `end_T` is the character behind each token; it decides, since a token may begin with the space before its word.
    """
    begin_W = np.cumsum([0, *(len(word) + 1 for word in words[:-1])])
    word_T = np.searchsorted(begin_W, np.maximum(end_T - 1, 0), side="right") - 1
    first_T = np.diff(word_T, prepend=-1) > 0
    return np.where(first_T, word_T, -1)


@dataclass(frozen=True)
class _Parts:
    """Rows in the making."""

    number: list[int]
    ids: list[Array]
    tags: list[Array]
    words: list[Array]

    def add(self, number: int, ids_T: Array, tag_T: Array, word_T: Array) -> None:
        self.number.append(number)
        self.ids.append(ids_T)
        self.tags.append(np.concatenate([[NO_TAG], tag_T, [NO_TAG]]))
        self.words.append(np.concatenate([[-1], word_T, [-1]]))

    def rows(self, vocabulary: Any) -> TaggedRows:
        """All rows, framed."""
        framed = frame([self.ids], np.array(self.number, np.int64), vocabulary)
        return TaggedRows(framed, np.concatenate(self.tags), np.concatenate(self.words))
