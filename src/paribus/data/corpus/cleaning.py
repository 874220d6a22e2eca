"""A corpus after a chain of cleaning rules, whose effect is counted, and the rules of C4.

T5 (arXiv 1910.10683), section 2.2, and the code that made C4 (`c4_utils.py`)
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any, Protocol

from paribus.core.errors import UserError
from paribus.data.corpus.document import Corpus, Document
from paribus.data.corpus.sentences import Blingfire, Splitter
from paribus.data.corpus.splits import split_documents

SPLITS = ("train", "validation", "test")
WINDOW = 3  # sentences in a row that count as a repetition if they occurred before
CITATIONS = re.compile(r"\[\d*\]|\[edit\]|\[citation needed\]")


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
            cleaned = rule(text)
            if not cleaned:
                self.counts[f"{name}_documents"] += 1
                return ""
            self.counts[f"{name}_lines"] += text.count("\n") - cleaned.count("\n")
            self.counts[f"{name}_characters"] += len(text) - len(cleaned)
            text = cleaned
        return text


def _keep_lines(text: str, keeps: Callable[[str], bool]) -> str:
    return "\n".join(line for line in text.split("\n") if keeps(line))


@dataclass(frozen=True)
class LongWords:
    """Lines with a word of more than `most` characters are dropped."""

    most: int = 1000

    def begin(self) -> Callable[[str], str]:
        return lambda text: _keep_lines(text, lambda line: max(map(len, line.split()), default=0) <= self.most)

    def source(self) -> Any:
        return ["LongWords", asdict(self)]


@dataclass(frozen=True)
class DropCitations:
    """Wikipedia marks such as [1], [edit] and [citation needed] are removed from their lines."""

    def begin(self) -> Callable[[str], str]:
        return lambda text: "\n".join(CITATIONS.sub("", line).strip() for line in text.split("\n"))

    def source(self) -> Any:
        return ["DropCitations", CITATIONS.pattern]


@dataclass(frozen=True)
class KeepLines:
    """Lines that end with one of these marks stay, but not those that end with `but`.

    C4: full stop, exclamation or question mark, closing quote; not three dots.
    """

    ends: str = ".!?\"”'’"
    but: str = "..."

    def begin(self) -> Callable[[str], str]:
        ends = tuple(self.ends)
        return lambda text: _keep_lines(text, lambda line: line.endswith(ends) and not line.endswith(self.but))

    def source(self) -> Any:
        return ["KeepLines", asdict(self)]


@dataclass(frozen=True)
class ShortLines:
    """Lines of fewer than `least` words are dropped."""

    least: int = 5

    def begin(self) -> Callable[[str], str]:
        return lambda text: _keep_lines(text, lambda line: len(line.split()) >= self.least)

    def source(self) -> Any:
        return ["ShortLines", asdict(self)]


@dataclass(frozen=True)
class ShortPages:
    """Pages of fewer than `least` sentences are dropped."""

    least: int = 3
    sentences: Splitter = field(default_factory=Blingfire)

    def begin(self) -> Callable[[str], str]:
        def clean(text: str) -> str:
            return text if sum(len(self.sentences(line)) for line in text.split("\n")) >= self.least else ""

        return clean

    def source(self) -> Any:
        return ["ShortPages", self.least, self.sentences.name, self.sentences.semantics]


@dataclass(frozen=True)
class DropLines:
    """Lines that hold one of the phrases, in capitals or not, are dropped. C4: javascript; notices of policies."""

    phrases: Sequence[str]

    def begin(self) -> Callable[[str], str]:
        phrases = [phrase.lower() for phrase in self.phrases]
        return lambda text: _keep_lines(text, lambda line: not any(phrase in line.lower() for phrase in phrases))

    def source(self) -> Any:
        return ["DropLines", list(self.phrases)]


@dataclass(frozen=True)
class DropPages:
    """Pages that hold the phrase, in capitals or not, are dropped. C4: lorem ipsum, and a curly brace."""

    phrase: str

    def begin(self) -> Callable[[str], str]:
        phrase = self.phrase.lower()
        return lambda text: "" if phrase in text.lower() else text

    def source(self) -> Any:
        return ["DropPages", asdict(self)]


@dataclass(frozen=True)
class BadWords:
    """Pages with a word or phrase of your own list, one per line, are dropped; without a list none is.

    Raises UserError if the list cannot be read.
    """

    path: str | None = None

    def words(self) -> list[str]:
        """The list, without empty lines."""
        if self.path is None:
            return []
        try:
            text = Path(self.path).expanduser().read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"bad words: {self.path} cannot be read", "name a file of words, one per line") from error
        return [word for line in text.split("\n") if (word := line.strip().lower())]

    def begin(self) -> Callable[[str], str]:
        words = sorted(self.words(), key=len, reverse=True)
        if not words:
            return lambda text: text
        bad = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, words))})(?!\w)")
        return lambda text: "" if bad.search(text.lower()) else text

    def source(self) -> Any:
        return ["BadWords", self.words()]


@dataclass(frozen=True)
class Deduplicate:
    """Three sentences in a row that occurred before, in any case, are dropped."""

    sentences: Splitter = field(default_factory=Blingfire)

    def begin(self) -> Callable[[str], str]:
        seen: set[bytes] = set()

        def clean(text: str) -> str:
            sentences = [(number, s) for number, line in enumerate(text.split("\n")) for s in self.sentences(line)]
            repeated: set[int] = set()
            for first in range(len(sentences) - WINDOW + 1):
                run = "\n".join(sentence for _, sentence in sentences[first : first + WINDOW]).lower()
                key = blake2b(run.encode("utf-8", "surrogatepass"), digest_size=8).digest()
                if key in seen:
                    repeated.update(range(first, first + WINDOW))
                seen.add(key)
            if not repeated:
                return text
            kept: dict[int, list[str]] = {}
            for at, (number, sentence) in enumerate(sentences):
                if at not in repeated:
                    kept.setdefault(number, []).append(sentence)
            return "\n".join(map(" ".join, kept.values()))

        return clean

    def source(self) -> Any:
        return ["Deduplicate", self.sentences.name, self.sentences.semantics]
