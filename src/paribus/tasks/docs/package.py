"""Sentence classification: which package is a paragraph of a docstring from?"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Unpack

from paribus.core.console import progress
from paribus.core.errors import UserError
from paribus.data.corpus.docstrings import Docstrings
from paribus.tasks.docs.base import DocsTask, Sizes
from paribus.tasks.examples import Example, Examples, limit_rows, normalize
from paribus.tasks.types.classification import Classification

SHORT = 4  # shorter names count only as whole words


class Paragraph(NamedTuple):
    """Prose from one module of one package."""

    label: int
    module: str
    text: str


class DocsPackage(DocsTask):
    """Classification of docstring paragraphs by their distribution.

    Paragraphs that name any of the packages are left out, and so are those that two packages share. A text is wholly in
    train or wholly in validation. The classes are balanced as far as the packages' prose allows.

    Args:
        packages: distributions, one class each.
        hidden: further names that reveal a package; its distribution and import names always count.
        max_train, max_validation: at most this many examples over all classes; null for all.
        tail: how many times as many training examples the first class has as the last one; between them numbers fall
            geometrically, as in long-tailed CIFAR (arXiv 1901.05555, section 5.1). Validation stays balanced.
        words, validation: see `DocsTask`.

    Raises UserError for a tail below 1, and for one without `max_train`.
    """

    semantics = 2
    unset_values: ClassVar[Mapping[str, Any]] = {"tail": 1.0}

    def __init__(
        self,
        name: str,
        packages: Sequence[str],
        hidden: Sequence[str] = (),
        words: Sequence[int] = (5, 60),
        metrics: Sequence[str] = ("accuracy",),
        tail: float = 1.0,
        **sizes: Unpack[Sizes],
    ) -> None:
        super().__init__(name, Classification(tuple(packages), tuple(metrics)), packages, words, **sizes)
        self.hidden, self.tail = tuple(hidden), tail
        if tail < 1 or (tail > 1 and self.limits["train"] is None):
            raise UserError(
                f"{self.key}.tail={tail} is not valid", f"give at least 1, and above 1 also {self.key}.max_train"
            )

    def source(self) -> Any:
        return [self.hidden, *([self.tail] if self.tail > 1 else []), *super().source()]

    def build(self, cache: Path) -> Examples:
        rows: dict[str, list[Paragraph]] = {"train": [], "validation": []}
        for row in self._candidates(cache):
            rows[self.split_of(row.module)].append(row)
        tails = {"train": self.tail, "validation": 1.0}
        return {split: self._balance(part, self.limits[split], tails[split]) for split, part in rows.items()}

    def _candidates(self, cache: Path) -> Iterator[Paragraph]:
        names = [*self.hidden, *self.packages]
        for package in self.packages:
            paths = [Path(file) for file in self.distributions[package].files or []]
            names += {path.parts[0].removesuffix(".py") for path in paths if path.suffix == ".py"} - {".."}
        pattern = name_pattern(names)
        paragraphs = (
            Paragraph(label, document.id, line)
            for label, package in enumerate(progress(self.packages, self.name, unit="package"))
            for document in Docstrings(distributions=[package], validation=self.validation).documents(cache)
            for line in document.text.split("\n")
        )
        return (row for row in drop_shared(paragraphs) if self.fits(row.text) and not pattern.search(row.text))

    def _balance(self, rows: Iterable[Paragraph], limit: int | None, tail: float) -> list[Example]:
        by_class: list[list[Example]] = [[] for _ in self.packages]
        for label, _, text in rows:
            by_class[label].append(Example(text, None, label))
        for package, examples in zip(self.packages, by_class, strict=True):
            if not examples:
                raise UserError(f"{self.key}.packages: {package} has too little prose", "choose another package")
        weights = [tail ** (-at / (len(by_class) - 1)) for at in range(len(by_class))]
        limits = [None if limit is None else max(1, int(limit * weight / sum(weights))) for weight in weights]
        return [row for examples, most in zip(by_class, limits, strict=True) for row in limit_rows(examples, most)]


def drop_shared(rows: Iterable[Paragraph]) -> list[Paragraph]:
    """The first row of every text, without texts of several packages."""
    first: dict[str, Paragraph] = {}
    shared = set()
    for row in rows:
        key = normalize(row.text)
        if first.setdefault(key, row).label != row.label:
            shared.add(key)
    return [row for key, row in first.items() if key not in shared]


def name_pattern(names: Iterable[str]) -> re.Pattern[str]:
    """A pattern for texts that mention a name, in any case and with any separator (`scikit-learn`, `scikit learn`).

    A name of at least `SHORT` letters also counts inside a word, as in `TorchScript`.
    """
    parts = []
    for name in sorted({name.lower() for name in names}):
        spelled = r"[-_.\s]?".join(map(re.escape, re.split(r"[-_.\s]", name)))
        parts.append(spelled if len(name) >= SHORT else rf"\b{spelled}\b")
    return re.compile("|".join(parts), re.IGNORECASE)
