"""Which package is this paragraph from? Labeled by the installed packages themselves, so no network is needed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from paribus.core.console import progress
from paribus.core.errors import UserError
from paribus.data.corpus.docstrings import Docstrings
from paribus.tasks.example import Example, Examples, hashed_share, limited, normalized
from paribus.tasks.task import CachedTask
from paribus.tasks.types.classification import Classification

SHORT = 4  # a hidden name of fewer letters hides only itself as a word, not words that contain it


class Paragraph(NamedTuple):
    """Prose from one module of one package."""

    label: int
    module: str
    text: str


class DocsPackage(CachedTask):
    """Sentence classification of docstring paragraphs by the distribution they are from.

    Paragraphs that name any of the packages are left out, as are those that two packages share. A module is wholly in
    train or wholly in validation, and so is a text. Classes are balanced as far as the packages' prose goes.

    Args:
        packages: distributions, one class each.
        hidden: further names that would give a package away; its distribution and import names always count.
        words: fewest and most words of a text.
        validation: share of the modules that is held out.
        max_train, max_validation: sizes over all classes; null for all.
    """

    def __init__(
        self,
        name: str,
        packages: Sequence[str],
        hidden: Sequence[str] = (),
        words: Sequence[int] = (5, 60),
        validation: float = 0.2,
        metrics: Sequence[str] = ("accuracy",),
        max_train: int | None = 4000,
        max_validation: int | None = 1000,
    ) -> None:
        super().__init__(name, Classification(tuple(packages), tuple(metrics)), max_train, max_validation)
        self.hidden = tuple(hidden)
        self.words = tuple(words)
        self.validation = validation
        if len(self.words) != 2 or not 1 <= self.words[0] <= self.words[1]:
            raise UserError(f"tasks.{name}.words={list(self.words)}", "give the fewest and the most words, as [5, 60]")
        if not 0 < validation < 1:
            raise UserError(f"tasks.{name}.validation={validation}", "give a share between 0 and 1")

    def source(self) -> Any:
        """See `CachedTask.source`: the settings and the versions of the packages."""
        settings = [self.hidden, self.words, self.validation, self.max_train, self.max_validation]
        return [
            settings,
            Docstrings.semantics,
            [[name, self._installed(name).version] for name in self.task_type.classes],
        ]

    def build(self, cache: Path) -> Examples:
        """See `CachedTask.build`."""
        found = list(self._candidates(cache))
        held = {module for _, module, _ in found if hashed_share(module) < self.validation}
        return {
            "train": self._balanced([row for row in found if row.module not in held], self.max_train),
            "validation": self._balanced([row for row in found if row.module in held], self.max_validation),
        }

    def _candidates(self, cache: Path) -> Iterator[Paragraph]:
        fewest, most = self.words
        names = name_pattern(
            [*self.hidden, *(name for package in self.task_type.classes for name in self._names(package))]
        )
        everything = (
            paragraph
            for label, package in enumerate(progress(self.task_type.classes, self.name, unit="package"))
            for paragraph in self._paragraphs(label, package, cache)
        )
        for row in unambiguous(everything):
            if fewest <= len(row.text.split()) <= most and not names.search(row.text):
                yield row

    def _paragraphs(self, label: int, package: str, cache: Path) -> Iterator[Paragraph]:
        for document in Docstrings(distributions=[package]).documents(cache):
            for line in document.text.split("\n"):
                yield Paragraph(label, document.id, line)

    def _balanced(self, rows: Iterable[Paragraph], limit: int | None) -> list[Example]:
        by_class: list[list[Example]] = [[] for _ in self.task_type.classes]
        for label, _, text in rows:
            by_class[label].append(Example(text, None, label))
        for package, examples in zip(self.task_type.classes, by_class, strict=True):
            if not examples:
                raise UserError(f"tasks.{self.name}.packages: {package} has too little prose", "choose another package")
        each = None if limit is None else limit // len(self.task_type.classes)
        return [example for examples in by_class for example in limited(examples, each)]

    def _installed(self, package: str) -> metadata.Distribution:
        try:
            return metadata.distribution(package)
        except metadata.PackageNotFoundError as error:
            raise UserError(
                f"tasks.{self.name}.packages: {package} is not installed", "install or remove it"
            ) from error

    def _names(self, package: str) -> set[str]:
        """The distribution's name and the names it is imported by."""
        paths = [Path(file) for file in self._installed(package).files or []]
        return {package, *(path.parts[0].removesuffix(".py") for path in paths if path.suffix == ".py")} - {".."}


def unambiguous(rows: Iterable[Paragraph]) -> list[Paragraph]:
    """The first row of every text, without texts that have several labels."""
    first: dict[str, Paragraph] = {}
    shared = set()
    for row in rows:
        key = normalized(row.text)
        if first.setdefault(key, row).label != row.label:
            shared.add(key)
    return [row for key, row in first.items() if key not in shared]


def name_pattern(names: Iterable[str]) -> re.Pattern[str]:
    """Matches a text that mentions a name, in any case and with any separator (`scikit-learn`, `scikit learn`).

    A longer name also counts inside a word, as in `TorchScript`.
    """
    parts = []
    for name in sorted({name.lower() for name in names}):
        spelled = r"[-_.\s]?".join(map(re.escape, re.split(r"[-_.\s]", name)))
        parts.append(spelled if len(name) >= SHORT else rf"\b{spelled}\b")
    return re.compile("|".join(parts), re.IGNORECASE)
