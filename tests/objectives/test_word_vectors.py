"""The objectives of static word vectors: golden values of single steps, parameters, and what a run leaves."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from fake_store import FakeVocabulary
from torch import Tensor

from paribus.core.errors import UserError
from paribus.data.tokens.vocabulary import Vocabulary
from paribus.models.heads.word_vectors import BagOfWords, GloVe, NegativeSamples, NeuralLM, Products
from paribus.models.network import Outputs
from paribus.models.word_vectors import SubwordVectors, WordVectors
from paribus.objectives.near_words import GloveObjective
from paribus.objectives.word_vectors import Cbow, FastText, Glove, SkipGram
from paribus.optim.sparse import SGD, Adagrad


def table(*rows: list[float]) -> Any:
    return SimpleNamespace(table_VD=torch.tensor(rows))


def batch_of(**arrays: Any) -> dict[str, Any]:
    return {name: torch.tensor(values) for name, values in arrays.items()}


@pytest.mark.parametrize("sparse", [False, True])
def test_a_step_of_skip_gram(sparse: bool) -> None:
    head = NegativeSamples(table([0.0, 0.0], [0.0, 0.0]))
    with torch.no_grad():
        head.context.weight.copy_(torch.tensor([[0.3, 0.4], [-0.1, 0.2]]))
    head.context.sparse = sparse
    read = torch.nn.Parameter(torch.tensor([[0.1, -0.2]]))
    batch = batch_of(slot_P=[0], target_P=[0], negative_PK=[[1, -1]])
    loss = head(Outputs(read[None]), batch)
    assert loss.item() == pytest.approx(1.386919, abs=1e-6)
    loss.backward()
    SGD(0.025).build([("read", read), ("context", head.context.weight)]).step()
    assert read[0].tolist() == pytest.approx([0.105062, -0.197313], abs=1e-6)
    assert head.context.weight[0].tolist() == pytest.approx([0.301281, 0.397438], abs=1e-6)
    assert head.context.weight[1].tolist() == pytest.approx([-0.101219, 0.202438], abs=1e-6)


def test_products_are_those_of_copied_rows() -> None:
    read, table_UD = (torch.randn(size, 4, requires_grad=True) for size in (7, 5))
    at_PK = torch.randint(0, 5, (7, 9))
    weight_PK = torch.randn(7, 9)
    wanted_PK = (read[:, None] * table_UD[at_PK]).sum(-1)
    products_PK = Products.apply(read, table_UD, at_PK)  # type: ignore[no-untyped-call]
    assert torch.allclose(products_PK, wanted_PK, atol=1e-6)
    with torch.autocast("cpu", torch.bfloat16):  # as training runs
        ours = torch.autograd.grad(products_PK, (read, table_UD), weight_PK)
    theirs = torch.autograd.grad(wanted_PK, (read, table_UD), weight_PK)
    assert all(torch.allclose(one, other, atol=1e-5) for one, other in zip(ours, theirs, strict=True))


def test_the_words_of_a_bag_get_the_whole_gradient_or_their_share() -> None:
    gradients: dict[bool, Tensor] = {}
    for undivided in (True, False):
        head = BagOfWords(table([0.0, 0.0], [0.0, 0.0]), undivided)
        with torch.no_grad():
            head.context.weight.copy_(torch.tensor([[0.3, 0.4], [-0.1, 0.2]]))
        read = torch.tensor([[0.2, 0.0], [0.0, -0.4], [9.0, 9.0]], requires_grad=True)
        batch = batch_of(read_C=[0, 1], bag_C=[0, 0], slot_P=[2], target_P=[0], negative_PK=[[1]])
        loss = head(Outputs(read[None]), batch)
        assert loss.item() == pytest.approx(1.386919, abs=1e-6)  # the mean is that of the step above
        (gradients[undivided],) = torch.autograd.grad(loss, read)
    assert gradients[True][:2].flatten().tolist() == pytest.approx([-0.202479, -0.107479] * 2, abs=4e-5)  # of that step
    assert torch.allclose(gradients[True], 2 * gradients[False])


@pytest.mark.parametrize(("count", "weight"), [(1, 0.031623), (10, 0.177828), (50, 0.594604), (100, 1), (200, 1)])
def test_a_term_of_glove(count: float, weight: float) -> None:
    head = GloVe(table([0.1, 0.2], [0.0, 0.0]), 100.0, 0.75)
    with torch.no_grad():
        head.context.weight[1] = torch.tensor([-0.3, 0.4])
        head.bias.weight[0], head.context_bias.weight[1] = 0.05, -0.02
    given = {"slot_P": [0], "target_P": [1], "ids_BL": [[0]], "share_P": [count], "count_P": [float(count)]}
    outputs, batch = Outputs(torch.tensor([[[0.1, 0.2]]])), batch_of(**given)
    residual = float(head.logits(outputs, batch)[0, 0]) - np.log(count)
    assert float(head(outputs, batch)) == pytest.approx(0.5 * weight * residual**2, rel=1e-4)
    if count == 10:
        assert residual == pytest.approx(-2.222585, abs=1e-5)
        assert float(head(outputs, batch)) == pytest.approx(0.439225, abs=1e-5)


def test_glove_leaves_the_sum_of_its_tables() -> None:
    network: Any = table([1.0, 2.0], [3.0, 4.0])
    head = GloVe(network, 100.0, 0.75)
    GloveObjective({"glove": head}).finish(network)
    assert torch.allclose(network.table_VD - head.context.weight, torch.tensor([[1.0, 2.0], [3.0, 4.0]]))


def test_bengios_network_reads_the_last_words_and_has_the_papers_parameters() -> None:
    network: Any = table(*[[0.0] * 3] * 10)
    head = NeuralLM(network, 3, 5, True)
    assert sum(each.numel() for each in head.parameters()) + network.table_VD.numel() == 230
    hidden_BLD = torch.randn(2, 6, 3)
    logits = head.logits(Outputs(hidden_BLD), batch_of(slot_P=[0, 6 + 4]))
    first = torch.cat([hidden_BLD[0, 0], torch.zeros(6)])
    later = torch.cat([hidden_BLD[1, 4], hidden_BLD[1, 3], hidden_BLD[1, 2]])
    assert torch.allclose(logits, head.scores(torch.stack([first, later])))


def test_a_word_is_the_mean_of_itself_and_its_ngrams() -> None:
    spellings = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "where", "her")
    vocabulary: Any = SimpleNamespace(size=7, pad=0, unk=1, specials=(0, 1, 2, 3, 4), spellings=spellings)
    network: Any = SubwordVectors(4).build(vocabulary, 3)
    parts = network.backbone.parts.weight
    vectors_VD = network.vectors_VD()
    first, size = int(network.first_V[5]), int(network.size_V[5])
    assert size == 14
    own = network.table_VD[5] + parts[network.part_T[first : first + size]].sum(0)
    assert torch.allclose(vectors_VD[5], own / 15)
    assert torch.equal(vectors_VD[:5], network.table_VD[:5])
    assert float(network.table_VD.abs().max()) <= 0.5 / 4


def test_a_row_is_the_mean_of_its_words() -> None:
    vocabulary: Any = FakeVocabulary(10)
    network = WordVectors(4).build(vocabulary, 0)
    ids_BL = torch.tensor([[2, 7, 1, 9, 3, 0], [2, 1, 3, 0, 0, 0]])
    outputs = network({"ids_BL": ids_BL, "length_B": torch.tensor([5, 3])})
    assert outputs.summary_BD is not None
    assert torch.allclose(outputs.summary_BD[0], network.table_VD[[7, 9]].mean(0))
    assert not outputs.summary_BD[1].any()


@pytest.mark.parametrize("optimizer", [SGD(0.5), Adagrad(0.5)])
def test_sparse_gradients_give_the_same_steps(optimizer: SGD) -> None:
    tables = []
    for sparse in (False, True):
        embedding = torch.nn.Embedding(6, 3, sparse=sparse)
        with torch.no_grad():
            embedding.weight.copy_(torch.arange(18.0).view(6, 3))
        made = optimizer.build([("words", embedding.weight)])
        for ids in ([1, 1, 4], [4, 5, 5]):
            made.zero_grad()
            embedding(torch.tensor(ids)).square().sum().backward()
            assert embedding.weight.grad is not None
            assert embedding.weight.grad.is_sparse == sparse
            made.step()
        tables.append(embedding.weight.detach())
    assert torch.allclose(*tables)


@pytest.mark.parametrize("spec", [SkipGram(), Cbow(), FastText(), Glove()])
def test_words_without_counts_and_more_negatives_than_words_are_refused(spec: Any) -> None:
    with pytest.raises(UserError, match="no spellings and counts"):
        spec.check_words(Vocabulary(10, 0, 1, 2, 3, 4, (0, 1, 2, 3, 4)))
    if hasattr(spec, "negatives"):
        few: Any = FakeVocabulary(9, count_V=np.array([0, 3, 0, 0, 0, 4, 4, 4, 4]))
        with pytest.raises(UserError, match=r"objective.negatives=5, but the vocabulary has 4 words"):
            spec.check_words(few)
