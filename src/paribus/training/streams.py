"""The examples that a run reads in pre-training and in its held-out evaluation."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from paribus.core.errors import UserError
from paribus.corruption.collators.collator import Collator
from paribus.corruption.collators.encoder import EncoderCollator
from paribus.corruption.collators.text_to_text import EncoderDecoderCollator
from paribus.corruption.corruption import Corruption
from paribus.corruption.examples import Examples, open_examples
from paribus.corruption.masking.single_tokens import Bernoulli
from paribus.corruption.views.replace import Replace
from paribus.data.formats.pairs import SegmentPair
from paribus.data.mask_schedule import Static

if TYPE_CHECKING:
    from paribus.data.tokens.prepare import Data
    from paribus.training.description import Run


def training_examples(run: Run, data: Data, split: str = "train", seed: int | None = None) -> Examples:
    """The examples of a run: its input format under its masking, as its objective reads and predicts them.

    Their noise is that of the run, or of another `seed`.

    Raises UserError for a split without an example, and for an objective that input, masking or model do not suit.
    """
    check_examples(run)
    corruption = run.objective.corruption(run.masking)
    collator = _collator(run.model.collator or run.objective.collator, corruption)  # of a model that writes, its own
    return open_examples(data, split, run.input, corruption, run.root_seed if seed is None else seed, collator)


def check_examples(run: Run) -> None:
    """Raise UserError if input format, masking, objective and model do not suit each other."""
    objective, corruption = run.objective, run.objective.corruption(run.masking)
    needed_pairs, given = objective.needed_pairs, run.input.pairs
    if needed_pairs is not None and given is None:
        mend = f"set input=segment_pair or input=sentence_pair with input.pairs={needed_pairs}, or objective=mlm"
        raise UserError("the objective predicts from pairs, but input gives single texts", mend)
    if needed_pairs not in (None, given):
        cause = f"input.pairs={given}, but the objective predicts {needed_pairs}"
        raise UserError(cause, f"set input.pairs={needed_pairs}")
    if objective.needs_static and not run.model.shape.static:
        cause = "the objective trains a table of word vectors, but the model reads words in their context"
        raise UserError(cause, "set model=word_vectors or model=subword_vectors")
    writes = corruption.targets is not None
    if writes and run.input.framed:
        cause = "a text-to-text objective reads raw windows, but this input adds special tokens to its rows"
        raise UserError(cause, "set input=windows")
    if not writes and objective.framed and not run.input.framed:
        rows = "xlnet_pair" if objective.needs_two_streams else "full_sentences"
        mend = f"set input={rows}, or objective=denoising or stream_lm"
        raise UserError("rows of this input have no [CLS] and [SEP], which the objective needs", mend)
    if not objective.framed and run.input.framed:
        cause = "the objective predicts the text as it stands, but this input adds special tokens to its rows"
        raise UserError(cause, "set input=streams or input=windows")
    masking, needed, attention = corruption.masking, objective.needed_attention, run.model.attention
    if needed == "full" and attention != "full":
        cause = f"the objective brings its own attention mask, but model.attention={attention}"
        raise UserError(cause, "set model.attention=full or objective=clm")
    if needed == "full":
        for name, change in getattr(run.model, "changes", {}).items():
            if not change.reads_both_sides:
                cause = f"the objective needs both sides of a token, but model.changes.{name} hides one"
                raise UserError(cause, f"leave out model.changes.{name}, or set objective=mlm or objective=clm")
    if needed not in (None, attention):  # the model would see what it predicts
        seen = "left and from its right" if needed == "two_way" else needed
        cause = f"the objective predicts each token from its {seen}, but model.attention={attention} differs"
        raise UserError(cause, f"set model.attention={needed} masking=none, or objective=mlm")
    if objective.needs_two_streams and not run.model.two_streams:
        cause = "the objective predicts tokens by a second stream that does not see them, which the model lacks"
        raise UserError(cause, "set model=xlnet_tiny or another XLNet, or objective=mlm")
    if run.model.memory and run.input.shuffled and run.trainer.max_steps != 0:
        cause = f"model.memory={run.model.memory}, but rows of this input are shuffled and do not go on from each other"
        streams = "xlnet_pair" if objective.framed else "streams"
        raise UserError(cause, f"set input={streams}, or model.memory=0")
    if objective.predicts_noise and not masking.rate:
        raise UserError("masking=none leaves the objective nothing to predict", "set masking=bernoulli or another")
    if masking.rate and not objective.predicts_noise:
        raise UserError("the objective predicts all of the text and reads no noise", "set masking=none")
    if objective.needs_spans and not masking.spans:
        cause = "the objective predicts spans from their boundaries, but masking gives single tokens"
        raise UserError(cause, "set masking=geometric_span or objective=mlm")
    if objective.brings_mask and not run.model.open_layers:
        raise UserError("this checkpoint's layers take no attention mask per row", "set objective=mlm")


def check_fits(run: Run) -> None:
    """Raise UserError if a row exceeds the model's positions, and if the objective writes but the model only reads."""
    run.model.check_length(run.input.length, "input.length")
    if run.objective.writes_text and not run.model.writes_text:
        raise UserError("the objective writes text, but the model is an encoder", "set model=t5_tiny or objective=mlm")


def _collator(stated: Collator | None, corruption: Corruption) -> Collator:
    """The collator, or one of the kind of network that this corruption is for."""
    return stated or (EncoderCollator() if corruption.targets is None else EncoderDecoderCollator())


def held_out_examples(run: Run, data: Data, times: int = 1) -> Examples:
    """The examples of the held-out evaluation, the same for every arm of an objective, under fixed noise.

    `times`: as many times as long. Raises UserError for a split without an example.
    """
    text = run.objective.held_out(run.evaluation)
    collator = _collator(text.collator or run.model.collator, text.corruption)
    rows = text.input if times == 1 else replace(text.input, length=times * text.input.length)
    return open_examples(data, "validation", rows, text.corruption, run.evaluation.seed, collator)


def probe_examples(run: Run, data: Data, pairs: str, split: str = "validation", masked: bool = True) -> Examples:
    """Segment pairs of the held-out text, the same for every arm of one `input.length`.

    If `masked`, their noise is that of the held-out evaluation.
    Raises UserError for a split that allows no such pairs.
    """
    input_format = SegmentPair(run.input.length, pairs, short_seq_prob=0.0, redraw=Static())
    shown = Replace() if masked else Replace(mask=0.0, random=0.0, keep=1.0)
    corruption = Corruption(Bernoulli(run.evaluation.rate, schedule=Static()), shown)
    return open_examples(data, split, input_format, corruption, run.evaluation.seed)
