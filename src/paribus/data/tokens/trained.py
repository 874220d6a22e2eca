"""Tokenizers trained on the corpus: the same text gives the same vocabulary on every machine.

All three cut text into the same words first (those of BERT: white space, punctuation, single Han characters), so that
they differ only in how a word is cut into pieces.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from paribus.core.errors import UserError
from paribus.core.settings import within
from paribus.data.tokens.tokenizer import Tokenizer, assemble, readable
from paribus.data.tokens.words import HAN_RANGES, SYMBOLS, count_letters

if TYPE_CHECKING:
    from tokenizers import Tokenizer as Backend

Texts = Sequence[str]
BYTES = 256
_ALONE = rf"\p{{P}}{re.escape(SYMBOLS)}{HAN_RANGES}"  # a word by itself
_BYTE_WORDS = rf" ?[^\s{_ALONE}]+| ?[{_ALONE}]|\s+(?!\S)|\s+"
_MARKS = rf"▁?[{_ALONE}]"
_ACCENTS = r"(?<=[\p{Latin}\p{Greek}]|[^\p{L}\p{M}])\p{Mn}+|^\p{Mn}+"  # all but those of other scripts' letters


@dataclass(frozen=True)
class Trained(ABC):
    """What the trained tokenizers share.

    vocab_size counts the special tokens but not the `sentinels` and GPT-1's `delimiters`, which lie on top of it.
    train_characters: about this much text is read, evenly spread over the training split.
    """

    vocab_size: int = field(metadata=within(1, 10**8))
    train_characters: int = 20_000_000
    sentinels: int = 0
    delimiters: bool = False

    trained: ClassVar[bool] = True
    spaces: ClassVar[bool] = False  # of `Vocabulary`
    sized: ClassVar[bool] = True  # whether `vocab_size` is what decides the size of its vocabulary
    sees_more: ClassVar[str] = "raise tokenizer.alphabet, or choose tokenizer=bpe"  # if letters are lost
    kind: ClassVar[str]
    semantics: ClassVar[int] = 1
    roles: ClassVar[Mapping[str, str]]  # in the order of their ids

    def __post_init__(self) -> None:
        smallest = self._smallest()
        if self.vocab_size < smallest:
            raise UserError(
                f"tokenizer.vocab_size={self.vocab_size} is too small for {self.kind}", f"use at least {smallest}"
            )
        if self.train_characters < 1:
            raise UserError(
                f"tokenizer.train_characters={self.train_characters} is out of range", "give a number above 0"
            )
        if self.sentinels < 0:
            raise UserError(f"tokenizer.sentinels={self.sentinels} is out of range", "give 0 or more")

    def identity(self) -> dict[str, Any]:
        """Everything that determines the vocabulary except the text; delimiters count only if there are any."""
        settings = {key: value for key, value in asdict(self).items() if key != "delimiters" or value}
        return {"kind": self.kind, "semantics": self.semantics, **settings}

    def build(self, texts: Iterable[str], folder: Path) -> Tokenizer:
        """Train on paragraphs and save to `folder`.

        Raises UserError if the text is too small for the vocabulary.
        """
        paragraphs = [readable(text) for text in texts]
        backend = self._train(paragraphs)
        self._check_size(paragraphs, backend)
        tokenizer = assemble(backend, self.roles, self.sentinels, self.kind, self.delimiters, self.spaces)
        tokenizer.save(folder)
        return tokenizer

    def _check_size(self, paragraphs: Texts, backend: Backend) -> None:
        """Raise UserError, with the size to type, if the text did not give as many entries as were asked for."""
        if backend.get_vocab_size() == self.vocab_size:
            return
        size = self._find_size(paragraphs, backend)
        cause = f"tokenizer.vocab_size={self.vocab_size} is larger than the text can give"
        if size < self._smallest():
            raise UserError(cause, "use more text")
        mend = f"use tokenizer.vocab_size={size} or less, or more text"
        raise UserError(cause, f"this training text gives {size}: {mend}{self._advise_alphabet(paragraphs, size)}")

    def _smallest(self) -> int:
        return len(self.roles) + 2

    def _find_size(self, texts: Texts, backend: Backend) -> int:
        """The size of a vocabulary that the text does give if asked for it, given the one that fell short.

        A smaller vocabulary keeps other characters, so that its size is known only after training.
        """
        size = self.vocab_size
        while (given := backend.get_vocab_size()) != size:
            size = given
            if size < self._smallest():
                break
            backend = replace(self, vocab_size=size)._train(texts)
        return size

    def _advise_alphabet(self, texts: Texts, size: int) -> str:
        """What else to type if a larger alphabet would give a larger vocabulary than `size`."""
        return ""

    @abstractmethod
    def _train(self, texts: Texts) -> Backend:
        """The trained model with its normalizer, pre-tokenizer and decoder."""


@dataclass(frozen=True)
class WithAlphabet(Trained):
    """What the tokenizers share whose pieces are made of characters.

    alphabet: how many characters are kept, the most frequent first; others are unknown. They are at most half of the
    vocabulary, unless the text cannot fill it otherwise, such as a Chinese text, whose words are single characters.
    """

    alphabet: int = 1000

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.alphabet < 1:
            raise UserError(f"tokenizer.alphabet={self.alphabet} is out of range", "give a number above 0")

    def _half(self) -> int:
        """The number of characters that are kept at first."""
        return min(self.alphabet, (self.vocab_size - len(self.roles)) // 2)

    @abstractmethod
    def _rank(self, texts: Texts) -> list[str]:
        """All characters of the text as the model sees it, white space aside; the most frequent first."""

    def _advise_alphabet(self, texts: Texts, size: int) -> str:
        characters = len(self._rank(texts))
        if characters <= self.alphabet:
            return ""
        larger = replace(self, alphabet=characters)
        most = larger._find_size(texts, larger._train(texts))
        if most == self.vocab_size:
            return f", or raise tokenizer.alphabet={characters}"
        if most > size:
            return f", or raise tokenizer.alphabet={characters} with tokenizer.vocab_size={most}"
        return ""


@dataclass(frozen=True)
class WordPiece(WithAlphabet):
    """BERT's tokenizer (arXiv 1810.04805): pieces that continue a word are marked, merged by frequency as in BPE.

    Args:
        lowercase: as BERT's uncased models: letters are small and have no accents. If the text has letters of other
            scripts with marks, only Latin and Greek letters lose theirs: BERT's rule would turn Hindi vowels into
            nothing, and й into и.
    """

    lowercase: bool = True

    kind = "wordpiece"
    roles = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}  # noqa: RUF012

    def _train(self, texts: Texts) -> Backend:
        specials = list(self.roles.values())
        keep_marks = self._keeps_marks(texts)
        ranked = self._rank(texts)[: self.alphabet]
        pieces = self._fit(texts, specials, ranked, 0, keep_marks)
        tails = {character: f"##{character}" for character in ranked if f"##{character}" in pieces}
        kept = ranked[: self._half()]
        while True:
            continuing = sorted(tails[character] for character in kept if character in tails)
            vocabulary = self._fit(texts, specials + continuing, kept, self.vocab_size, keep_marks)
            room, already = self.vocab_size - len(vocabulary), set(kept)
            further = []
            for character in ranked:
                entries = 2 if character in tails else 1
                if character not in already and entries <= room:
                    further.append(character)
                    room -= entries
            if not further:
                return self._empty(vocabulary, keep_marks)
            kept += further

    def _keeps_marks(self, texts: Texts) -> bool:
        return self.lowercase and any(count_letters(text)[1] for text in texts if not text.isascii())

    def _rank(self, texts: Texts) -> list[str]:
        return rank_characters(self._empty({}, self._keeps_marks(texts)), texts)

    def _empty(self, vocabulary: dict[str, int], keep_marks: bool) -> Backend:
        from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers
        from tokenizers import Tokenizer as Backend

        backend = Backend(models.WordPiece(vocabulary, unk_token=self.roles["unk"], max_input_chars_per_word=100))
        backend.normalizer = normalizers.BertNormalizer(lowercase=self.lowercase)
        if keep_marks:
            strip = normalizers.Replace(Regex(_ACCENTS), "")
            plain = normalizers.BertNormalizer(lowercase=True, strip_accents=False)
            backend.normalizer = normalizers.Sequence([normalizers.NFD(), strip, normalizers.NFC(), plain])
        backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        backend.decoder = decoders.WordPiece()
        return backend

    def _fit(
        self, texts: Texts, specials: list[str], characters: list[str], size: int, keep_marks: bool
    ) -> dict[str, int]:
        """Train with the continuing characters among `specials`: else their ids, and so all ties, come by chance."""
        from tokenizers.trainers import WordPieceTrainer

        backend = self._empty({}, keep_marks)
        trainer = WordPieceTrainer(
            vocab_size=size,
            special_tokens=specials,
            limit_alphabet=len(characters),
            initial_alphabet=characters,
            show_progress=False,
        )
        backend.train_from_iterator(texts, trainer)
        return dict(backend.get_vocab())


@dataclass(frozen=True)
class BPE(Trained):
    """GPT-2's and RoBERTa's byte-level BPE: no unknown text. A sentence is read as if a space preceded it."""

    semantics: ClassVar[int] = 2
    kind = "bpe"
    roles = {"cls": "<s>", "pad": "<pad>", "sep": "</s>", "unk": "<unk>", "mask": "<mask>"}  # noqa: RUF012

    def _smallest(self) -> int:
        return len(self.roles) + BYTES

    def _train(self, texts: Texts) -> Backend:
        from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers
        from tokenizers import Tokenizer as Backend
        from tokenizers.trainers import BpeTrainer

        backend = Backend(models.BPE())
        backend.normalizer = normalizers.Sequence([normalizers.Strip(), normalizers.Prepend(" ")])
        as_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        backend.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Split(Regex(_BYTE_WORDS), "isolated"), as_bytes]
        )
        backend.decoder = decoders.Sequence([decoders.ByteLevel(), decoders.Strip(" ", 1, 0)])
        trainer = BpeTrainer(
            vocab_size=self.vocab_size,
            special_tokens=list(self.roles.values()),
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )
        backend.train_from_iterator(texts, trainer)
        return backend


@dataclass(frozen=True)
class Unigram(WithAlphabet):
    """SentencePiece's unigram language model (arXiv 1804.10959), as in T5 and XLNet."""

    kind = "unigram"
    roles = {"pad": "<pad>", "sep": "</s>", "unk": "<unk>", "cls": "<s>", "mask": "<mask>"}  # noqa: RUF012

    def _train(self, texts: Texts) -> Backend:
        ranked = self._rank(texts)[: self.alphabet]
        kept = self._half()
        while True:
            backend = self._fit(texts, set(ranked[:kept]))
            missing = self.vocab_size - backend.get_vocab_size()
            if missing <= 0 or kept >= len(ranked):
                return backend
            kept += missing

    def _rank(self, texts: Texts) -> list[str]:
        return rank_characters(self._empty([]), texts)

    def _fit(self, texts: Texts, characters: set[str]) -> Backend:
        from tokenizers.trainers import UnigramTrainer

        backend = self._empty([])
        trainer = UnigramTrainer(
            vocab_size=self.vocab_size + max(64, self.vocab_size // 50),
            special_tokens=list(self.roles.values()),
            unk_token=self.roles["unk"],
            show_progress=False,
        )
        backend.train_from_iterator((_blank_others(characters, text) for text in texts), trainer)
        scored = json.loads(backend.to_str())["model"]["vocab"]
        return self._empty(round_scores(scored, list(self.roles.values()), self.vocab_size))

    def _empty(self, scored: list[tuple[str, float]]) -> Backend:
        from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers
        from tokenizers import Tokenizer as Backend

        unknown = list(self.roles).index("unk")
        backend = Backend(models.Unigram(scored, unknown, False) if scored else models.Unigram())
        backend.normalizer = normalizers.Sequence(
            [normalizers.NFKC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Strip()]
        )
        marks = pre_tokenizers.Split(Regex(_MARKS), "isolated")
        backend.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Metaspace(prepend_scheme="always"), marks])
        backend.decoder = decoders.Metaspace(prepend_scheme="always")
        return backend


def rank_characters(backend: Backend, texts: Texts) -> list[str]:
    """The characters of the normalized text, white space aside, the most frequent first; of equals the lower one."""
    assert backend.normalizer is not None
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(backend.normalizer.normalize_str(text))
    return sorted((character for character in counts if not character.isspace()), key=lambda c: (-counts[c], c))


def _blank_others(characters: set[str], text: str) -> str:
    """The text with a space for each character that is not among `characters`."""
    others = set(text) - characters
    return text.translate(dict.fromkeys(map(ord, others), " ")) if others else text


def round_scores(scored: Sequence[tuple[str, float]], specials: list[str], size: int) -> list[tuple[str, float]]:
    """The best `size` pieces with scores that are equal in every training.

    The trainer's sums run in a random order (errors near 1e-10) and it lowers the scores of rare characters in a random
    order too. Here scores are rounded to 0.001, rare characters share one score, and equals are in alphabetic order.
    """
    pieces = {piece: round(score, 3) for piece, score in scored if piece not in specials}
    lowest = min((score for piece, score in pieces.items() if len(piece) > 1), default=0.0)
    final = {p: round(lowest - 1.0, 3) if len(p) == 1 and score < lowest else score for p, score in pieces.items()}
    ranked = sorted(final, key=lambda piece: (len(piece) > 1, -final[piece], piece))[: size - len(specials)]
    ordered = sorted(ranked, key=lambda piece: (-final[piece], piece))
    return [(token, 0.0) for token in specials] + [(piece, final[piece]) for piece in ordered]
