"""Classification of long texts: which package are most paragraphs of a text from?"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, permutations
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from paribus.core.console import say
from paribus.core.errors import UserError
from paribus.data.corpus.splits import hash_share
from paribus.tasks.baselines import classify_by_words
from paribus.tasks.docs.base import Sizes
from paribus.tasks.docs.package import DocsPackage
from paribus.tasks.examples import Example, Examples, limit_rows
from paribus.tasks.types.classification import Classification

_TOKEN = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True)
class LongClassification(Classification):
    """A class of a long text. One more baseline reads no more than its first `beginning` words and marks."""

    beginning: int = 64

    def predict_baselines(self, train: Sequence[Example], validation: Sequence[Example]) -> Mapping[str, Any]:
        first = [[row._replace(text=self._cut(row.text)) for row in rows] for rows in (train, validation)]
        name = f"bag_of_words_first_{self.beginning}"
        return {**super().predict_baselines(train, validation), name: classify_by_words(*first)}

    def _cut(self, text: str) -> str:
        return " ".join(_TOKEN.findall(text)[: self.beginning])


class DocsLong(DocsPackage):
    """Texts of `most` paragraphs of one package and `others` of another one; the label is the former.

    The first paragraph is from one of the two as often as from the other, so that the beginning does not give the label
    away; the rest are in random order. All pairs of packages have equally many texts, and a paragraph is in one text
    only. Paragraphs are those of `DocsPackage`: they name no package, and a module is wholly in train or in validation.

    Args:
        most, others: paragraphs of either package.
        words: fewest and most words of a paragraph.
        packages, hidden, validation, max_train, max_validation: see `DocsPackage`.

    Raises UserError if `most` is not above `others`, and for a package with too little prose.
    """

    semantics = 1

    def __init__(
        self,
        name: str,
        packages: Sequence[str],
        hidden: Sequence[str] = (),
        words: Sequence[int] = (12, 60),
        metrics: Sequence[str] = ("accuracy",),
        most: int = 6,
        others: int = 3,
        **sizes: Unpack[Sizes],
    ) -> None:
        super().__init__(name, packages, hidden, words, metrics, **sizes)
        self.task_type = LongClassification(tuple(packages), tuple(metrics))
        self.most, self.others = most, others
        if not 1 <= others < most:
            cause = f"{self.key}.most={most} and others={others} leave no majority"
            raise UserError(cause, "give most above others, and at least 1 other")

    def source(self) -> Any:
        return [self.most, self.others, *super().source()]

    def build(self, cache: Path) -> Examples:
        split_rows: dict[str, list[list[str]]] = {
            split: [[] for _ in self.packages] for split in ("train", "validation")
        }
        for row in self._candidates(cache):
            split_rows[self.split_of(row.module)][row.label].append(row.text)
        examples: Examples = {split: self._join(rows, self.limits[split]) for split, rows in split_rows.items()}
        counts = [len(_TOKEN.findall(row.text)) for rows in examples.values() for row in rows]
        middle, large = np.quantile(counts, [0.5, 0.9])
        say(f"task {self.name}: half of the texts have over {middle:.0f} words and marks, 10% over {large:.0f}")
        return examples

    def _join(self, of_class: Sequence[Sequence[str]], limit: int | None) -> list[Example]:
        """As many texts of each pair of packages as the smallest package allows."""
        pairs = list(permutations(range(len(of_class)), 2))
        needed = (self.most + self.others) * (len(of_class) - 1)
        fewest = min(of_class, key=len)
        texts = len(fewest) // needed
        if not texts:
            package = self.packages[of_class.index(fewest)]
            cause = f"{self.key}.packages: {package} has {len(fewest)} paragraphs, but {needed} are needed"
            raise UserError(cause, "choose another package, fewer packages, or shorter paragraphs")
        texts = texts if limit is None else max(1, min(texts, limit // len(pairs)))
        left = [iter(sorted(rows, key=hash_share)) for rows in of_class]
        rows = [
            join_paragraphs(list(islice(left[one], self.most)), list(islice(left[other], self.others)), one)
            for one, other in pairs
            for _ in range(texts)
        ]
        return limit_rows(rows, limit)


def join_paragraphs(most: Sequence[str], others: Sequence[str], label: int) -> Example:
    """A text of both, with one of either as the first."""
    first = (most if hash_share(f"first {most[0]}") < 0.5 else others)[0]
    rest = sorted({*most, *others} - {first}, key=lambda text: hash_share(f"place {text}"))
    return Example("\n".join([first, *rest]), None, label)
