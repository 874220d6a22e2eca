"""The examples that a run reads in pre-training and in its held-out evaluation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paribus.core.errors import UserError
from paribus.corruption.collators.collator import Collator
from paribus.corruption.collators.encoder import EncoderCollator
from paribus.corruption.collators.text_to_text import EncoderDecoderCollator
from paribus.corruption.corruption import Corruption
from paribus.corruption.examples import Examples, open_examples
from paribus.corruption.masking.pattern import NoisePattern
from paribus.corruption.masking.single_tokens import Bernoulli
from paribus.corruption.masking.whole_row import NoNoise
from paribus.corruption.views.replace import Replace, Unchanged
from paribus.data.formats.pairs import SegmentPair
from paribus.data.mask_schedule import Static

if TYPE_CHECKING:
    from paribus.data.tokens.prepare import Data
    from paribus.objectives.spec import ObjectiveSpec
    from paribus.training.description import Run


def training_examples(run: Run, data: Data, split: str = "train", seed: int | None = None) -> Examples:
    """The examples of a run: its input format under its masking, as its objective reads and predicts them.

    Their noise is that of the run, or of another `seed`.

    Raises UserError for a split without an example, and for an objective that input, masking or model do not suit.
    """
    objective = run.objective
    check_pairs(objective.needed_pairs, run.input.pairs)
    corruption = objective.corruption(run.masking)
    check_frame(corruption.targets is not None, run.input.framed)
    check_noise(objective, corruption.masking, run.model.attention)
    if objective.brings_mask and not run.model.open_layers:
        raise UserError("this checkpoint's layers take no attention mask per row", "set objective=mlm")
    own = run.root_seed if seed is None else seed
    return open_examples(data, split, run.input, corruption, own, _collator(run, corruption, objective))


def _collator(run: Run, corruption: Corruption, objective: ObjectiveSpec | None = None) -> Collator:
    """What the model takes; of an encoder, what the objective reads.

    If a text-to-text objective is only shown, with an encoder as the model, an encoder-decoder is assumed.
    """
    stated = run.model.collator or (None if objective is None else objective.collator)
    return stated or (EncoderCollator() if corruption.targets is None else EncoderDecoderCollator())


def check_frame(writes: bool, framed: bool) -> None:
    """Raise UserError if a text-to-text objective gets framed rows, or an encoder gets bare ones."""
    if writes and framed:
        raise UserError(
            "a text-to-text objective reads raw windows, but this input adds special tokens to its rows",
            "set input=windows",
        )
    if not framed and not writes:
        mend = "set input=full_sentences or objective=denoising"
        raise UserError("input=windows has no [CLS] and [SEP], which this objective needs", mend)


def check_pairs(needs: str | None, given: str | None) -> None:
    """Raise UserError if an objective that needs pairs (`next`, `order` or `three`) is not given such."""
    if needs is None or needs == given:
        return
    if given is None:
        raise UserError(
            "the objective predicts from pairs, but input gives single texts",
            f"set input=segment_pair or input=sentence_pair with input.pairs={needs}, or objective=mlm",
        )
    raise UserError(f"input.pairs={given}, but the objective predicts {needs}", f"set input.pairs={needs}")


_SEEN = {"left": "left", "right": "right", "two_way": "left and from its right"}


def check_noise(objective: ObjectiveSpec, masking: NoisePattern, attention: str | None) -> None:
    """Raise UserError if the model could see what it predicts, or if the noise is not what the objective needs."""
    needed, noisy = objective.needed_attention, objective.predicts_noise
    if needed not in (None, attention):
        if needed == "full":
            cause = f"the objective brings its own attention mask, but model.attention={attention}"
            raise UserError(cause, "set model.attention=full or objective=clm")
        raise UserError(
            f"the objective predicts each token from its {_SEEN[needed]}, but model.attention={attention} differs",
            f"set model.attention={needed} masking=none, or objective=mlm",
        )
    if noisy and not masking.rate:
        raise UserError("masking=none leaves the objective nothing to predict", "set masking=bernoulli or another")
    if masking.rate and not noisy:
        raise UserError("the objective predicts all of the text and reads no noise", "set masking=none")
    if objective.needs_spans and not masking.spans:
        raise UserError(
            "the objective predicts spans from their boundaries, but masking gives single tokens",
            "set masking=geometric_span or objective=mlm",
        )


def held_out_examples(run: Run, data: Data) -> Examples:
    """The examples of the held-out evaluation, the same for every arm, under fixed noise.

    They are masked exactly at `evaluation.rate` with BERT's 80/10/10, or by the evaluation's own masking, inputs and
    targets. Models that never see noise predict every token of the same text.
    Raises UserError for a split without an example.
    """
    own, split = run.evaluation, "validation"
    if own.masking is not None:
        corruption = Corruption(own.masking, own.inputs, own.targets)
        return open_examples(data, split, own.input, corruption, own.seed, _collator(run, corruption))
    if run.objective.predicts_noise:
        return open_examples(data, split, own.input, _fixed(own.rate, Replace()), own.seed)
    whole = Corruption(NoNoise(schedule=Static()), Unchanged())
    return open_examples(data, split, own.input, whole, own.seed, run.objective.collator)


def probe_examples(run: Run, data: Data, pairs: str, split: str = "validation", masked: bool = True) -> Examples:
    """Segment pairs of the held-out text, the same for every arm of one `input.length`.

    If `masked`, their noise is that of the held-out evaluation.
    Raises UserError for a split that allows no such pairs.
    """
    input_format = SegmentPair(run.input.length, pairs, short_seq_prob=0.0, redraw=Static())
    shown = Replace() if masked else Replace(mask=0.0, random=0.0, keep=1.0)
    return open_examples(data, split, input_format, _fixed(run.evaluation.rate, shown), run.evaluation.seed)


def _fixed(rate: float, shown: Replace) -> Corruption:
    return Corruption(Bernoulli(rate, schedule=Static()), shown)
