"""The span-boundary objective: which spans have a term, what a plain implementation by loops makes of a batch."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fake_store import FakeVocabulary, examples_of, random_store
from fake_text import text_of
from torch.nn.functional import gelu, layer_norm

from paribus.core.config import compose
from paribus.corruption.collators.encoder import BoundaryCollator, EncoderCollator
from paribus.corruption.masking.geometric_span import GeometricSpan
from paribus.corruption.views.replace import Replace
from paribus.data.sequences import Marks, Views
from paribus.models.bert import Bert
from paribus.models.encoder import Encoder
from paribus.models.network import as_batch, initialize
from paribus.objectives.mlm import MaskedLMWithSBO
from paribus.objectives.objective import Objective
from paribus.training.run import run

SBO = ["objective=mlm_sbo", "masking=geometric_span", "objective.view.unit=span"]


def views_of(noise: list[list[int]], sizes: list[list[list[int]]], predicted: list[list[int]] | None = None) -> Views:
    """Rows of sentences of word sizes, with noise at these columns; each noise token is a span of its own."""
    text = text_of(sizes)
    span_BL = np.zeros(text.ids_BL.shape, np.int16)
    predicted_BL = None if predicted is None else np.zeros(text.ids_BL.shape, np.bool_)
    for row, columns in enumerate(noise):
        span_BL[row, columns] = np.arange(1, len(columns) + 1)
        if predicted is not None and predicted_BL is not None:
            predicted_BL[row, predicted[row]] = True
    return Views(text, Marks(span_BL, predicted_BL=predicted_BL), text, None)


def targets(views: Views, most: int = 20) -> list[tuple[int, int, int, int]]:
    """(column of the target, left, right, place), all rows of width L flat."""
    packed = BoundaryCollator(most).pack(views, FakeVocabulary())
    ids_P = views.text.ids_BL.reshape(-1)
    at_S = packed["left_S"] + 1 + packed["place_S"]
    assert packed["inside_S"].tolist() == ids_P[at_S].tolist()
    assert packed["counts"]["boundary"] == len(at_S)
    columns = (at_S, packed["left_S"], packed["right_S"], packed["place_S"])
    return list(zip(*(column.tolist() for column in columns), strict=True))


def test_a_span_reads_the_places_beside_it() -> None:
    # [CLS] 1..9 [SEP]; spans of one that touch are one run
    assert targets(views_of([[3, 4, 5, 8]], [[[9]]])) == [(3, 2, 6, 0), (4, 2, 6, 1), (5, 2, 6, 2), (8, 7, 9, 0)]


def test_spans_at_an_end_of_the_segment_have_no_term() -> None:
    assert targets(views_of([[1, 2, 5, 9]], [[[9]]])) == [(5, 4, 6, 0)]
    assert targets(views_of([[1, 9]], [[[9]]])) == []
    assert targets(views_of([[]], [[[9]]])) == []


def test_segments_of_a_row_have_ends_of_their_own() -> None:
    # [CLS] 1 2 3 [SEP] 5 6 7 [SEP]: 3 and 5 touch a separator, 2 and 6 do not
    assert targets(views_of([[2], [3, 5], [6]], [[[3], [3]]] * 3)) == [(2, 1, 3, 0), (38, 37, 39, 0)]


def test_a_long_span_is_cut_to_the_first_targets() -> None:
    found = targets(views_of([list(range(3, 9))], [[[12]]]), most=4)
    assert found == [(3 + at, 2, 9, at) for at in range(4)]


def test_only_what_is_predicted_is_a_target() -> None:
    assert targets(views_of([[3, 4, 5]], [[[9]]], [[4]])) == [(4, 2, 6, 1)]


def test_other_arrays_are_those_of_the_plain_layout() -> None:
    examples = examples_of(random_store(300), 48, masking=GeometricSpan(0.3))
    views = examples.views(0, np.arange(20))
    plain, packed = (collator.pack(views, FakeVocabulary()) for collator in (EncoderCollator(), BoundaryCollator()))
    assert set(packed) - set(plain) == {"left_S", "right_S", "place_S", "inside_S"}
    assert all(np.array_equal(plain[name], packed[name]) for name in plain if name != "counts")
    assert 0 < packed["counts"].pop("boundary") < plain["counts"]["predicted"]
    assert packed["counts"] == plain["counts"]


def parts() -> tuple[Encoder, Objective]:
    spec = Bert(2, 32, 2, 64, 64, 0.0, 0.0, initializer_range=0.2)
    encoder = spec.build(FakeVocabulary(), seed=3)  # type: ignore[arg-type]
    objective = MaskedLMWithSBO(Replace(), weight=0.5, max_pair_targets=3).compose(encoder, encoder.vocabulary)
    initialize(objective, 3, 0.2)
    with torch.no_grad():
        for name, parameter in objective.named_parameters():
            parameter.add_(
                0.1 * torch.sin(torch.arange(parameter.numel()).float()).view_as(parameter) * ("bias" in name)
            )
    return encoder, objective


def reference(head: dict[str, torch.Tensor], table_VD: torch.Tensor, hidden_BLD: torch.Tensor, views: Views) -> float:
    """SpanBERT's boundary loss, a sum, by loops over rows, spans and tokens."""
    total, text = 0.0, views.text
    for row, length in enumerate(text.length_B.tolist()):
        noise = [bool(views.marks.span_BL[row, at]) for at in range(length)]
        at = 0
        while at < length:
            if not noise[at]:
                at += 1
                continue
            start = at
            while noise[at]:
                at += 1
            if text.sentence_BL[row, start - 1] < 0 or text.sentence_BL[row, at] < 0:
                continue
            for place in range(min(at - start, 3)):
                read = torch.cat([hidden_BLD[row, start - 1], hidden_BLD[row, at], head["place.weight"][place]])
                for layer in ("first", "second"):
                    read = gelu(head[f"{layer}.weight"] @ read + head[f"{layer}.bias"])
                    norm = (head[f"{layer}_norm.weight"], head[f"{layer}_norm.bias"])
                    read = layer_norm(read, read.shape, *norm, eps=1e-12)
                scores = table_VD @ read + head["bias"]
                total -= float(scores.log_softmax(0)[int(text.ids_BL[row, start + place])])
    return total


def test_the_loss_is_that_of_a_plain_implementation() -> None:
    noise = [[1, 2, 6, 7, 8, 9, 10, 14], [4, 5, 9, 12], [3], [6, 7, 8]]
    views = views_of(noise, [[[15]], [[6], [6]], [[4]], [[6, 3], [5]]])
    ids_BL = views.text.ids_BL.copy()
    ids_BL.reshape(-1)[views.marks.noise_P] = 4
    encoder, objective = parts()
    packed = {**BoundaryCollator(3).pack(views, FakeVocabulary()), "ids_BL": ids_BL}
    assert packed["counts"]["boundary"] == (3 + 1) + (2 + 1 + 1) + 1 + 3
    batch = as_batch(packed)
    with torch.no_grad():
        sums = objective(encoder, batch)[0]
        hidden_BLD = encoder(batch).hidden_BLD
        wanted = reference(dict(objective.heads["sbo"].state_dict()), encoder.table_VD, hidden_BLD, views)
    assert float(sums["sbo"]) == pytest.approx(wanted, abs=1e-3)
    divisors = objective.divisors(batch["counts"])
    assert divisors == {"mlm": len(views.marks.noise_P), "sbo": 12 + 1}
    assert objective.weights == {"mlm": 1.0, "sbo": 0.5}


def test_without_a_boundary_there_is_no_loss() -> None:
    encoder, objective = parts()
    batch = as_batch(BoundaryCollator(3).pack(views_of([[1, 9]], [[[9]]]), FakeVocabulary()))
    loss = objective(encoder, batch)[0]["sbo"]
    loss.backward()
    assert float(loss.detach()) == 0.0
    assert objective.divisors(batch["counts"])["sbo"] == 1


def test_shapes_are_those_of_the_paper() -> None:
    encoder, objective = parts()
    shapes = {name: tuple(tensor.shape) for name, tensor in objective.heads["sbo"].state_dict().items()}
    assert shapes["place.weight"] == (3, 200)
    assert shapes["first.weight"] == (32, 2 * 32 + 200)
    assert shapes["second.weight"] == (32, 32)
    assert shapes["bias"] == (1000,)
    assert not any(encoder.table_VD is parameter for parameter in objective.parameters())


def test_a_run_learns_and_is_measured_as_others_are(arguments: list[str], tmp_path: Path) -> None:
    extra = [*arguments, *SBO, "trainer.log_every=1", "model.dropout=0", "model.attention_dropout=0"]
    folder = run(compose([*extra, f"run_dir={tmp_path / 'whole'}"]))
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    losses = [line["train/sbo_loss"] for line in lines if "train/sbo_loss" in line]
    assert losses
    assert all(math.log(150) / 2 < loss < 2 * math.log(150) for loss in losses)
    found: dict[str, Any] = json.loads((folder / "result.json").read_text())
    assert {"mlm_loss"} <= set(found["metrics"])
    assert not any("sbo" in name for name in found["metrics"])
    pieces = run(compose([*extra, f"run_dir={tmp_path / 'pieces'}", "profile.microbatch=1"]))
    same = json.loads((pieces / "result.json").read_text())
    assert same["metrics"]["mlm_loss"] == pytest.approx(found["metrics"]["mlm_loss"], abs=1e-3)


@pytest.mark.parametrize(
    ("bad", "named"),
    [
        (["objective=mlm_sbo"], "masking=geometric_span"),
        (["objective=mlm_sbo", "masking=none"], "masking=none"),
        ([*SBO, "objective.max_pair_targets=0"], "objective.max_pair_targets=0"),
        ([*SBO, "objective.weight=-1"], "objective.weight=-1"),
    ],
)
def test_what_cannot_be_is_one_line_before_any_step(
    arguments: list[str], bad: list[str], named: str, refused_run: Callable[..., str]
) -> None:
    assert named in refused_run(*arguments, *bad)
