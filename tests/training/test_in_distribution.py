"""The loss on a run's own noise, its trivial floor, and the step at which it left its plateau."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file
from text_to_text import T5

from paribus.core.config import compose
from paribus.corruption.collators.collator import Places
from paribus.training.description import Run
from paribus.training.in_distribution import InDistribution, read_points, reads_held_out
from paribus.training.run import run
from paribus.training.trivial_baseline import Kinds, Trivial, TrivialReader, join

PAIRS = ["objective=mlm_nsp", "input=segment_pair"]


def record(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "result.json").read_text())
    return found


def weights(folder: Path) -> dict[str, bytes]:
    return {name: tensor.tobytes() for name, tensor in load_file(folder / "model" / "model.safetensors").items()}


KINDS = Kinds(np.array([0, 0, 1, 2, 2, 4]), np.array([0, 1, 2, 3, 3, 5]))  # two starts, an inside, two sentinels, pad


def place(target: list[int], before: list[int], row: int = 4) -> Places:
    return Places(np.array(target), [np.array(before)], row_P=np.arange(len(target)) // row)


def fit(*batches: Places, count: list[int], drawn: list[float] | None = None) -> Trivial:
    drawn_V = np.array(drawn or [0.0] * 6)
    arrays = {"ids_BL": np.zeros((1, 1), np.int64), "slot_P": np.zeros(0, np.int64)}
    return Trivial(KINDS, np.array(count), drawn_V, [(arrays, batch) for batch in batches])


def test_the_floor_of_written_text_knows_where_sentinels_come_and_which() -> None:
    """After a start always a sentinel, after that half of the text's starts: the loss is the entropy of the starts."""
    target, before = [3, 0, 4, 1] * 500, [0, 3, 1, 4] * 500
    trivial = fit(place(target, before), count=[1000, 1000, 0, 0, 0, 0])
    assert trivial.losses(place(target, before)).mean() == pytest.approx(np.log(2) / 2, abs=0.01)
    assert trivial.losses(place([3, 4], [0, 1])) == pytest.approx([0.0, 0.0], abs=0.01)


def test_the_floor_of_written_text_counts_words() -> None:
    """Rows of three words and a sentinel: after three words the end is certain, after fewer it never comes."""
    target, before = [0, 1, 0, 3] * 500, [5, 0, 1, 0] * 500
    trivial = fit(place(target, before), count=[1000, 1000, 0, 0, 0, 0])
    assert trivial.losses(place(target, before))[3] == pytest.approx(0.0, abs=0.01)
    assert trivial.losses(place([0, 3], [5, 0]))[1] > 4.0


def test_the_floor_of_masked_text_uses_the_token_shown_in_the_place() -> None:
    """Shown tokens are right half of the time; random ones are uniform over the three ordinary ids."""
    target, shown = np.array([0, 0, 1, 2] * 300), np.array([0, 1, 5, 5] * 300)
    near = [np.full(1200, 5), np.full(1200, 5)]
    count, drawn = [600, 300, 300, 0, 0, 0], [1 / 3] * 3 + [0.0] * 3
    width = 3
    ids = np.stack([near[0], shown, near[1]], 1).reshape(1, -1)
    arrays = {"ids_BL": ids, "slot_P": np.arange(1200) * width + 1}
    places = Places(target, near, shown)
    trivial = Trivial(KINDS, np.array(count), np.array(drawn), [(arrays, places)])
    assert trivial.kept == 0.5
    assert np.exp(-trivial.losses(places)[2:4]) == pytest.approx([0.25, 0.25], abs=0.01)  # under the mask: frequencies
    right, wrong = np.exp(-trivial.losses(places)[:2])
    assert right == pytest.approx(0.6 + 0.4 * 0.5, abs=0.02)  # 0.5 x 0.5 against 0.5 / 3
    assert wrong == pytest.approx((1 - 0.25 / (0.25 + 1 / 3)) * 0.5, abs=0.02)


def test_a_floor_is_finite_if_no_random_token_was_seen() -> None:
    near = [np.full(4, 5), np.full(4, 5)]
    own, other = np.array([0, 1, 2, 0]), np.array([1, 1, 2, 0])
    arrays = {"ids_BL": np.stack([near[0], own, near[1]], 1).reshape(1, -1), "slot_P": np.arange(4) * 3 + 1}
    drawn = np.array([1 / 3] * 3 + [0.0] * 3)
    trivial = Trivial(KINDS, np.array([2, 1, 1, 0, 0, 0]), drawn, [(arrays, Places(own, near, own))])
    assert trivial.kept == 0.875
    assert np.isfinite(trivial.losses(Places(own, near, other))).all()


def test_the_floor_of_a_text_with_written_tokens_knows_which_of_them_are_often_written() -> None:
    """Token 0 is written in one of two places, token 1 in none. What was there before is 1 or 2, each half the time."""
    shown, target = np.array([0, 0, 0, 0, 1, 1, 2, 2] * 5000), np.array([0, 0, 1, 2, 1, 1, 2, 2] * 5000)
    places = Places(target, [np.full(len(shown), 5), np.full(len(shown), 5)], shown)
    arrays = {"ids_BL": np.stack([np.full(len(shown), 5), shown, np.full(len(shown), 5)], 1).reshape(1, -1)}
    arrays["slot_P"] = np.arange(len(shown)) * 3 + 1
    one = ids_alike()
    tells, restores = (
        TrivialReader(one, np.array([2, 3, 3, 0, 0, 0]), [(arrays, places)], tells=tells) for tells in (True, False)
    )
    assert tells.losses(places)[:8] == pytest.approx([np.log(2)] * 4 + [0.0] * 4, abs=0.02)
    assert restores.losses(places)[[0, 2]] == pytest.approx([np.log(2), np.log(2 * 8 / 3)], abs=0.02)


def ids_alike() -> Kinds:
    """All three ordinary tokens are of one kind."""
    return Kinds(np.array([0, 0, 0, 2, 2, 4]), np.array([0, 1, 2, 3, 3, 5]))


def test_places_of_batches_are_joined() -> None:
    joined = join([place([0], [3]), place([1, 2], [4, 5], 1)])
    assert joined.row_P is not None
    assert joined.row_P.tolist() == [0, 1, 2]
    assert joined.target_P.tolist() == [0, 1, 2]
    assert joined.near_KP[0].tolist() == [3, 4, 5]
    assert joined.shown_P is None


@pytest.mark.parametrize(
    "change",
    [
        [],
        PAIRS,
        ["objective=clm", "masking=none", "model.attention=left"],
        [*T5, "model.architecture=encoder_decoder"],
        [*T5, "model.architecture=prefix_lm", "masking=iid"],
        [*T5, "masking=iid", "objective/inputs=mask_random", "objective/targets=full"],
        [*T5, "masking=permute", "objective/inputs=permuted", "objective/targets=full"],
        ["objective=electra"],
        ["objective=electra", "objective.over=noised"],
        ["objective=electra", "objective.asks=original", "objective.weight=1"],
        ["objective=electra", "objective.asks=original", "objective.weight=1", "objective.over=noised"],
    ],
)
def test_a_record_holds_the_own_loss_and_its_floor(arguments: list[str], change: list[str]) -> None:
    found = record(run(compose([*arguments, *change])))["own"]
    assert [step for step, _, _ in found["curve"]] == [1, 2]
    assert found["curve"][-1][2] == found["loss"] > found["floor"] > 0
    assert found["predicted"] > 10
    assert "objective=electra" not in change or not found["held_out"]


def test_the_record_says_if_the_held_out_evaluation_is_on_the_own_noise(arguments: list[str]) -> None:
    def asks(*change: str) -> bool:
        described = Run.of(compose([*arguments, *change]))
        return reads_held_out(described, described.data())

    assert asks()
    assert asks("masking/schedule=static")
    assert not asks("masking.rate=0.4")
    assert not asks(*PAIRS)
    assert asks(*T5)
    assert not asks(*T5, "masking=iid")


def find_floor(arguments: list[str]) -> float:
    described = Run.of(compose(arguments))
    data = described.data()
    network = described.model.build(data.vocabulary, 0)
    objective = described.objective.build(network, data.vocabulary, 0)
    floor = InDistribution(described, data, objective).measure_baseline(network)
    assert floor is not None
    return floor


def test_the_floor_follows_the_noise_and_not_the_seed(arguments: list[str]) -> None:
    def find(*change: str) -> float:
        return find_floor([*arguments, *change])

    assert find() == find("seed=5")
    assert find("objective.view.mask=1", "objective.view.random=0", "objective.view.keep=0") > find()


def test_the_floor_of_a_text_that_shows_all_answers_does_not_see_them(arguments: list[str]) -> None:
    """A network that cannot see its own place reads the text as it is; a model that could would have no loss."""
    shown = ["objective.view.mask=0", "objective.view.random=0", "objective.view.keep=1"]
    masked = ["objective.view.mask=1", "objective.view.random=0", "objective.view.keep=0"]
    assert find_floor([*arguments, *shown]) == pytest.approx(find_floor([*arguments, *masked]), rel=0.2)


def test_the_floor_of_a_whole_text_copies_what_is_read_in_its_place(arguments: list[str]) -> None:
    def find(*change: str) -> float:
        return find_floor([*arguments, *T5, *change])

    copied = find("masking=iid", "objective/inputs=mask_random", "objective/targets=full")
    assert copied < 0.3 * find("masking=permute", "objective/inputs=permuted", "objective/targets=full")


def test_evaluating_on_the_own_noise_changes_no_bit_and_no_name(arguments: list[str], tmp_path: Path) -> None:
    extra = [*arguments, "trainer.max_steps=8", "model.dropout=0.1"]
    none = run(compose([*extra, "evaluation.own_points=0", f"run_dir={tmp_path / 'none'}"]))
    some = run(compose([*extra, "evaluation.own_points=4", f"run_dir={tmp_path / 'some'}"]))
    assert weights(none) == weights(some)
    assert record(none)["signature"] == record(some)["signature"]
    assert record(none)["metrics"] == record(some)["metrics"]
    assert "own" not in record(none)
    assert [point.step for point in read_points(some / "metrics.jsonl")] == [2, 4, 6, 8]


def test_a_pretraining_without_what_is_asked_is_not_shared(arguments: list[str]) -> None:
    run(compose([*arguments, "evaluation.own_points=0"]))
    again = record(run(compose([*arguments, "arm=other"])))
    assert again["own"]["curve"]
