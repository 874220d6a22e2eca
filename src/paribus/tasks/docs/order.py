"""Sentence classification without labels: are the words of a docstring paragraph in their order?"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any, Unpack

from paribus.core.errors import UserError
from paribus.data.corpus.splits import hash_share
from paribus.tasks.docs.base import DocsTask, Sizes
from paribus.tasks.examples import Example, Examples, limit_rows
from paribus.tasks.types.base import TaskType
from paribus.tasks.types.classification import Classification

FEWEST = 4  # words: the first, the last and two between them


class WordOrder(DocsTask):
    """Docstring paragraphs as they are and with some words out of order; their first and last words stay.

    Every paragraph is in the examples in both forms, one after the other, so that the classes are equally large and
    have the same words: a model that ignores the order gets exactly half of them right. How a paragraph is changed
    depends only on its text.

    Args:
        disturbed: the name of the class of paragraphs with words out of order.
        max_train, max_validation: at most this many examples, two for each paragraph; null for all.
        words, validation: see `DocsTask`.
    """

    disturbed: str

    def __init__(
        self,
        name: str,
        packages: Sequence[str],
        words: Sequence[int] = (6, 30),
        metrics: Sequence[str] = ("accuracy",),
        **sizes: Unpack[Sizes],
    ) -> None:
        super().__init__(name, self.type_of(tuple(metrics)), packages, words, **sizes)
        if self.words[0] < FEWEST:
            raise UserError(
                f"{self.key}.words={list(self.words)} is not valid", f"give at least {FEWEST} words, as [6, 30]"
            )

    def source(self) -> Any:
        return [self.disturbed, *super().source()]

    def type_of(self, metrics: tuple[str, ...]) -> TaskType:
        """What a model does with the two forms."""
        return Classification((self.disturbed, "original"), metrics)

    @abstractmethod
    def disturb(self, text: str) -> str:
        """The words in a different order; at least two neighbors between the first and the last one differ."""

    def build(self, cache: Path) -> Examples:
        examples = {}
        for split, lines in self.read_paragraphs(cache).items():
            originals = [Example(" ".join(line.split()), None, 1) for line in lines if find_swaps(line.split())]
            examples[split] = self.make_examples(originals, self.limits[split])
        return examples

    def make_examples(self, originals: list[Example], limit: int | None) -> list[Any]:
        """At most `limit` examples, each paragraph in both forms."""
        chosen = limit_rows(originals, None if limit is None else limit // 2)
        return [form for row in chosen for form in (Example(self.disturb(row.text), None, 0), row)]


class DocsOrder(WordOrder):
    """All words between the first and the last one in random order (settings: see `WordOrder`)."""

    disturbed = "shuffled"

    def disturb(self, text: str) -> str:
        return " ".join(shuffle_inner(text.split()))


class DocsShift(WordOrder):
    """Two neighbors between the first and the last word swapped: the bigram shift of SentEval (arXiv 1805.01070,
    section 2), with the ends left alone (settings: see `WordOrder`).
    """

    disturbed = "swapped"

    def disturb(self, text: str) -> str:
        return " ".join(swap_neighbors(text.split()))


def find_swaps(words: Sequence[str]) -> list[int]:
    """The places of inner words that differ from the next inner word, in any case."""
    return [at for at in range(1, len(words) - 2) if words[at].lower() != words[at + 1].lower()]


def shuffle_inner(words: Sequence[str]) -> list[str]:
    """The words in an order that their hash decides and that is not theirs; the first and the last one stay."""
    drawn = (_draw(words, turn) for turn in count())
    return next(order for order in drawn if list(map(str.lower, order)) != list(map(str.lower, words)))


def _draw(words: Sequence[str], turn: int) -> list[str]:
    text = " ".join(words)
    inner = sorted(range(1, len(words) - 1), key=lambda at: hash_share(f"{turn} {at} {text}"))
    return [words[0], *(words[at] for at in inner), words[-1]]


def swap_neighbors(words: Sequence[str]) -> list[str]:
    """The words with two different inner neighbors swapped, chosen by the hash of all."""
    places = find_swaps(words)
    at = places[int(hash_share(" ".join(words)) * len(places))]
    return [*words[:at], words[at + 1], words[at], *words[at + 2 :]]
