"""An arm whose component this machine lacks is listed as not run, with the reason; the others run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from paribus.commands.cli import main
from paribus.core.build import unavailable
from paribus.core.config import compose
from paribus.runs.manifest import Manifest, read_manifest, write_manifest

SWEEP: dict[str, Any] = {
    "study": "tagged",
    "family": "bert",
    "base": ["masking=bernoulli"],
    "varies": ["masking"],
    "matched": "tokens",
    "arms": {
        "plain": [],
        "words": ["masking=whole_word"],
        "tagged": [
            "masking=annotated_span",
            "masking/annotator=function",
            "masking.annotator.call='no_such_tagger:find'",
        ],
    },
    "baseline": "plain",
    "columns": ["mlm_loss"],
    "claims": [
        {"claim": claim, "says": "Its loss is lower", "whose": "ours", "about": "loss"}
        for claim in ("tagged > plain on mlm_loss", "words > plain on mlm_loss", "best is tagged on mlm_loss")
    ],
}
WHY = "masking.annotator.call=no_such_tagger:find cannot be imported"


@pytest.fixture
def given(arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A sweep with an arm that cannot run, in a folder of its own."""
    folder = tmp_path / "here"
    folder.mkdir()
    (folder / "conf").mkdir()
    (folder / "conf" / "trusted.yaml").write_text("trusted: [no_such_tagger]\n")
    monkeypatch.chdir(folder)
    Path("tagged.yaml").write_text("# A sweep with a tagger.\n" + yaml.safe_dump(SWEEP))
    kept = [text for text in arguments if not text.startswith("paths.runs=")]
    return ["tagged.yaml", *kept, "seeds=0", "runs=runs"]


def test_the_other_arms_run_and_the_table_says_why(given: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", *given]) == 0
    said = capsys.readouterr().err
    assert f"– tagged not run: {WHY}" in said
    assert "2/2 done" in said
    manifest = read_manifest(Path("runs"), "tagged", "test")
    assert manifest is not None
    assert {label.partition("/")[0] for label in manifest.runs} == {"plain", "words"}
    assert list(manifest.absent) == ["tagged"]

    assert main(["status", *given]) == 0
    shown = capsys.readouterr().out
    assert f"– tagged not run: {WHY}" in shown
    assert "2/2 done" in shown

    assert main(["table", "tagged.yaml", "scale=test", "runs=runs", "out=out"]) == 0
    table = json.loads(Path("out/table.json").read_text())
    row = next(row for row in table["arms"] if row["name"] == "tagged")
    assert (row["status"], row["n"], row["metrics"]) == ("not run", 0, {})
    assert row["reason"].startswith(WHY)
    verdicts = {claim["text"]: (claim["verdict"], claim["said"]) for claim in table["claims"]}
    assert verdicts["tagged > plain on mlm_loss"][0] == "not run"
    assert WHY in verdicts["tagged > plain on mlm_loss"][1]
    assert verdicts["best is tagged on mlm_loss"][0] == "not run"
    assert verdicts["words > plain on mlm_loss"][0] != "not run"
    text = Path("out/table.md").read_text()
    assert "tagged (not run)" in text
    assert f"- tagged not run: {WHY}" in text
    assert main(["run", *given]) == 0
    assert "2 found, 0 new" in capsys.readouterr().err


@pytest.mark.slow
def test_the_plan_costs_the_others(given: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", *given, "slots=2"]) == 0
    shown, said = capsys.readouterr()
    assert "measuring 2 arms with a few steps each, 2 side by side, threads per run: 1" in said
    assert f"– tagged not run: {WHY}" in shown
    assert [line.split()[0] for line in shown.splitlines()[2:4]] == ["plain", "words"]


def test_nothing_is_left_to_run(given: list[str], refusal: Callable[..., str]) -> None:
    assert f"the arm tagged cannot be run: {WHY}" in refusal("run", *given, "arms=tagged")
    Path("tagged.yaml").write_text("# Another.\n" + yaml.safe_dump({**SWEEP, "baseline": "tagged"}))
    assert "the arm tagged cannot be run" in refusal("run", *given)
    assert not Path("runs").exists()


def test_a_machine_that_could_run_the_arm_takes_it_off_the_list(tmp_path: Path) -> None:
    mine = Manifest("h", [], {"plain/seed0": "a"}, {"plain": 1}, {"tagged": "no tagger"})
    other = Manifest("h", [], {"plain/seed0": "a", "tagged/seed0": "b"}, {"plain": 1, "tagged": 1})
    assert write_manifest(tmp_path, "s", "test", mine).absent == {"tagged": "no tagger"}
    assert read_manifest(tmp_path, "s", "test") == mine
    assert write_manifest(tmp_path, "s", "test", other).absent == {}
    assert write_manifest(tmp_path, "s", "test", mine).absent == {}
    assert "absent" not in json.loads((tmp_path / "s" / "test.json").read_text())


def test_only_components_that_say_so_are_asked(trust: Callable[..., None]) -> None:
    trust("no_such_tagger")
    assert unavailable(compose(["scale=test"])) is None
    assert unavailable(compose(["scale=test", *SWEEP["arms"]["tagged"]])).startswith(WHY)  # type: ignore[union-attr]
