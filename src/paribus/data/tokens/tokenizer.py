"""One tokenizer with its special tokens by role and its word boundaries."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import accumulate, chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from paribus.core.errors import UserError
from paribus.core.files import write_json
from paribus.data.tokens.vocabulary import Vocabulary
from paribus.data.tokens.words import count_letters, find_word_starts

if TYPE_CHECKING:
    from tokenizers import Encoding
    from tokenizers import Tokenizer as Backend

ROLES = ("pad", "unk", "cls", "sep", "mask")
SENTINELS = ("sentinels", "first_sentinel")  # on disk if there are any
DELIMITERS = ("start", "delimiter", "extract")  # likewise
SPACES = "spaces"  # likewise
ENTRIES = "entries"  # of prepared data, never on disk
RECORD = "vocabulary.json"  # beside the files that transformers reads


class EncodedSentences(NamedTuple):
    """Sentences as one stream of tokens."""

    ids_T: NDArray[np.uint32]
    word_start_T: NDArray[np.uint8]  # 1 if the token starts a word
    length_S: NDArray[np.int64]  # tokens of each sentence; may be 0


class Tokenizer:
    """A `tokenizers` tokenizer that reads text as text: the name of a special token in it is not a special token."""

    def __init__(self, backend: Backend, vocabulary: Vocabulary, name: str) -> None:
        self.backend, self.vocabulary, self.name = backend, vocabulary, name
        backend.no_padding()
        backend.no_truncation()
        backend.encode_special_tokens = True

    def __reduce__(self) -> Any:  # a pickled backend forgets how it reads special tokens
        return Tokenizer, (self.backend, self.vocabulary, self.name)

    def encode(self, sentences: Sequence[str]) -> list[tuple[NDArray[np.uint32], NDArray[np.uint8]]]:
        """(ids, word_start) of each sentence, without special tokens."""
        if not sentences:
            return []
        batch = self.flat(sentences)
        edges = np.cumsum(batch.length_S)[:-1]
        return list(zip(np.split(batch.ids_T, edges), np.split(batch.word_start_T, edges), strict=True))

    def texts(self, rows: Sequence[Sequence[int]]) -> list[str]:
        """The text of each row of ids, with special tokens by name."""
        texts: list[str] = self.backend.decode_batch([list(row) for row in rows], skip_special_tokens=False)
        return texts

    def flat(self, sentences: Sequence[str]) -> EncodedSentences:
        """Many sentences at once, one after the other, without special tokens."""
        return self._batch(*self._encode(sentences))

    def find_starts(self, rows: Sequence[Sequence[int]]) -> list[NDArray[np.uint8]]:
        """uint8 [T] of each row of ids: 1 if the token starts a word of its text.

        As `encode` says of the text that the ids spell. A row that its text does not give back, such as one that begins
        within a word, is read by the characters that each token adds.
        """
        starts, texts = [], self.texts(rows)
        for row, text, (ids_T, start_T) in zip(rows, texts, self.encode(texts), strict=True):
            if list(row) != ids_T.tolist():
                parts = self.texts([row[:end] for end in range(1, len(row) + 1)])
                ends = list(accumulate((min(len(part), len(text)) for part in parts), max))
                start_T = find_word_starts([text], [list(zip([0, *ends], ends, strict=False))])
            starts.append(start_T)
        return starts

    def locate(self, sentences: Sequence[str]) -> tuple[EncodedSentences, NDArray[np.int64]]:
        """`flat`, and int64 [T, 2]: the characters of its sentence that each token covers (first, end)."""
        sentences, encodings = self._encode(sentences)
        offsets = [offset for encoding in encodings for offset in encoding.offsets]
        return self._batch(sentences, encodings), np.array(offsets, np.int64).reshape(-1, 2)

    def count_lost(self, sentences: Sequence[str]) -> tuple[int, int]:
        """(letters that the model does not see, letters): dropped by the normalizer, or part of an unknown token."""
        lost = total = 0
        for text, encoding in zip(*self._encode(sentences), strict=True):
            normalizer = self.backend.normalizer
            letters = count_letters(text)[0]
            seen = letters if normalizer is None else count_letters(normalizer.normalize_str(text))[0]
            unknown = [
                offset
                for token, offset in zip(encoding.ids, encoding.offsets, strict=True)
                if token == self.vocabulary.unk
            ]
            lost += max(0, letters - seen) + sum(count_letters(text[first:end])[0] for first, end in unknown)
            total += letters
        return lost, total

    def _encode(self, sentences: Sequence[str]) -> tuple[list[str], list[Encoding]]:
        read = [readable(sentence) for sentence in sentences]
        return read, self.backend.encode_batch(read, add_special_tokens=False)

    def _batch(self, sentences: Sequence[str], encodings: Sequence[Encoding]) -> EncodedSentences:
        rows = [encoding.ids for encoding in encodings]
        length_S = np.fromiter(map(len, rows), np.int64, len(rows))
        ids_T = np.fromiter(chain.from_iterable(rows), np.uint32, int(length_S.sum()))
        starts_T = find_word_starts(sentences, [encoding.offsets for encoding in encodings])
        return EncodedSentences(ids_T, starts_T, length_S)

    def save(self, folder: Path) -> None:
        """Write what `transformers.AutoTokenizer` loads; it frames a text as [CLS] text [SEP]."""
        names = {role: str(self.backend.id_to_token(getattr(self.vocabulary, role))) for role in ROLES}
        folder.mkdir(parents=True, exist_ok=True)
        frame(self.backend, names["cls"], names["sep"])
        self.backend.save(str(folder / "tokenizer.json"))
        for_transformers = {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "bos_token": names["cls"],
            "eos_token": names["sep"],
            "clean_up_tokenization_spaces": False,
            "model_max_length": 1 << 30,
            "model_input_names": ["input_ids", "token_type_ids", "attention_mask"],
            **{f"{role}_token": name for role, name in names.items()},
        }
        write_json(folder / "tokenizer_config.json", for_transformers)
        absent = {
            ENTRIES,
            *(() if self.vocabulary.sentinels else SENTINELS),
            *(() if self.vocabulary.extract >= 0 else DELIMITERS),
            *(() if self.vocabulary.spaces else (SPACES,)),
        }
        values = {key: value for key, value in asdict(self.vocabulary).items() if key not in absent}
        write_json(folder / RECORD, {"name": self.name, **values})

    @classmethod
    def load(cls, folder: Path) -> Tokenizer:
        """A saved tokenizer. Raises UserError for a folder without one."""
        from tokenizers import Tokenizer as Backend

        vocabulary, name = load_vocabulary(folder)
        return cls(Backend.from_file(str(folder / "tokenizer.json")), vocabulary, name)


def readable(text: str) -> str:
    """The text with U+FFFD for lone surrogates, which are not characters."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="replace").decode()
    return text


def load_vocabulary(folder: Path) -> tuple[Vocabulary, str]:
    """The special tokens and the name of a saved tokenizer, without loading it."""
    path = folder / RECORD
    if not path.is_file():
        raise UserError(
            f"{folder} holds no saved tokenizer", f"load it with tokenizer=pretrained tokenizer.name={folder}"
        )
    values = json.loads(path.read_text(encoding="utf-8"))
    name = values.pop("name")
    return Vocabulary(**{**values, "specials": tuple(values["specials"])}), name


def splits_as_bert(folder: Path) -> bool:
    """Whether the pre-tokenizer of a saved tokenizer is BERT's, whose words are those of `words`."""
    content = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    return bool((content.get("pre_tokenizer") or {}).get("type") == "BertPreTokenizer")


def frame(backend: Backend, cls: str, sep: str) -> None:
    """Let the backend add special tokens as the inputs here do: cls A sep, or cls A sep B sep."""
    from tokenizers.processors import TemplateProcessing

    ids = [(token, backend.token_to_id(token)) for token in dict.fromkeys((cls, sep))]
    pair = f"{cls}:0 $A:0 {sep}:0 $B:1 {sep}:1"
    backend.post_processor = TemplateProcessing(single=f"{cls}:0 $A:0 {sep}:0", pair=pair, special_tokens=ids)


def assemble(
    backend: Backend,
    roles: Mapping[str, str],
    sentinels: int,
    name: str,
    delimiters: bool = False,
    spaces: bool = False,
) -> Tokenizer:
    """Register the special tokens by role (missing ones get new ids), GPT-1's delimiters if they are asked for, then
    T5's sentinels on top of all ids, in descending order: `<extra_id_0>` has the highest id. `spaces`: of `Vocabulary`.
    """
    from tokenizers import AddedToken

    framing = [f"<{role}>" for role in DELIMITERS] if delimiters else []
    extra = [f"<extra_id_{number}>" for number in reversed(range(sentinels))]
    named = [*dict.fromkeys(roles.values()), *framing, *extra]
    backend.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in named])

    every = backend.get_vocab()
    first = every.get("<extra_id_0>", -1)
    # a vocabulary can have sentinels of its own: as many as follow each other downwards
    usable = next(k for k in count() if every.get(f"<extra_id_{k}>", -1) != first - k or first < k)
    special = {at for at, token in backend.get_added_tokens_decoder().items() if token.special}
    unused = {at for token, at in every.items() if token.startswith("[unused") and token.endswith("]")}
    ids: dict[str, Any] = {role: every[token] for role, token in roles.items()}
    ids |= {role: every.get(f"<{role}>", -1) for role in DELIMITERS}
    size, specials = max(every.values()) + 1, tuple(sorted(special | unused))
    vocabulary = Vocabulary(size=size, **ids, specials=specials, sentinels=usable, first_sentinel=first, spaces=spaces)
    return Tokenizer(backend, vocabulary, name)
