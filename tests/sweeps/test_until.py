"""`paribus run --until-decided`: seeds are added while a claim is open, and the table says at which level it tests."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake_records import own
from kept_records import put, record

from paribus.commands.status import status
from paribus.core.errors import UserError
from paribus.core.jsonable import to_json
from paribus.reports.tables.build import make_table
from paribus.runs.manifest import Manifest, read_manifest, write_manifest
from paribus.sweeps.request import Request, parse
from paribus.sweeps.until import run_until_decided
from paribus.verdict.sequential import Looks


def claims(request: Request) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = to_json(make_table(request.sweep, request.scale, request.study, request.roots).claims)
    return found


ARMS = ("static_x10", "dynamic", "static")


@pytest.fixture
def request_(tmp_path: Path) -> Request:
    asked = parse("run", ["roberta_table1", "scale=smoke", "--until-decided", "max_seeds=6", f"runs={tmp_path / 'r'}"])
    claims = ("dynamic > static_x10 on mlm_loss",)
    sweep = replace(asked.sweep, claims=claims, columns=("mlm_loss",), published={})
    return asked._replace(sweep=sweep, results=tmp_path / "results")


class Runs:
    """Stands in for `run_sweep`: writes the manifest and the records of the seeds that were asked for."""

    def __init__(self, gain: float) -> None:
        self.gain, self.asked, self.arms = gain, list[tuple[int, ...]](), list[tuple[str, ...] | None]()

    def __call__(self, request: Request) -> int:
        assert request.seeds is not None
        self.asked.append(request.seeds)
        self.arms.append(request.arms)
        arms = [arm for arm in ARMS if request.arms is None or arm in request.arms]
        signatures = {f"{arm}/seed{seed}": f"{arm}-{seed}" for arm in arms for seed in request.seeds}
        hashed = request.sweep.hash(request.scale)
        manifest = Manifest(hashed, [], signatures, {}, until=request.until)
        write_manifest(request.runs, request.study_name, request.scale, manifest)
        for arm in arms:
            for seed in request.seeds:
                put(request.runs, self.made(request, arm, seed))
        return 0

    def made(self, request: Request, arm: str, seed: int) -> dict[str, Any]:
        loss = 5.0 - (self.gain if arm == "dynamic" else 0.0) + random.Random(f"{arm}{seed}").gauss(0.0, 0.01)
        return record(
            arm, seed, f"{arm}-{seed}", study="roberta_table1", metrics={"mlm_loss": loss}, sweep_hash=None,
            baselines={"mlm_loss": {"unigram": 7.0}}, budget={"input_tokens": 100}, own=own(loss),
        )  # fmt: skip


def test_a_clear_effect_stops_at_the_first_look(request_: Request, capfd: pytest.CaptureFixture[str]) -> None:
    runs = Runs(gain=0.5)
    assert run_until_decided(request_, 6, runs, claims) == 0
    assert runs.asked == [(0, 1, 2)]
    assert "after 3 of at most 6 seeds: every claim is decided" in capfd.readouterr().err
    made = make_table(request_.sweep, "smoke", None, request_.roots)
    assert made.claims[0].verdict == "reproduced"
    assert made.looks is not None
    assert made.looks.n == 3
    assert made.looks.level < 0.05
    assert any("alpha spending" in note for note in made.notes)


def test_no_effect_goes_to_the_last_look_and_begins_there_again(
    request_: Request, capfd: pytest.CaptureFixture[str]
) -> None:
    runs = Runs(gain=0.0)
    assert run_until_decided(request_, 6, runs, claims) == 0
    assert runs.asked == [tuple(range(n)) for n in (3, 4, 5, 6)]
    assert "dynamic > static_x10 on mlm_loss: undecided at smoke scale" in capfd.readouterr().err
    made = make_table(request_.sweep, "smoke", None, request_.roots)
    assert made.claims[0].contrasts[0].n == 6
    assert made.claims[0].open
    plain = read_manifest(request_.runs, "roberta_table1", "smoke")
    assert plain is not None
    write_manifest(request_.runs, "roberta_table1", "smoke", plain._replace(until=None))
    again = make_table(request_.sweep, "smoke", None, request_.roots)
    assert again.looks == made.looks, "a later plain run does not undo the looks"
    with pytest.raises(UserError, match="began with max_seeds=6"):
        run_until_decided(request_, 12, runs, claims)


def test_the_first_look_is_at_all_seeds_that_ran_before(request_: Request) -> None:
    """A table of them may have been read at the full error rate; looks at fewer would be further chances to err."""
    runs = Runs(gain=0.0)
    runs(request_._replace(seeds=(0, 1, 2, 3, 4)))
    with pytest.raises(UserError, match="max_seeds=4, but 5 seeds of roberta_table1 ran before") as error:
        run_until_decided(request_, 4, runs, claims)
    assert "set max_seeds=6" in str(error.value)
    assert run_until_decided(request_, 6, runs, claims) == 0
    assert runs.asked[1:] == [tuple(range(n)) for n in (5, 6)]
    made = make_table(request_.sweep, "smoke", None, request_.roots)
    assert [arm.n for arm in made.arms] == [6, 6, 5], "no claim is about static"
    assert made.looks is not None
    assert made.looks.level == pytest.approx(Looks(5, 6).level(0.05, 6))


def test_seeds_beyond_the_look_do_not_count(request_: Request) -> None:
    runs = Runs(gain=0.5)
    for seed in (3, 4):
        for arm in ARMS:
            put(request_.runs, runs.made(request_, arm, seed))
    assert run_until_decided(request_, 6, runs, claims) == 0
    made = make_table(request_.sweep, "smoke", None, request_.roots)
    assert [arm.n for arm in made.arms] == [3, 3, 3]


TWO = ("dynamic > static on mlm_loss", "static >= static_x10 on mlm_loss, margin 0.001 nats")


def test_only_the_arms_of_open_claims_get_more_seeds(request_: Request) -> None:
    """`dynamic` is clearly better than `static` at the first look; only the other claim needs more seeds."""
    asked = request_._replace(sweep=replace(request_.sweep, claims=TWO))
    runs = Runs(gain=0.5)
    assert run_until_decided(asked, 6, runs, claims) == 0
    assert runs.arms[0] is None
    assert len(runs.arms) > 1
    assert set(runs.arms[1:]) == {("static_x10", "static", "from_scratch")}
    made, most = make_table(asked.sweep, "smoke", None, asked.roots), len(runs.asked[-1])
    assert {arm.name: (arm.n, arm.status) for arm in made.arms} == {
        "static_x10": (most, "done"), "dynamic": (3, "done"), "static": (most, "done"),
    }  # fmt: skip
    assert made.claims[0].verdict == "reproduced"
    assert made.claims[0].contrasts[0].n == 3
    assert made.claims[1].contrasts[0].n == most
    assert any("No more seeds were needed of dynamic (3)." in note for note in made.notes)
    assert not any("no record of seed" in note for note in made.notes)


def test_requested_arms_limit_it_to_the_claims_about_them(request_: Request) -> None:
    asked = request_._replace(sweep=replace(request_.sweep, claims=TWO))
    runs = Runs(gain=0.5)
    runs(asked._replace(seeds=(0, 1, 2)))
    limited = asked._replace(arms=("dynamic", "static"))
    assert run_until_decided(limited, 6, runs, claims) == 0
    assert runs.asked[1:] == [(0, 1, 2)], "the other claim is open, but not asked about"
    assert runs.arms[1:] == [("dynamic", "static", "from_scratch")], "a verdict on tasks needs the model from scratch"
    with pytest.raises(UserError, match="no claim is about dynamic, from_scratch alone: name all arms of a claim"):
        run_until_decided(asked._replace(arms=("dynamic", "from_scratch")), 6, runs, claims)


def test_claims_that_more_seeds_do_not_decide_are_named(request_: Request, capfd: pytest.CaptureFixture[str]) -> None:
    def barred(request: Request) -> list[dict[str, Any]]:
        return [
            {**claim, "open": False, "verdict": "undecided", "said": "undecided (plateau)"} for claim in claims(request)
        ]

    assert run_until_decided(request_, 6, Runs(gain=0.0), barred) == 0
    line = "after 3 of at most 6 seeds: more seeds decide none of dynamic > static_x10 on mlm_loss: undecided (plateau)"
    assert line in capfd.readouterr().err


def test_a_failed_run_ends_it(request_: Request) -> None:
    assert run_until_decided(request_, 6, lambda request: 1, claims) == 1


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["max_seeds=8"], "max_seeds= needs --until-decided: add"),
        (["--until-decided", "seeds=0,1"], "seeds= and --until-decided exclude"),
        (["--until-decided", "max_seeds=2"], "max_seeds=2 is not valid: write a whole number, at least 3"),
        (["--until-decided", "max_seeds=many"], "max_seeds=many is not valid"),
        (["--until"], "run has no flag '--until': did you mean --until-decided?"),
    ],
)
def test_bad_input_is_named(arguments: list[str], names: str) -> None:
    with pytest.raises(UserError, match=re.escape(names)):
        parse("run", ["roberta_table1", *arguments])


def test_the_flag_is_of_run_alone_and_a_sweep_needs_claims(request_: Request) -> None:
    with pytest.raises(UserError, match="status has no flag '--until-decided'"):
        status(["roberta_table1", "--until-decided"])
    assert parse("run", ["roberta_table1", "--until-decided"]).most == 12
    with pytest.raises(UserError, match="has no claims"):
        run_until_decided(request_._replace(sweep=replace(request_.sweep, claims=())), 6, lambda request: 0, claims)
