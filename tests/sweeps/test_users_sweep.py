"""A sweep on a user's own text and task: what is refused before training, what follows from what, what is replaced."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from kept_records import put, record

from paribus.core.config import compose
from paribus.core.errors import UserError
from paribus.runs.folder import CONFIG
from paribus.runs.identity import Identity
from paribus.runs.manifest import Manifest, write_manifest
from paribus.runs.provenance import check_text, name_text
from paribus.sweeps.expand import expand
from paribus.sweeps.request import Request, parse
from paribus.sweeps.status import read_status
from paribus.sweeps.sweep_file import load

SWEEP: dict[str, Any] = {
    "study": "mine",
    "varies": ["masking.rate"],
    "matched": "tokens",
    "arms": {"r15": ["masking.rate=0.15"], "r40": ["masking.rate=0.4"]},
    "baseline": "r15",
    "columns": ["mlm_loss", "trec/accuracy"],
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with the task trec."""
    for split in ("train", "validation"):
        rows = [{"text": f"what is {n}", "label": ("DESC", "HUM")[n % 2]} for n in range(8)]
        (tmp_path / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "conf/task").mkdir(parents=True)
    task = "_target_: paribus.tasks.tables.table.LabelTable\nname: trec\npath: .\n"
    task += "columns: {text: text, label: label}\nclasses: [DESC, HUM]\n"
    (tmp_path / "conf/task/trec.yaml").write_text(task)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ask(*given: str, **changes: Any) -> Request:
    """The request for a sweep with these changes, in the working directory."""
    Path("sweeps").mkdir(exist_ok=True)
    Path("sweeps/mine.yaml").write_text(yaml.safe_dump({**SWEEP, **changes}))
    return parse("run", ["mine", *given])


def tasks_of(request: Request) -> list[str]:
    return list(expand(request).configs["r15"].tasks)


def test_status_shows_no_runs_of_another_scale(tmp_path: Path) -> None:
    put(tmp_path, record(arm="static", study="roberta_table1", scale="smoke"))
    running = tmp_path / "roberta_table1/dynamic/seed0-bb"
    running.mkdir(parents=True)
    (running / "signature").write_text("bb\n")
    (running / CONFIG).write_text("study: roberta_table1\nscale: smoke\n")

    def states(scale: str) -> tuple[str, str]:
        status = read_status(Request(load("roberta_table1"), scale, runs=tmp_path, results=tmp_path / "none"))
        return status.cells["static/seed0"].state, status.cells["dynamic/seed0"].state

    assert states("smoke") == ("done", "stopped")
    assert states("cpu") == ("missing", "missing")
    assert states("paper") == ("missing", "missing")


@pytest.mark.parametrize("scale", ["test", "smoke", "cpu"])
def test_the_tasks_of_a_sweep_beat_the_recipe_and_follow_from_its_columns(here: Path, scale: str) -> None:
    assert tasks_of(ask(f"scale={scale}")) == ["trec"]
    assert tasks_of(ask(f"scale={scale}", base=["task=trec"])) == ["trec"]
    assert tasks_of(ask(f"scale={scale}", "task=none")) == []


def test_a_task_of_the_users_own_is_never_left_out(here: Path) -> None:
    recipe = ["docs_package", "docs_order", "docs_shift"]
    assert tasks_of(ask("scale=cpu", columns=["docs_order/accuracy", "sst2/accuracy"])) == recipe
    assert tasks_of(ask("scale=cpu", columns=["docs_order/accuracy", "trec/accuracy"])) == ["docs_order", "trec"]


def test_every_run_of_the_sweep_has_the_tasks_of_its_columns(here: Path) -> None:
    expanded = expand(ask("scale=smoke"))
    assert all(list(compose(job.overrides).tasks) == ["trec"] for job in expanded.jobs)
    assert "from_scratch" in {job.arm for job in expanded.jobs}


def test_runs_are_built_once_also_for_a_part_of_the_jobs(here: Path) -> None:
    expanded = expand(ask("scale=smoke"))
    part = replace(expanded, jobs=expanded.jobs[:1])
    assert part.run("r15") is expanded.run("r15")
    assert part.identity(expanded.jobs[0]) == expanded.identity(expanded.jobs[0])


def test_a_sweep_that_can_fill_no_column_is_refused(here: Path) -> None:
    with pytest.raises(UserError, match=r"no column can be filled: its tasks are none: write base: \[task=\[trec\]\]"):
        expand(ask("scale=smoke", "task=none", columns=["trec/accuracy"]))
    with pytest.raises(UserError, match="its tasks are sst2"):
        expand(ask("scale=cpu", base=["task=sst2"], columns=["trec/accuracy"]))
    with pytest.raises(UserError, match="its tasks are trec"):
        expand(ask("scale=test", base=["task=trec"], columns=["sst2/accuracy"]))


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ("docs_pakage/accuracy", "did you mean docs_package/accuracy?"),
        ("trek/accuracy", "did you mean trec/accuracy?"),
        ("nope/accuracy", "belongs to no known task: write conf/task/nope.yaml"),
        ("whatever_else/accuracy", "belongs to no known task: write conf/task/whatever_else.yaml"),
        ("mlm_los", "did you mean mlm_loss?"),
        ("denoisin_loss", "did you mean denoising_loss?"),
        ("docs_package", "is a task without a metric: write docs_package/accuracy"),
        ("trec", "is a task without a metric: write trec/METRIC"),
        ("perplexity", "did you mean mlm_perplexity or clm_perplexity or denoising_perplexity or plm_perplexity?"),
        ("train_loss", "is unknown: known: TASK/METRIC, mlm_loss"),
    ],
)
def test_a_misspelled_column_is_refused(here: Path, column: str, said: str) -> None:
    with pytest.raises(UserError) as refused:
        ask(columns=[column, "trec/accuracy"])
    assert said in str(refused.value)
    assert "mine.yaml" in str(refused.value)


def test_a_metric_that_the_task_lacks_is_refused(here: Path) -> None:
    with pytest.raises(UserError, match=r"the task trec has no metric 'acuracy': its metrics: accuracy"):
        expand(ask(columns=["mlm_loss", "trec/acuracy"]))
    with pytest.raises(UserError, match=r"the task sst2 has no metric 'acuracy': its metrics: accuracy"):
        expand(ask("scale=test", columns=["mlm_loss", "sst2/acuracy"]))  # whose task that scale does not train


def test_a_task_without_a_class_is_refused(here: Path) -> None:
    (here / "conf/task/bare.yaml").write_text("path: .\n")
    with pytest.raises(UserError, match=r"tasks\.bare names no _target_: write a class, such as"):
        expand(ask("scale=test", columns=["bare/accuracy"]))


def test_a_task_may_be_declared_by_the_sweep_itself(here: Path) -> None:
    columns = "columns:{text:text,label:label}"
    node = f"{{_target_:paribus.tasks.tables.table.LabelTable,name:own,path:.,{columns},classes:[DESC,HUM]}}"
    assert tasks_of(ask("scale=test", base=["task=none", f"+tasks.own={node}"], columns=["own/accuracy"])) == ["own"]


def identity(folder: Path, signature: str, text: str) -> Identity:
    return Identity(signature, "p", folder / f"mine/r15/seed0-{signature}", {"text": text}, {})


def remember(root: Path, corpus: dict[str, Any]) -> None:
    """A finished run of the study on the text of fingerprint `one`."""
    folder = put(root, record(arm="r15", study="mine", signature="aa", data={"fingerprint": "one"}))
    (folder / CONFIG).write_text(yaml.safe_dump({"corpus": corpus}))
    write_manifest(root, "mine", "smoke", Manifest("h", [], {"r15/seed0": "aa"}, {}))


def test_a_study_on_another_text_is_refused_before_it_replaces_the_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    books = {"_target_": "paribus.data.corpus.text.Text", "path": "my/books"}
    letters = {**books, "path": "/far/Letters.txt"}
    remember(tmp_path, books)
    same, other = identity(tmp_path, "bb", "one"), identity(tmp_path, "cc", "two")
    check_text(tmp_path, "mine", "smoke", {"r15/seed0": same}, {"r15/seed0": books})
    check_text(tmp_path, "mine", "cpu", {"r15/seed0": other}, {"r15/seed0": letters})
    assert capsys.readouterr().err == ""
    with pytest.raises(UserError) as refused:
        check_text(tmp_path, "mine", "smoke", {"r15/seed0": other}, {"r15/seed0": letters})
    assert "has a table on the text books, and this command trains on Letters.txt" in str(refused.value)
    assert "such as study=mine_letters" in str(refused.value)
    check_text(tmp_path, "mine", "smoke", {"r15/seed0": other}, {"r15/seed0": books})
    assert "The text books has changed since the last run" in capsys.readouterr().err


def test_a_sweep_on_another_text_is_refused_by_the_command(
    here: Path, text_folder: Path, cache: Path, arguments: list[str]
) -> None:
    from paribus.sweeps.run import run_sweep

    def planned(config: Any) -> dict[str, Any]:
        return {"tokens": 100, "sequences": 10, "steps": 5, "flops": 1.0, "epochs": 1.0}

    given = [text for text in arguments if not text.startswith("paths.runs=")]
    request = ask(*given, "task=none", "seeds=0,1")
    first = expand(request)
    for job in first.jobs:
        own = first.identity(job)
        named = {"study": "mine", "scale": "test", "data": {"fingerprint": own.data["text"]}}
        folder = put(Path("runs"), record(job.arm, job.seed, own.signature, **named))
        (folder / CONFIG).write_text(yaml.safe_dump({"corpus": {"path": str(text_folder)}}))
    assert run_sweep(request, plan=planned, train=lambda config: pytest.fail("all are done")) == 0
    retrained: list[Any] = []
    assert run_sweep(request._replace(overrides=(*request.overrides, "optimizer.lr=0.5")), train=retrained.append) == 1
    assert len(retrained) == 4, "other settings on the same text are no other text"
    assert run_sweep(request, plan=planned, train=lambda config: pytest.fail("all are done")) == 0
    (here / "other").mkdir()
    (here / "other/train.txt").write_text("\n\n".join((text_folder / "train.txt").read_text().split("\n\n")[:40]))
    (here / "other/validation.txt").write_text((text_folder / "validation.txt").read_text())
    before = Path("runs/mine/test.json").read_text()
    with pytest.raises(UserError, match="add study=NAME, such as study=mine_other"):
        run_sweep(request._replace(overrides=(*request.overrides, "corpus.path=other")), plan=planned)
    assert Path("runs/mine/test.json").read_text() == before


@pytest.mark.parametrize(
    ("corpus", "name"),
    [
        ({"_target_": "paribus.data.corpus.docstrings.Docstrings"}, "docstrings"),
        ({"_target_": "paribus.data.corpus.text.Text", "path": "/a/b/novels"}, "novels"),
        ({"_target_": "x.Hub", "path": None, "sets": {"w": {"name": "Salesforce/wikitext"}}}, "Salesforce/wikitext"),
        ({"_target_": "x.Filtered", "of": {"_target_": "x.Docstrings"}}, "docstrings, cleaned"),
    ],
)
def test_a_text_has_a_name(corpus: dict[str, Any], name: str) -> None:
    assert name_text(corpus) == name


def test_the_model_of_a_sweep_brings_its_family(here: Path) -> None:
    own = {"columns": ["denoising_loss"], "base": ["model=t5_tiny"]}
    for scale in ("test", "cpu"):
        config = expand(ask(f"scale={scale}", "task=none", **own)).configs["r15"]
        assert (config.family, config.objective._target_.rpartition(".")[2]) == ("t5", "Denoising")
    with pytest.raises(UserError, match="model=t5_tiny is of family=t5, not bert: set family=t5, in a sweep file"):
        expand(ask("scale=test", "model=t5_tiny"))


def test_an_experiment_that_is_not_there_is_refused_with_a_plus_too(here: Path) -> None:
    with pytest.raises(UserError, match="unknown choice experiment=foo"):
        compose(["+experiment=foo"])
    with pytest.raises(UserError, match="unknown choice experiment=foo"):
        expand(ask("+experiment=foo"))
