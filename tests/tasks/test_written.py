"""Text that an encoder writes: the rows that it is trained on, what it writes, and whole runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from paribus.core.config import compose
from paribus.core.errors import UserError
from paribus.data.tokens.vocabulary import Vocabulary
from paribus.models.bert import Bert
from paribus.models.generation import greedy
from paribus.models.heads.vocabulary import MaskedLMHead, start_head
from paribus.models.network import as_batch
from paribus.tasks.types.generation import SourceTargetRows
from paribus.training.run import run
from paribus.training.steps import TaskSteps

V, ROWS = 60, 200
VOCABULARY = Vocabulary(size=V, pad=0, unk=1, cls=2, sep=3, mask=4, specials=(0, 1, 2, 3, 4))


def rows_of(masking: float | None, most: int = 6) -> SourceTargetRows:
    """Sources of 5 to 20 tokens, targets of 2 to 12, with their special tokens."""
    random = np.random.default_rng(0)
    source_N, target_N = random.integers(5, 21, ROWS), random.integers(2, 13, ROWS)
    texts = [
        [2, *random.integers(5, V, s - 2), 3, *random.integers(5, V, t - 1), 3]
        for s, t in zip(source_N, target_N, strict=True)
    ]
    length_N = source_N + target_N
    return SourceTargetRows(
        np.concatenate(texts).astype(np.int32),
        np.concatenate([[0] * s + [1] * t for s, t in zip(source_N, target_N, strict=True)]).astype(np.uint8),
        np.cumsum(length_N) - length_N,
        length_N,
        np.zeros(ROWS, np.int64),
        VOCABULARY.pad,
        source_N,
        VOCABULARY,
        None,  # type: ignore[arg-type]
        masking,
        most,
    )


def test_masks_are_in_the_target_and_as_many_as_in_the_papers_code() -> None:
    rows = rows_of(0.7)
    found, whole = rows.batch(np.arange(ROWS), 8), rows_of(None).batch(np.arange(ROWS), 8)
    row_P, column_P = np.divmod(found["slot_P"], found["ids_BL"].shape[1])
    assert (column_P >= rows.source_N[row_P]).all()
    assert (column_P < rows.length_N[row_P]).all()
    wanted_B = np.maximum(1, np.rint((rows.length_N - rows.source_N - 1) * 0.7))
    assert np.array_equal(np.bincount(row_P, minlength=ROWS), wanted_B)
    assert np.array_equal(found["target_P"], whole["ids_BL"].reshape(-1)[found["slot_P"]])
    assert found["counts"]["predicted"] == len(found["slot_P"])
    ends = np.mean(column_P == rows.length_N[row_P] - 1)
    assert ends == pytest.approx(np.sum(wanted_B / (rows.length_N - rows.source_N)) / wanted_B.sum(), abs=0.03)
    shown_P = found["ids_BL"].reshape(-1)[found["slot_P"]]
    assert np.mean(shown_P == VOCABULARY.mask) == pytest.approx(0.8, abs=0.04)
    assert np.mean(shown_P == found["target_P"]) == pytest.approx(0.1, abs=0.03)
    changed = np.flatnonzero(found["ids_BL"] != whole["ids_BL"])
    assert set(changed) <= set(found["slot_P"])


def test_ranks_are_those_of_a_source_and_a_target() -> None:
    rows = rows_of(0.7)
    rank_BL = rows.batch(np.arange(20), 8)["rank_BL"]
    for rank_L, source, length in zip(rank_BL, rows.source_N, rows.length_N, strict=False):
        for place in range(length):
            seen = set(range(source)) if place < source else set(range(place + 1))
            assert set(np.flatnonzero(rank_L[:length] <= rank_L[place])) == seen


def test_what_is_masked_depends_on_seed_pass_and_row_alone() -> None:
    steps = TaskSteps(rows_of(0.7), 16, 2, seed=3)
    again = TaskSteps(rows_of(0.7), 16, 2, seed=3)

    def shown(batch: dict[str, Any]) -> dict[int, list[int]]:
        columns = (batch[key].tolist() for key in ("row_B", "ids_BL", "length_B"))
        return {row: ids[:length] for row, ids, length in zip(*columns, strict=True)}

    passes: list[dict[int, list[int]]] = [{}, {}]
    for step in range(steps.total):
        passes[step // steps.per_epoch] |= shown(steps[step][0])
    resumed = shown(again[steps.per_epoch + 2][0])
    assert resumed.items() <= passes[1].items()
    assert passes[0].keys() == passes[1].keys() == set(range(ROWS))
    assert sum(passes[0][row] != passes[1][row] for row in range(ROWS)) > ROWS / 2
    alone = rows_of(0.7).drawn(3, 1).batch(np.array([7]), 1)
    assert alone["ids_BL"][0].tolist() == passes[1][7]


def test_a_left_to_right_encoder_predicts_every_token_of_the_target() -> None:
    rows = rows_of(None)
    found = rows.batch(np.arange(ROWS), 8)
    assert "rank_BL" not in found
    row_P, column_P = np.divmod(found["slot_P"], found["ids_BL"].shape[1])
    places = {(row, column) for row in range(ROWS) for column in range(rows.source_N[row] - 1, rows.length_N[row] - 1)}
    assert set(zip(row_P.tolist(), column_P.tolist(), strict=True)) == places
    assert np.array_equal(found["target_P"], found["ids_BL"].reshape(-1)[found["slot_P"] + 1])


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("attention", ["full", "left"])
def test_each_token_written_is_the_likeliest_behind_the_source_and_those_before(attention: str, norm: str) -> None:
    spec = Bert(2, 32, 2, 64, 64, 0.0, 0.0, norm=norm, attention=attention, initializer_range=0.5)
    encoder = spec.build(VOCABULARY, seed=3).eval()
    head = start_head(MaskedLMHead(encoder), encoder, 5, None).eval()
    rows = rows_of(0.7 if attention == "full" else None, most=9)
    batch = as_batch(rows.batch(np.arange(12), 8))
    with torch.inference_mode():
        written = greedy(encoder, head, batch, 9)
        for row, tokens in enumerate(written):
            source = rows.ids_T[rows.start_N[row] :][: rows.source_N[row]].tolist()
            for number, token in enumerate([*tokens, VOCABULARY.sep][:9]):
                row_L = [*source, *tokens[:number], *([VOCABULARY.mask] if attention == "full" else [])]
                behind = [max(0, place - len(source) + 1) for place in range(len(row_L))]
                one: dict[str, Any] = {
                    "ids_BL": torch.tensor([row_L]),
                    "length_B": torch.tensor([len(row_L)]),
                    "part_BL": torch.tensor([[min(1, rank) for rank in behind]]),
                    "full": True,
                }
                ranked = {"rank_BL": torch.tensor([behind])} if attention == "full" else {}
                scores_V = head.scores(encoder({**one, **ranked}).hidden_BLD[0, -1])
                assert int(scores_V.argmax()) == token
    assert len({tuple(tokens) for tokens in written}) > 6


@pytest.fixture
def echo(tmp_path: Path) -> Path:
    """A task to write: which of four texts follows from one word of the source."""
    said = {"sailor": "the red river", "captain": "a quiet garden", "sister": "every old letter", "friend": "one road"}
    for split in ("train", "validation"):
        pairs = [(f"the {who} crossed the {what}", said[who]) for who in said for what in ("river", "house", "road")]
        lines = [json.dumps({"source": source, "target": target}) for source, target in pairs * 4]
        (tmp_path / f"{split}.jsonl").write_text("\n".join(lines) + "\n")
    return tmp_path


WRITES = {
    "unilm": ["objective=unilm", "input=segment_pair"],
    "clm": ["objective=clm", "masking=none", "model.attention=left"],
}


def asked(arguments: list[str], echo: Path, *changes: str) -> list[str]:
    task = ["task=text_table", f"tasks.text_table.path={echo}", "finetune.length=24", "finetune.target_length=12"]
    return [*arguments, *task, *changes]


@pytest.mark.parametrize("objective", WRITES)
def test_an_encoder_learns_to_write(arguments: list[str], echo: Path, objective: str) -> None:
    fit = ["finetune.epochs=40", "finetune.batch_size=16", "finetune.optimizer.lr=5e-3", "model.dropout=0"]
    folder = run(compose(asked(arguments, echo, *WRITES[objective], *fit, "finetune.keep=true")))
    record = json.loads((folder / "result.json").read_text())
    assert record["metrics"]["text_table/exact_match"] > 0.4  # one of four texts
    assert record["metrics"]["text_table/exact_match"] > record["baselines"]["text_table/exact_match"]["majority"]


def test_an_encoder_writes_without_fine_tuning_as_pre_training_left_it(arguments: list[str], echo: Path) -> None:
    folder = run(compose(asked(arguments, echo, *WRITES["unilm"], "finetune.epochs=0")))
    assert "text_table/rougeL" in json.loads((folder / "result.json").read_text())["metrics"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (["finetune.target_masking=0"], "finetune.target_masking=0"),
        (["finetune.target_masking=1.5"], "finetune.target_masking=1.5"),
        (["finetune.length=500", "finetune.target_length=100"], "finetune.length+target_length=600 exceeds"),
        (["finetune.length=4"], "leaves no room"),
        (["finetune.head.dropout=0.5"], "finetune.head"),
        (["objective=clm", "masking=none", "model.attention=left", "finetune.target_masking=0.5"], "does nothing in"),
        (["objective=clm_right", "masking=none", "model.attention=right"], "needs a model that writes text"),
    ],
)
def test_what_cannot_be_written_is_one_line_before_any_step(
    arguments: list[str], echo: Path, changes: list[str], said: str, refused_run: Callable[..., str]
) -> None:
    assert said in refused_run(*asked(arguments, echo, *changes))


def test_a_joint_training_has_no_head_for_it(arguments: list[str], echo: Path, task_folder: Path) -> None:
    own = ["task=[text_table,sst2]", f"tasks.sst2.path={task_folder}", "finetune/joint=multi_task"]
    with pytest.raises(UserError, match="the answers of text_table are text"):
        run(compose(asked(arguments, echo, *own)))
