"""Every key at the top of the config with a value of every kind: of use, or refused in one line."""

from __future__ import annotations

import pytest
from fuzzing import judge

from paribus.core.config import compose, plain
from paribus.core.config_names import is_group
from paribus.training.description import Run

ODD = ("{a: 1}", "{}", "[1]", "[a]", "[]", "''", "abc", "-1", "7", "1.5", "true", "null")
NAME, TEXT = {"abc", "7", "1.5", "true"}, {"abc", "-1", "7", "1.5", "true", "null"}
TAKEN = {  # the odd values that a key has a use for
    "study": NAME, "arm": NAME, "seed": {"7"}, "replicate": {"7"}, "members": {"7"}, "untrained": {"true"},
    "scale": {"null"}, "table_seeds": {"[1]", "[]"}, "exit_tokens": {"{}"}, "sweep": TEXT, "sweep_hash": TEXT,
    "trial": {"null"}, "run_dir": TEXT, "tasks": {"{}"}, "stages": {"{}"}, "paths": {"{}"},
}  # fmt: skip


def taken(key: str) -> set[str]:
    """The values with which there is a run; every other is refused with the key in its line."""
    said = {odd: judge(lambda odd=odd: Run.of(plain(compose(["scale=test", f"{key}={odd}"])))) for odd in ODD}
    for odd, one in said.items():
        assert one == "ok" or (one.startswith("refused: ") and key in one), f"{key}={odd}: {one}"
    return {odd for odd, one in said.items() if one == "ok"}


@pytest.mark.slow
def test_every_key_at_the_top_takes_only_what_it_can_use() -> None:
    keys = [str(key) for key in compose(["scale=test"]) if not is_group(str(key))]
    assert {key: taken(key) for key in keys} == TAKEN


@pytest.mark.parametrize(("key", "odd"), [(key, ODD[at % len(ODD)]) for at, key in enumerate(TAKEN)])
def test_a_key_at_the_top_takes_what_it_can_use_or_names_itself(key: str, odd: str) -> None:
    said = judge(lambda: Run.of(plain(compose(["scale=test", f"{key}={odd}"]))))
    assert said == "ok" if odd in TAKEN[key] else said.startswith("refused: ") and key in said


@pytest.mark.parametrize("group", ["batch", "mixture", "family", "masking"])
def test_a_group_takes_one_choice(group: str) -> None:
    for several in ("[]", "[a,b]"):
        said = judge(lambda several=several: compose(["scale=test", f"{group}={several}"]))
        assert said.startswith(f"refused: {group}={several} is a list of choices: give one choice of {group}: "), said


@pytest.mark.slow
@pytest.mark.parametrize("key", ["paths.runs", "paths.cache", "profile.compile", "finetune.keep"])
def test_folders_and_switches_below_take_only_what_they_can_use(key: str) -> None:
    assert taken(key) == (TEXT - {"null"} if key.startswith("paths.") else {"true"})


@pytest.mark.parametrize("trial", ["{a: 1}", "{storage: x, study: s}"])
def test_a_trial_is_that_of_a_search(trial: str) -> None:
    said = judge(lambda: Run.of(plain(compose(["scale=test", f"++trial={trial}"]))))
    assert said.endswith("is no trial of a search: leave it out; a search sets it")
