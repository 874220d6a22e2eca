"""A corpus whose sentences are in random order, as those of the One Billion Word benchmark (arXiv 1312.3005)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from paribus.core.errors import UserError
from paribus.data.corpus.document import Corpus, Document, in_parts
from paribus.data.corpus.sentences import Splitter
from paribus.data.corpus.splits import split_documents


@dataclass(frozen=True)
class ShuffledSentences(Corpus):
    """The sentences of another corpus, split by split as there, each as a line of one document.

    Their order depends on the sentences alone. Nothing that lies further back than the beginning of a sentence helps to
    predict it, unless sentences are alike. All text is held at once. Raises UserError for a corpus without a splitter.
    """

    of: Corpus

    @property
    def sentences(self) -> Splitter | None:
        return self.of.sentences

    @property
    def validation(self) -> float:
        return self.of.validation

    def source(self) -> Any:
        return [type(self.of).__name__, self.of.semantics, self.of.source()]

    def documents(self, cache: Path) -> Iterator[Document]:
        cut = self.of.sentences
        if cut is None:
            raise UserError("corpus=shuffled needs to know where sentences end", "set corpus.of.sentences")
        by_split: defaultdict[str, list[tuple[bytes, str]]] = defaultdict(list)
        for document in split_documents(self.of.documents(cache), self.validation):
            for paragraph in document.text.split("\n"):
                for sentence in cut(paragraph):
                    by_split[document.split or "train"].append((_key(sentence), sentence))
        for split, keyed in by_split.items():
            yield from in_parts(split, (sentence for _, sentence in sorted(keyed)), split)


def _key(sentence: str) -> bytes:
    return blake2b(sentence.encode("utf-8", "surrogatepass"), digest_size=8).digest()
