"""The loss around fine-tuned weights and the learning curves of fine-tunings, on a real sweep of seconds."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from made_once import made_once
from matplotlib.text import Text

from paribus.commands.cli import main
from paribus.commands.flatness import flatness
from paribus.core.config import compose
from paribus.core.errors import UserError
from paribus.finetuning import saved
from paribus.reports.plots import landscape
from paribus.reports.plots.figure import make_figure
from paribus.reports.plots.panel import Panel
from paribus.reports.tables.curves import read_curves
from paribus.runs.folder import TUNING, RunFolder
from paribus.runs.record import read_record
from paribus.sweeps.request import parse as parse_run
from paribus.sweeps.run import run_sweep
from paribus.training.checks import check_finetuning
from paribus.training.description import Run
from paribus.training.finetune import tuned_path
from paribus.training.flatness import Surface, Tunings, norm, random_direction
from paribus.training.reproduce import read_stored_config
from paribus.training.run import run

ROOT = Path(__file__).parents[2]
SMALL = ["scale=test", "task=sst2", "tokenizer.vocab_size=150", "profile.threads=1", "profile.precision=32-true"]


def settings(text_folder: Path, task_folder: Path, cache: Path) -> list[str]:
    places = ["corpus=text", f"corpus.path={text_folder}", f"tasks.sst2.path={task_folder}", f"paths.cache={cache}"]
    return [*SMALL, *places]


@pytest.fixture(scope="module")
def sweep(session_folder: Path, text_folder: Path, task_folder: Path, cache: Path) -> str:
    """The file of a packaged sweep with the column of the small task; its runs are beside it."""

    def make(folder: Path) -> None:
        content = yaml.safe_load((ROOT / "sweeps" / "pretraining_helps.yaml").read_text())
        path = folder / "pretraining_helps.yaml"
        path.write_text(yaml.safe_dump({**content, "columns": ["sst2/accuracy"], "claims": []}))
        argv = [str(path), *settings(text_folder, task_folder, cache), f"runs={folder / 'runs'}", "seeds=0,1"]
        assert run_sweep(parse_run("run", argv)._replace(results=folder / "none")) == 0

    return str(made_once(session_folder / "flatness", make) / "pretraining_helps.yaml")


@pytest.fixture(scope="module")
def runs(sweep: str) -> tuple[Path, list[Path]]:
    """The sweep after its runs: (their root, folders of pretrained and of scratch, the first seed)."""
    root = Path(sweep).parent / "runs"
    return root, [next((root / "pretraining_helps" / arm).glob("seed0-*")) for arm in ("pretrained", "scratch")]


@pytest.fixture(scope="module")
def surface(runs: tuple[Path, list[Path]]) -> Surface:
    folder = runs[1][0]
    return Tunings(Run.of(read_stored_config(RunFolder(folder))), folder, "sst2", 16).surface(0)


def test_the_ends_of_the_line_are_the_start_and_the_end(runs: tuple[Path, list[Path]], surface: Surface) -> None:
    folder = runs[1][0]
    start, middle, end = surface.line([0.0, 0.5, 1.0])
    assert start == surface.loss(surface.start) != end == surface.loss(surface.end) != middle
    tunings = Tunings(Run.of(read_stored_config(RunFolder(folder))), folder, "sst2", 16)
    tuned = saved.load(tuned_path(folder, "sst2", 0), tunings.encoder)
    losses = [
        torch.nn.functional.cross_entropy(tuned.logits(batch), batch["label_B"], reduction="sum")
        for batch in surface.batches
    ]
    assert end == pytest.approx(float(sum(losses)) / 16, rel=1e-5)
    assert surface.distance() > 0


def test_the_plane_holds_the_line_and_the_other_end(runs: tuple[Path, list[Path]], surface: Surface) -> None:
    folder = runs[1][0]
    other = Tunings(Run.of(read_stored_config(RunFolder(folder))), folder, "sst2", 16).end(1)
    lower, upper = surface.plane(other, [0.0, 1.0])
    assert lower == surface.line([0.0, 1.0])
    assert upper[0] == pytest.approx(surface.loss(other), rel=1e-5)
    assert upper[0] != lower[0]


def test_random_directions_are_as_long_as_the_weights_row_by_row(surface: Surface) -> None:
    direction = random_direction(surface.end, 3)
    for name, weight in surface.end.items():
        way = direction[name]
        if weight.ndim < 2:
            assert not way.any()
        else:
            rows = torch.linalg.vector_norm(weight.flatten(1), dim=1)
            assert torch.allclose(torch.linalg.vector_norm(way.flatten(1), dim=1), rows, rtol=1e-4, atol=1e-7)
    assert norm(direction) == norm(random_direction(surface.end, 3)) > 0
    one, both = surface.around([0.0, 0.5], 1), surface.around([0.0, 0.5], 2)
    assert one[0] == both[0] == surface.loss(surface.end)
    assert one[1] != both[1]


def test_the_verb_writes_the_same_bytes_twice(sweep: str, runs: tuple[Path, list[Path]], tmp_path: Path) -> None:
    asked = [sweep, "scale=test", f"runs={runs[0]}", "examples=8", "points=2", "directions=1"]
    for name in ("one", "two"):
        assert main(["flatness", *asked, f"out={tmp_path / name}"]) == 0
    files = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert files == ["flatness.json", "flatness.png", "flatness.svg"]
    assert all((tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes() for name in files)
    found = json.loads((tmp_path / "one" / "flatness.json").read_text())
    assert found["task"] == "sst2"
    assert found["places"]["line"] == [-1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0]
    assert list(found["arms"]) == sorted(["pretrained", "scratch", "scratch_long"])
    for own in found["arms"].values():
        assert [len(own[name]) for name in ("runs", "line", "around", "distance")] == [2, 2, 2, 2]
        assert all(math.isfinite(loss) for row in own["plane"] for loss in row)


def test_a_missing_checkpoint_is_one_line(
    sweep: str,
    runs: tuple[Path, list[Path]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    refusal: Callable[..., str],
) -> None:
    own = shutil.copytree(runs[0], tmp_path / "runs")  # other processes read the original
    asked = ["flatness", sweep, "scale=test", f"runs={own}", f"out={tmp_path / 'out'}"]
    tuned_path(own / runs[1][1].relative_to(runs[0]), "sst2", 1).unlink()
    assert main(asked) == 2
    assert "scratch/seed0 did not keep the fine-tuning sst2-1: run the sweep again with" in capsys.readouterr().err
    assert "'mnli' was not fine-tuned in pretraining_helps at scale=test: choose sst2" in refusal(*asked, "task=mnli")
    assert "no finished run of pretraining_helps" in refusal(*asked[:3], f"runs={tmp_path / 'none'}")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("wrong", [["points=3"], ["examples=0"], ["grid=4"], ["roberta_table1"], ["directions=x"]])
def test_bad_arguments_are_refused(wrong: list[str]) -> None:
    with pytest.raises(UserError):
        flatness(["pretraining_helps", *wrong])


def test_learning_curves_change_nothing_and_end_at_the_metrics(
    text_folder: Path, task_folder: Path, cache: Path, tmp_path: Path
) -> None:
    own = [*settings(text_folder, task_folder, cache), "finetune.epochs=3", "finetune.seeds=[0,1]"]
    plain, drawn = (compose([*own, f"paths.runs={tmp_path / str(n)}", f"finetune.points={n}"]) for n in (0, 4))
    assert Run.of(plain).identity.signature == Run.of(drawn).identity.signature
    folders = [run(plain), run(drawn)]
    records = [json.loads((folder / "result.json").read_text()) for folder in folders]
    assert records[0]["task_runs"] == records[1]["task_runs"]
    assert not (folders[0] / TUNING).exists()
    assert TUNING in RunFolder(folders[1]).list_curves()
    lines = [json.loads(text) for text in (folders[1] / TUNING).read_text().splitlines()]
    places = [(line["seed"], line["step"]) for line in lines]
    assert places == [(seed, step) for seed in (0, 1) for step in (2, 3, 5, 6)]
    for line, record in zip(lines[3::4], records[1]["task_runs"], strict=True):
        assert line["values"]["accuracy"] == record["metrics"]["accuracy"]
    own, _ = read_record(folders[1] / "result.json")
    assert own
    curve = read_curves(RunFolder(folders[1]), own)["sst2/train_loss"]
    firsts = [line["values"]["train_loss"] for line in lines if line["step"] == 2]
    assert curve.values[0] == pytest.approx(sum(firsts) / 2)
    assert len(curve.tokens) == 4
    assert curve.tokens == sorted(curve.tokens)
    with (folders[1] / TUNING).open("a") as file:  # a fine-tuning that was interrupted and done again
        file.write(json.dumps({**lines[0], "values": {"train_loss": 0.0}}) + "\n")
    assert "sst2/train_loss" not in read_curves(RunFolder(folders[1]), own)  # not what the run wrote
    again = read_curves(RunFolder(folders[1]), replace(own, curves={}))
    assert again["sst2/train_loss"].values[0] == pytest.approx(firsts[1] / 2)


def test_a_negative_number_of_points_is_refused() -> None:
    with pytest.raises(UserError, match=r"finetune\.points=-1 is out of bounds"):
        check_finetuning(Run.of(compose(["scale=test", "finetune.points=-1"])))


def measured(planes: bool = True) -> dict[str, Any]:
    places = {"line": [-1.0, 0.0, 1.0, 2.0], "around": [-1.0, 0.0, 1.0], "plane": [-0.5, 0.0, 0.5, 1.0, 1.5]}
    flat = {"runs": ["a", "b"], "distance": [1.0, 1.0], "length": [4.0, 4.0]}
    flat |= {"line": [[3.0, 2.0, 0.1, 1.0], [3.0, 2.0, 0.2, None]], "around": [[1.0, 0.1, 1.0], [1.2, 0.2, 0.9]]}
    plane = [[abs(x) + abs(y) + 0.1 for x in places["plane"]] for y in places["plane"]]
    plane[4][4] = None  # type: ignore[call-overload]
    return {"places": places, "arms": {"one": {**flat, **({"plane": plane} if planes else {})}, "two": flat}}


def texts(panel: Panel) -> str:
    figure = make_figure([panel])
    return " ".join(text.get_text() for text in figure.findobj(Text))  # type: ignore[attr-defined]


def test_a_drawing_has_both_lines_and_a_plane_where_one_was_measured() -> None:
    line, around, plane = landscape.draw_landscape(measured())
    assert landscape.draw_planes(measured(planes=False)) == []
    assert len(landscape.draw_landscape(measured(planes=False))) == 2
    assert "one (n=2)" in texts(line)
    assert "two (n=2)" in texts(around)
    assert "one: training loss on a plane" in texts(plane)
    assert "start and end are 0.25 of the start's length apart" in texts(plane)
    axes = make_figure([plane]).subfigs[0].axes[0]
    (image,) = axes.images
    shades = image.to_rgba(image.get_array())[..., 3]
    assert shades.min() == 0
    assert shades.max() == shades[4, 4] == pytest.approx(0.92), "what is not finite counts as the highest loss"
    assert [line.get_marker() for line in axes.lines[1::2]] == ["o", "s", "^"]
