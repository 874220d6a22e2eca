"""The arguments of the verbs: help, checks and near misses, all from one declaration."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from paribus.commands.cli import VERBS, load, main
from paribus.core.arguments import Arguments, Flag, Option, Positional, Verb, names, parse, path, whole
from paribus.core.errors import UserError

COUNT = Option("count", "how many", 3, whole(1))
PLACE = Option("place", "where", Path("here"), path, config="paths.place", old=("spot",))
LOUD = Flag("--loud", "say more")
WORD = Positional("WORD", "what to say")


def said(given: Arguments) -> int:
    """Say a word. It is a toy."""
    return given[COUNT]


def toy(*, overrides: bool = False) -> Verb:
    declare = click.command(
        cls=Verb,
        params=[WORD, COUNT, PLACE, LOUD],
        example="paribus said hi",
        overrides=overrides,
    )
    return declare(said)


def test_a_verb_is_a_declaration_and_a_function() -> None:
    assert toy()(["hi", "count=7"]) == 7
    given = parse(toy(), ["count=2", "hi", "paths.place=there", "count=4", "--loud"])
    assert (given[WORD], given[COUNT], given[PLACE], given[LOUD]) == ("hi", 4, Path("there"), True)
    usual = parse(toy(), ["hi"])
    assert (usual[COUNT], usual[PLACE], usual[LOUD]) == (3, Path("here"), False)
    assert COUNT not in usual


def test_overrides_keep_their_order_beside_options_that_set_the_config() -> None:
    given = parse(toy(overrides=True), ["hi", "b.c=1", "place=x", "a=2", "b.c=3", "~d", "count=1"])
    assert given.config(PLACE) == ["paths.place=x", "a=2", "b.c=3", "~d"]
    assert given.config() == ["a=2", "b.c=3", "~d"]


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        ([], "said needs a WORD: for example, paribus said hi"),
        (["a", "b"], "said: Got unexpected extra argument (b): for example, paribus said hi"),
        (["a", "count=x"], "count=x is not valid: write a whole number, at least 1"),
        (["a", "count=0"], "count=0 is not valid"),
        (["a", "place="], "place= is not valid: give a value"),
        (["a", "coutn=1"], "said has no option 'coutn=': did you mean count=?"),
        (["a", "zzz=1"], "said has no option 'zzz=': known: count=, place="),
        (["a", "~x"], "said has no option '~x='"),
        (["a", "spot=b"], "said has no option 'spot=': write place="),
        (["a", "--laud"], "said has no flag '--laud': did you mean --loud?"),
        (["a", "--count=2"], "said has no flag '--count': write count=VALUE"),
    ],
)
def test_what_is_wrong_is_one_line_that_says_what_to_type(argv: list[str], words: str) -> None:
    with pytest.raises(UserError) as raised:
        parse(toy(), argv)
    assert words in str(raised.value)


def test_a_misspelled_option_is_no_override_but_a_key_of_the_config_is() -> None:
    with pytest.raises(UserError, match="did you mean count="):
        parse(toy(overrides=True), ["hi", "coutn=1"])
    declared = Verb("toy", params=[Option("seeds", "", 0, whole(0))], example="", overrides=True)
    assert parse(declared, ["seed=1"]).overrides == {"seed": "1"}
    assert parse(declared, ["seeds.x=1"]).overrides == {"seeds.x": "1"}


def test_the_page_of_a_toy() -> None:
    verb = toy(overrides=True)
    lines = [line.strip() for line in verb.get_help(click.Context(verb, info_name="said")).splitlines()]
    assert lines[0] == "Usage: said [OPTIONS] WORD [key=value ...]"
    listed = {name: " ".join(told) for name, *told in map(str.split, filter(None, lines))}
    assert listed["WORD"] == "what to say"
    assert listed["count="] == "how many [default: 3]"
    assert listed["place="] == "where [default: here]"
    assert listed["--loud"] == "say more [default: (off)]"
    assert lines[-1] == "Example: paribus said hi"


@pytest.mark.parametrize("name", VERBS)
@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_every_verb_has_a_page_with_every_option_and_its_default(
    name: str, flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([name, "nonsense", flag]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.startswith(f"Usage: paribus {name}")
    assert f"paribus {name}" in out.splitlines()[-1]
    assert max(map(len, out.splitlines())) <= 100
    declared = load(name)
    for option in declared.of(Option):
        assert f"  {option.label} {'VALUE' * option.dashed} " in out
    optional = [option for option in declared.of(Option) if not option.required]
    assert " ".join(out.split()).count("[default: ") == len(optional) + len(declared.of(Flag))
    assert main(["help", name]) == 0
    assert capsys.readouterr().out == out


def test_train_shows_the_groups_and_where_every_key_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--help"]) == 0
    page = capsys.readouterr().out
    for text in ("paribus train --cfg job", "masking=bernoulli", "seed=0", "run_dir=null", "Hydra"):
        assert text in page
    described = {line.split()[0]: " ".join(line.split()[1:]) for line in page.splitlines() if line.startswith("  ")}
    assert described["seed=0"] == "initial weights, data order, noise", "the comment of the YAML file"
    assert described["tokenizer=wordpiece"].startswith("WordPiece, trained on the corpus.")
    assert sum("=" in key and bool(text) for key, text in described.items()) > 30


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["runn"], "unknown verb 'runn': did you mean run?"),
        (["--"], "Missing command: see `paribus --help`"),
        (["--version=3"], "Option '--version' does not take a value: see `paribus --help`"),
        (["power", "--sd"], "power: Option '--sd' requires an argument: for example, paribus power --sd 0.8"),
        (["table", "roberta_table1", "--check=1"], "table: Option '--check' does not take a value: for example"),
        (
            ["run", "roberta_tabel1"],
            "sweeps nor packaged: did you mean roberta_table1?",
        ),
        (["run", "roberta_table1", "sedes=0"], "run has no option 'sedes=': did you mean seeds=?"),
        (["run", "roberta_table1", "run_dir=x"], "run has no option 'run_dir=': write runs="),
        (["run", "optuna_lr", "seeds=1"], "seeds= does not apply to the search optuna_lr"),
        (["status", "roberta_table1", "slots=0"], "slots=0 is not valid"),
        (["show", "n=0"], "n=0 is not valid: write a whole number, at least 1"),
        (["show", "epoch=-1"], "epoch=-1 is not valid"),
        (["report", "examples=few"], "examples=few is not valid: write a whole number, at least 0"),
        (
            ["compare", "a", "b", "c"],
            "compare: Got unexpected extra argument (c): for example, paribus compare",
        ),
        (["table", "roberta_table1", "--from", "runs"], "SWEEP does not apply to --from: leave it out"),
        (["report", "here"], "report: Got unexpected extra argument (here)"),
        (
            ["power", "--sd", "1", "--arms", "1001"],
            "--arms=1001 is not valid: write a whole number, at least 2 and at m",
        ),
        (["power", "--sd", "1", "--effect", "nan"], "--effect=nan is not valid: write a finite number"),
        (["power", "--sd", "1", "--effect", "1e999"], "--effect=1e999 is not valid: write a finite number"),
        (["plan", "roberta_table1", f"seeds=range(0,{10**30})"], "is not valid: give at most 1000 seeds"),
        (["run", "roberta_table1", "--until-decided", "max_seeds=101"], "at least 3 and at most 100"),
        (["flatness", "pretraining_helps", "points=3"], "points=3 is not valid: write a multiple of 2"),
        (["table", "roberta_table1", "run_dir=x"], "table has no option 'run_dir=': write runs="),
        (["audit", "x", "--reproduce", "out=y"], "out= does not apply to --reproduce"),
        *(
            (argv, "/dev/null is not valid: it is a file; give a folder")
            for argv in (
                ["run", "roberta_table1", "runs=/dev/null"],
                ["status", "roberta_table1", "runs=/dev/null"],
                ["train", "runs=/dev/null"],
                ["train", "paths.cache=/dev/null"],
            )
        ),
        (
            ["train", "masking.rate=0.1,0.2"],
            "masking.rate=0.1,0.2 gives several values: add -m for one run each",
        ),
        (["train", "hydra.run.dir=/proc/x"], "/proc/x cannot be read or written (No such file or directory)"),
        (["train", "-sc", "query=bash"], "use `paribus completion bash`"),
        (
            ["train", "seed=1", "--frobnicate"],
            "train: unrecognized arguments: --frobnicate: see `paribus train --help`",
        ),
        (["train", "--cfg", "jobs"], "train: argument --cfg/-c: invalid choice: 'jobs'"),
        (["train", "seeds=1"], "'seeds' is not a config group or key: did you mean seed"),
        (["completion", "bahs"], "unknown shell 'bahs': did you mean bash?"),
    ],
)
def test_bad_input_of_the_verbs(argv: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(argv) == 2
    out, err = capsys.readouterr()
    assert words in err
    assert err.count("\n") == 1
    assert out == ""


def test_a_misspelled_option_with_dashes_is_named(refusal: Callable[..., str]) -> None:
    assert "judge has no flag '--metrc': did you mean --metric?" in refusal("judge", "a.csv", "--metrc", "acc")


@pytest.mark.parametrize("columns", ["80", "120"])
def test_pages_of_help_fit_the_terminal(columns: str) -> None:
    script = "import sys; from paribus.commands.cli import main; [main(one.split()) for one in sys.argv[1:]]"
    pages = ["--help", "run --help", "train --help", "judge --help"]
    done = subprocess.run(
        [sys.executable, "-c", script, *pages],
        env={**os.environ, "COLUMNS": columns},
        capture_output=True,
        text=True,
        check=True,
    )
    wide = [line for line in done.stdout.splitlines() if len(line) > int(columns)]
    assert [line for line in wide if not line.strip().startswith("Example")] == []


def test_names_may_hold_blanks_and_brackets() -> None:
    assert names("[a, b c]") == ("a", "b c")
    assert names("WER (%),top 1 [%]") == ("WER (%)", "top 1 [%]")
    with pytest.raises(ValueError, match="commas between them"):
        names("[ , ]")


@pytest.mark.parametrize("name", [name for name in VERBS if name != "completion"])
@pytest.mark.parametrize("stray", ["nope=1", "+nope=1", "~nope", "--nope", "surplus"])
def test_no_verb_takes_what_it_does_not_know(
    name: str, stray: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`init` and `adapt` look at the text that they are given first."""
    monkeypatch.chdir(tmp_path)
    words = shlex.split(load(name).example.partition("&&")[0])[1:]
    assert main([*words, stray]) == 2
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    assert stray.strip("+~").partition("=")[0] in said[0] or name in ("init", "adapt")
