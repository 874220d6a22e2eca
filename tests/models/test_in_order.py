"""Long texts in windows that a network with memory reads in order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from toy_training import VOCABULARY

from paribus.models.heads.choices import Classifier, MemoryWindows, RowAnswer
from paribus.models.memory import MemoryBert
from paribus.models.network import Batch, Network, as_batch
from paribus.models.xlnet import XLNet
from paribus.tasks.examples import Example
from paribus.tasks.rows import GroupedRows, encode_stretches, frame

LENGTHS = ((4, 4), (6,), (4, 5, 3), (1, 2))  # tokens of the windows of each text


def network_of(memory: int, kind: str = "transformer_xl") -> Network:
    sizes = {"hidden": 16, "heads": 2, "intermediate": 32, "positions": 64}
    plain = {"dropout": 0.0, "attention_dropout": 0.0, "attention": "left"}
    if kind == "xlnet":
        return XLNet(2, 16, 2, 32, memory, dropout=0.0).build(VOCABULARY, 3).eval()
    return MemoryBert(2, **sizes, **plain, memory=memory).build(VOCABULARY, 3).eval()  # type: ignore[arg-type]


def texts(seed: int = 0) -> list[list[np.ndarray[Any, Any]]]:
    tokens = np.random.default_rng(seed).integers(5, 97, sum(map(sum, LENGTHS)))
    windows = iter(np.split(tokens, np.cumsum([size for sizes in LENGTHS for size in sizes])[:-1]))
    return [[next(windows) for _ in sizes] for sizes in LENGTHS]


def batch_of(read: list[list[np.ndarray[Any, Any]]], multiple: int = 8) -> Batch:
    rows = frame([[ids for text in read for ids in text]], np.zeros(sum(map(len, read)), np.int64), VOCABULARY)
    first_N = np.cumsum([0, *map(len, read)])
    grouped = GroupedRows(rows, first_N, np.arange(len(read)) % 2, 100, in_order=True)
    return as_batch(grouped.batch(np.arange(len(read)), multiple))


@pytest.mark.parametrize("kind", ["transformer_xl", "xlnet"])
@pytest.mark.parametrize("memory", [3, 64])
@torch.inference_mode()
def test_each_text_is_read_as_if_it_were_alone_and_not_padded(memory: int, kind: str) -> None:
    network, together = network_of(memory, kind), batch_of(texts())
    outputs = network(together)
    row = 0
    for text in texts():
        state = None
        for number, window in enumerate(text):
            alone = frame([[window]], np.zeros(1, np.int64), VOCABULARY)
            batch = as_batch(alone.batch(np.arange(1), 1)) | {"begins_B": torch.tensor([number == 0])}
            expected = network(batch, state)
            state = expected.state
            length = int(batch["length_B"])
            torch.testing.assert_close(outputs.hidden_BLD[row, :length], expected.hidden_BLD[0], atol=2e-6, rtol=0)
            torch.testing.assert_close(outputs.row_BD[row], expected.row_BD[0], atol=2e-6, rtol=0)
            row += 1


@torch.inference_mode()
def test_the_last_window_is_the_summary_and_depends_on_the_first() -> None:
    network = network_of(64)
    head = Classifier(windows=MemoryWindows()).for_rows(network, RowAnswer(2, torch.nn.functional.cross_entropy), 5)
    read, others = texts(), texts(1)
    usual_BC = head.eval().logits(network(batch_of(read)), batch_of(read))
    read[2][0] = others[2][0]
    changed_BC = head.logits(network(batch_of(read)), batch_of(read))
    assert usual_BC.shape == (len(LENGTHS), 2)
    assert (usual_BC[2] != changed_BC[2]).any()
    torch.testing.assert_close(usual_BC[[0, 1, 3]], changed_BC[[0, 1, 3]])


def test_gradients_flow_through_the_last_window_alone() -> None:
    network = network_of(64)
    read = [[np.array([10, 11, 12]), np.array([13, 14])], [np.array([15, 16])]]
    batch = {**batch_of(read), "layers": True}
    outputs = network(batch)
    assert outputs.layers is not None
    assert [len(states_BLD) for states_BLD in outputs.layers] == [3] * (network.depth + 1)
    outputs.row_BD[:, 0].sum().backward()
    slope_V = network.table_VD.grad.abs().sum(1)  # type: ignore[union-attr]
    assert (slope_V[13:17] > 0).all()
    assert (slope_V[10:13] == 0).all()


class Words:
    """A tokenizer of numbers."""

    def encode(self, given: list[str]) -> list[tuple[np.ndarray[Any, Any], None]]:
        return [(np.array([int(word) for word in text.split()], np.int64), None) for text in given]


def test_windows_in_order_are_equally_long_and_hold_all_of_the_text() -> None:
    numbers = [range(10, 10 + count) for count in (0, 8, 9, 40)]
    examples = [Example(" ".join(map(str, text)), None, 0) for text in numbers]
    rows = encode_stretches(examples, Words(), VOCABULARY, 10, 4, 100)  # type: ignore[arg-type]
    batch = rows.batch(np.arange(4), 1)
    assert batch["length_B"].tolist() == [2, 10, 7, 6, 10, 10, 10, 10]
    assert batch["window_W"].tolist() == [0, 0, 0, 1, 0, 1, 2, 3]
    assert batch["ids_BL"][3, 1:5].tolist() == list(range(15, 19))
    assert batch["ids_BL"][6, 1:9].tolist() == list(range(26, 34))
    assert batch["ids_BL"][7, 1:9].tolist() == list(range(42, 50))  # what lies between is not read
