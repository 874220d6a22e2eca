"""Universes: how settings are drawn, read, composed and refused."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml
from quick_sweeps import Commands, plan

from paribus.core.config import compose, plain
from paribus.core.errors import UserError
from paribus.reports.tables.build import make_table
from paribus.runs.manifest import read_manifest, write_manifest
from paribus.sweeps.control import audit
from paribus.sweeps.expand import draw_settings, expand
from paribus.sweeps.request import Request, parse
from paribus.sweeps.run import run_sweep
from paribus.sweeps.search.space import dimension
from paribus.sweeps.sweep import arm_overrides, jobs
from paribus.sweeps.sweep_file import load, names
from paribus.sweeps.universe import TWIN, Universe
from paribus.sweeps.universe_plan import sum_settings
from paribus.sweeps.until import run_until_decided

LARGE = [pytest.param(scale, marks=pytest.mark.slow) for scale in ("gpu", "paper")]
UNIVERSES = [name for name in names() if load(name).universes]
FACTORS: dict[str, Any] = {
    "model.layers": [1, 2],
    "optimizer.lr": "tag(log, interval(1e-3, 4e-3))",
    "masking.rate": "interval(0.1, 0.4)",
    "trainer.max_steps": "int(interval(1, 4))",
}
SWEEP: dict[str, Any] = {
    "study": "mine",
    "base": ["task=none"],
    "varies": ["masking.schedule"],
    "matched": "tokens",
    "arms": {"dynamic": ["masking/schedule=dynamic"], "static": ["masking/schedule=static"]},
    "baseline": "dynamic",
    "columns": ["mlm_loss"],
    "claims": ["dynamic > static on mlm_loss"],
    "universe": {"settings": 4, "factors": FACTORS, "known": {"static": "worse"}},
}


def draw(count: int, **factors: Any) -> list[Any]:
    space = {key: dimension(key, values) for key, values in (factors or FACTORS).items()}
    return Universe(count, 0, space, factors or FACTORS, {}).draw()


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., str]:
    """Writes the sweep with changes of its universe, and of the file."""

    def write_sweep(changes: dict[str, Any] | None = None, **top: Any) -> str:
        content = {**SWEEP, "universe": {**SWEEP["universe"], **(changes or {})}, **top}
        path = tmp_path / "mine.yaml"
        path.write_text(yaml.safe_dump({key: value for key, value in content.items() if value is not None}))
        return str(path)

    return write_sweep


def test_the_settings_of_a_seed_are_frozen() -> None:
    assert draw(3) == [
        {"model.layers": "2", "optimizer.lr": "0.003284", "masking.rate": "0.223", "trainer.max_steps": "3"},
        {"model.layers": "1", "optimizer.lr": "0.001961", "masking.rate": "0.2969", "trainer.max_steps": "2"},
        {"model.layers": "2", "optimizer.lr": "0.002523", "masking.rate": "0.3504", "trainer.max_steps": "4"},
    ]


def test_more_settings_continue_the_sequence_and_the_order_of_factors_changes_nothing() -> None:
    assert draw(21)[:12] == draw(12)
    assert draw(12, **dict(reversed(FACTORS.items()))) == draw(12)


def test_a_power_of_two_settings_has_every_value_equally_often() -> None:
    drawn = draw(16)
    for factor, count in (("model.layers", 8), ("trainer.max_steps", 4)):
        values = [setting[factor] for setting in drawn]
        assert {value: values.count(value) for value in values} == dict.fromkeys(values, count)
    rates = [float(setting["masking.rate"]) for setting in drawn]
    assert all(sum(low <= rate < low + 0.075 for rate in rates) == 4 for low in (0.1, 0.175, 0.25, 0.325))


def test_every_setting_trains_every_arm_and_a_twin_of_the_baseline(write: Callable[..., str]) -> None:
    sweep = load(write())
    listed = jobs(sweep, "test")
    assert [job.label for job in listed[:3]] == ["dynamic/seed0", "static/seed0", "twin/seed0"]
    assert len(listed) == 4 * 3
    for job in listed:
        setting = sweep.universes[""].draw()[job.seed]
        assert {f"{key}={value}" for key, value in setting.items()} <= set(job.overrides)
        assert ("replicate=1" in job.overrides) == (job.arm == TWIN)
    assert sweep.compared == ("dynamic", "static")
    further = jobs(sweep, "test", seeds=[6])
    assert f"optimizer.lr={draw(7)[6]['optimizer.lr']}" in further[0].overrides


def test_a_scale_refines_the_universe_and_the_file_hash_covers_it(write: Callable[..., str]) -> None:
    scales = {"test": {"universe": {"settings": 2}}}
    sweep = load(write(scales=scales))
    assert (sweep.seeds_at("test"), sweep.seeds_at("cpu")) == ((0, 1), (0, 1, 2, 3))
    assert sweep.universes["test"].factors == sweep.universes[""].factors
    other = load(write({"seed": 1}, scales=scales))
    assert other.hash("test") != sweep.hash("test")


@pytest.mark.parametrize(
    ("changes", "top", "said"),
    [
        ({"setings": 4}, {}, "unknown key 'universe.setings'"),
        ({"settings": 1}, {}, "'universe.settings' is not a whole number from 2"),
        ({"seed": -1}, {}, "'universe.seed' is not a whole number"),
        ({"factors": {}}, {}, "no 'universe.factors'"),
        ({"factors": {"model.layers": [2, 2, 4]}}, {}, "lists 2 twice"),
        ({"factors": {"model.layers": [2]}}, {}, "single value"),
        ({"factors": {"optimizer.lr": "interval(3, 1)"}}, {}, "runs from 3.0 to 1.0"),
        ({"factors": {"seed": [0, 1]}}, {}, "names 'seed', which is no setting"),
        ({"factors": {"masking/schedule": ["static", "dynamic"]}}, {}, "the arm dynamic sets 'masking.schedule'"),
        ({"factors": {"masking.schedule.copies": [2, 3]}}, {}, "the arm dynamic sets 'masking.schedule'"),
        ({"factors": {"masking": ["bernoulli", "whole_word"]}}, {}, "the universe varies 'masking'"),
        ({"known": {"statik": "worse"}}, {}, "unknown arm 'statik'"),
        ({"known": {"static": "bad"}}, {}, "write static: better or worse"),
        ({"known": {"dynamic": "worse"}}, {}, "'universe.known' names the baseline"),
        ({}, {"seeds": [0, 1]}, "'seeds' and 'universe' exclude each other"),
        ({}, {"scales": {"cpu": {"seeds": [0]}}}, "'scales.cpu.seeds' and 'universe' exclude each other"),
        ({}, {"tune": {"trials": 2}}, "'tune' and 'universe' exclude each other"),
        ({}, {"arms": {**SWEEP["arms"], "twin": []}}, "an arm is named 'twin'"),
        ({}, {"universe": None, "scales": {"cpu": {"universe": {"settings": 4}}}}, "the sweep does not have"),
        ({}, {"claims": ["twin > static on mlm_loss"]}, "unknown arm 'twin'"),
    ],
)
def test_what_can_be_no_universe_is_refused(
    write: Callable[..., str], changes: dict[str, Any], top: dict[str, Any], said: str
) -> None:
    with pytest.raises(UserError, match=re.escape(said)) as caught:
        load(write(changes, **top))
    assert "\n" not in str(caught.value)


def test_an_arm_may_choose_the_group_of_a_factor_if_its_choice_has_it(write: Callable[..., str]) -> None:
    arms = {"words": ["masking=whole_word"], "tokens": ["masking=bernoulli"]}
    more = {"arms": arms, "baseline": "tokens", "varies": ["masking"], "claims": None}
    found = expand(parse("run", [write({"known": {}}, **more), "scale=test", "seeds=0"])).configs
    assert {found[f"{arm}/seed0"].masking.rate for arm in arms} == {0.223}
    with pytest.raises(UserError, match="the arm tokens sets 'masking'"):
        load(write({"known": {}, "factors": {"masking.schedule.copies": [2, 3]}}, **more))


PRETRAINING = (
    *("corpus", "tokenizer", "input", "masking", "objective", "model", "optimizer", "lr_schedule", "batch", "trainer"),
    *("evaluation", "replicate"),
)
BERT = {  # {universe of the seven questions: its arm that is the recipe itself}
    "masks_universe": "dynamic",
    "nsp_universe": "full_sentences",
    "batch_universe": "small",
    "decay_universe": "mid_100",
    "adapters_universe": "full_low",
}
T5 = {"t5_rates_universe": "r15", "t5_spans_universe": "span3"}


@pytest.mark.parametrize(("sweeps", "known"), [(BERT, "learned"), (T5, "dropped")])
def test_the_seven_questions_share_the_pretrainings_of_their_baselines(sweeps: dict[str, str], known: str) -> None:
    def pretrainings(name: str, arms: Iterable[str]) -> list[Any]:
        request = parse("run", [name, "scale=cpu"])
        setting = draw_settings(request)[7]
        composed = [compose(list(arm_overrides(request.sweep, "cpu", arm, (), setting))) for arm in arms]
        return [{part: plain(config)[part] for part in PRETRAINING} for config in composed]

    expected = pretrainings(first := next(iter(sweeps)), (sweeps[first], TWIN, known))
    assert expected[0] != expected[1] != expected[2]
    for name, arm in sweeps.items():
        universe, other = (load(one).universe_at("cpu") for one in (name, first))
        assert universe is not None
        assert other is not None
        assert universe.draw(20) == other.draw(20)
        arms = (arm, TWIN, *([known] if known in load(name).arms else []))
        assert pretrainings(name, arms) == expected[: len(arms)], name


def test_a_plan_counts_a_pretraining_that_arms_share_once(write: Callable[..., str], arguments: list[str]) -> None:
    given = [text for text in arguments if not text.startswith(("scale=", "trainer."))]
    arms = {"slow": ["finetune.epochs=2"], "fast": ["finetune.epochs=1"]}
    more = {"arms": arms, "baseline": "fast", "varies": ["finetune.epochs"], "claims": None}
    path = write({"settings": 2, "known": {}, "factors": {"model.layers": [1, 2]}}, **more)
    expanded = expand(parse("plan", [path, "scale=test", *given]))
    times = {
        "fast/seed0": {"start_seconds": 1.0, "pretrain_seconds": 10.0, "finetune_seconds": 2.0},
        "slow/seed0": {"start_seconds": 1.0, "pretrain_seconds": 10.0, "finetune_seconds": 4.0},
        "twin/seed0": {"start_seconds": 1.0, "pretrain_seconds": 10.0, "finetune_seconds": 2.0},
        "fast/seed1": {"start_seconds": 2.0, "pretrain_seconds": 20.0, "finetune_seconds": 6.0},
    }
    assert sum_settings(expanded, times) == {0: 3.0 + 20.0 + 8.0, 1: 6.0 + 40.0 + 24.0}


def test_the_command_line_does_not_set_a_factor(write: Callable[..., str]) -> None:
    with pytest.raises(UserError, match=r"model\.layers= is a factor of the universe"):
        expand(parse("run", [write(), "scale=test", "model.layers=4"]))


def test_a_setting_that_cannot_be_is_refused_before_anything_is_trained(write: Callable[..., str]) -> None:
    request = parse("run", [write({"factors": {"model.hidden": [128, 129]}}), "scale=test"])
    with pytest.raises(UserError, match=r"dynamic/seed\d: .*(129|heads)"):
        run_sweep(request)


def test_runs_follow_the_frozen_settings(
    write: Callable[..., str], arguments: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Every setting runs once, and is found again; a sample that is drawn otherwise is refused."""
    given = [text for text in arguments if not text.startswith(("scale=", "paths.runs=", "trainer."))]
    places = [f"runs={tmp_path / 'runs'}", f"results={tmp_path / 'results'}", "profile.threads=null", "slots=2"]
    request = parse("run", [write(), "scale=smoke", *given, *places])
    losses = {f"{arm}/seed{seed}": 4.0 for arm in ("dynamic", "static", "twin") for seed in range(4)}
    commands = Commands(request, tmp_path / "made", {**losses, "dynamic/seed1": 5.9, "static/seed2": 5.9})
    assert run_sweep(request, plan=plan, command=commands) == 0
    assert len(commands.called) == len(set(commands.called)) == 12
    said = capfd.readouterr().err
    assert "on the plateau of a trivial model: dynamic (1 of 4). These settings do not count, for any arm." in said
    manifest = read_manifest(request.runs, "mine", "smoke")
    assert manifest is not None
    assert manifest.settings == {str(number): setting for number, setting in enumerate(draw(4))}
    assert run_sweep(request, plan=plan, command=commands) == 0
    assert len(commands.called) == 12, "the second time nothing is left"
    table = make_table(request.sweep, "smoke", None, [request.runs])
    assert table.universe is not None
    assert [row.number for row in table.universe.excluded] == [1]
    assert {arm.name: arm.n for arm in table.arms} == {"dynamic": 3, "static": 3, "twin": 3}
    other = {**manifest.settings, "2": {**manifest.settings["2"], "model.layers": "9"}}
    write_manifest(request.runs, "mine", "smoke", manifest._replace(settings=other))
    with pytest.raises(UserError, match=r"setting 2 of mine was drawn as .* and is now"):
        run_sweep(request, plan=plan, command=commands)


@pytest.mark.parametrize("most", [3, 4])
def test_settings_are_added_after_all_of_the_first(write: Callable[..., str], most: int) -> None:
    request = parse("run", [write(), "scale=smoke", "--until-decided", f"max_seeds={most}"])
    ran: list[tuple[int, ...] | None] = []

    def run(asked: Request) -> int:
        ran.append(asked.seeds)
        return 1

    if most < 4:
        with pytest.raises(UserError, match="the universe has 4 settings"):
            run_until_decided(request, most, run, lambda asked: [])
        return
    run_until_decided(request, most, run, lambda asked: [])
    assert ran == [(0, 1, 2, 3)]


@pytest.mark.parametrize(
    "scale", ["test", "smoke", "cpu", *(pytest.param(scale, marks=pytest.mark.slow) for scale in LARGE)]
)
@pytest.mark.parametrize("name", UNIVERSES)
def test_every_setting_of_a_packaged_universe_is_composed(name: str, scale: str) -> None:
    expanded = expand(parse("run", [name, f"scale={scale}"]))
    sweep = expanded.request.sweep
    settings = [seed for seed in sweep.seeds_at(scale) if seed < 4 or scale in ("test", "smoke")]
    for seed in settings:
        cells = {arm: expanded.configs[f"{arm}/seed{seed}"] for arm in sweep.arms}
        assert audit(sweep, cells)["controlled"]
        assert expanded.run(f"{sweep.baseline}/seed{seed}").seed == seed
    assert len({str(setting) for setting in expanded.settings.values()}) == len(expanded.settings)
