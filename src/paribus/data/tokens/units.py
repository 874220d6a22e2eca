"""Tokenizers whose tokens are given: characters, bytes, words. Nothing is merged.

`vocab_size` is the most that they have, and a text that gives fewer is no error: recipes set it for all tokenizers, and
few texts have 8,192 different characters.

Characters and bytes keep white space, since a language model on them predicts it. A sentence begins with the white
space before it: with a blank within a paragraph, a new line at the start of a paragraph, and a blank line at the start
of a document. The tokens of a store, decoded one after the other, are the text. White space beyond that is not kept:
blank lines within a document, and blanks around a paragraph or between sentences that are more than one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from paribus.core.errors import UserError
from paribus.data.tokens.store import BLANK, NEW_PARAGRAPH
from paribus.data.tokens.trained import BYTES, Texts, Trained

if TYPE_CHECKING:
    from tokenizers import Tokenizer as Backend


@dataclass(frozen=True)
class GivenUnits(Trained):
    """What these tokenizers share: BERT's special tokens come first, and a small text gives a small vocabulary."""

    sees_more: ClassVar[str] = "raise tokenizer.vocab_size"
    roles: ClassVar[Mapping[str, str]] = {
        "pad": "[PAD]",
        "unk": "[UNK]",
        "cls": "[CLS]",
        "sep": "[SEP]",
        "mask": "[MASK]",
    }

    def _check_size(self, paragraphs: Texts, backend: Backend) -> None:
        """Raise UserError for a text that gives no entry."""
        if backend.get_vocab_size() <= len(self.roles):
            raise UserError(f"the training text has no {self.kind}", "give more text")

    def _number(self, units: Iterable[str]) -> dict[str, int]:
        """{entry: id}, the special tokens first."""
        return {unit: number for number, unit in enumerate([*self.roles.values(), *units])}


@dataclass(frozen=True)
class Characters(GivenUnits):
    """Every character is a token, white space too, and no letter is changed.

    The alphabet is the characters of the training text, the most frequent first, until there are `vocab_size` entries;
    of equals the lower code point comes first. Any other character is unknown.
    """

    spaces: ClassVar[bool] = True
    sized: ClassVar[bool] = False
    kind = "characters"

    def _smallest(self) -> int:
        return len(self.roles) + 3  # a blank, a new line and a letter

    def _train(self, texts: Texts) -> Backend:
        from tokenizers import Tokenizer as Backend
        from tokenizers import decoders, models

        counts: Counter[str] = Counter()
        for text in texts:
            counts.update(text)
        always = [BLANK, NEW_PARAGRAPH]
        ranked = [*always, *sorted(counts.keys() - set(always), key=lambda c: (-counts[c], c))]
        alphabet = ranked[: self.vocab_size - len(self.roles)] if counts.keys() - set(always) else []
        backend = Backend(models.BPE(self._number(alphabet), [], unk_token=self.roles["unk"]))  # without merges
        backend.decoder = decoders.Fuse()
        return backend


@dataclass(frozen=True)
class Bytes(GivenUnits):
    """Every byte of UTF-8 is a token: byte b has the id b + 5. Nothing is unknown and nothing depends on a text."""

    trained: ClassVar[bool] = False
    spaces: ClassVar[bool] = True
    sized: ClassVar[bool] = False
    kind = "bytes"

    def identity(self) -> dict[str, Any]:
        """As for all tokenizers, without the settings that have no effect."""
        return {
            key: value for key, value in super().identity().items() if key not in ("vocab_size", "train_characters")
        }

    def _smallest(self) -> int:
        return len(self.roles) + BYTES

    def _train(self, texts: Texts) -> Backend:
        from tokenizers import Tokenizer as Backend
        from tokenizers import decoders, models, pre_tokenizers

        shown = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        backend = Backend(models.BPE(self._number(_name_bytes()), []))  # without merges
        backend.pre_tokenizer = shown
        backend.decoder = decoders.ByteLevel()
        return backend


@dataclass(frozen=True)
class Words(GivenUnits):
    """The most frequent words of the training text are tokens, until there are `vocab_size` entries; of equals the
    first in alphabetic order comes first. Any other word is unknown.

    Words are those of BERT's tokenizer: white space bounds them, and a punctuation mark or a Han character is a word by
    itself. White space is not a token.

    Args:
        lowercase: letters are small and have no accents, as in BERT's uncased models.
    """

    lowercase: bool = False
    kind = "words"
    sees_more: ClassVar[str] = "raise tokenizer.vocab_size, or choose tokenizer=bpe"

    def _train(self, texts: Texts) -> Backend:
        from tokenizers import Tokenizer as Backend
        from tokenizers import models, normalizers, pre_tokenizers
        from tokenizers.trainers import WordLevelTrainer

        backend = Backend(models.WordLevel(unk_token=self.roles["unk"]))
        backend.normalizer = normalizers.BertNormalizer(lowercase=self.lowercase)
        backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        specials = list(self.roles.values())
        trainer = WordLevelTrainer(vocab_size=self.vocab_size, special_tokens=specials, show_progress=False)
        backend.train_from_iterator(texts, trainer)
        return backend


def _name_bytes() -> list[str]:
    """The characters that stand for the bytes 0 to 255, as GPT-2 writes them: visible ones for themselves."""
    visible = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = {byte: 256 + number for number, byte in enumerate(byte for byte in range(256) if byte not in visible)}
    return [chr(others.get(byte, byte)) for byte in range(256)]
