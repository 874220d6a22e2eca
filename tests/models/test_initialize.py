"""Initial weights: norms and biases of libraries by rule, other vectors drawn or declared, shipped models unchanged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import pytest
import torch
from torch import nn

from paribus.core.checksums import digest
from paribus.data.tokens.vocabulary import Vocabulary
from paribus.models.bert import Bert
from paribus.models.change import Rotary
from paribus.models.heads.choices import BiLSTM, RowAnswer, StochasticAnswer
from paribus.models.heads.head import Loss
from paribus.models.heads.rows import ClassificationHead
from paribus.models.heads.tokens import CRFHead
from paribus.models.heads.vocabulary import MaskedLMHead, SpanBoundaryHead
from paribus.models.heads.wrappers import OnLayers
from paribus.models.network import initialize
from paribus.models.t5 import T5

VOCABULARY = Vocabulary(size=40, pad=0, unk=1, cls=2, sep=3, mask=4, specials=(0, 1, 2, 3, 4), first_sentinel=30)
SMALL = Bert(2, 16, 2, 32, positions=20)


class Query(nn.Module):
    """XLNet's query vector, a gate that is declared, a bias of its own, and layers of libraries."""

    initial_values: ClassVar[Mapping[str, float]] = {"gate_D": -2.0, "start_HD": 0.5}

    def __init__(self) -> None:
        super().__init__()
        self.query_D = nn.Parameter(torch.zeros(400))
        self.bias = nn.Parameter(torch.zeros(400))
        self.gate_D = nn.Parameter(torch.zeros(4))
        self.start_HD = nn.Parameter(torch.zeros(2, 4))
        self.linear, self.norm, self.batch_norm = nn.Linear(4, 4), nn.LayerNorm(4), nn.BatchNorm1d(4)
        self.lstm, self.cell = nn.LSTM(4, 3, num_layers=2, bidirectional=True), nn.LSTMCell(4, 3)
        self.gru, self.attention = nn.GRU(4, 3), nn.MultiheadAttention(4, 2)


def test_a_vector_is_drawn_from_its_name_unless_it_is_declared() -> None:
    module, again, other = Query(), Query(), Query()
    for each, seed in ((module, 3), (again, 3), (other, 4)):
        initialize(each, seed, 0.02)
    for vector in (module.query_D, module.bias):
        assert float(vector.detach().std()) == pytest.approx(0.02, rel=0.1)
    assert torch.equal(module.query_D, again.query_D)
    assert not torch.equal(module.query_D, other.query_D)
    assert not torch.equal(module.query_D, module.bias)
    assert set(module.gate_D.tolist()) == {-2.0}
    assert set(module.start_HD.flatten().tolist()) == {0.5}


def test_biases_of_libraries_are_zero_and_forget_gates_are_open() -> None:
    module = Query()
    initialize(module, 3, 0.02)
    for layer in (module.linear, module.norm, module.batch_norm):
        assert not layer.bias.any()
    for norm in (module.norm, module.batch_norm):
        assert set(norm.weight.tolist()) == {1.0}
    assert not any(bias.any() for name, bias in module.gru.named_parameters() if "bias" in name)
    assert not module.attention.in_proj_bias.any()
    for lstm in (module.lstm, module.cell):
        for name, bias in lstm.named_parameters():
            if "bias" in name:
                assert bias.tolist() == [0.0] * 3 + [float("ih" in name)] * 3 + [0.0] * 6


def weights_of(name: str) -> nn.Module:
    """A shipped model, or a head on a small one."""
    network = SMALL.build(VOCABULARY, 3)
    heads = {
        "mlm": lambda: MaskedLMHead(network),
        "sbo": lambda: SpanBoundaryHead(network, 4, 8),
        "crf": lambda: CRFHead(16, 3, 0.0),
        "weighted": lambda: OnLayers((1, 2), "weighted", 0.0, ClassificationHead(16, 2, 0.0)),
        "bilstm": lambda: BiLSTM().for_rows(network, RowAnswer(3, Loss()), 7),
        "san": lambda: StochasticAnswer().for_rows(network, RowAnswer(3, Loss()), 7),
    }
    if name in heads:
        module: nn.Module = heads[name]()
        if name not in ("bilstm", "san"):  # these begin with initial weights
            initialize(module, 7, 0.02)
        return module
    models = {
        "bert": SMALL,
        "pre": Bert(2, 16, 2, 32, norm="pre", changes={"position": Rotary()}),
        "t5": T5(2, 16, 2, 8, 32),
    }
    return models[name].build(VOCABULARY, 3)


@pytest.mark.parametrize(
    ("name", "weights"),
    [
        ("bert", "f71eb3be7bb8"),
        ("pre", "e8631a18561d"),
        ("t5", "841d945878ce"),
        ("mlm", "603f3cf042b3"),
        ("sbo", "1ccdf435936c"),
        ("crf", "12e34057ff47"),
        ("bilstm", "3fe55411523a"),
        ("san", "894fa2b5c8f8"),
    ],
)
def test_shipped_models_and_heads_keep_their_bits(name: str, weights: str) -> None:
    state = weights_of(name).state_dict()
    assert digest({key: (1e6 * tensor).round().tolist() for key, tensor in state.items()}) == weights


def test_learned_weights_of_layers_begin_equal() -> None:
    head: Any = weights_of("weighted")
    assert (head.weight_N.tolist(), head.gamma.item()) == ([0.0, 0.0], 1.0)
