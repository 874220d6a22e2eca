"""A new noise pattern and a new view: only what differs from the defaults is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from fake_store import examples_of, random_store
from fake_windows import VOCABULARY

from paribus.core.errors import UserError
from paribus.core.noise import Noise
from paribus.corruption.collators.encoder import EncoderCollator
from paribus.corruption.collators.text_to_text import EncoderDecoderCollator
from paribus.corruption.corruption import Corruption
from paribus.corruption.examples import Examples, measure
from paribus.corruption.masking.pattern import NoisePattern
from paribus.corruption.masking.units import mark_runs
from paribus.corruption.views.sentinels import UniqueSentinel
from paribus.corruption.views.view import View, pack_rows, real_tokens
from paribus.data.formats.windows import Windows
from paribus.data.mask_schedule import Dynamic
from paribus.data.sequences import Marks, Sequences, Text
from paribus.data.tokens.vocabulary import Vocabulary


@dataclass(frozen=True)
class EveryNth(NoisePattern):
    """Every n-th free token, n = 1 / rate."""

    def __call__(self, text: Text, noise: Noise) -> Marks:
        place_BL = np.cumsum(text.free_BL, axis=1)
        return mark_runs(text.free_BL & (place_BL % round(1 / self.rate) == 0))


@dataclass(frozen=True)
class Reversed(View):
    """The row from its end to its beginning."""

    def __call__(self, text: Text, marks: Marks, noise: Noise, vocabulary: Vocabulary) -> Sequences:
        real_BL = real_tokens(text)
        return pack_rows(text.ids_BL[:, ::-1], real_BL[:, ::-1], vocabulary)


def test_a_pattern_has_the_settings_and_checks_of_all() -> None:
    pattern = EveryNth(0.25)
    assert (pattern.predict, pattern.schedule, pattern.row_name) == (None, Dynamic(), "everynth_25")
    with pytest.raises(UserError, match=r"masking\.rate=2"):
        EveryNth(2)
    with pytest.raises(UserError, match=r"masking\.predict=0\.3 is not a multiple"):
        EveryNth(0.25, predict=0.3)
    with pytest.raises(UserError, match="rounds to no prediction"):
        pattern.check(1)


def test_an_encoder_trains_on_a_new_pattern() -> None:
    rates = measure(examples_of(random_store(3000), 64, masking=EveryNth(0.25)), VOCABULARY)
    assert rates["masking_rate"] == pytest.approx(0.25, abs=0.02)
    assert rates["mean_span_length"] == 1
    thinned = examples_of(random_store(3000), 64, masking=EveryNth(0.25, predict=0.125))
    assert measure(thinned, VOCABULARY)["masking_rate"] == pytest.approx(0.125, abs=0.02)


def test_a_text_to_text_model_trains_on_a_new_pattern_and_a_new_view() -> None:
    corruption = Corruption(EveryNth(0.25), UniqueSentinel(), Reversed())
    assert corruption.name == "everynth_25_u_reversed"
    made = Examples(random_store(3000), Windows(32), corruption, EncoderDecoderCollator(), VOCABULARY, 0, 32)
    batch, text = made.batch(0, np.arange(4)), made.views(0, np.arange(4)).text
    assert batch["label_BT"][:, :-1].tolist() == text.ids_BL[:, ::-1].tolist()
    with pytest.raises(UserError, match="the model is an encoder"):
        EncoderCollator().check(corruption)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda text: text.free_BL, "the masking Broken returned ndarray: return Marks"),
        (lambda text: Marks(text.free_BL), r"a span_BL of bool \[.*: give int16"),
        (lambda text: Marks(text.free_BL[:, :-1].astype(np.int16)), r"a span_BL of int16 \[.*: give int16 \["),
        (lambda text: Marks(np.ones_like(text.sentence_BL)), "marked special tokens or padding as noise: choose only"),
    ],
)
def test_what_a_masking_of_the_user_returns_is_checked(made: Callable[[Text], Marks], said: str) -> None:
    @dataclass(frozen=True)
    class Broken(NoisePattern):
        def __call__(self, text: Text, noise: Noise) -> Marks:
            return made(text)

    with pytest.raises(UserError, match=said):
        measure(examples_of(random_store(300), 64, masking=Broken(0.25)), VOCABULARY)
