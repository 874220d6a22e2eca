"""The config groups of inputs, maskings, schedules and encodings, and the examples that a config makes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from fake_store import FakeVocabulary, random_store, store_of
from omegaconf import OmegaConf

from paribus.core.config import compose as composed
from paribus.core.config_names import choices, conf_dir
from paribus.core.errors import UserError
from paribus.corruption.masking.geometric_span import GeometricSpan
from paribus.corruption.masking.ngram import NGram
from paribus.corruption.masking.single_tokens import Bernoulli
from paribus.corruption.masking.whole_word import WholeWord
from paribus.corruption.views.replace import Replace
from paribus.data.formats.full_sentences import DocSentences
from paribus.data.mask_schedule import Copies
from paribus.training.description import Run
from paribus.training.streams import held_out_examples, training_examples


def compose(*overrides: str) -> Run:
    return Run.of(composed(["scale=null", *overrides]))


@pytest.fixture(scope="module")
def data() -> Any:
    stores = {"train": random_store(900), "validation": random_store(200, seed=9)}
    return SimpleNamespace(stores=stores, vocabulary=FakeVocabulary())


def test_defaults_are_bert_s_with_redrawn_masks(data: Any) -> None:
    examples = training_examples(compose(), data)
    assert examples.corruption.masking == Bernoulli(0.15)
    assert examples.corruption.inputs == Replace(0.8, 0.1, 0.1)
    assert examples.length == 128


def test_keys_reach_their_components(data: Any) -> None:
    cfg = compose(
        "input=doc_sentences",
        "input.length=40",
        "masking/schedule=copies",
        "masking.schedule.copies=4",
        "masking.rate=0.3",
        "masking.budget=bernoulli",
        "objective.view.mask=1.0",
        "objective.view.random=0",
        "objective.view.keep=0",
    )
    examples = training_examples(cfg, data)
    assert examples.corruption.masking == Bernoulli(0.3, "bernoulli", schedule=Copies(4))
    assert examples.corruption.inputs == Replace(1.0, 0, 0)
    assert examples.input == DocSentences(40)
    assert examples.lengths(0).max() <= 40


@pytest.mark.parametrize("schedule", choices("masking/schedule"))
@pytest.mark.parametrize("input_format", choices("input"))
def test_every_choice_makes_a_batch(input_format: str, schedule: str, data: Any) -> None:
    choice, settings = f"input={input_format}", [f"masking/schedule={schedule}"]
    if not compose(choice).input.framed:
        settings = ["objective=stream_lm", "masking=none", "model.attention=left"]
    examples = training_examples(compose(choice, *settings), data)
    assert examples.batch(2, [0, 1])["counts"]["predicted"] > 0


def test_span_keys_reach_their_components(data: Any) -> None:
    cfg = compose("masking=geometric_span", "masking.mean_length=4", "masking.max_length=8", "masking.rate=0.5")
    assert training_examples(cfg, data).corruption.masking == GeometricSpan(0.5, 4, 8)
    assert training_examples(compose("masking=subword_span"), data).corruption.masking == GeometricSpan(
        0.15, unit="token"
    )
    cfg = compose("masking=whole_word", "masking.budget=words", "masking.max_predictions=20", "masking.predict=0.3")
    assert training_examples(cfg, data).corruption.masking == WholeWord(0.15, "words", 20, predict=0.3)
    cfg = compose("masking=ngram", "masking.max_length=2", "masking.favor_shorter=false")
    assert training_examples(cfg, data).corruption.masking == NGram(0.15, 2, False)


def same(one: Any, other: Any) -> bool:
    rows = np.arange(12)
    a, b = one.batch(0, rows), other.batch(5, rows)
    return all(np.array_equal(a[name], b[name]) for name in ("ids_BL", "slot_P", "target_P"))


def test_evaluation_is_the_same_for_every_arm(data: Any) -> None:
    arm = compose(
        "seed=5",
        "input=doc_sentences",
        "masking.rate=0.4",
        "objective.view.mask=0.9",
        "objective.view.keep=0",
    )
    assert same(held_out_examples(compose(), data), held_out_examples(arm, data))
    assert held_out_examples(arm, data).corruption.masking.schedule(3) == 0


def test_text_to_text_is_evaluated_on_t5_s_baseline(data: Any) -> None:
    own = FakeVocabulary(1100, specials=(0, 1, 2, 3, 4, *range(1000, 1100)), sentinels=100, first_sentinel=1099)
    given: Any = SimpleNamespace(stores=data.stores, vocabulary=own)
    chosen = ("input=windows", "objective=denoising", "evaluation=text_to_text")
    arms = [compose(*chosen, *extra) for extra in ((), ("masking=iid", "masking.rate=0.3", "seed=3"))]
    one, other = (held_out_examples(arm, given) for arm in arms)
    assert (one.corruption.name, one.raw) == ("span_3_15_u_u", 141)
    batches = [made.batch(epoch, np.arange(6)) for made, epoch in ((one, 0), (other, 4))]
    assert all(np.array_equal(batches[0][key], batches[1][key]) for key in ("ids_BL", "label_BT"))


def test_a_bad_setting_is_one_line(data: Any) -> None:
    with pytest.raises(UserError, match=r"masking\.rate=1\.5"):
        training_examples(compose("masking.rate=1.5"), data)


def test_a_split_without_text_is_refused() -> None:
    empty: Any = SimpleNamespace(stores={"validation": store_of([])}, vocabulary=FakeVocabulary())
    with pytest.raises(UserError, match="validation split of the corpus holds no text"):
        held_out_examples(compose(), empty)
    with pytest.raises(UserError, match="train split of the corpus holds no text"):
        training_examples(compose(), empty)


def test_config_files_say_what_they_are() -> None:
    for path in [*conf_dir().glob("masking/**/*.yaml"), *conf_dir().glob("input/*.yaml")]:
        assert path.read_text().startswith("# "), path
        assert OmegaConf.load(path)._target_.startswith("paribus."), path
