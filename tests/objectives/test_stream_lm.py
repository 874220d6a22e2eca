"""One language model that is read in segments, with memory, and in a window that slides by one."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy
from toy_training import VOCABULARY

from paribus.core.errors import UserError
from paribus.corruption.views.replace import Unchanged
from paribus.data.tokens.vocabulary import Entries
from paribus.models.heads.adaptive import AdaptiveHead
from paribus.models.heads.vocabulary import MaskedLMHead
from paribus.models.memory import MemoryBert
from paribus.models.network import Network, Outputs, initialize
from paribus.objectives.evaluation import evaluating
from paribus.objectives.stream_evaluations import Reading, find_context
from paribus.objectives.stream_lm import StreamLM

IDS = np.random.default_rng(1).integers(5, 97, 13)


def network_of(layers: int = 1, memory: int = 4) -> Network:
    sizes: Any = {"hidden": 16, "heads": 2, "intermediate": 32, "dropout": 0.0, "attention_dropout": 0.0}
    return MemoryBert(layers, **sizes, attention="left", memory=memory, initializer_range=0.3).build(VOCABULARY, 3)


def reading_of(network: Network) -> Reading:
    head = MaskedLMHead(network)
    initialize(head, 5, 0.3)
    network.eval()
    return Reading(network, head.eval(), VOCABULARY.pad)


def count_seen(loss: Any) -> list[int]:
    """On how many tokens the loss at each target depends, the target aside."""
    usual_N = loss(IDS)
    seen = np.zeros(len(IDS) - 1, np.int64)
    for place in range(len(IDS) - 1):
        other = IDS.copy()
        other[place] = 5 + (other[place] - 4) % 92
        changed_N = (loss(other) != usual_N).numpy()
        changed_N[max(0, place - 1) : place] = False  # its own target is another one
        seen += changed_N
    return seen.tolist()  # type: ignore[no-any-return]


def test_visible_keys_of_the_three_ways_to_read() -> None:
    reading = reading_of(network_of())
    with evaluating(reading.network, reading.head):
        assert count_seen(lambda ids: reading.segments(ids, 4, 0)) == [1, 2, 3, 4] * 3
        assert count_seen(lambda ids: reading.segments(ids, 4, 4)) == [1, 2, 3, 4, 5, 6, 7, 8, 5, 6, 7, 8]
        assert count_seen(lambda ids: reading.window(ids, 4)) == [1, 2, 3, *[4] * 9]


def test_the_three_agree_where_they_see_the_same() -> None:
    reading = reading_of(network_of(layers=2, memory=64))
    with evaluating(reading.network, reading.head):
        alone, remembered = (reading.segments(IDS, 4, memory) for memory in (0, 64))
        slid, whole = (reading.window(IDS, length) for length in (4, 64))
        later = reading.window(IDS, 64, first=7)
    torch.testing.assert_close(alone[:4], slid[:4])
    torch.testing.assert_close(alone[:4], remembered[:4])
    torch.testing.assert_close(remembered, whole)
    torch.testing.assert_close(later, whole[6:])


def test_rates_are_those_of_the_same_weights_in_both_ways() -> None:
    reading = reading_of(network_of())
    with evaluating(reading.network, reading.head):
        fast, slow = reading.rates(IDS, 12, 12)
    assert fast > slow > 0


def test_the_context_is_the_longest_that_saves_a_hundredth_of_the_loss() -> None:
    hard = torch.tensor([4.0, 2.0, 2.0, 2.0])
    losses = {8: hard, 16: hard - torch.tensor([2.0, 0, 0, 0]), 32: hard - torch.tensor([2.0, 0.01, 0.01, 0.01])}
    assert find_context(losses, 1.0) == 16  # then 0.0075 of 2
    assert find_context({8: hard, 16: hard, 32: hard / 2}, 1.0) == 8  # each step counts
    assert find_context({8: hard, 16: hard - torch.tensor([0, 0.5, 0.5, 0.5])}, 0.25) == 8  # the hardest is as before


def test_the_adaptive_softmax_is_a_distribution_over_words_by_their_frequency() -> None:
    entries: Any = Entries(folder=None, size=97, store=None)  # type: ignore[arg-type]
    count_V = np.random.default_rng(2).integers(0, 1000, 97)
    entries.__dict__["count_V"] = count_V
    network = network_of()
    network.vocabulary = replace(VOCABULARY, entries=entries)
    objective = StreamLM(Unchanged(), cutoffs=[10, 40]).build(network, network.vocabulary, 7)
    head = objective.token_head
    assert isinstance(head, AdaptiveHead)
    assert head.rank_V.argsort()[:3].tolist() == np.argsort(-count_V, kind="stable")[:3].tolist()
    hidden_BLD, target_P = torch.randn(2, 6, 16), torch.randint(0, 97, (12,))
    outputs, batch = Outputs(hidden_BLD), {"slot_P": torch.arange(12), "target_P": target_P}
    log_share_PV = head.logits(outputs, batch)
    torch.testing.assert_close(log_share_PV.exp().sum(1), torch.ones(12))
    torch.testing.assert_close(head(outputs, batch), cross_entropy(log_share_PV, target_P, reduction="sum"))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"spans": [2, 1]}, "objective.spans=.2, 1. is not a list of ascending"),
        ({"spans": [2, 4]}, "lacks 1, that of the training"),
        ({"contexts": [8]}, "nothing to compare"),
        ({"slid_tokens": 1}, "slid_tokens=1 is below 2"),
    ],
)
def test_settings_that_ask_nothing_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        StreamLM(Unchanged(), **settings)


def test_cuts_outside_the_vocabulary_are_refused() -> None:
    with pytest.raises(UserError, match="does not cut 97 entries in ascending order: give numbers between 1 and 96"):
        AdaptiveHead(network_of(), [40, 97])


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["model.memory=100000"], "model.memory=100000 is longer than each of the 4 streams"),
        (["batch.size=20000"], r"too short for 20000 streams of two tokens: set batch\.size="),
        (["input=windows"], "shuffled and do not go on from each other: set input=streams, or model"),
        (
            ["input=full_sentences", "model.memory=0"],
            "adds special tokens to its rows: set input=streams or input=windows",
        ),
        (["model.same_length=true", "objective.spans=[1]"], "shows fewer: set model.same_length=false"),
        (["batch.by=tokens"], "as many rows in every step: set batch.by=sequences"),
        (["model.memory=0", "model.same_length=true"], "same_length=true without memory"),
        (["objective.spans=[1,64]"], r"the longest of objective\.spans=2048 exceeds model\.positions=1024"),
        (["objective.slid_tokens=20000000", "objective.spans=[1]"], "windows would slide over 20,000,000 tokens"),
        (["model=bert_tiny", "model.attention=left", "objective.protocols=true"], "which it cannot have"),
        (["objective.quarters=true", "input.length=3"], "segments of 3 tokens have no quarters: set input.length=4"),
        (
            ["objective.quarters=true", "input.length=9000", "model.positions=9000"],
            "held-out tokens hold no segment of 9000",
        ),
    ],
)
def test_what_cannot_be_read_is_refused_before_training(
    arguments: list[str], refusal: Any, overrides: list[str], message: str
) -> None:
    assert re.search(message, refusal("train", *arguments, "family=lm", *overrides))
