"""What no one says about a column is read off its name: whether it is a loss, a rate of errors, or a score."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum

from paribus.integrations.source import ForeignSource
from paribus.verdict.metrics import MEAN, metric

AT = "@"  # before a filter of lm-eval, or a step
_WORD = re.compile(r"[fF]1|[A-Z]?[a-z]+|[A-Z]+(?![a-z])")  # `val`, `MSE` and `Loss` of `val_MSELoss`


class Kind(Enum):
    """`LOSS`: without an upper end, such as a loss or a time; `RATE`: a share of errors; both are better if lower."""

    LOSS = "loss"
    RATE = "rate"
    SCORE = "score"


# A unit behind `per` tells nothing: `tokens per hour` is better if higher, `cost per hour` if lower.
# scikit-learn's `neg_log_loss` and the like, whose sign is turned, come before the losses that they end with
_KINDS = re.compile(
    r"\b(?:"
    r"(?P<rate>(?:acc|accuracy|f1|auc|bleu|rouge|score|performance|quality) drop|err|errs|errors?|[wct]er|eer|[em]ce"
    r"|fpr|fnr|false|failures?|(?:unknown|miss) rate|toxicity)"
    r"|(?P<score>neg (?:log loss|mean|median|root|max|brier).*|acc|accuracy|correct|f1|auc|auroc|precision|recall|bleu"
    r"|reciprocal rank|rank (?:correlation|corr|biased overlap)|spearman(?: rank)?|rouge|match|free|reduction"
    r"|improvement|gain|saved)"
    r"|(?P<loss>(?:val|valid|train|test|dev|eval)?loss(?:es)?|ppl|perplexity|nll|neg(?:ative)? log likelihood"
    r"|cross entropy|b?ce|xent|(?:squared?|absolute|percentage) (?:log )?error|r?mse|n?rmse|s?mape|mae|bits|bp[bcd]|kl"
    r"|brier|fid|lpips|distance|regret|cost|forgetting|latency|(?:run|wall)?time|duration"
    r"|(?<!per )(?:seconds|minutes|hours|days|energy|memory|joules)|(?<!per )(?:ms|kwh)(?= per|$)"
    r"|(?<!per )(?<!throughput )[gm]b$|rank|entropy)"
    r")\b"
)
_PERCENT = re.compile(r"(?<![0-9])(?<![0-9] )%")  # `error (%)`, but not `acc at 15% masked`
_PERCENTS = ("pct", "percent", "percentage")  # as the last word
_SHARES = ("acc", "accuracy", "f1", "auc", "auroc", "precision", "recall", "bleu", "rouge", "match")


def read_kind(column: str) -> Kind | None:
    """By the last word that tells: `word_error_rate` and `accuracy_loss` are better if lower, `error_free` is not."""
    last = _find_last_word(column)
    return None if last is None else Kind(last.lastgroup)


def is_share(column: str) -> bool:
    """Whether the name says that the column is a share of 1, or of 100 percent."""
    last = _find_last_word(column)
    return last is not None and last[0] in _SHARES


def says_percent(column: str) -> bool:
    """Whether the name says that its numbers are percents, as `error (%)` and `err_pct` do."""
    plain = column.partition(AT)[0]
    return _PERCENT.search(plain) is not None or split_words(plain)[-1:] in ([word] for word in _PERCENTS)


def _find_last_word(column: str) -> re.Match[str] | None:
    *_, last = (None, *_KINDS.finditer(" ".join(split_words(column))))
    return last


def split_words(column: str) -> list[str]:
    """The words of a name in small letters: `val`, `mse` and `loss` of `val_MSELoss`."""
    return [word.lower() for word in _WORD.findall(column)]


def list_names(column: str) -> tuple[str, ...]:
    """The names by which options may speak of a column: `sst2/acc@500`, `acc@500`, `sst2/acc` and `acc`."""
    plain = column.partition(AT)[0]
    return tuple(dict.fromkeys((column, metric(column), plain, metric(plain))))


def find_given(column: str, source: ForeignSource, lower: Sequence[str], higher: Sequence[str]) -> bool | None:
    """Whether the user or the source says that lower is better; None if neither says anything."""
    if column == MEAN:
        return False
    names = list_names(column)
    if any(name in (*lower, *higher) for name in names):
        return any(name in lower for name in names)
    said = [source.higher[name] for name in (column, column.partition(AT)[0]) if name in source.higher]
    return not said[0] if said else None


def is_lower_better(column: str, source: ForeignSource, lower: Sequence[str], higher: Sequence[str]) -> bool:
    """Which way is better, by what was said of the column or else by its name."""
    given = find_given(column, source, lower, higher)
    return read_kind(column) in (Kind.LOSS, Kind.RATE) if given is None else given
