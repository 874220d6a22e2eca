"""The states of single layers: what each kind of network gives, and heads that read them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from small_finetuning import backbone, config
from toy_training import VOCABULARY, batch_of, fit, learner_of, network_of
from toys import Topic, WordVectors
from toys_states import Neighbors
from transformers import AlbertConfig, BertConfig

from paribus.core.build import build
from paribus.core.config import compose
from paribus.core.errors import UserError
from paribus.models.any_network import AnyNetwork, read_facts
from paribus.models.bert import Bert
from paribus.models.heads.choices import Layers
from paribus.models.heads.wrappers import OnLayers
from paribus.models.network import Network
from paribus.models.text_to_text import TextEncoder
from paribus.objectives.objective import Objective

SIZES = {"num_hidden_layers": 2, "hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 32}


def any_network(config: Any) -> Any:
    return AnyNetwork(Bert(2, 16, 2, 32), VOCABULARY, read_facts(config), config)


def watched(network: Any, modules: list[Any], norm: Any, batch: Any) -> list[torch.Tensor]:
    """What hooks that stay on these modules see in training, with dropout; `norm` follows all but the first."""
    states: list[Any] = []
    for module in modules:
        module.register_forward_hook(lambda _, __, out: states.append(out[0] if isinstance(out, tuple) else out))
    torch.manual_seed(0)
    network.train()(batch)
    return [state if norm is None or at == 0 else norm(state) for at, state in enumerate(states)]


@pytest.mark.parametrize("kind", ["post", "pre", "left", "narrow", "any", "t5"])
def test_the_states_are_those_that_hooks_see(kind: str) -> None:
    norm: Any = None
    if kind == "any":
        network = any_network(BertConfig(vocab_size=97, **SIZES))
        modules = [network.backbone.embeddings, *network.backbone.encoder.layer]
    elif kind == "t5":
        shape = ["model.layers=2", "model.hidden=16", "model.heads=2", "model.key_width=8", "model.intermediate=32"]
        cfg = compose(["scale=test", "family=t5", *shape])
        network = TextEncoder(build(cfg.model).build(VOCABULARY, 0))
        modules = [network.backbone.embed_tokens, *network.backbone.block]
        norm = network.backbone.final_layer_norm
    else:
        own = {"norm": "pre"} if kind == "pre" else {"attention": "left"} if kind == "left" else {}
        own |= {"embedding": 8} if kind == "narrow" else {}
        network = network_of(Bert(2, 16, 2, 32, positions=128, **own))
        modules = [network.backbone.embeddings, *network.backbone.encoder.layer]
        norm = network.backbone.LayerNorm if kind == "pre" else None
    batch = batch_of(0)
    expected = watched(network, modules, norm, batch)
    torch.manual_seed(0)
    found = network.states({**batch, "read_P": torch.tensor([3])})
    assert len(found) == network.depth + 1
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))
    assert network(batch).layers is None


def test_a_network_that_gives_no_layers_says_so() -> None:
    shared = any_network(AlbertConfig(vocab_size=97, embedding_size=8, **SIZES))
    for network in (shared, network_of(WordVectors(16))):
        with pytest.raises(UserError, match="does not give the states of single layers: set finetune/head/layers=last"):
            network.states(batch_of(0))


def on_layers(network: Network, **settings: Any) -> Any:
    return Layers([0, 1, 2], "weighted", **settings).wrap(Topic(network.width, 2), network)


def test_a_head_on_layers_may_be_asked_twice_and_reads_a_network_of_ones_own() -> None:
    network = network_of(Neighbors(16))
    head, batch = on_layers(network), batch_of(0)
    outputs = network({**batch, "layers": True})
    first = head.logits(outputs, batch)
    assert torch.equal(first, head.logits(outputs, batch))
    mean_BLD = torch.stack(network.states(batch)).mean(0)
    assert torch.allclose(first, head.head.classifier(network.summarize(mean_BLD, batch)), atol=1e-6)
    assert not [module for module in head.modules() if isinstance(module, Network)]


def test_learned_weights_are_reported() -> None:
    head = OnLayers([0, 1, 2, 3], "weighted", 0.0, Topic(16, 2))
    head.weight_N.data = torch.tensor([0.0, 1.0, 2.0, 0.0])
    report = head.report()
    assert [report[f"mix_l{layer}"] for layer in range(4)] == pytest.approx(
        [0.082595, 0.224515, 0.610296, 0.082595], abs=1e-6
    )
    assert report["centre_of_gravity"] == pytest.approx(1.692890, abs=1e-6)
    assert report["mix_kl"] == pytest.approx(0.487038, abs=1e-6)
    assert OnLayers([0, 1], "mean", 0.0, Topic(16, 2)).report() == {}


def test_a_penalty_is_added_once_to_a_step() -> None:
    head = OnLayers([0, 1, 2], "weighted", 0.001, Topic(16, 2))
    head.weight_N.data = torch.tensor([1.0, 0.0, -1.0])
    assert head.penalty().item() == pytest.approx(0.002)
    assert OnLayers([0, 1], "weighted", 0.0, Topic(16, 2)).penalty() is None

    def gradient(strength: float) -> torch.Tensor:
        network = network_of(Neighbors(16))
        torch.manual_seed(0)
        head = on_layers(network, penalty=strength)
        head.weight_N.data = torch.tensor([1.0, 0.0, -1.0])
        learner = learner_of(network, Objective({"topic": head}), 1)
        learner.clip, seen = None, []
        head.weight_N.register_hook(lambda grad: seen.append(grad.clone()))
        fit(learner, [[batch_of(0), batch_of(1), batch_of(2)]], 1)
        return torch.stack(seen).sum(0)

    added = gradient(0.5) - gradient(0.0)
    assert torch.allclose(added, torch.tensor([1.0, 0.0, -1.0]), atol=1e-6)
    with pytest.raises(UserError, match=r"penalty=0\.5, but combine=mean learns no weights"):
        Layers([0, 1], "mean", 0.5)


def test_a_backbone_of_the_house_is_left_without_hooks() -> None:
    network = backbone(config())
    network.states({"ids_BL": torch.ones(2, 4).long(), "part_BL": torch.zeros(2, 4).long(), "full": True})
    assert not any(module._forward_hooks for module in network.modules())
