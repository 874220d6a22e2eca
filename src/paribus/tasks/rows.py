"""Examples as rows of token ids, and the batches of a fine-tuning epoch. Numpy only."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from paribus.core.errors import UserError
from paribus.core.settings import FineTuning
from paribus.data.formats.pairs import count_kept
from paribus.data.sequences import Array, Arrays, concatenate_ranges
from paribus.tasks.examples import ChoiceExample, Example
from paribus.tasks.key_sentences import KINDS

if TYPE_CHECKING:
    from paribus.data.tokens.tokenizer import Tokenizer
    from paribus.data.tokens.vocabulary import Vocabulary

FULL = 510  # tokens of text in the paper's rows; of these, from the beginning:
HEADS = {"head": FULL, "head_tail": 128, "tail": 0, **dict.fromkeys(KINDS, FULL)}  # key sentences are cut before
FORMATS = ("bert", "gpt")
GPT = FORMATS[1]
FRAME = 2  # tokens around a single text
LEAST_PAIR = 5  # tokens of a row of two texts
POOL = 64  # batches that are sorted by length together


class TaskRows(ABC):
    """N rows of tokens with different lengths, as a task type encodes its examples.

    Attributes:
        length_N: int64, tokens of each row; rows of like length are batched together.
    """

    length_N: Array

    @property
    def plain(self) -> TaskRows:
        """The rows as the task type encodes them."""
        return self

    @abstractmethod
    def batch(self, row_B: Array, multiple: int) -> Arrays:
        """The arrays that the model and the head read for these rows, padded to a multiple of `multiple`
        tokens: `ids_BL`, `length_B` and others as needed; and the `counts` of the batch, by which losses are divided.
        """

    def drawn(self, seed: int, epoch: int) -> TaskRows:
        """The rows as a pass of training reads them, if what they show is drawn."""
        return self

    def split(self, row_B: Array) -> list[Array]:
        """The rows of a batch in parts that fit through the model at once."""
        return [row_B]


@dataclass(frozen=True)
class FramedRows(TaskRows):
    """Framed rows, one after the other (T tokens)."""

    ids_T: Array  # int32
    part_T: Array  # uint8: 0 through the first [SEP], 1 after it
    start_N: Array  # int64: where a row starts in T
    length_N: Array  # int64: special tokens included
    label_N: Array  # [N, ...]: int64 class numbers, or float32 values
    pad: int

    def batch(self, row_B: Array, multiple: int) -> Arrays:
        """Also `part_BL`, `label_B` and `row_B`."""
        length_B = self.length_N[row_B]
        at_BL, real_BL = locate(self.start_N[row_B], length_B, multiple)
        read = int(length_B.sum())
        return {
            "ids_BL": np.where(real_BL, self.ids_T[at_BL], self.pad).astype(np.int64),
            "length_B": length_B,
            "part_BL": np.where(real_BL, self.part_T[at_BL], 0).astype(np.int64),
            "label_B": self.label_N[row_B],
            "row_B": row_B.astype(np.int64),
            "counts": {"rows": len(row_B), "input_tokens": read, "padding": real_BL.size - read},
        }


@dataclass(frozen=True)
class GroupedRows(TaskRows):
    """N examples over W framed rows; the rows of an example follow each other. At most `most` rows go through the
    model at once, but the rows of an example stay together. With `in_order` each row remembers those before it.
    """

    rows: FramedRows  # its label_N is unused
    first_N: Array  # int64 [N + 1]: where an example's rows start
    label_N: Array
    most: int
    in_order: bool = False

    @cached_property
    def length_N(self) -> Array:  # type: ignore[override]  # a dataclass field in other rows
        """Int64 [N]: tokens of all rows of an example."""
        return np.add.reduceat(self.rows.length_N, self.first_N[:-1])

    def batch(self, row_B: Array, multiple: int) -> Arrays:
        """Rows [W, L] of B examples, `part_BL`, `label_B`, and `place_BK`, int64: the rows of each example, -1 behind
        its last. If rows are read in order also `window_W`, int64: which row of its example each of them is.
        """
        count_B = self.first_N[row_B + 1] - self.first_N[row_B]
        column_K = np.arange(count_B.max())
        real_BK = column_K < count_B[:, None]
        row_W = (self.first_N[row_B][:, None] + column_K)[real_BK]
        place_BK = np.full(real_BK.shape, -1, np.int64)
        place_BK[real_BK] = np.arange(len(row_W))
        batch = self.rows.batch(row_W, multiple)
        counts = {**batch["counts"], "rows": len(row_B)}
        ordered = {"window_W": np.nonzero(real_BK)[1]} if self.in_order else {}
        grouped = {"place_BK": place_BK, "label_B": self.label_N[row_B], "row_B": row_B, "counts": counts}
        return {**batch, **grouped, **ordered}

    def split(self, row_B: Array) -> list[Array]:
        """Parts of at most `most` rows, or of one example."""
        count_B = self.first_N[row_B + 1] - self.first_N[row_B]
        cuts, held = [0], 0
        for at, count in enumerate(count_B.tolist()):
            if held and held + count > self.most:
                cuts.append(at)
                held = 0
            held += count
        return [row_B[a:b] for a, b in pairwise([*cuts, len(row_B)])]


class Frame(NamedTuple):
    """The tokens around the texts of a row: before the first, between two, after the last; and those of padding.

    `parts`: whether the second text is another part of the row than the first.
    """

    first: int
    between: int
    last: int
    pad: int
    parts: bool = True


def frame_of(vocabulary: Vocabulary, name: str = "bert") -> Frame:
    """`bert`: `[CLS] text [SEP] pair [SEP]` (BERT, arXiv 1810.04805, section 3). `gpt`: `<start> text <delimiter> pair
    <extract>`, all of one part (GPT-1, Radford et al. 2018, section 3.3).

    Raises UserError for an unknown name, and for a vocabulary without these tokens.
    """
    if name not in FORMATS:
        raise UserError(f"finetune.format={name} is unknown", f"use {' or '.join(FORMATS)}")
    if name == GPT:
        if min(vocabulary.start, vocabulary.delimiter, vocabulary.extract) < 0:
            cause = "finetune.format=gpt, but the vocabulary has no <start>, <delimiter> and <extract>"
            raise UserError(cause, "set tokenizer.delimiters=true")
        return Frame(vocabulary.start, vocabulary.delimiter, vocabulary.extract, vocabulary.pad, parts=False)
    return Frame(vocabulary.cls, vocabulary.sep, vocabulary.sep, vocabulary.pad)


def encode(
    examples: Sequence[Example],
    tokenizer: Tokenizer,
    vocabulary: Vocabulary,
    length: int,
    truncation: str = "head",
    form: str = "bert",
) -> FramedRows:
    """Rows `[CLS] text [SEP]` or `[CLS] text [SEP] pair [SEP]` of at most `length` tokens, or of another form.

    A text that is too long is cut, and of a pair the longer text, token by token. The row keeps the text's beginning
    (`head`), its end (`tail`), or 128 parts of 510 from the beginning and the rest from the end (`head_tail`; Sun et
    al., arXiv 1905.05583, section 5.3.1). Of texts that `keep_sentences` has shortened it keeps the beginning.

    Raises:
        UserError: for an unknown `truncation`, if `length` leaves no room for text, or if only some examples are pairs.
    """
    head = head_tokens(truncation)
    pairs = [row.pair for row in examples if row.pair is not None]
    if pairs and len(pairs) < len(examples):
        raise UserError(f"{len(pairs)} of {len(examples)} examples are pairs", "give all or none of them a second text")
    if length < (LEAST_PAIR if pairs else 3):
        raise no_room(length)
    sides = [tokenize([row.text for row in examples], tokenizer)]
    if pairs:
        sides.append(tokenize(pairs, tokenizer))
    return frame(sides, _labels(examples), vocabulary, form, length, head)


def encode_both_orders(
    examples: Sequence[Example], tokenizer: Tokenizer, vocabulary: Vocabulary, settings: FineTuning
) -> GroupedRows:
    """Two rows for each pair, one for each order of its texts (GPT-1, section 3.3: similarity)."""
    turned = [each for row in examples for each in (row, Example(str(row.pair), row.text, row.label))]
    rows = encode(turned, tokenizer, vocabulary, settings.length, settings.truncation, settings.format)
    return GroupedRows(rows, 2 * np.arange(len(examples) + 1), rows.label_N[::2], 2 * settings.batch_size)


def encode_apart(
    examples: Sequence[Example], tokenizer: Tokenizer, vocabulary: Vocabulary, length: int, most: int
) -> GroupedRows:
    """The two texts of each pair in separate rows, each cut to `length` tokens."""
    texts = tokenize([text for row in examples for text in (row.text, row.pair or "")], tokenizer)
    rows = frame([[ids[: length - 2] for ids in texts]], np.zeros(len(texts), np.int64), vocabulary)
    return GroupedRows(rows, 2 * np.arange(len(examples) + 1), _labels(examples), most)


def encode_windows(
    examples: Sequence[Example],
    tokenizer: Tokenizer,
    vocabulary: Vocabulary,
    length: int,
    stride: int | None,
    most_windows: int,
    most: int,
) -> GroupedRows:
    """Each text in windows of `length` tokens, special tokens included, that begin `stride` tokens apart (None: half a
    window). If a text needs more than `most_windows`, the first ones and the last one are read.

    Raises UserError if `length` leaves no room for text.
    """
    room = length - FRAME
    if room < 1:
        raise no_room(length)
    texts = tokenize([row.text for row in examples], tokenizer)
    step = max(1, room // 2) if stride is None else stride
    starts = [window_starts(len(ids), room, step, most_windows) for ids in texts]
    windows = [ids[at : at + room] for ids, begins in zip(texts, starts, strict=True) for at in begins]
    rows = frame([windows], np.zeros(len(windows), np.int64), vocabulary)
    return GroupedRows(rows, np.cumsum([0, *map(len, starts)]), _labels(examples), most)


def encode_stretches(
    examples: Sequence[Example],
    tokenizer: Tokenizer,
    vocabulary: Vocabulary,
    length: int,
    most_windows: int,
    most: int,
) -> GroupedRows:
    """Each text in as few windows of at most `length` tokens as hold it, to be read in order. They do not overlap and
    are equally long, so that the last one, whose state is the answer's, is not short. If a text needs more than
    `most_windows`, the first ones and the last one are read.

    Raises UserError if `length` leaves no room for text.
    """
    room = length - FRAME
    if room < 1:
        raise no_room(length)
    stretches: list[list[Array]] = []
    for ids in tokenize([row.text for row in examples], tokenizer):
        if len(ids) > most_windows * room:
            ids = np.concatenate([ids[: (most_windows - 1) * room], ids[-room:]])
        stretches.append(np.array_split(ids, max(1, -(-len(ids) // room))))
    windows = [ids for text in stretches for ids in text]
    rows = frame([windows], np.zeros(len(windows), np.int64), vocabulary)
    return GroupedRows(rows, np.cumsum([0, *map(len, stretches)]), _labels(examples), most, in_order=True)


def window_starts(length: int, room: int, stride: int, most: int) -> list[int]:
    """Where the windows of a text of `length` tokens begin; the last window ends with the text."""
    last = max(0, length - room)
    starts = [*range(0, last, stride), last]
    return starts if len(starts) <= most else [*starts[: most - 1], last]


def encode_options(
    examples: Sequence[ChoiceExample], tokenizer: Tokenizer, vocabulary: Vocabulary, settings: FineTuning
) -> GroupedRows:
    """A row for each option, cut as pairs are: `[CLS] text [SEP] question option [SEP]`, with the option for `_` in the
    question (RoBERTa, `preprocess_RACE.py`), or `<start> text question <delimiter> option <extract>` (GPT-1).

    Raises UserError if the length leaves no room for text.
    """
    if settings.length < LEAST_PAIR:
        raise no_room(settings.length)
    counts = [len(row.options) for row in examples]
    gpt = settings.format == GPT
    texts = [f"{row.text} {row.question}" if gpt and row.question else row.text for row in examples]
    answers = [fill_question(None if gpt else row.question, option) for row in examples for option in row.options]
    contexts = [ids for ids, count in zip(tokenize(texts, tokenizer), counts, strict=True) for _ in range(count)]
    rows = frame(
        [contexts, tokenize(answers, tokenizer)],
        np.zeros(len(contexts), np.int64),
        vocabulary,
        settings.format,
        settings.length,
        head_tokens(settings.truncation),
    )
    return GroupedRows(rows, np.cumsum([0, *counts]), _labels(examples), settings.batch_size * max(counts))


def fill_question(question: str | None, option: str) -> str:
    """An option in place of the gap in its question, or after the question."""
    if question is None:
        return option
    return question.replace("_", option) if "_" in question else f"{question} {option}"


def _labels(examples: Sequence[Example | ChoiceExample]) -> Array:
    """[N]: int64 class numbers, or float32 values if any label is a float."""
    label_N = np.array([row.label for row in examples])
    return label_N.astype(np.float32 if label_N.dtype.kind == "f" else np.int64)


def frame(
    sides: Sequence[list[Array]],
    label_N: Array,
    vocabulary: Vocabulary,
    form: str = "bert",
    length: int | None = None,
    head: int = FULL,
) -> FramedRows:
    """Rows of one or two texts, given as token ids, in a form of `frame_of`.

    With `length`, rows are cut to that many tokens, special tokens included, and keep `head` of `FULL` parts of a long
    text from its beginning and the rest from its end (see `encode`).
    """
    around = frame_of(vocabulary, form)
    kept = [count_tokens(side) for side in sides]
    if length is not None:
        kept = truncate(*kept, room=length - 1 - len(sides))
    length_N = np.sum(kept, axis=0) + 1 + len(sides)
    end_N = np.cumsum(length_N)
    start_N = end_N - length_N
    ids_T = np.full(end_N[-1], around.between, np.int32)
    part_T = np.zeros(end_N[-1], np.uint8)
    ids_T[start_N], ids_T[end_N - 1] = around.first, around.last
    at_N = start_N + 1
    for part, (side, kept_N) in enumerate(zip(sides, kept, strict=True)):
        source_T = kept_places(count_tokens(side), kept_N, head)
        ids_T[concatenate_ranges(at_N, kept_N)] = np.concatenate(side)[source_T]
        part_T[concatenate_ranges(at_N, kept_N + 1)] = part * around.parts  # a text and the token that ends it
        at_N = at_N + kept_N + 1
    return FramedRows(ids_T, part_T, start_N, length_N, label_N, around.pad)


def truncate(*length_KN: Array, room: int | Array) -> list[Array]:
    """Lengths of K texts after cutting to `room` tokens, one for all rows or one for each: tokens are dropped one by
    one from the longest text, and of two from the second on a tie.
    """
    if len(length_KN) == 1:
        return [np.minimum(length_KN[0], room)]
    if len(length_KN) == 2:
        return list(count_kept(*length_KN, room))
    kept_KN = np.stack(length_KN)
    order_KN, left_N = kept_KN.argsort(0, kind="stable"), np.zeros_like(kept_KN[0]) + room
    for place, at_N in enumerate(order_KN):  # the shortest first: what it leaves is for the longer ones
        kept_N = np.minimum(np.take_along_axis(kept_KN, at_N[None], 0)[0], left_N // (len(kept_KN) - place))
        np.put_along_axis(kept_KN, at_N[None], kept_N[None], 0)
        left_N = left_N - kept_N
    return list(kept_KN)


def kept_places(length_N: Array, kept_N: Array, head: int) -> Array:
    """Where the kept tokens are, for rows that follow each other; `head` of `FULL` parts are the first of a row."""
    end_N = np.cumsum(length_N)
    head_N = np.where(kept_N < length_N, kept_N * head // FULL, kept_N)
    tail_N = kept_N - head_N
    edges = np.stack([end_N - length_N, end_N - tail_N], axis=1), np.stack([head_N, tail_N], axis=1)
    return concatenate_ranges(*(edge.ravel() for edge in edges))


def head_tokens(truncation: str) -> int:
    """How many of `FULL` tokens of a long text come from its beginning. Raises UserError for an unknown name."""
    if truncation not in HEADS:
        raise UserError(f"finetune.truncation={truncation} is unknown", f"use {', '.join(HEADS)}")
    return HEADS[truncation]


def no_room(length: int) -> UserError:
    """The error for rows that are too short to hold any text."""
    return UserError(f"finetune.length={length} leaves no room for text", "raise finetune.length")


def tokenize(texts: Sequence[str], tokenizer: Tokenizer) -> list[Array]:
    """The ids of each text, without special tokens."""
    return [ids for ids, _ in tokenizer.encode(list(texts))]


def count_tokens(rows: Sequence[Array]) -> Array:
    """Int64: tokens of each row."""
    return np.fromiter(map(len, rows), np.int64, len(rows))


def locate(start_B: Array, length_B: Array, multiple: int) -> tuple[Array, Array]:
    """(int64 [B, L], where each token of a row is; bool [B, L], False at padding); L is a multiple of `multiple`."""
    column_L = np.arange(-(-int(length_B.max()) // multiple) * multiple)
    real_BL = column_L < length_B[:, None]
    return np.where(real_BL, start_B[:, None] + column_L, 0), real_BL


def order(length_N: Array, batch_size: int, seed: int, epoch: int, shuffle: bool) -> list[Array]:
    """The rows of each batch of an epoch, rows of like length together; a pure function of its arguments.

    Shuffled rows are sorted by length in pools of `POOL` batches, then the batches are shuffled. Unshuffled, all rows
    are sorted by length. Only one batch may hold fewer than `batch_size` rows.
    """
    starts = range(batch_size, len(length_N), batch_size)
    if not shuffle:
        return np.split(np.argsort(length_N, kind="stable"), starts)
    random = np.random.Philox(key=np.array([seed, epoch], np.uint64))
    row_N = np.argsort(random.random_raw(len(length_N)), kind="stable")
    pool_N = np.arange(len(length_N)) // (POOL * batch_size)
    batches = np.split(row_N[np.lexsort((length_N[row_N], pool_N))], starts)
    return [batches[i] for i in np.argsort(random.random_raw(len(batches)), kind="stable")]
