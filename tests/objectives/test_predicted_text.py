"""Bits per character and perplexity per word: what is counted, and that tokenizers share these columns alone."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paribus.core.config import compose
from paribus.objectives.predicted_text import decode, find_target_places
from paribus.training.description import Run
from paribus.training.run import run
from paribus.training.streams import held_out_examples

KINDS = ["wordpiece", "bpe", "characters", "bytes", "words"]


@pytest.fixture
def clm(arguments: list[str]) -> Callable[..., Any]:
    """A function that composes a left-to-right run with a tokenizer."""
    rest = [each for each in arguments if not each.startswith("tokenizer")]
    sizes = {"wordpiece": 170, "bpe": 400, "words": 40}  # of a text with few words

    def compose_with(kind: str, *more: str) -> Any:
        size = f"tokenizer.vocab_size={sizes.get(kind, 512)}"
        return compose(
            [*rest, f"tokenizer={kind}", size, "model.attention=left", "masking=none", "objective=clm", *more]
        )

    return compose_with


@pytest.mark.parametrize("kind", KINDS)
def test_tokens_stand_for_all_of_the_raw_text(kind: str, clm: Callable[..., Any]) -> None:
    data = Run.of(clm(kind)).data()
    whole = Run.of(clm("bytes")).data()
    text = decode(whole.stores["validation"].ids, np.zeros(0, int), whole.tokenizer)
    assert data.raw is not None
    assert len(data.raw.characters_T) == data.stores["validation"].tokens
    assert data.raw.characters_T.sum() == len(text)
    assert data.raw.words_T.sum() == len(text.split())
    if kind == "characters":
        assert set(data.raw.characters_T.tolist()) == {1}
    exact = {"characters", "bytes", "bpe"}
    assert (data.raw.hidden == 0) == (kind in exact)


@pytest.mark.parametrize(
    "more", [[], ["input=windows", "objective=stream_lm"], ["input=streams", "objective=stream_lm"]]
)
def test_targets_are_found_in_the_store(more: list[str], clm: Callable[..., Any]) -> None:
    described = Run.of(clm("words", *more))
    data = described.data()
    examples = held_out_examples(described, data)
    from paribus.corruption.examples import evaluation_batches

    places = find_target_places(examples, 50)
    target_P = np.concatenate([arrays["target_P"] for arrays in evaluation_batches(examples, 50)])
    assert np.array_equal(data.stores["validation"].ids[places], target_P)
    assert len(np.unique(places)) == len(places) > 100


def test_a_record_has_the_loss_of_the_same_text_in_other_units(clm: Callable[..., Any]) -> None:
    found = {kind: json.loads((run(clm(kind)) / "result.json").read_text()) for kind in ("characters", "wordpiece")}
    for kind, record in found.items():
        metrics, targets = record["metrics"], record["targets"]
        nats = metrics["clm_loss"] * targets["clm_loss"]["places"]
        characters, words = (targets[name]["places"] for name in ("bits_per_character", "perplexity_per_word"))
        assert metrics["bits_per_character"] == pytest.approx(nats / math.log(2) / characters)
        assert metrics["perplexity_per_word"] == pytest.approx(math.exp(min(700, nats / words)))
        assert record["baselines"]["bits_per_character"].keys() == {"unigram", "n-gram of characters", "xz"}
        assert all(0 < value < 8 for value in record["baselines"]["bits_per_character"].values())
        assert targets["clm_loss"]["tokens"].endswith("characters" if kind == "characters" else "WordPieces")
    assert found["characters"]["targets"]["bits_per_character"]["what"] == "the raw text"
    assert (
        found["characters"]["realised"]["hidden_characters"]
        == 0.0
        < found["wordpiece"]["realised"]["hidden_characters"]
    )
    hidden = found["wordpiece"]["targets"]["bits_per_character"]["what"]
    assert "% is unknown words or letters in another form" in hidden


def test_another_part_of_the_training_text_has_baselines_of_its_own(clm: Callable[..., Any], tmp_path: Path) -> None:
    values = [
        json.loads((run(clm("bytes", *more)) / "result.json").read_text())["baselines"]["bits_per_character"]
        for more in (["trainer.train_tokens=3000"], ["trainer.train_tokens=12000"])
    ]
    assert values[0]["n-gram of characters"] > values[1]["n-gram of characters"]
    assert values[0]["xz"] > values[1]["xz"]
