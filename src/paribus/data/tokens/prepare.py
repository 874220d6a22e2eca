"""Builds token stores from corpus and tokenizer configs; everything is cached under a hash of its settings."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paribus.core.checksums import digest, is_stored
from paribus.core.console import bar, say
from paribus.core.errors import UserError
from paribus.core.files import whole_folder
from paribus.data.annotators import Annotator
from paribus.data.corpus.document import Corpus, Document
from paribus.data.corpus.sentences import Splitter
from paribus.data.corpus.splits import Fingerprint, fingerprint, split_documents
from paribus.data.tokens import annotation, raw_text, store, words
from paribus.data.tokens.pretrained import Pretrained
from paribus.data.tokens.raw_text import RawText
from paribus.data.tokens.store import GOLDEN, TokenStore
from paribus.data.tokens.tokenizer import Tokenizer, load_vocabulary, splits_as_bert
from paribus.data.tokens.trained import Trained
from paribus.data.tokens.vocabulary import Entries, Vocabulary

Source = Trained | Pretrained  # what makes a tokenizer

NOTICED = 0.001  # a share of letters lost that is said
LONGEST_WORD = 10_000  # characters of a word that a tokenizer is trained on


@dataclass
class Data:
    """The token stores of a corpus by split, with what made them. `fingerprint` is plain data for records, `raw` counts
    the text of the validation split, if that was asked for.
    """

    stores: dict[str, Any]
    tokenizer_folder: Path
    fingerprint: dict[str, Any]
    raw: RawText | None = None

    @cached_property
    def tokenizer(self) -> Tokenizer:
        return Tokenizer.load(self.tokenizer_folder)

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """With the spellings and counts of its entries, which are read if they are asked for."""
        vocabulary = load_vocabulary(self.tokenizer_folder)[0]
        return replace(vocabulary, entries=Entries(self.tokenizer_folder, vocabulary.size, self.stores["train"]))

    @property
    def count_V(self) -> NDArray[np.int64]:
        """How often the training text has each id."""
        return self.vocabulary.count_V


@dataclass
class Plan:
    """The names of the artefacts of one corpus and tokenizer."""

    corpus: Corpus
    source: Source
    cache: Path
    trained_on: Corpus | None = None  # whose text a tokenizer is trained on; None: this one's

    @cached_property
    def text(self) -> Fingerprint:
        text = fingerprint(self.corpus, self.cache)
        for split in ("train", "validation"):
            if not text.documents.get(split):
                raise UserError(
                    f"the corpus has no {split} document", "give more documents, or files named train and validation"
                )
        return text

    @property
    def splitter(self) -> Splitter:
        if self.corpus.sentences is None:
            raise UserError("corpus.sentences is not set", "choose one, such as corpus/sentences=blingfire")
        return self.corpus.sentences

    @cached_property
    def tokenizer_folder(self) -> Path:
        """The tokenizer, trained or loaded if it is not there yet."""
        if self.trained_on is not None:
            return Plan(self.trained_on, self.source, self.cache).tokenizer_folder
        text = self.text.text if self.source.trained else None
        folder = self.cache / "tokenizers" / digest([text, self.source.identity()], 16)
        if not is_stored(folder):
            with whole_folder(folder) as work:
                self.source.build(self._training_text() if self.source.trained else (), work)
        return folder

    @cached_property
    def plain(self) -> dict[str, Any]:
        """The fingerprint of the tokens: of the text, the splitter and the tokenizer, never of places."""
        return {
            "text": self.text.text,
            "documents": self.text.documents,
            "characters": self.text.characters,
            "sentences": [self.splitter.name, self.splitter.semantics],
            "tokenizer": hashlib.sha256((self.tokenizer_folder / "tokenizer.json").read_bytes()).hexdigest()[:16],
            "semantics": store.SEMANTICS,
            **({"dropped": self.text.dropped} if self.text.dropped else {}),
            **({} if self.source.trained or splits_as_bert(self.tokenizer_folder) else {"words": words.SEMANTICS}),
        }

    @cached_property
    def store_folder(self) -> Path:
        """The stores of all splits, built if they are not there yet."""
        folder = self.cache / "stores" / digest(self.plain, 16)
        if not is_stored(folder):
            total = sum(self.text.characters.values())
            say(f"tokenizing {total / 1e6:.1f} million characters")
            store.build(self.documents(), Tokenizer.load(self.tokenizer_folder), self.splitter, folder, total)
        return folder

    def spans_file(self, annotator: Annotator, split: str) -> Path:
        """The annotated spans of a split, built if they are not there yet."""
        further = [] if split == "train" else [split]
        folder = self.cache / "spans" / digest([self.plain, annotator.identity(), annotation.SEMANTICS, *further], 16)
        if not is_stored(folder):
            total = self.text.characters[split]
            say(f"annotating {total / 1e6:.1f} million characters, once")
            documents = (document for document in self.documents() if document.split == split)
            annotation.build(documents, Tokenizer.load(self.tokenizer_folder), self.splitter, annotator, folder, total)
        if split == "train":
            annotation.check(folder)
        return folder / store.SPANS

    def count_text(self, split: str) -> RawText:
        """The characters and words of a split by token, counted if they are not yet."""
        folder = self.cache / "raw" / digest([self.plain, split, raw_text.SEMANTICS], 16)
        if not is_stored(folder):
            say(f"counting {self.text.characters[split] / 1e6:.1f} million characters, once")
            documents = (document for document in self.documents() if document.split == split)
            raw_text.build(documents, Tokenizer.load(self.tokenizer_folder), self.splitter, folder)
        return RawText(folder)

    def documents(self) -> Iterator[Document]:
        return split_documents(self.corpus.documents(self.cache), self.corpus.validation)

    def _training_text(self) -> Iterator[str]:
        assert isinstance(self.source, Trained)
        say(f"training a tokenizer ({self.source.kind}) of up to {self.source.vocab_size} entries")
        paragraphs = (line for d in self.documents() if d.split == "train" for line in d.text.split("\n"))
        limit, total = self.source.train_characters, self.text.characters["train"]
        with bar("reading", min(limit, total), "char", scale=True) as progress:
            for paragraph in spread(paragraphs, limit, total):
                progress.update(len(paragraph))
                yield cut_words(paragraph)


def cut_words(text: str, longest: int = LONGEST_WORD) -> str:
    """The text with spaces inside longer words, since a trainer takes time quadratic in a word's length."""
    if len(text) <= longest or max(map(len, text.split()), default=0) <= longest:
        return text
    parts = re.split(r"(\s+)", text)
    return "".join(re.sub(rf".{{{longest}}}(?=.)", r"\g<0> ", part) if part.strip() else part for part in parts)


def spread(paragraphs: Iterator[str], limit: int, total: int) -> Iterator[str]:
    """About `limit` of `total` characters: paragraphs evenly spread over the text, at most `limit` characters."""
    room = limit
    for number, paragraph in enumerate(paragraphs):
        if number * GOLDEN % 1.0 * total < limit:
            yield paragraph[:room]
            room -= len(paragraph)
        if room <= 0:
            return


def data_fingerprint(
    corpus: Corpus, tokenizer: Source, cache: Path, annotator: Annotator | None = None, trained_on: Corpus | None = None
) -> dict[str, Any]:
    """The plain data that names the tokens of a corpus; trains the tokenizer if it must, builds no store.

    With an annotator it names its spans too.

    Raises:
        UserError: for an empty or broken corpus, one without training or validation text, or a vocabulary that the
            text cannot give.
        Unavailable: for an annotator that this machine does not have.
    """
    plain = Plan(corpus, tokenizer, cache, trained_on).plain
    return plain if annotator is None else {**plain, "spans": annotator.identity()}


def prepare(
    corpus: Corpus,
    tokenizer: Source,
    cache: Path,
    annotator: Annotator | None = None,
    trained_on: Corpus | None = None,
    counts_text: bool = False,
) -> Data:
    """The token stores of a corpus, built if they are not cached; its fingerprint has the `tokens` by split too.

    With an annotator the training text and the held-out text have its spans. With `counts_text` the characters and
    words of the held-out text are counted.

    Raises:
        UserError: as `data_fingerprint`; for an annotator that finds nothing in the text; if all splits have the same
            tokens.
    """
    plan = Plan(corpus, tokenizer, cache, trained_on)
    stores = {path.name: TokenStore(path) for path in sorted(plan.store_folder.iterdir()) if path.is_dir()}
    counts = {split: each.tokens for split, each in stores.items()}
    for split in ("train", "validation"):
        if not counts.get(split):
            raise UserError(f"the {split} text of the corpus has no tokens", "give text that the tokenizer can read")
    if np.array_equal(stores["train"].ids, stores["validation"].ids):
        raise UserError(
            "the train and the validation text of the corpus are the same", "give other text to one of them"
        )
    if (lost := stores["train"].lost) > NOTICED:
        where = f"such as marks and what is unknown: {tokenizer.sees_more}"
        say(f"the tokenizer loses {100 * lost:.1f}% of the letters of the text, {where}; `paribus show` shows it")
    data = Data(stores, plan.tokenizer_folder, {**plan.plain, "tokens": counts})
    if annotator is not None:
        for split in ("train", "validation"):
            stores[split] = TokenStore(stores[split].folder, plan.spans_file(annotator, split))
        data.fingerprint["spans"] = annotator.identity()
    if counts_text:
        data.raw = plan.count_text("validation")
    return data
