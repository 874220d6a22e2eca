"""What holds for every masking: any rate, any shares, any number of workers, after a resume, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fake_store import MASK, FakeStore, FakeVocabulary, examples_of, random_store
from fake_text import ROWS, Rows, noise, text_of
from hypothesis import given, settings
from hypothesis import strategies as st

from paribus.corruption.corruption import Corruption
from paribus.corruption.masking.annotated_span import AnnotatedSpan
from paribus.corruption.masking.geometric_span import GeometricSpan
from paribus.corruption.masking.ngram import NGram
from paribus.corruption.masking.single_tokens import Bernoulli
from paribus.corruption.masking.whole_word import WholeWord
from paribus.corruption.views.replace import UNITS, Replace
from paribus.data.annotators import Function
from paribus.data.order import StepPlan
from paribus.training.steps import PretrainingSteps, StepData

KINDS: dict[str, Callable[..., Any]] = {
    "bernoulli": Bernoulli,
    "independent": lambda rate, **more: Bernoulli(rate, "bernoulli", **more),
    "whole_word": WholeWord,
    "words": lambda rate, **more: WholeWord(rate, "words", **more),
    "geometric_span": GeometricSpan,
    "subword_span": lambda rate, **more: GeometricSpan(rate, unit="token", **more),
    "ngram": NGram,
    "annotated_span": lambda rate, **more: AnnotatedSpan(rate, Function("some:function"), **more),
}
VOCABULARY: Any = FakeVocabulary()


@pytest.mark.parametrize("kind", KINDS)
@given(ROWS, st.floats(0.05, 0.8), st.integers(0, 10), st.integers(0, 10), st.sampled_from(UNITS), st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_any_rate_and_any_shares(
    kind: str, rows: Rows, rate: float, masked: int, kept: int, unit: str, seed: int
) -> None:
    """Noise is where text is; what is not noise stays; each share that is 0 never happens."""
    total = max(masked + kept, 10)
    shares = (masked / total, 1 - masked / total - kept / total, kept / total)
    encoding = Replace(shares[0], max(0.0, shares[1]), shares[2], unit)
    text = text_of(rows)
    text = replace(text, annotated_BL=(text.ids_BL % 3).astype(np.uint8))
    views = Corruption(KINDS[kind](rate), encoding)(text, noise(len(rows), seed), VOCABULARY)
    noisy_BL = views.marks.span_BL > 0
    read_BL, ids_BL = views.inputs.ids_BL, text.ids_BL
    assert not noisy_BL[~text.free_BL].any()
    assert np.array_equal(read_BL[~noisy_BL], ids_BL[~noisy_BL])
    assert not np.isin(read_BL[noisy_BL], [s for s in VOCABULARY.specials if s != MASK]).any()
    shown = read_BL[noisy_BL]
    assert masked or not (shown == MASK).any()
    assert kept + masked < 10 or np.isin(shown, [MASK]).sum() + (shown == ids_BL[noisy_BL]).sum() == len(shown)
    if masked >= 10 and not kept:
        assert (shown == MASK).all()
    if kept >= 10 and not masked:
        assert (shown == ids_BL[noisy_BL]).all()


def marked_store() -> FakeStore:
    """A store with a span of two tokens in every seven."""
    store = random_store(600)
    place_T = np.arange(len(store.ids)) % 7
    return replace(store, annotated=np.where(place_T == 2, 1, np.where(place_T == 3, 2, 0)).astype(np.uint8))


def stream(masking: Any, first: int, workers: int) -> Iterator[list[Any]]:
    """The masks of steps first..9, over the end of an epoch."""
    examples = examples_of(marked_store(), 32, masking=masking)
    steps = PretrainingSteps(StepPlan(examples, 5, examples.size(0) // 4), 9, None)
    for step in StepData(steps, first, workers).train_dataloader():
        yield [(batch["ids_BL"], batch["slot_P"], batch["target_P"]) for batch in step]


def same(one: list[Any], other: list[Any]) -> bool:
    return all(torch.equal(a, b) for x, y in zip(one, other, strict=True) for a, b in zip(x, y, strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_masks_are_equal_across_workers_and_a_resume(kind: str) -> None:
    masking = KINDS[kind](0.3)
    whole = list(stream(masking, 0, 0))
    assert len(whole) == 9
    for workers, first in ((1, 0), (4, 0), (0, 5), (4, 6)):
        for one, other in zip(whole[first:], stream(masking, first, workers), strict=True):
            assert same(one, other), (workers, first)


def test_rates_that_round_to_nothing_are_refused_before_compute(
    arguments: list[str], tmp_path: Path, refusal: Callable[..., str]
) -> None:
    for masking in ("bernoulli", "whole_word", "ngram"):
        said = refusal("train", *arguments, f"masking={masking}", "masking.rate=0.01")
        assert "masking.rate=0.01 of input.length=32 tokens rounds to no prediction" in said
    for masking in ("bernoulli", "geometric_span", "subword_span"):
        said = refusal("train", *arguments, f"masking={masking}", "masking.rate=0.3", "masking.predict=0.01")
        assert "masking.predict=0.01 of input.length=32 tokens rounds to no prediction" in said
    assert not list((tmp_path / "runs").rglob("metrics.jsonl"))


def test_a_text_without_words_is_refused_before_compute(
    arguments: list[str], tmp_path: Path, refusal: Callable[..., str]
) -> None:
    folder = tmp_path / "letters"
    folder.mkdir()
    for first, split in enumerate(("train", "validation")):
        lines = ("".join("abcdefgh"[(n * 7 + at * at) % 8] for at in range(60)) for n in range(first, first + 90))
        (folder / f"{split}.txt").write_text("\n\n".join(lines))
    for masking in ("whole_word", "ngram", "geometric_span"):
        said = refusal("train", *arguments, "tokenizer.vocab_size=60", f"corpus.path={folder}", f"masking={masking}")
        assert "does not report where words start" in said
    assert not list((tmp_path / "runs").rglob("metrics.jsonl"))
