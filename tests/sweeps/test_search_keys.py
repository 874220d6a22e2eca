"""Every key of the sweepers, of Hydra's node, and every form of a search space: refused in one line, or of use."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest
from fuzzing import judge, said_by
from optuna.distributions import FloatDistribution, IntDistribution

from paribus.core.config import compose, compose_whole, plain
from paribus.core.errors import UserError
from paribus.core.plugins import check_hydra
from paribus.sweeps.search.settings import _KEYS, check_settings, read_settings, try_sampler
from paribus.sweeps.search.space import Choice, Range, dimension, grid

ODD: tuple[Any, ...] = ("", "abc", -1, 1.5, True, None, [], ["a"], {}, {"a": 1}, float("nan"), float("inf"))
TAKEN = {  # the odd values that a key has a use for
    "sampler": [], "direction": [], "storage": [None], "study_name": ["abc", None], "n_trials": [], "n_jobs": [],
    "max_failure_rate": [], "params": [None, {}, {"a": 1}], "custom_search_space": ["abc", None], "pruner": [None],
    "seeds": [None, []], "resume": [True], "trial_timeout": [1.5, None], "retries": [],
    "objective": ["abc", None, ["a"]], "folder": ["abc", None],
}  # fmt: skip


def sweeper(*overrides: str) -> dict[str, Any]:
    found: dict[str, Any] = plain(compose_whole(["scale=test", "hydra/sweeper=optuna", *overrides]).hydra.sweeper)
    return found


def test_each_key_of_a_search_takes_what_it_can_use_and_refuses_the_rest() -> None:
    usual = sweeper()
    check_settings(usual)
    assert TAKEN.keys() == _KEYS.keys() == {key for key in usual if not key.startswith("_")}
    for key, taken in TAKEN.items():
        found = [
            value for value in ODD if judge(lambda key=key, value=value: check_settings({**usual, key: value})) == "ok"
        ]
        assert list(map(repr, found)) == list(map(repr, taken)), key
        said = [judge(lambda key=key, value=value: check_settings({**usual, key: value})) for value in ODD]
        assert all(one == "ok" or one.startswith(f"refused: hydra.sweeper.{key}=") for one in said), said


def test_a_search_from_code_refuses_a_key_that_it_does_not_know() -> None:
    with pytest.raises(UserError, match=r"unknown key 'hydra.sweeper.n_trails': did you mean n_trials"):
        check_settings({**sweeper(), "n_trails": 5})


@pytest.mark.parametrize("kind", ["sampler", "pruner"])
def test_settings_of_optunas_classes_have_the_types_that_optuna_says(kind: str) -> None:
    target = {"sampler": "optuna.samplers.TPESampler", "pruner": "optuna.pruners.MedianPruner"}[kind]
    with pytest.raises(UserError, match=rf"hydra.sweeper.{kind}.n_startup_trials=abc has the wrong type: give a whole"):
        check_settings({**sweeper(), kind: {"_target_": target, "n_startup_trials": "abc"}})


def test_each_sampler_draws_or_names_the_package_that_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cmaes", None)  # as if it were not installed
    for name in ("tpe", "random", "nsgaii", "qmc", "grid"):
        try_sampler(sweeper(f"hydra/sweeper/sampler={name}")["sampler"], "minimize")
    with pytest.raises(UserError, match="CmaEsSampler needs the package 'cmaes', which is not installed: pip install"):
        try_sampler(sweeper("hydra/sweeper/sampler=cmaes")["sampler"], "minimize")
    with pytest.raises(UserError, match=r"hydra.sweeper.sampler cannot be used .* in Optuna"):
        try_sampler({"_target_": "optuna.samplers.NSGAIISampler", "population_size": 1}, "minimize")


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("+hydra.x=1", "unknown key 'hydra.x'"),
        ("+hydra.sweeper.x=1", "unknown key 'hydra.sweeper.x'"),
        ("+hydra.sweep.x=1", "unknown key 'hydra.sweep.x': known: dir, subdir"),
        ("+hydra.job.x=1", "unknown key 'hydra.job.x'"),
        ("hydra.launcher=abc", "hydra.launcher=abc is not a component: write hydra/launcher=NAME"),
        ("hydra.sweeper=1", "hydra.sweeper=1 is not a component"),
        ("hydra.sweeper.max_batch_size=0", "give an integer of at least 1, or null"),
    ],
)
def test_hydras_node_has_no_key_that_nothing_reads(override: str, words: str) -> None:
    said = judge(lambda: check_hydra(compose_whole(["scale=test", override]).hydra))
    assert said.startswith("refused: "), said
    assert words in said


def test_the_command_line_refuses_them_before_a_run() -> None:
    fixed = ["train", "-m", "scale=test", "corpus=text", "corpus.path=no", "hydra/sweeper=optuna"]
    for own in ("hydra.sweeper.sampler=cmaes", "+hydra.sweeper.x=1", "hydra.sweeper.seeds=abc", "trial=1"):
        said = said_by([*fixed, "optimizer.lr=interval(0.1,1)", own])
        assert said.startswith("refused: "), (own, said)
        assert own.split("=")[0].lstrip("+") in said
    said = said_by(["run", "optuna_lr", "scale=test", "hydra.sweeper.sampler=cmaes"])
    assert said.startswith("refused: paribus: hydra.sweeper.sampler=cmaes cannot be used"), said


@pytest.mark.parametrize(
    ("text", "values", "distribution"),
    [
        ("range(1,4)", ("1", "2", "3"), IntDistribution(1, 3)),
        ("range(0,10,5)", ("0", "5"), IntDistribution(0, 5, step=5)),
        ("range(4,1,-1)", ("2", "3", "4"), IntDistribution(2, 4)),
        ("range(0.5,2,0.5)", ("0.5", "1.0", "1.5"), FloatDistribution(0.5, 1.5, step=0.5)),
    ],
)
def test_the_numbers_of_a_range_keep_their_order(text: str, values: tuple[str, ...], distribution: object) -> None:
    space = dimension("model.layers", text)
    assert isinstance(space, Range)
    assert space.values == values
    assert repr(space.distribution()) == repr(distribution)
    assert [space.text(space.number(one)) for one in space.values] == list(space.values)
    assert len(grid({"a": space}, len(values))) == len(values)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("tag(log, range(1,4))", "the tag log, which changes nothing"),
        ("tag(lgo, interval(1,4))", "the tag lgo, which changes nothing"),
        ("tag(log, choice(1,4))", "the tag log, which changes nothing"),
        ("tag(log, interval(0,4))", "which has no logarithm: start it above 0"),
        ("interval(4,1)", "write interval(a, b) with a below b"),
        ("interval(0,inf)", "write interval(a, b) with a below b"),
    ],
)
def test_a_space_that_no_search_can_use_is_refused(text: str, words: str) -> None:
    with pytest.raises(UserError) as refused:
        dimension("model.layers", text)
    assert words in str(refused.value)


def test_a_search_over_a_range_runs_each_of_its_numbers_once(tmp_path: Any) -> None:
    overrides = ["scale=test", "task=none", "hydra/sweeper=optuna", f"hydra.sweep.dir={tmp_path}"]
    config = compose_whole(overrides)
    given = {key: value for key, value in config.hydra.sweeper.items() if not str(key).startswith("_")}
    from paribus.sweeps.search.worker import open_study

    context: Any = SimpleNamespace(config_loader=None)
    settings = read_settings(given, config, context, ["scale=test", "task=none", "model.layers=range(1,4)"])
    ledger = open_study(settings)
    drawn = []
    while (claim := ledger.claim()) is not None:
        drawn += claim.overrides
        ledger.complete(claim, [float(len(drawn))], {})
    assert sorted(drawn) == ["model.layers=1", "model.layers=2", "model.layers=3"]
    assert sorted(trial.params["model.layers"] for trial in ledger.study.trials if trial.value) == [1, 2, 3]


def test_a_list_of_texts_holds_each_as_it_is() -> None:
    """Paths with characters of Hydra's grammar are values; a comma may separate two of them, and is refused."""
    paths = ["my books (old)", "O'Neil", "Bücher", "a=b"]
    space = dimension("corpus.path", [*paths, "'one, two'"])
    assert isinstance(space, Choice)
    composed = [compose(["corpus=text", f"corpus.path={text}"]).corpus.path for text in space.values]
    assert composed == [*paths, "one, two"]
    for text in ("my/books,my/letters", "choice(1,2)"):
        with pytest.raises(UserError, match=r"which is one value or several: write .* or list them apart"):
            dimension("corpus.path", [text, "my/poems"])
