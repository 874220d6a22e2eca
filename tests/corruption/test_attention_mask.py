"""A mixture of attention masks: its shares, who sees whom, and runs with it."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch
from fake_store import FakeVocabulary, examples_of, random_store

from paribus.core.config import compose
from paribus.core.errors import UserError
from paribus.corruption.attention_mask import KINDS, MixedAttention, count_kinds
from paribus.corruption.collators.encoder import RankedCollator
from paribus.corruption.corruption import Corruption
from paribus.corruption.masking.single_tokens import Bernoulli
from paribus.corruption.views.replace import Replace
from paribus.data.formats.full_sentences import FullSentences
from paribus.data.formats.pairs import SegmentPair
from paribus.models.bert import Bert
from paribus.models.network import as_batch
from paribus.training.run import run

LENGTH, ROWS = 32, 240


def batch(input_format: Any = None, **weights: float) -> dict[str, Any]:
    examples = examples_of(
        random_store(3000, mean=7), LENGTH, input_format=input_format or SegmentPair(LENGTH, short_seq_prob=0.5)
    )
    object.__setattr__(
        examples, "corruption", Corruption(Bernoulli(0.15), Replace(), attention_mask=MixedAttention(**weights))
    )
    object.__setattr__(examples, "collator", RankedCollator())
    return examples.batch(0, np.arange(ROWS))


def only(kind: str, input_format: Any = None) -> dict[str, Any]:
    return batch(input_format, **{name: float(name == kind) for name in KINDS})


def seen(kind: str, place: int, length: int, source: int) -> set[int]:
    """By the words of the paper."""
    if kind == "sequence_to_sequence":
        return set(range(source)) if place < source else set(range(place + 1))
    reach = {"bidirectional": (0, length), "left_to_right": (0, place + 1), "right_to_left": (place, length)}
    return set(range(*reach[kind]))


def test_rows_are_of_every_kind_in_the_papers_shares() -> None:
    counts = batch()["counts"]
    assert sum(counts[kind] for kind in KINDS) == ROWS
    for kind, share in zip(KINDS, (1 / 3, 1 / 3, 1 / 6, 1 / 6), strict=True):
        assert counts[kind] / ROWS == pytest.approx(share, abs=0.1)


@pytest.mark.parametrize("kind", KINDS)
def test_ranks_say_who_sees_whom(kind: str) -> None:
    arrays = only(kind)
    assert count_kinds(arrays["rank_BL"])[kind] == ROWS
    for row in range(20):
        rank_L, length = arrays["rank_BL"][row], int(arrays["length_B"][row])
        source = int(np.flatnonzero(arrays["part_BL"][row])[0])
        for place in range(length):
            assert set(np.flatnonzero(rank_L[:length] <= rank_L[place])) == seen(kind, place, length, source)


def test_a_single_text_is_cut_behind_its_first_tokens() -> None:
    rank_BL = only("sequence_to_sequence", FullSentences(LENGTH))["rank_BL"]
    source_B = (rank_BL == 0).sum(axis=1)
    assert source_B.min() >= 2
    assert len(set(source_B)) > 10


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_not_seen_changes_nothing(kind: str, norm: str) -> None:
    spec = Bert(2, 32, 2, 64, 64, 0.0, 0.0, norm=norm, initializer_range=0.2)
    encoder = spec.build(FakeVocabulary(), seed=3).eval()  # type: ignore[arg-type]
    arrays = only(kind)
    row, place = int(arrays["length_B"].argmin()), 3  # a padded row
    length, source = int(arrays["length_B"][row]), int(np.flatnonzero(arrays["part_BL"][row])[0])
    with torch.inference_mode():
        before = encoder(as_batch(arrays)).hidden_BLD[row]
        arrays["ids_BL"][row, place] = (arrays["ids_BL"][row, place] - 9) % 50 + 10
        after = encoder(as_batch(arrays)).hidden_BLD[row]
    assert before.isfinite().all()
    changed = {at for at in range(length) if not torch.allclose(before[at], after[at], atol=1e-6)}
    assert changed == {at for at in range(length) if place in seen(kind, at, length, source)}


def test_a_row_that_sees_both_sides_is_as_without_a_mixture() -> None:
    encoder = Bert(2, 32, 2, 64, 64, 0.0, 0.0, initializer_range=0.2).build(FakeVocabulary(), seed=3).eval()  # type: ignore[arg-type]
    arrays = only("bidirectional")
    with torch.inference_mode():
        ranked = encoder(as_batch(arrays)).hidden_BLD
        del arrays["rank_BL"]
        plain = encoder(as_batch(arrays)).hidden_BLD
    real = torch.arange(LENGTH) < torch.as_tensor(arrays["length_B"])[:, None]
    assert torch.allclose(ranked[real], plain[real], atol=1e-5)


def test_a_run_records_the_shares(arguments: list[str]) -> None:
    folder = run(compose([*arguments, "objective=unilm", "input=segment_pair", "trainer.max_steps=6"]))
    record = json.loads((folder / "result.json").read_text())
    assert record["status"] == "done"
    assert sum(record["realised"][kind] for kind in KINDS) == pytest.approx(1.0)
    assert record["metrics"]["mlm_loss"] > 0


@pytest.mark.parametrize(
    ("overrides", "named"),
    [
        (["objective.attention_mask.left_to_right=-1"], "objective.attention_mask"),
        (["model.attention=left"], "model.attention=left"),
        (["masking=none"], "masking=none"),
    ],
)
def test_what_does_not_fit_is_refused(arguments: list[str], overrides: list[str], named: str) -> None:
    with pytest.raises(UserError, match=named):
        run(compose([*arguments, "objective=unilm", *overrides]))
