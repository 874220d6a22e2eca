"""Options and texts by how likely a language model finds them, without training on the task.

GPT-1 (Radford et al. 2018, section 5: zero-shot behaviors) and GPT-2 (Radford et al. 2019, section 3); the ways to
compare options are those of EleutherAI's harness (`lm_eval/api/task.py`). A masked language model is asked for one
token after the other (Salazar et al. 2020, arXiv 1910.14659, section 2).
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
    from paribus.models.spec import ModelSpec

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


class ScoredRow(NamedTuple):
    """One row of `ScoredRows` (L tokens). `target_L`: the text; `ids_L`: what the model reads of it."""

    ids_L: Array
    target_L: Array
    scored_L: Array
    example: int
    option: int
    bare: bool


@dataclass(frozen=True)
class ScoredRows(FramedRows):
    """Rows `[CLS] text option`, or `[CLS] option`. `label_N` is the number of the example."""

    target_T: Array  # int32: the text, where the model reads masks
    ahead: int  # places to the left of a token where its probability is read
    scored_T: Array  # bool: the token counts
    option_N: Array  # int64: its place
    bare_N: Array  # bool: the row lacks the text before the option

    def batch(self, row_B: Array, multiple: int) -> Arrays:
        """Also `slot_P`, the flat places that predict the tokens that count, `target_P`, and `asked_P`, their rows."""
        batch = super().batch(row_B, multiple)
        at_BL, real_BL = locate(self.start_N[row_B], self.length_N[row_B], multiple)
        place_P = np.flatnonzero(real_BL & self.scored_T[at_BL])
        target_P = self.target_T[at_BL].reshape(-1)[place_P].astype(np.int64)
        targets = {"slot_P": place_P - self.ahead, "target_P": target_P}
        return {**batch, **targets, "asked_P": place_P // real_BL.shape[1]}

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
    ahead: ClassVar[int] = 1  # a left-to-right model predicts a token from the one before it
    specials: ClassVar[int] = 1  # around a text: [CLS]

    def fit(self, model: ModelSpec, key: str) -> TaskType:
        """A model that sees both sides can compare options, but has no likelihood of a text."""
        if not self.classes or model.attention != "full":
            return self
        if unknown := sorted(set(self.metrics) & set(LIKELY)):
            cause = f"{key}.metrics: {', '.join(unknown)} needs a left-to-right model"
            raise UserError(cause, f"choose from {', '.join(CHOSEN)}")
        return MaskedScored(self.classes, self.metrics)

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
        counts = np.bincount([row.label for row in rows], minlength=max(1, len(self.classes)))
        return dict(zip(self.classes or ("text",), counts.tolist(), strict=True))

    def encode(
        self, examples: Sequence[ChoiceExample], tokenizer: Tokenizer, vocabulary: Vocabulary, settings: FineTuning
    ) -> ScoredRows:
        """Raises UserError for an option without a token that counts, and for one that does not fit behind its text."""
        room = settings.length - self.specials
        if room < 1 or (self.stride or 1) > room:
            cause = f"finetune.length={settings.length} leaves no room for windows {self.stride or 1} tokens apart"
            raise UserError(cause, "raise finetune.length")
        texts = tokenize([" ".join(filter(None, (row.text, row.question))) for row in examples], tokenizer)
        options = iter(tokenize([option for row in examples for option in row.options], tokenizer))
        rows: list[ScoredRow] = []
        for number, (row, text_T) in enumerate(zip(examples, texts, strict=True)):
            for place, option_T in zip(range(len(row.options)), options, strict=False):
                rows += self._cut(row, number, place, text_T, option_T, vocabulary, room)
                if "accuracy_unconditional" in self.metrics:
                    bare = self._cut(row, number, place, text_T[:0], option_T, vocabulary, room)
                    rows += [scored._replace(bare=True) for scored in bare]
        length_N = np.array([len(row.ids_L) for row in rows])
        ids_T = np.concatenate([row.ids_L for row in rows]).astype(np.int32)
        return ScoredRows(
            ids_T=ids_T,
            target_T=np.concatenate([row.target_L for row in rows]).astype(np.int32),
            ahead=self.ahead,
            part_T=np.zeros(len(ids_T), np.uint8),
            start_N=np.cumsum(length_N) - length_N,
            length_N=length_N,
            label_N=np.array([row.example for row in rows]),
            pad=vocabulary.pad,
            scored_T=np.concatenate([row.scored_L for row in rows]),
            option_N=np.array([row.option for row in rows]),
            bare_N=np.array([row.bare for row in rows]),
        )

    def _cut(
        self,
        row: ChoiceExample,
        number: int,
        place: int,
        text_T: Array,
        option_T: Array,
        vocabulary: Vocabulary,
        room: int,
    ) -> Iterator[ScoredRow]:
        """The row of an option, or the windows of a text alone."""
        ids_T = np.concatenate([text_T, option_T]).astype(np.int32)
        counts_T = ~np.isin(ids_T, vocabulary.specials) & (np.arange(len(ids_T)) >= len(text_T))
        if not counts_T.any():
            raise UserError(f"the option {row.options[place][:40]!r} has no known token", "leave the example out")
        if len(ids_T) > room and (self.classes or len(text_T)):
            size, length = len(ids_T) + self.specials, room + self.specials
            cause = f"the prompt {row.text[:40]!r} has {size} tokens with an option: finetune.length={length}"
            mend = f"set finetune.length={size} and model.positions to {size} or more, or leave the example out"
            raise UserError(cause, mend)
        for begin, first, end in plan_windows(len(ids_T), room, self.stride or max(1, room // 2)):
            scored_L = np.concatenate([[False], counts_T[begin:end] & (np.arange(begin, end) >= first)])
            ids_L = np.concatenate([[vocabulary.cls], ids_T[begin:end]])
            yield ScoredRow(ids_L, ids_L, scored_L, number, place, False)

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
        return [Totals(*(sum_X[begin:end] for sum_X in sums)) for begin, end in pairwise(first_N.tolist())]

    def score(self, predictions: Sequence[Any] | Array, examples: Sequence[ChoiceExample]) -> dict[str, float]:
        """Predictions are `Totals`."""
        pairs = list(zip(predictions, examples, strict=True))
        values: dict[str, float] = {}
        for name in self.metrics:
            if name in CHOSEN:
                right = [int(_compare(name, totals, row.options).argmax()) == row.label for totals, row in pairs]
                values[name] = float(np.mean(right))
            elif name == GREEDY:
                values[name] = float(np.mean([totals.wrong_K[row.label] == 0 for totals, row in pairs]))
            else:
                values[name] = _measure_likelihood(name, pairs)
        return values

    def predict_baselines(
        self, train: Sequence[ChoiceExample], validation: Sequence[ChoiceExample]
    ) -> Mapping[str, Any]:
        """The place that is right most often, and a linear model on the words; of texts alone none."""
        if not self.classes:
            return {}
        most = np.full(len(validation), np.bincount([row.label for row in train]).argmax())
        chosen = {"majority": most, "bag_of_words": choose_by_words(train, validation)}
        one_KK, zero_K = np.eye(len(self.classes)), np.zeros(len(self.classes))
        return {
            name: [Totals(one_KK[at], zero_K, zero_K + 1, 1 - one_KK[at]) for at in places]
            for name, places in chosen.items()
        }


@dataclass(frozen=True)
class MaskedScored(Scored):
    """The likeliest option by pseudo-log-likelihood: each token that counts is masked alone, in a row of its own, and
    the log-probabilities of all of them are summed. Rows are `[CLS] text option [SEP]`.
    """

    ahead: ClassVar[int] = 0
    specials: ClassVar[int] = 2

    def _cut(
        self,
        row: ChoiceExample,
        number: int,
        place: int,
        text_T: Array,
        option_T: Array,
        vocabulary: Vocabulary,
        room: int,
    ) -> Iterator[ScoredRow]:
        """A row for each token of an option that counts."""
        for whole in super()._cut(row, number, place, text_T, option_T, vocabulary, room):
            text_L = np.append(whole.ids_L, vocabulary.sep)
            for at in np.flatnonzero(whole.scored_L):
                masked_L, only_L = text_L.copy(), np.zeros(len(text_L), bool)
                masked_L[at], only_L[at] = vocabulary.mask, True
                yield whole._replace(ids_L=masked_L, target_L=text_L, scored_L=only_L)


def _compare(name: str, totals: Totals, options: Sequence[str]) -> Array:
    """[K]: the scores that the options are compared by."""
    score_K, bare_K, tokens_K, _ = totals
    if name == "accuracy":
        return score_K
    if name == "accuracy_unconditional":
        return score_K - bare_K
    if name == "accuracy_token":
        return score_K / tokens_K
    texts = [option.strip() for option in options]
    size_K: Array = np.array([len(text if name == "accuracy_character" else text.encode()) for text in texts])
    return score_K / size_K


def _measure_likelihood(name: str, pairs: Sequence[tuple[Totals, ChoiceExample]]) -> float:
    """How likely all right options are together."""
    total = sum(float(totals.score_K[row.label]) for totals, row in pairs)  # nats
    texts = [row.options[row.label] for _, row in pairs]
    if name == "bits_per_byte":
        return -total / math.log(2) / sum(len(text.encode()) for text in texts)
    if name == "word_perplexity":
        size: float = sum(len(text.split()) for text in texts)
    else:
        size = sum(float(totals.tokens_K[row.label]) for totals, row in pairs)
    return math.exp(min(700.0, -total / size))  # a hopeless model is very perplexed, not an overflow


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
