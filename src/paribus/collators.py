"""Masking and denoising collators for the `transformers` Trainer and for a plain DataLoader.

    collator = paribus.collators.mask_spans(tokenizer, rate=0.15, seed=0)
    trainer = Trainer(model, args, train_dataset=dataset, data_collator=collator, callbacks=[collator.follow()])

Each draws its masks as a pure function of (seed, epoch, example), with the same bits as the command line. Words are
what the tokenizer reports, so that WordPiece, byte-level BPE and Unigram tokenizers work alike. `masks` says when they
are drawn again: "dynamic" (in every epoch), "static" (never) or a number of masks in turn. In a loop of your own, call
`collator.set_epoch(epoch)` before each pass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from paribus.corruption.collators.features import (
    FeatureCollator,
    InPlaceCollator,
    Redrawn,
    TextToTextCollator,
    make_schedule,
)
from paribus.corruption.corruption import Corruption
from paribus.corruption.masking.geometric_span import GeometricSpan
from paribus.corruption.masking.infilling import Infilling
from paribus.corruption.masking.ngram import NGram
from paribus.corruption.masking.pattern import NoisePattern
from paribus.corruption.masking.random_spans import RandomSpans
from paribus.corruption.masking.single_tokens import Bernoulli
from paribus.corruption.masking.whole_word import WholeWord
from paribus.corruption.views.replace import Replace
from paribus.corruption.views.sentinels import SharedSentinel, UniqueSentinel
from paribus.corruption.views.tokens import Full

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

__all__ = [
    "FeatureCollator",
    "InPlaceCollator",
    "TextToTextCollator",
    "corrupt_spans",
    "infill_text",
    "mask_in_place",
    "mask_ngrams",
    "mask_spans",
    "mask_tokens",
    "mask_whole_words",
]
BERT = Replace()  # 80% masked, 10% random, 10% kept, token by token


def mask_tokens(
    tokenizer: PreTrainedTokenizerFast,
    rate: float = 0.15,
    *,
    seed: int = 0,
    masks: Redrawn = "dynamic",
    view: Replace = BERT,
) -> InPlaceCollator:
    """Single tokens, the same share of every row; `masking=bernoulli`.   BERT (arXiv 1810.04805), section 3.1"""
    return mask_in_place(tokenizer, Bernoulli(rate, schedule=make_schedule(masks)), view, seed=seed)


def mask_whole_words(
    tokenizer: PreTrainedTokenizerFast,
    rate: float = 0.15,
    *,
    seed: int = 0,
    masks: Redrawn = "dynamic",
    view: Replace = BERT,
) -> InPlaceCollator:
    """Whole words; `masking=whole_word`.   BERT's code (--do_whole_word_mask)"""
    return mask_in_place(tokenizer, WholeWord(rate, schedule=make_schedule(masks)), view, seed=seed)


def mask_spans(
    tokenizer: PreTrainedTokenizerFast,
    rate: float = 0.15,
    mean_length: float = 5.0,
    max_length: int = 10,
    *,
    seed: int = 0,
    masks: Redrawn = "dynamic",
    view: Replace = BERT,
) -> InPlaceCollator:
    """Spans of whole words of geometric length; `masking=geometric_span`.   SpanBERT (arXiv 1907.10529), section 3.1

    With `view=Replace(unit="span")` a span is masked, replaced or kept as a whole, as in the paper.
    """
    masking = GeometricSpan(rate, mean_length, max_length, schedule=make_schedule(masks))
    return mask_in_place(tokenizer, masking, view, seed=seed)


def mask_ngrams(
    tokenizer: PreTrainedTokenizerFast,
    rate: float = 0.15,
    max_length: int = 3,
    *,
    seed: int = 0,
    masks: Redrawn = "dynamic",
    view: Replace = BERT,
) -> InPlaceCollator:
    """n-grams of whole words, n with probability ~ 1/n; `masking=ngram`.   ALBERT (arXiv 1909.11942), section 4.1"""
    return mask_in_place(tokenizer, NGram(rate, max_length, schedule=make_schedule(masks)), view, seed=seed)


def mask_in_place(
    tokenizer: PreTrainedTokenizerFast, masking: NoisePattern, view: Replace = BERT, *, seed: int = 0
) -> InPlaceCollator:
    """Any noise pattern, your own included, predicted in place. Raises UserError for one of encoder-decoders."""
    return InPlaceCollator(tokenizer, Corruption(masking, view), seed)


def corrupt_spans(
    tokenizer: PreTrainedTokenizerFast,
    rate: float = 0.15,
    mean_length: float = 3.0,
    *,
    seed: int = 0,
    masks: Redrawn = "dynamic",
) -> TextToTextCollator:
    """T5's span corruption: spans become sentinels, which the decoder spells out; `masking=random_spans`.

    The end-of-sequence token of an example is left out and put behind what is read and what is written.
    `collator.raw_length(512)` is the length of text of which the model reads 512 tokens.   T5 (arXiv 1910.10683), 3.1.4
    """
    masking = RandomSpans(rate, mean_length, schedule=make_schedule(masks))
    return TextToTextCollator(tokenizer, Corruption(masking, UniqueSentinel(), UniqueSentinel("text")), seed)


def infill_text(
    tokenizer: PreTrainedTokenizerFast,
    rate: float = 0.3,
    mean_length: float = 3.0,
    *,
    seed: int = 0,
    masks: Redrawn = "dynamic",
    exact: bool = False,
) -> TextToTextCollator:
    """BART's text infilling: spans of Poisson length, empty ones too, each become one mask; the decoder writes it all.

    `masking=infilling objective/inputs=shared objective/inputs.symbol=mask objective/targets=full`; `exact`: spans
    never overlap.   BART (arXiv 1910.13461), section 2.2
    """
    masking = Infilling(rate, mean_length, exact, schedule=make_schedule(masks))
    return TextToTextCollator(tokenizer, Corruption(masking, SharedSentinel(symbol="mask"), Full()), seed)
