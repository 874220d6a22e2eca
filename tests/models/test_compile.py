"""`Network.compile` compiles what a step calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from toy_training import VOCABULARY, batch_of, network_of
from toys import Table, WordVectors
from toys_changes import Relative, Squares

from paribus.models.bert import Bert
from paribus.models.change import Rotary
from paribus.models.changes.shared_key import SharedKey
from paribus.models.changes.window import Window
from paribus.models.network import Outputs


class Looked(Table):
    """Word vectors whose backbone is never called: its table is read."""

    def forward(self, batch: Any, state: Any = None) -> Outputs:
        return Outputs(self.backbone.weight[batch["ids_BL"]], state)


@pytest.fixture
def graphs() -> Iterator[list[Any]]:
    torch.compiler.reset()
    yield []
    torch.compiler.reset()


def counting(graphs: list[Any]) -> Callable[..., Any]:
    """A backend that runs graphs as they are and lists them."""

    def backend(graph: Any, _: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    return backend


def test_a_network_that_does_not_call_its_backbone_is_compiled(graphs: list[Any]) -> None:
    network = Looked(WordVectors(16), VOCABULARY)
    expected = network(batch_of(0)).hidden_BLD
    network.compile(backend=counting(graphs))
    assert torch.equal(network(batch_of(0)).hidden_BLD, expected)
    assert graphs


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"position": Rotary(), "scores": SharedKey(), "local": Window(3)},
        {"relative": Relative(), "squares": Squares()},
    ],
)
def test_a_compiled_encoder_is_the_same(changes: Any, graphs: list[Any]) -> None:
    encoder = network_of(Bert(2, 32, 2, 64, positions=40, dropout=0.0, attention_dropout=0.0, changes=changes))
    expected = encoder(batch_of(0) | {"full": True}).hidden_BLD
    encoder.compile(backend=counting(graphs))
    torch.testing.assert_close(encoder(batch_of(0) | {"full": True}).hidden_BLD, expected, atol=1e-5, rtol=1e-5)
    assert len(graphs) == 1, "one graph, without a break"
