"""Regression without labels: how much of a docstring paragraph is left in another version of it?"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Unpack

from paribus.data.corpus.splits import hash_share
from paribus.tasks.docs.base import DocsTask, Sizes
from paribus.tasks.examples import Example, Examples, limit_rows
from paribus.tasks.types.regression import Regression

MOST = 5.0  # as of STS-B


class DocsOverlap(DocsTask):
    """A paragraph, and the same with some words replaced by those of another paragraph of its set; the label is the
    share of the words that are equal, from 0 to 5. How a paragraph is changed depends only on both texts.

    Args:
        step: distance between the values that a text-to-text model writes; see `Regression`.
        max_train, max_validation: at most this many pairs; null for all.
        words, validation: see `DocsTask`.
    """

    def __init__(
        self,
        name: str,
        packages: Sequence[str],
        words: Sequence[int] = (6, 30),
        metrics: Sequence[str] = ("pearson", "spearman"),
        step: float = 0.2,
        **sizes: Unpack[Sizes],
    ) -> None:
        super().__init__(name, Regression(tuple(metrics), 0.0, MOST, float(step)), packages, words, **sizes)

    def build(self, cache: Path) -> Examples:
        examples = {}
        for split, lines in self.read_paragraphs(cache).items():
            texts = dict.fromkeys(" ".join(line.split()) for line in lines)
            examples[split] = limit_rows(pair_up(list(texts)), self.limits[split])
        return examples


def pair_up(texts: Sequence[str]) -> list[Example]:
    """Each text but the last with a version of it that has words of the next one."""
    return [replace_some(text.split(), other.split()) for text, other in pairwise(texts)]


def replace_some(words: Sequence[str], others: Sequence[str]) -> Example:
    """The words, as many of them replaced as their hash says, with those that are left as the label."""
    text = " ".join(words)
    count = int(hash_share(text) * (len(words) + 1))
    places = set(sorted(range(len(words)), key=lambda at: hash_share(f"{at} {text}"))[:count])
    made = [others[at % len(others)] if at in places else word for at, word in enumerate(words)]
    left = sum(ours.lower() == theirs.lower() for ours, theirs in zip(words, made, strict=True))
    return Example(text, " ".join(made), MOST * left / len(words))
