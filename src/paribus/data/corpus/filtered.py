"""A corpus after a chain of cleaning rules, each of them counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from paribus.core.errors import UserError
from paribus.data.corpus.document import Corpus, Document
from paribus.data.corpus.sentences import Splitter
from paribus.data.corpus.splits import split_documents

SPLITS = ("train", "validation", "test")


class Rule(Protocol):
    """Cleans pages one by one; a page that comes back empty is dropped."""

    def begin(self) -> Callable[[str], str]:
        """The rule at the beginning of a pass."""

    def source(self) -> Any:
        """Plain data that changes when the rule does."""


@dataclass(frozen=True)
class Filtered(Corpus):
    """The documents of another corpus, cleaned by `rules` in their order, in the named `splits` only.

    The splits are drawn before, so the rules do not change what is held out.
    `counts`: what the last pass dropped: `<rule>_documents`, and of other documents `<rule>_lines` and
    `<rule>_characters`.
    """

    of: Corpus
    rules: Mapping[str, Rule] = field(default_factory=dict)
    splits: Sequence[str] = ("train",)
    counts: Counter[str] = field(default_factory=Counter, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if unknown := set(self.splits) - set(SPLITS):
            raise UserError(
                f"corpus.splits: {', '.join(sorted(unknown))} is unknown", f"choose among {', '.join(SPLITS)}"
            )

    @property
    def sentences(self) -> Splitter | None:
        return self.of.sentences

    @property
    def validation(self) -> float:
        return self.of.validation

    def dropped(self) -> Mapping[str, int]:
        return self.counts

    def source(self) -> Any:
        rules = [[name, rule.source()] for name, rule in self.rules.items()]
        return [type(self.of).__name__, self.of.semantics, self.of.source(), list(self.splits), rules]

    def documents(self, cache: Path) -> Iterator[Document]:
        self.counts.clear()
        self.counts.update(
            {f"{name}_{what}": 0 for name in self.rules for what in ("documents", "lines", "characters")}
        )
        rules = {name: rule.begin() for name, rule in self.rules.items()}
        for document in split_documents(self.of.documents(cache), self.validation):
            text = self._clean(document.text, rules) if document.split in self.splits else document.text
            if text:
                yield document._replace(text=text)

    def _clean(self, text: str, rules: Mapping[str, Callable[[str], str]]) -> str:
        for name, rule in rules.items():
            found = rule(text)
            if not found:
                self.counts[f"{name}_documents"] += 1
                return ""
            self.counts[f"{name}_lines"] += text.count("\n") - found.count("\n")
            self.counts[f"{name}_characters"] += len(text) - len(found)
            text = found
        return text
