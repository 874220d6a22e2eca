"""A frozen sweep: what its lock holds, what a confirming run refuses, and its generations."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from kept_records import put, record

from paribus.commands.cli import main
from paribus.core.errors import UserError
from paribus.runs.manifest import read_manifest
from paribus.sweeps import lock as locks
from paribus.sweeps.lock import confirm, freeze, place_of, read_lock, require_lock
from paribus.sweeps.request import Request
from paribus.sweeps.sweep_file import load
from paribus.verdict.sequential import FIRST

SWEEP: dict[str, Any] = {
    "study": "mine",
    "base": ["task=none", "corpus=text", "corpus.path=text.txt", "tokenizer.vocab_size=80"],
    "varies": ["optimizer.lr"],
    "matched": "tokens",
    "arms": {"slow": ["optimizer.lr=0.001"], "fast": ["optimizer.lr=0.004"]},
    "baseline": "slow",
    "columns": ["mlm_loss"],
    "claims": ["slow > fast on mlm_loss, margin 0.1 nats"],
    "seeds": [0, 1],
}
Here = Callable[..., Request]


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Here:
    """Writes the sweep file, with changes, into a repository of its own, and gives the request for it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(locks, "git_state", lambda: {"commit": git("rev-parse", "HEAD"), "dirty": False})
    git("init", "-q")
    git("config", "user.name", "A")
    git("config", "user.email", "a@example.org")
    Path("text.txt").write_text("\n\n".join(f"The cat number {n} sat on the mat {n % 7} times." for n in range(400)))
    Path("sweeps").mkdir()

    def ask(seeds: tuple[int, ...] | None = None, most: int | None = None, **changes: Any) -> Request:
        content = {**SWEEP, **changes}
        if "universe" in changes:
            del content["seeds"]
        Path("sweeps/mine.yaml").write_text(yaml.safe_dump(content))
        sweep = load("sweeps/mine.yaml").at("test")
        return Request(sweep=sweep, scale="test", seeds=seeds, most=most, overrides=("paths.cache=cache",))

    ask()
    git("add", "sweeps", "text.txt")
    git("commit", "-q", "-m", "sweep")
    return ask


def commit_lock() -> None:
    git("add", "sweeps")
    git("commit", "-q", "-m", "lock")


def test_a_lock_takes_seeds_that_no_record_of_the_study_has(here: Here) -> None:
    for seed in (0, 2):
        put(Path("runs"), record("slow", seed, study="mine", scale="test"))
    lock, new = freeze(here(), known=[4])
    assert new
    assert (lock.generation, lock.seeds) == (1, (3, 5))
    assert lock.fixed["arms"] == {"fast": {"optimizer.lr": 0.004}}
    assert lock.fixed["settings"]["optimizer.lr"] == 0.001
    assert lock.pretrainings.keys() == {"slow/seed3", "fast/seed3", "slow/seed5", "fast/seed5"}
    assert read_lock(Path("sweeps/mine.yaml"), "test") == lock
    with pytest.raises(UserError, match="seed 2 has a record in mine: give others, or leave seeds= out"):
        freeze(here(seeds=(2,)))


def test_seeds_whose_pretraining_another_study_has_run_are_left_out(here: Here) -> None:
    first, _ = freeze(here())
    taken = first.pretrainings["slow/seed2"]
    put(Path("runs"), record("slow", 2, study="other", scale="test", pretrain_signature=taken))
    place_of(Path("sweeps/mine.yaml"), "test").unlink()
    assert freeze(here())[0].seeds == (4, 5)


def test_a_lock_that_holds_stays_and_one_without_runs_is_replaced(here: Here) -> None:
    first, _ = freeze(here())
    assert freeze(here()) == (first, False)
    second, new = freeze(here(claims=["slow > fast on mlm_loss, margin 0.2 nats"]))
    assert new
    assert (second.generation, second.before) == (1, ())


def test_after_runs_a_changed_sweep_is_the_next_generation(here: Here) -> None:
    first, _ = freeze(here())
    for seed in first.seeds:
        put(Path("runs"), record("slow", seed, study="mine_confirmed", scale="test"))
    second, _ = freeze(here(claims=["slow > fast on mlm_loss, margin 0.2 nats"]))
    assert second.generation == 2
    assert not {*second.seeds} & {*first.seeds}
    (before,) = second.before
    assert before["changed"] == ["the sweep file", "claims"]


def test_looks_are_locked_with_all_their_seeds(here: Here) -> None:
    lock, _ = freeze(here(most=5))
    assert lock.looks is not None
    assert (lock.looks.first, lock.looks.most, len(lock.seeds)) == (FIRST, 5, 5), "those that the runs will take"
    commit_lock()
    assert confirm(here()).most == 5


def test_looks_that_are_asked_for_replace_those_of_the_lock(here: Here) -> None:
    freeze(here(most=5))
    assert not freeze(here())[1]
    longer, new = freeze(here(most=6))
    assert new
    assert longer.looks is not None
    assert longer.looks.most == 6


def test_a_universe_is_locked_with_its_settings(here: Here) -> None:
    factors = {"model.layers": [1, 2], "batch.size": [2, 4]}
    lock, _ = freeze(here(universe={"settings": 2, "factors": factors}))
    assert lock.seeds == (0, 1)
    assert {number: {*setting} for number, setting in lock.fixed["universe"].items()} == {
        "0": {*factors},
        "1": {*factors},
    }
    assert lock.fixed["arms"] == {"fast": {"optimizer.lr": 0.004}, "twin": {"replicate": 1}}
    commit_lock()
    with pytest.raises(UserError, match=r"the sweep file; .*universe"):
        require_lock(here(universe={"settings": 2, "seed": 1, "factors": factors}))


def test_a_lock_that_is_gone_after_its_runs_is_asked_for(here: Here) -> None:
    freeze(here())
    put(Path("runs"), record("slow", 2, study="mine_confirmed", scale="test"))
    place_of(Path("sweeps/mine.yaml"), "test").unlink()
    with pytest.raises(UserError, match=r"mine_confirmed has runs at scale=test, and their lock .* is gone"):
        freeze(here())


def test_outside_of_a_repository_the_message_begins_with_git_init(here: Here) -> None:
    freeze(here())
    shutil.rmtree(".git")
    with pytest.raises(UserError, match="type `git init && git add "):
        require_lock(here())


def test_a_confirming_run_needs_a_committed_lock(here: Here) -> None:
    with pytest.raises(
        UserError, match=r"mine.yaml is not frozen at scale=test: type `paribus freeze mine scale=test`"
    ):
        require_lock(here())
    freeze(here())
    with pytest.raises(UserError, match="is not committed, so nothing shows that it came before its runs"):
        require_lock(here())
    commit_lock()
    lock, commit = require_lock(here())
    assert commit == git("rev-parse", "HEAD")
    asked = confirm(here())
    assert (asked.seeds, asked.study, asked.lock["hash"]) == (lock.seeds, "mine_confirmed", lock.hash)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"claims": ["slow > fast on mlm_loss, margin 0.2 nats"]},
            "the sweep file; claims: undo that, or freeze it again",
        ),
        ({"arms": {"slow": ["optimizer.lr=0.001"], "fast": ["optimizer.lr=0.005"]}}, "the sweep file; the arm fast"),
        ({"base": [*SWEEP["base"], "batch.size=3"]}, "the sweep file; batch.size"),
    ],
)
def test_a_difference_is_refused(here: Here, changes: dict[str, Any], said: str) -> None:
    freeze(here())
    commit_lock()
    with pytest.raises(UserError, match=said):
        require_lock(here(**changes))


def test_another_text_is_refused(here: Here) -> None:
    freeze(here())
    commit_lock()
    Path("text.txt").write_text(Path("text.txt").read_text().replace("cat", "dog"))
    with pytest.raises(UserError, match="the text, or what the code does with the same settings"):
        require_lock(here())


def test_a_run_from_before_the_lock_is_refused(here: Here) -> None:
    lock, _ = freeze(here())
    commit = git("rev-parse", "HEAD")
    commit_lock()
    made = {"git": {"commit": commit, "dirty": False}, "pretrain_signature": lock.pretrainings["fast/seed2"]}
    put(Path("runs"), record("fast", 2, study="other", scale="test", **made))
    with pytest.raises(UserError, match="runs with its pre-training came after the lock: other/fast/seed2"):
        require_lock(here())


def test_a_lock_that_was_changed_by_hand_is_refused(here: Here) -> None:
    freeze(here())
    place = place_of(Path("sweeps/mine.yaml"), "test")
    place.write_text(place.read_text().replace('"generation": 1', '"generation": 2'))
    with pytest.raises(UserError, match="was changed by hand or is damaged: its checksum does not match"):
        read_lock(Path("sweeps/mine.yaml"), "test")


def test_settings_of_the_user_are_refused(here: Here) -> None:
    freeze(here())
    commit_lock()
    with pytest.raises(UserError, match=r"optimizer\.lr=1 and --confirm exclude each other"):
        confirm(here()._replace(overrides=("optimizer.lr=1",)))


def test_from_freezing_to_a_confirmed_study(here: Here, capsys: pytest.CaptureFixture[str]) -> None:
    here()
    common = ["scale=test", "cache=cache"]
    assert main(["freeze", "sweeps/mine.yaml", *common]) == 0
    assert "seeds 2, 3" in capsys.readouterr().err
    commit_lock()
    assert main(["run", "sweeps/mine.yaml", *common, "profile.threads=1", "--confirm"]) == 0
    manifest = read_manifest(Path("runs"), "mine_confirmed", "test")
    assert manifest is not None
    assert {*manifest.runs} == {"slow/seed2", "fast/seed2", "slow/seed3", "fast/seed3"}
    assert manifest.lock["generation"] == 1
    assert json.loads(Path("sweeps/mine.test.lock.json").read_text())["seeds"] == [2, 3]
    capsys.readouterr()
    shown = ["sweeps/mine.yaml", "scale=test", "study=mine_confirmed"]
    assert main(["table", *shown, "out=out"]) == 0
    assert json.loads(Path("out/table.json").read_text())["stage"] == "confirmed"
    assert "; confirmed" in Path("out/table.md").read_text()
    capsys.readouterr()
    main(["audit", *shown, "out=out"])
    assert "lock" not in capsys.readouterr().out
    assert main(["status", "sweeps/mine.yaml", *common, "study=mine_confirmed"]) == 0
    assert "4/4 done" in capsys.readouterr().out
    assert main(["run", "sweeps/mine.yaml", *common, "study=mine_confirmed", "seeds=7,8"]) == 2
    assert "mine_confirmed has the runs that confirm a lock at scale=test: add --confirm" in capsys.readouterr().err
    here(claims=["slow > fast on mlm_loss, margin 0.2 nats"])
    assert main(["table", *shown, "out=changed"]) == 0
    assert json.loads(Path("changed/table.json").read_text())["stage"] == "exploratory"
    assert "The sweep file or the rules were changed after it was frozen" in Path("changed/table.md").read_text()
    main(["audit", *shown, "out=changed"])
    assert "✗ its runs were to confirm a lock: The sweep file or the rules were changed" in capsys.readouterr().out
