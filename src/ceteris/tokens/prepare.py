"""From a corpus config and a tokenizer config to token stores, everything cached under the name of its meaning."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ceteris.components import build as component
from ceteris.console import say
from ceteris.corpus.document import Corpus, Document
from ceteris.corpus.fingerprint import Fingerprint, fingerprint
from ceteris.corpus.splits import split_documents
from ceteris.errors import UserError
from ceteris.files import whole_folder
from ceteris.hashing import digest
from ceteris.tokens import store
from ceteris.tokens.store import TokenStore
from ceteris.tokens.tokenizer import Tokenizer
from ceteris.tokens.vocabulary import Vocabulary


@dataclass
class Data:
    """The token stores of a corpus by split, with what made them. `fingerprint` is plain data for records."""

    stores: dict[str, Any]
    tokenizer_folder: Path
    fingerprint: dict[str, Any]

    @cached_property
    def tokenizer(self) -> Tokenizer:
        return Tokenizer.load(self.tokenizer_folder)

    @cached_property
    def vocabulary(self) -> Vocabulary:
        kept = json.loads((self.tokenizer_folder / "vocabulary.json").read_text(encoding="utf-8"))
        return Vocabulary(**{k: tuple(v) if k == "specials" else v for k, v in kept.items() if k != "name"})


@dataclass
class _Plan:
    """The names of the artefacts of one corpus and tokenizer."""

    corpus: Corpus
    trainer: Any
    cache: Path

    @cached_property
    def text(self) -> Fingerprint:
        return fingerprint(self.corpus, self.cache)

    @cached_property
    def tokenizer_folder(self) -> Path:
        """The tokenizer, trained or loaded where it is not there yet."""
        pretrained = not hasattr(self.trainer, 'train_characters')
        meaning = self.trainer.identity() if pretrained else [self.text.text, self.trainer.identity()]
        folder = self.cache / "tokenizers" / digest(meaning)
        if not folder.is_dir():
            if not pretrained:
                say(f"training a tokenizer of {self.trainer.vocab_size} pieces")
            with whole_folder(folder) as work:
                self.trainer.build((document.text for document in self.documents() if document.split == "train"), work)
        return folder

    @cached_property
    def plain(self) -> dict[str, Any]:
        """The fingerprint of the tokens: of the text, the splitter and the tokenizer, never of places."""
        splitter = self.corpus.sentences
        return {
            "text": self.text.text,
            "documents": self.text.documents,
            "characters": self.text.characters,
            "sentences": [splitter.name, splitter.semantics],
            "tokenizer": _file_digest(self.tokenizer_folder / "tokenizer.json"),
            "semantics": store.SEMANTICS,
        }

    def documents(self) -> Iterator[Document]:
        return split_documents(self.corpus.documents(self.cache), self.corpus.validation)


def data_fingerprint(corpus_cfg: Any, tokenizer_cfg: Any, cache: Path) -> dict[str, Any]:
    """The plain data that names the tokens of a config; trains the tokenizer where it must, builds no store.

    Raises:
        UserError: for an empty or broken corpus, or a vocabulary that the text cannot give.
    """
    return _Plan(component(corpus_cfg), component(tokenizer_cfg), cache).plain


def prepare(corpus_cfg: Any, tokenizer_cfg: Any, cache: Path) -> Data:
    """The token stores of a config, built where they are not cached.

    Raises:
        UserError: as `data_fingerprint`, and for a corpus without training or validation text.
    """
    plan = _Plan(component(corpus_cfg), component(tokenizer_cfg), cache)
    for split in ("train", "validation"):
        if not plan.text.documents.get(split):
            raise UserError(f"the corpus has no {split} document", "give more documents, or files named train and validation")
    folder = cache / "stores" / digest(plan.plain)
    if not folder.is_dir():
        total = sum(plan.text.characters.values())
        say(f"tokenizing {total / 1e6:.1f} million characters")
        store.build(plan.documents(), Tokenizer.load(plan.tokenizer_folder), plan.corpus.sentences, folder, total)
    stores = {path.name: TokenStore(path) for path in sorted(folder.iterdir()) if path.is_dir()}
    counts = {split: found.tokens for split, found in stores.items()}
    return Data(stores, plan.tokenizer_folder, {**plan.plain, "tokens": counts})


def _file_digest(path: Path) -> str:
    import hashlib

    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]
