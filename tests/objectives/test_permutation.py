"""Permutation language modeling in a run: its loss, what its columns may be compared with, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

from paribus.core.config import compose
from paribus.training.description import Run
from paribus.training.profile import resolve
from paribus.training.run import run
from paribus.training.stage import Stage, open_stage

XLNET = ["model=xlnet_tiny", "objective=permutation", "masking=permutation_span", "input.length=32"]
STREAMS = [*XLNET, "input=xlnet_pair", "model.memory=16"]
ALL_MASKED = [
    "+masking@evaluation.masking=bernoulli",
    "masking/schedule@evaluation.masking.schedule=static",
    "+objective/view@evaluation.inputs=replace",
    "evaluation.inputs.mask=1",
    "evaluation.inputs.random=0",
    "evaluation.inputs.keep=0",
]


def open_run(cfg: Any, folder: Path) -> Stage:
    described = Run.of(cfg)
    return open_stage(described, described.data(), resolve(described.profile), folder)


def test_a_run_ends_in_a_record_and_a_checkpoint_that_loses_the_same(arguments: list[str]) -> None:
    folder = run(compose([*arguments, *STREAMS, "trainer.max_steps=6", "optimizer.lr=0.01"]))
    found = json.loads((folder / "result.json").read_text())
    assert found["metrics"]["plm_loss"] < found["baselines"]["plm_loss"]["unigram"] + 1.5
    assert found["targets"]["plm_loss"]["what"] == "1 in 6 tokens, in spans and in a fixed order"
    assert found["targets"]["mlm_loss"]["what"] == "15% of the tokens, unseen"
    assert 0.1 < found["realised"]["masking_rate"] < 0.17

    theirs = AutoModelForCausalLM.from_pretrained(folder / "model").eval()
    stage = open_run(compose([*arguments, *STREAMS]), folder)
    loss, asked = 0.0, 0
    for arrays in stage.evaluation.arrays:
        for row, length in enumerate(arrays["length_B"].tolist()):
            read = [*range(1, length), 0]
            rank_L = torch.from_numpy(arrays["rank_BL"][row, read])
            width = arrays["ids_BL"].shape[1]
            slots = arrays["slot_P"][arrays["slot_P"] // width == row] % width
            map_NL = torch.zeros(len(slots), length)
            map_NL[torch.arange(len(slots)), torch.from_numpy((slots - 1) % length)] = 1
            part_L = np.where(np.array(read) == 0, 2, arrays["part_BL"][row, read])
            with torch.no_grad():
                logits_NV = theirs(
                    input_ids=torch.from_numpy(arrays["ids_BL"][row, read])[None],
                    token_type_ids=torch.from_numpy(part_L)[None],
                    perm_mask=(rank_L[None] >= rank_L[:, None]).float()[None] * (rank_L > 0),
                    target_mapping=map_NL[None],
                    use_mems=False,
                ).logits[0]
            target_N = torch.from_numpy(arrays["ids_BL"][row, slots])
            loss += float(torch.nn.functional.cross_entropy(logits_NV, target_N, reduction="sum"))
            asked += len(slots)
    assert asked == found["targets"]["plm_loss"]["places"]
    assert loss / asked == pytest.approx(found["metrics"]["plm_loss"], abs=1e-5)


def test_it_is_asked_for_the_places_of_a_masked_model_and_shares_its_column_if_nothing_else_differs(
    arguments: list[str], tmp_path: Path
) -> None:
    for settings, same in (([], False), (ALL_MASKED, True)):
        bert = open_run(compose([*arguments, "input.length=32", *settings]), tmp_path)
        xlnet = open_run(compose([*arguments, *XLNET, *settings]), tmp_path)
        (asked,) = (each for each in xlnet.further if "mlm_loss" in each.metrics)
        assert np.array_equal(asked.targets, bert.evaluation.targets)  # type: ignore[attr-defined]
        mine, theirs = asked.target_sets()["mlm_loss"], bert.evaluation.target_sets()["mlm_loss"]
        assert (mine == theirs) == same
        if same:
            for ours, arrays in zip(asked.arrays, bert.evaluation.arrays, strict=True):  # type: ignore[attr-defined]
                hidden = ours["rank_BL"] > 0
                assert (arrays["ids_BL"] != 4)[~hidden].all()
                assert np.array_equal(arrays["ids_BL"][~hidden], ours["ids_BL"][~hidden]), "the same visible text"


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ([*XLNET, "model=bert_tiny"], "set model=xlnet_tiny"),
        ([*XLNET, "model=bert_tiny", "model.attention=left"], "set model=xlnet_tiny"),
        ([*XLNET, "masking.context=0.5"], "masking.context=0.5 is out of range"),
        ([*XLNET, "input=xlnet_pair", "input.length=33"], "odd, but input=xlnet_pair has two halves"),
        ([*XLNET, "model.memory=8"], "set input=xlnet_pair, or model.memory=0"),
        ([*XLNET, "masking=none"], "masking=none leaves the objective nothing to predict"),
        ([*STREAMS, "batch.size=3"], "batch.size=3 is odd, but half of the rows are read backwards"),
        ([*STREAMS, "batch.by=tokens"], "set batch.by=sequences"),
        ([*XLNET, "finetune/method=adapters"], "goes inside the layers of a BERT or T5"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(
    overrides: list[str], message: str, arguments: list[str], refused_run: Callable[..., str]
) -> None:
    last = {text.partition("=")[0]: text for text in [*arguments, *overrides]}  # Hydra wants each choice once
    assert message in refused_run(*last.values())
