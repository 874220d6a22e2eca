"""Tasks on installed docstrings that a language model answers without training, by likelihood."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Unpack

from paribus.core.console import progress
from paribus.core.errors import UserError
from paribus.data.corpus.docstrings import Docstrings
from paribus.data.corpus.splits import hash_share
from paribus.tasks.docs.base import DocsTask, Sizes
from paribus.tasks.docs.order import DocsShift
from paribus.tasks.examples import ChoiceExample, Example, Examples, limit_rows
from paribus.tasks.types.base import TaskType
from paribus.tasks.types.scored import CHOSEN, LIKELY, Scored

LONGEST = 120  # characters of an option and the text before it, so that a short row has room for both


class ScoredShift(DocsShift):
    """Which form of a paragraph is likelier, that with two neighbors swapped or the original (see `DocsShift`).

    The two forms are the options of one example, in an order that the hash of the paragraph decides.
    """

    def type_of(self, metrics: tuple[str, ...]) -> TaskType:
        return Scored(("first", "second"), metrics)

    def fits(self, text: str) -> bool:
        return super().fits(text) and len(text) <= LONGEST

    def make_examples(self, originals: list[Example], limit: int | None) -> list[Any]:
        return [_place(row.text, [self.disturb(row.text)]) for row in limit_rows(originals, limit)]


class ScoredNext(DocsTask):
    """Which words end a paragraph, after the first half of it: its own second half, or that of one of the next three.

    Settings: see `DocsTask`.
    """

    distractors = 3

    def __init__(
        self,
        name: str,
        packages: Sequence[str],
        words: Sequence[int] = (8, 16),
        metrics: Sequence[str] = CHOSEN,
        **sizes: Unpack[Sizes],
    ) -> None:
        places = ("first", "second", "third", "fourth")
        super().__init__(name, Scored(places, tuple(metrics)), packages, words, **sizes)
        if self.words[0] < 2:
            raise UserError(f"{self.key}.words={list(self.words)} is not valid", "give at least 2 words, as [8, 16]")

    def build(self, cache: Path) -> Examples:
        examples: Examples = {}
        for split, texts in self.read_paragraphs(cache).items():
            halves = [_halve(text) for text in dict.fromkeys(texts)]
            rows = []
            for at, (begin, end) in enumerate(halves):
                others = [halves[(at + turn) % len(halves)][1] for turn in range(1, self.distractors + 1)]
                if len({end, *others}) > self.distractors:
                    rows.append(_place(end, others, begin))
            examples[split] = limit_rows(rows, self.limits[split])
        return examples

    def fits(self, text: str) -> bool:
        return super().fits(text) and len(text) <= LONGEST


class ScoredText(DocsTask):
    """How likely the paragraphs of a module are, one after the other (settings: see `DocsTask`; `words` counts those
    of a paragraph).

    Args:
        stride: tokens between the windows that a text is read in; null: half a window.
    """

    def __init__(
        self,
        name: str,
        packages: Sequence[str],
        words: Sequence[int] = (4, 200),
        metrics: Sequence[str] = LIKELY,
        stride: int | None = None,
        **sizes: Unpack[Sizes],
    ) -> None:
        super().__init__(name, Scored((), tuple(metrics), stride), packages, words, **sizes)

    def build(self, cache: Path) -> Examples:
        examples: Examples = {"train": [], "validation": []}
        corpus = Docstrings(self.packages, validation=self.validation)
        for document in progress(corpus.documents(cache), self.name, unit="module"):
            if lines := [line for line in document.text.split("\n") if self.fits(line)]:
                examples[str(document.split)].append(ChoiceExample("", None, ["\n".join(lines)], 0))
        return {split: limit_rows(rows, self.limits[split]) for split, rows in examples.items()}


def _halve(text: str) -> tuple[str, str]:
    words = text.split()
    return " ".join(words[: len(words) // 2]), " ".join(words[len(words) // 2 :])


def _place(right: str, wrong: Sequence[str], text: str = "") -> ChoiceExample:
    """The right option among the wrong ones, at a place that its hash decides."""
    label = int(hash_share(f"{text} {right}") * (len(wrong) + 1))
    return ChoiceExample(text, None, [*wrong[:label], right, *wrong[label:]], label)
