"""What a shell completes, asked as the shell asks."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from paribus.commands.cli import VERBS
from paribus.commands.completion import SCRIPTS, complete
from paribus.core.errors import UserError

HEAVY = "[name for name in ('torch', 'hydra', 'numpy', 'omegaconf') if name in sys.modules]"


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["sta"], ["status"]),
        (["--v"], ["--version"]),
        (["run", "roberta_table1"], ["roberta_table1", "roberta_table1_novels"]),
        (["run", "optuna_l"], ["optuna_lr"]),
        (["run", "scale=smoke", "roberta_table1", "ru"], ["runs="]),
        (["table", "roberta_table1", "--"], ["--check", "--archive", "--from", "--pdf", "--brief", "--help"]),
        (["run", "roberta_table1", "scale=sm"], ["scale=smoke"]),
        (["run", "roberta_table1", "launcher=s"], ["launcher=slurm"]),
        (["train", "masking/sch"], ["masking/schedule="]),
        (["train", "masking/schedule=static,dy"], ["masking/schedule=static,dynamic"]),
        (["train", "masking.mean"], ["masking.mean_length="]),
        (["train", "repl"], ["replicate="]),
        (["table", "roberta_table1", "masking"], []),
        (["completion", ""], ["bash", "zsh", "fish"]),
        (["published", "roberta_table1"], ["roberta_table1"]),
        (["table", "--check", "roberta_table1", "--ch"], []),
        (["judge", "a.csv", "--where", "study=x", "st"], ["study="]),
        (["adapt", "--task", "ss"], ["sst2"]),
        (["run", "zzz=1", "seeds=x", "optuna_l"], ["optuna_lr"]),
    ],
)
def test_candidates(words: list[str], found: list[str]) -> None:
    assert complete(words) == found


def test_nothing_is_offered_after_an_unknown_verb() -> None:
    with pytest.raises(UserError, match="unknown verb 'nonsense'"):
        complete(["nonsense", ""])


def test_the_first_word_is_a_verb_and_the_second_a_sweep_of_mine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert set(VERBS) <= set(complete([""]))
    (tmp_path / "sweeps").mkdir()
    (tmp_path / "sweeps" / "my_rates.yaml").touch()
    (tmp_path / "conf" / "masking").mkdir(parents=True)
    (tmp_path / "conf" / "masking" / "my_noise.yaml").touch()
    monkeypatch.chdir(tmp_path)
    assert complete(["run", "my"]) == ["my_rates"]
    assert complete(["train", "masking=my"]) == ["masking=my_noise"]


def test_completion_imports_nothing_heavy() -> None:
    words = ["run", "roberta_table1", "masking="]
    code = f"import sys; from paribus.commands.cli import main; main(['__complete', *{words}]); print({HEAVY})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("[]\n")


def shell(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def bash(line: str) -> list[str]:
    """What bash offers at the end of a line: COMP_WORDS are split at `=` as readline does it."""
    script = f"""
paribus() {{ {sys.executable} -m paribus "$@"; }}
eval "$(paribus completion bash)"
complete -p paribus >/dev/null || exit 1
COMP_LINE={line!r} COMP_POINT={len(line)}
word="${{COMP_LINE##*[ =]}}"
_paribus paribus "$word" ""
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    done = subprocess.run([shell("bash"), "-c", script], capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("paribus stat", ["status"]),
        ("paribus table pretraining", ["pretraining_helps"]),
        ("paribus run roberta_table1 scale=", ["cpu", "gpu", "original", "paper", "smoke", "test"]),
        ("paribus train masking/schedule=static,d", ["static,dynamic"]),
    ],
)
def test_bash_completes(line: str, found: list[str]) -> None:
    assert bash(line) == found


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("paribus stat", ["status"]),
        ("paribus run roberta_table1 scale=s", ["scale=smoke"]),
        (
            "paribus run roberta_table1 scale=",
            [f"scale={name}" for name in ("cpu", "gpu", "original", "paper", "smoke", "test")],
        ),
        ("paribus init --task tr", ["trec.jsonl"]),
    ],
)
def test_fish_completes(line: str, found: list[str], tmp_path: Path) -> None:
    """Files only if nothing else is offered."""
    for name in ("status.txt", "trec.jsonl"):
        (tmp_path / name).touch()
    script = f"function paribus; {sys.executable} -m paribus $argv; end; paribus completion fish | source"
    command = [shell("fish"), "-N", "-c", f"{script}; cd {tmp_path}; complete -C '{line}'"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert [offered.partition("\t")[0] for offered in done.stdout.splitlines()] == found


def test_a_terminal_with_bash_completes_on_tab(tmp_path: Path) -> None:
    """Readline itself, in a pseudo-terminal."""
    import os
    import pty
    import select
    import time

    start = tmp_path / "start.sh"
    start.write_text(f'paribus() {{ {sys.executable} -m paribus "$@"; }}\nPS1=\neval "$(paribus completion bash)"\n')
    ours, theirs = pty.openpty()
    command = [shell("bash"), "--noprofile", "--rcfile", str(start), "-i"]
    with subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env={**os.environ, "TERM": "dumb"}
    ) as process:
        os.write(ours, b"echo ready\n")
        shown, end = b"", time.monotonic() + 60
        typed = False
        while b"paribus table pretraining_helps scale=smoke" not in shown and time.monotonic() < end:
            if select.select([ours], [], [], 0.2)[0]:
                shown += os.read(ours, 4096)
            if b"ready\r\n" in shown and not typed:
                os.write(ours, b"paribus tab\tpretr\tscale=sm\t")
                typed = True
        process.kill()
    assert b"paribus table pretraining_helps scale=smoke" in shown


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_scripts_are_valid(name: str, tmp_path: Path) -> None:
    script = tmp_path / name
    script.write_text(SCRIPTS[name])
    subprocess.run([shell(name), "-n", str(script)], check=True)
