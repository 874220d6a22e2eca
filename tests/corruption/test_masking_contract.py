"""What holds for every choice of the config group `masking`, which the tests find by its files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from fake_store import MASK, FakeStore, FakeVocabulary, examples_of, random_store
from fake_text import ROWS, Rows, made_up, noise, part, text_of
from fake_windows import windows
from hypothesis import given, settings
from hypothesis import strategies as st

from paribus.core.build import build
from paribus.core.config import compose
from paribus.core.config_names import choices, conf_dir
from paribus.core.errors import UserError
from paribus.core.noise import Noise
from paribus.corruption.collators.encoder import EncoderCollator
from paribus.corruption.corruption import Corruption
from paribus.corruption.masking.pattern import NoisePattern
from paribus.corruption.views.replace import UNITS, Replace
from paribus.data.order import StepPlan
from paribus.data.sequences import Marks, Text
from paribus.training.description import Run
from paribus.training.steps import PretrainingSteps, StepData
from paribus.training.streams import training_examples

VARIANTS = {  # settings that make another pattern of a choice
    "independent": ["masking=bernoulli", "masking.budget=bernoulli"],
    "words": ["masking=whole_word", "masking.budget=words"],
    "infilling_exact": ["masking=infilling", "masking.exact=true", "masking.unit=token"],
    "infilling_sentences": ["masking=infilling", "masking.permute_sentences=1.0"],
}
OVERRIDES = {**{choice: [f"masking={choice}"] for choice in choices("masking")}, **VARIANTS}
VOCABULARY: Any = FakeVocabulary()


@cache
def pattern(name: str) -> Any:
    """The masking of a choice at its defaults."""
    found = build(compose(["scale=null", *OVERRIDES[name]]).masking)
    assert isinstance(found, NoisePattern)
    return found


def is_read_in_place(name: str) -> bool:
    """Whether an encoder can predict the noise where it is, at a rate that is a setting."""
    made = pattern(name)
    try:
        EncoderCollator().check(Corruption(made, Replace()))
    except UserError:
        return False
    return any(field.name == "rate" and field.init for field in fields(made))


IN_PLACE = [name for name in OVERRIDES if is_read_in_place(name)]


TEXTS = {"windows": windows([37, 60, 18, 60], 3), "framed": made_up(4, 40)}
CASES = [(name, kind) for name in OVERRIDES for kind in TEXTS if kind == "windows" or not pattern(name).reorders]


def annotated(text: Text) -> Text:
    """The text with spans of two tokens: an annotator's codes, which most maskings do not read."""
    return replace(text, annotated_BL=np.where(text.free_BL, text.ids_BL % 3, 0).astype(np.uint8))


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_noise_of_a_row_is_its_own(name: str, kind: str) -> None:
    """The same rows give the same marks alone, in another order, beside longer ones, and again."""
    masking, text, drawn = pattern(name), annotated(TEXTS[kind]), noise(4, 5)
    whole, other = masking(text, drawn), masking(text, noise(4, 6))
    assert text.annotated_BL is not None
    for rows in ([0], [2, 0], [3, 1], [0, 1, 2, 3]):
        some = replace(part(text, rows), annotated_BL=text.annotated_BL[rows])
        marks = masking(some, Noise(drawn.row_B[rows]))
        for key in ("span_BL", "order_BL", "insert_BL", "predicted_BL"):
            found, wanted = getattr(marks, key), getattr(whole, key)
            assert (found is None) == (wanted is None)
            assert found is None or np.array_equal(found, wanted[rows]), key
    if name not in ("all", "asked", "none"):  # these draw nothing
        assert marks_of(whole) != marks_of(other)


def marks_of(marks: Marks) -> Any:
    return [None if array is None else array.tolist() for array in (marks.span_BL, marks.order_BL)]


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_noise_is_where_text_is(name: str, kind: str) -> None:
    text = annotated(TEXTS[kind])
    marks = pattern(name)(text, noise(4))
    assert marks.span_BL.dtype == np.int16
    column_L = np.arange(text.ids_BL.shape[1])
    padding_BL = column_L >= text.length_B[:, None]
    if marks.order_BL is None:
        assert not marks.span_BL[~text.free_BL].any()
    else:  # the span numbers are in the order of reading
        assert not marks.span_BL[padding_BL].any()
        assert (np.sort(marks.order_BL, axis=1) == column_L).all()
        assert (marks.order_BL == column_L)[padding_BL].all()


@pytest.mark.parametrize("name", IN_PLACE)
def test_rows_without_a_free_token_stay_whole(name: str) -> None:
    masking = replace(pattern(name), rate=0.4)
    for rows in ([[[]], [[1, 2, 3]]], [[[]]]):
        text = annotated(text_of(rows))
        assert not masking(text, noise(len(rows))).span_BL[0].any()


@pytest.mark.parametrize("name", IN_PLACE)
def test_a_rate_that_is_no_share_is_named(name: str) -> None:
    for rate in (0, 1.5, float("nan"), "half"):
        with pytest.raises(UserError, match=rf"masking\.rate={rate}"):
            replace(pattern(name), rate=rate)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("name", IN_PLACE)
def test_a_masking_makes_a_batch_with_every_unit_and_schedule(name: str, unit: str) -> None:
    store = marked_store()
    data: Any = SimpleNamespace(stores={"train": store, "validation": store}, vocabulary=VOCABULARY)
    choice = OVERRIDES[name][0].removeprefix("masking=")
    thinned = "\npredict: " in (conf_dir() / "masking" / f"{choice}.yaml").read_text()
    given = ["masking.rate=0.4", "masking/schedule=copies", f"objective.view.unit={unit}"]
    given += ["masking.predict=0.2"] if thinned else []
    run = Run.of(compose(["scale=null", *OVERRIDES[name], *given]))
    counts = training_examples(run, data).batch(3, np.arange(8))["counts"]
    assert abs(counts["noise"] / counts["input_tokens"] - 0.4) < 0.05
    assert 0.4 < counts["predicted"] / counts["noise"] < 0.6 or not thinned


@pytest.mark.parametrize("kind", IN_PLACE)
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
    views = Corruption(replace(pattern(kind), rate=rate), encoding)(text, noise(len(rows), seed), VOCABULARY)
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


@pytest.mark.parametrize("kind", IN_PLACE)
def test_masks_are_equal_across_workers_and_a_resume(kind: str) -> None:
    masking = replace(pattern(kind), rate=0.3)
    whole = list(stream(masking, 0, 0))
    assert len(whole) == 9
    for workers, first in ((1, 0), (4, 0), (0, 5), (4, 6)):
        for one, other in zip(whole[first:], stream(masking, first, workers), strict=True):
            assert same(one, other), (workers, first)


def test_rates_that_round_to_nothing_are_refused_before_compute(
    arguments: list[str], tmp_path: Path, refused_run: Callable[..., str]
) -> None:
    for masking in ("bernoulli", "whole_word", "ngram"):
        said = refused_run(*arguments, f"masking={masking}", "masking.rate=0.01")
        assert "masking.rate=0.01 of input.length=32 tokens rounds to no prediction" in said
    for masking in ("bernoulli", "geometric_span", "subword_span"):
        said = refused_run(*arguments, f"masking={masking}", "masking.rate=0.3", "masking.predict=0.01")
        assert "masking.predict=0.01 of input.length=32 tokens rounds to no prediction" in said
    assert not list((tmp_path / "runs").rglob("metrics.jsonl"))


def test_a_text_without_words_is_refused_before_compute(
    arguments: list[str], tmp_path: Path, refused_run: Callable[..., str]
) -> None:
    folder = tmp_path / "letters"
    folder.mkdir()
    for first, split in enumerate(("train", "validation")):
        lines = ("".join("abcdefgh"[(n * 7 + at * at) % 8] for at in range(60)) for n in range(first, first + 90))
        (folder / f"{split}.txt").write_text("\n\n".join(lines))
    for masking in ("whole_word", "ngram", "geometric_span"):
        said = refused_run(*arguments, "tokenizer.vocab_size=60", f"corpus.path={folder}", f"masking={masking}")
        assert "does not report where words start" in said
    assert not list((tmp_path / "runs").rglob("metrics.jsonl"))
