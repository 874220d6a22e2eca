"""Options and texts by how likely a left-to-right language model finds them, without training on the task.

GPT-1 (Radford et al. 2018, section 5: zero-shot behaviors) and GPT-2 (Radford et al. 2019, section 3); the ways to
compare options are those of EleutherAI's harness (`lm_eval/api/task.py`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from paribus.core.errors import UserError
from paribus.core.settings import FineTuning
from paribus.tasks.baselines import choose_by_words
from paribus.tasks.examples import ChoiceExample
from paribus.tasks.rows import FramedRows, TaskRows, locate, tokenize
from paribus.tasks.types.base import LOSSES, Pooler, TaskType

if TYPE_CHECKING:
    from paribus.data.sequences import Array, Arrays
    from paribus.data.tokens.tokenizer import Tokenizer
    from paribus.data.tokens.vocabulary import Vocabulary
    from paribus.models.ensemble import Ensemble
    from paribus.models.heads.head import Head
    from paribus.models.network import Batch, Network

CHOSEN = ("accuracy", "accuracy_token", "accuracy_character", "accuracy_byte", "accuracy_unconditional")
LIKELY = ("perplexity", "word_perplexity", "bits_per_byte")
GREEDY = "exact"
MOST = 2048  # tokens that are scored at once


class Totals(NamedTuple):
    """Of the K options of an example: log-probability in nats, the same without the text before it, tokens, and tokens
    that are not the likeliest in their places.
    """

    score_K: Array
    bare_K: Array
    tokens_K: Array
    wrong_K: Array


@dataclass(frozen=True)
class ScoredRows(FramedRows):
    """Rows `[CLS] text option`, or `[CLS] option`. `label_N` is the number of the example."""

    scored_T: Array  # bool: the token counts
    option_N: Array  # int64: its place
    bare_N: Array  # bool: the row lacks the text before the option

    def batch(self, row_B: Array, multiple: int) -> Arrays:
        """Also `slot_P`, the flat places before the tokens that count, `target_P`, and `asked_P`, their rows."""
        found = super().batch(row_B, multiple)
        at_BL, real_BL = locate(self.start_N[row_B], self.length_N[row_B], multiple)
        place_P = np.flatnonzero(real_BL & self.scored_T[at_BL])
        targets = {"slot_P": place_P - 1, "target_P": found["ids_BL"].reshape(-1)[place_P]}
        return {**found, **targets, "asked_P": place_P // real_BL.shape[1]}

    def split(self, row_B: Array) -> list[Array]:
        """Parts of at most `MOST` tokens, or of one row."""
        part_B = np.cumsum(self.length_N[row_B]) // MOST
        return np.split(row_B, np.flatnonzero(np.diff(part_B)) + 1)

    @property
    def tokens_N(self) -> Array:
        """Int64: tokens of each row that count."""
        return np.add.reduceat(self.scored_T.astype(np.int64), self.start_N)


@dataclass(frozen=True)
class Scored(TaskType):
    """The likeliest option after a text, and how likely the right one is; a text alone is its own only option.

    `accuracy` compares log-probabilities, the others these by token (GPT-3), character or byte of the option, or minus
    its log-probability without the text. `perplexity` is per token of all right options together, `word_perplexity` per
    word between blanks, `bits_per_byte` per byte of UTF-8. `exact` is the share of right options whose every token is
    the likeliest in its place. Special tokens, unknown words among them, do not count.

    A text alone that is longer than `finetune.length` is read in windows, each behind [CLS], that begin
    `stride` tokens apart (None: half a window), and each of its tokens counts once, in the first window that has it. An
    option and the text before it must fit.

    Args:
        classes: names of the places of the options; none if there are texts alone.
    """

    classes: tuple[str, ...]
    metrics: tuple[str, ...] = CHOSEN
    stride: int | None = None
    known_metrics: ClassVar[tuple[str, ...]] = (*CHOSEN, *LIKELY, GREEDY)
    example_class: ClassVar[type] = ChoiceExample
    trained: ClassVar[bool] = False
    speaks: ClassVar[bool] = True

    def check(self, key: str) -> None:
        super().check(key)
        if set(self.metrics) & set(CHOSEN):
            self.check_classes(key)
        if self.stride is not None and (self.stride < 1 or self.classes):
            raise UserError(
                f"{key}.stride={self.stride} is out of range",
                "give a number of tokens, or null for a task with options",
            )

    def find_unread(self, settings: FineTuning) -> list[str]:
        """Nothing is trained, and the head is that of pre-training."""
        return [*super().find_unread(settings), "truncation", "format", "head", "head_lr", *LOSSES]

    def check_examples(self, rows: Sequence[ChoiceExample], key: str) -> None:
        """Nothing is learned from them."""

    def count_labels(self, rows: Sequence[ChoiceExample]) -> dict[str, int]:
        """By the place of the right option; texts alone have one."""
        found = np.bincount([row.label for row in rows], minlength=max(1, len(self.classes)))
        return dict(zip(self.classes or ("text",), found.tolist(), strict=True))

    def encode(
        self, examples: Sequence[ChoiceExample], tokenizer: Tokenizer, vocabulary: Vocabulary, settings: FineTuning
    ) -> ScoredRows:
        """Raises UserError for an option without a token that counts, and for one that does not fit behind its text."""
        room = settings.length - 1
        if room < 1 or (self.stride or 1) > room:
            cause = f"finetune.length={settings.length} leaves no room for windows {self.stride or 1} tokens apart"
            raise UserError(cause, "raise finetune.length")
        texts = tokenize([" ".join(filter(None, (row.text, row.question))) for row in examples], tokenizer)
        options = iter(tokenize([option for row in examples for option in row.options], tokenizer))
        found = _RowList(vocabulary, room, self.stride or max(1, room // 2), [], [], [], [], [])
        bare = "accuracy_unconditional" in self.metrics
        for number, (row, text) in enumerate(zip(examples, texts, strict=True)):
            for place, option in zip(range(len(row.options)), options, strict=False):
                found.add(number, place, row, text, option, windowed=not (self.classes or len(text)))
                if bare:
                    found.add(number, place, row, text[:0], option, bare=True)
        return found.rows()

    def make_head(self, settings: FineTuning, model: Network, seed: int, pooler: Pooler | None = None) -> Head:
        """The head on tokens; `pooler`: its weights after pre-training."""
        from paribus.models.heads.vocabulary import MaskedLMHead, start_head

        return start_head(MaskedLMHead(model), model, seed, pooler)

    def infer(self, model: Network | Ensemble, head: Head | Ensemble, batch: Batch) -> Array:
        """[B, 2]: of the tokens of each row that count, the log-probability, and how many are not the likeliest."""
        import torch
        from torch.nn.functional import cross_entropy

        from paribus.models.heads.head import name_places

        logits_PV = head.logits(model(name_places([head], batch)), batch).float()
        loss_P = cross_entropy(logits_PV, batch["target_P"], reduction="none").double()
        found_P2 = torch.stack([-loss_P, (logits_PV.argmax(dim=-1) != batch["target_P"]).double()], dim=1)
        total_B2: Array = (
            loss_P.new_zeros(len(batch["length_B"]), 2).index_add(0, batch["asked_P"], found_P2).cpu().numpy()
        )
        return total_B2

    def predict(self, outputs_N: Sequence[Any], rows: TaskRows, examples: Sequence[ChoiceExample]) -> list[Totals]:
        """What each example's options come to."""
        assert isinstance(rows, ScoredRows)
        first_N = np.cumsum([0, *(len(row.options) for row in examples)])
        at_N, (score_N, wrong_N) = first_N[rows.label_N] + rows.option_N, np.asarray(outputs_N).T
        full_N = ~rows.bare_N
        kinds = (score_N * full_N, score_N * rows.bare_N, rows.tokens_N * full_N, wrong_N * full_N)
        sums = [np.bincount(at_N, weights, minlength=first_N[-1]) for weights in kinds]
        return [Totals(*(found[begin:end] for found in sums)) for begin, end in pairwise(first_N.tolist())]

    def score(self, predictions: Sequence[Any] | Array, examples: Sequence[ChoiceExample]) -> dict[str, float]:
        """Predictions are `Totals`."""
        pairs = list(zip(predictions, examples, strict=True))
        found: dict[str, float] = {}
        for name in self.metrics:
            if name in CHOSEN:
                right = [int(_compare(name, totals, row.options).argmax()) == row.label for totals, row in pairs]
                found[name] = float(np.mean(right))
            elif name == GREEDY:
                found[name] = float(np.mean([totals.wrong_K[row.label] == 0 for totals, row in pairs]))
            else:
                total = sum(float(totals.score_K[row.label]) for totals, row in pairs)
                found[name] = _measure(name, total, pairs)
        return found

    def predict_baselines(
        self, train: Sequence[ChoiceExample], validation: Sequence[ChoiceExample]
    ) -> Mapping[str, Any]:
        """The place that is right most often, and a linear model on the words; of texts alone none."""
        if not self.classes:
            return {}
        most = np.full(len(validation), np.bincount([row.label for row in train]).argmax())
        named = {"majority": most, "bag_of_words": choose_by_words(train, validation)}
        kinds = np.eye(len(self.classes))
        plain = np.zeros(len(self.classes))
        return {
            name: [Totals(kinds[at], plain, plain + 1, 1 - kinds[at]) for at in found] for name, found in named.items()
        }


def _compare(name: str, totals: Totals, options: Sequence[str]) -> Array:
    """[K]: the scores that the options are compared by."""
    score_K, bare_K, tokens_K, _ = totals
    if name == "accuracy":
        return score_K
    if name == "accuracy_unconditional":
        return score_K - bare_K
    if name == "accuracy_token":
        return score_K / tokens_K
    read = [option.strip() for option in options]
    size_K: Array = np.array([len(text if name == "accuracy_character" else text.encode()) for text in read])
    return score_K / size_K


def _measure(name: str, total: float, pairs: Sequence[tuple[Totals, ChoiceExample]]) -> float:
    """A measure of how likely the right options are, given the sum of their log-probabilities in nats."""
    texts = [row.options[row.label] for _, row in pairs]
    if name == "bits_per_byte":
        return -total / math.log(2) / sum(len(text.encode()) for text in texts)
    if name == "word_perplexity":
        return math.exp(min(700.0, -total / sum(len(text.split()) for text in texts)))
    return math.exp(min(700.0, -total / sum(float(totals.tokens_K[row.label]) for totals, row in pairs)))


def plan_windows(tokens: int, room: int, stride: int) -> Iterator[tuple[int, int, int]]:
    """(begin, the first token that counts, end) of windows of `room` tokens that begin `stride` tokens apart, so that
    each token counts once.
    """
    end = 0
    for begin in range(0, max(1, tokens), stride):
        done, end = end, min(begin + room, tokens)
        yield begin, done, end
        if end == tokens:
            return


@dataclass(frozen=True)
class _RowList:
    """The rows of all examples, collected one by one."""

    vocabulary: Vocabulary
    room: int
    stride: int
    ids: list[Array]
    scored: list[Array]
    examples: list[int]
    options: list[int]
    bare_rows: list[bool]

    def add(
        self,
        number: int,
        place: int,
        row: ChoiceExample,
        text: Array,
        option: Array,
        bare: bool = False,
        windowed: bool = False,
    ) -> None:
        """Append the row of an option, or the windows of a text."""
        ids_T = np.concatenate([text, option]).astype(np.int32)
        counts_T = ~np.isin(ids_T, self.vocabulary.specials) & (np.arange(len(ids_T)) >= len(text))
        if not counts_T.any():
            raise UserError(f"the option {row.options[place][:40]!r} has no known token", "leave the example out")
        if len(ids_T) > self.room and not windowed:
            own = len(ids_T) + 1
            cause = f"the prompt {row.text[:40]!r} has {own} tokens with an option: finetune.length={self.room + 1}"
            mend = f"set finetune.length={own} and model.positions to {own} or more, or leave the example out"
            raise UserError(cause, mend)
        for begin, first, end in plan_windows(len(ids_T), self.room, self.stride):
            self.ids.append(np.concatenate([[self.vocabulary.cls], ids_T[begin:end]]))
            self.scored.append(np.concatenate([[False], counts_T[begin:end] & (np.arange(begin, end) >= first)]))
            self.examples.append(number)
            self.options.append(place)
            self.bare_rows.append(bare)

    def rows(self) -> ScoredRows:
        length_N = np.array([len(ids) for ids in self.ids])
        ids_T = np.concatenate(self.ids).astype(np.int32)
        return ScoredRows(
            ids_T,
            np.zeros(len(ids_T), np.uint8),
            np.cumsum(length_N) - length_N,
            length_N,
            np.array(self.examples),
            self.vocabulary.pad,
            np.concatenate(self.scored),
            np.array(self.options),
            np.array(self.bare_rows),
        )
