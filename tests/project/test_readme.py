"""What the README and the pages of docs show works as it is written there."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from transformers import PreTrainedTokenizerFast

from paribus.commands import cli
from paribus.core.arguments import Positional, parse
from paribus.core.config import compose, compose_launcher
from paribus.core.config_names import choices, groups
from paribus.core.errors import UserError
from paribus.reports.decision_accuracy import predict_large
from paribus.reports.site.claims import format_effect, make_lines
from paribus.reports.site.collect import collect, load_sweeps
from paribus.reports.site.overview import render_overview
from paribus.sweeps.control import audit
from paribus.sweeps.init import InitRequest, write_sweep, write_task
from paribus.sweeps.request import request_of, search_request_of
from paribus.sweeps.sweep import jobs
from paribus.sweeps.sweep_file import load
from paribus.tasks.metrics import METRICS
from paribus.tasks.tables.guess import guess_task

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS_PAGE = (ROOT / "docs/first-steps.md").read_text(encoding="utf-8")
EXAMPLE = (ROOT / "docs/example.md").read_text(encoding="utf-8")
PAGES = {path.stem: path.read_text(encoding="utf-8") for path in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]}
TEXT = "".join(text for name, text in PAGES.items() if name != "results")
LINES = re.findall(r"^paribus .+$", TEXT, re.MULTILINE)
INLINE = [" ".join(line.split()) for line in re.findall(r"`(paribus [a-z]+ [^`]+)`", TEXT)]
COMMANDS = sorted({line.replace("SWEEP", "roberta_table1") for line in LINES + INLINE})
CHOICES = sorted(set(re.findall(r"\b([a-z_]+(?:/[a-z_]+)*)=([a-z][\w/]*(?:\\\|\w+)*)", TEXT)))
FILES = re.findall(r'```\w+ title="([^"]+)"\n(.*?)```', TEXT, re.DOTALL)  # what the reader writes


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every file that the pages show."""
    assert len(dict(FILES)) == len(FILES), "no two pages show a file of one name"
    root = tmp_path_factory.mktemp("reader")
    for name, text in FILES:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.fixture
def folder(written: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory of a reader who has written the files."""
    monkeypatch.chdir(written)
    return written


def first_of_each(overrides: list[str]) -> list[str]:
    """The overrides of the first run of a multirun."""
    pairs = ((override, *override.partition("=")) for override in overrides)
    return [
        override if values.startswith("[") else f"{key}={re.findall(r'[^,()]+', values.removeprefix('interval'))[0]}"
        for override, key, _, values in pairs
    ]


def check(line: str) -> None:
    """Raises UserError for what the command refuses before it trains or reads a record."""
    _, name, *argv = shlex.split(line.replace("--cfg job", ""), comments=True)
    verb = cli.load(name)
    overrides = [text for text in argv if not text.startswith("-")]
    if name in ("train", "show"):
        options = [text for text in overrides if name == "show" and text.startswith(("n=", "out=", "epoch=", "text="))]
        compose(first_of_each([text for text in overrides if text not in options]))
        return
    given = parse(verb, argv)
    if name in ("plan", "run", "status") and search_request_of(given) is None:
        request = request_of(given)
        compose_launcher(request.launcher)
        compose([f"scale={request.scale}", *request.overrides])
    for word in verb.of(Positional):
        known, left_out = list(word.choices()), word not in given and not word.required
        assert left_out or not known or given[word] in known or given[word].isupper(), f"{line}: {given[word]}"


def test_the_arm_of_ten_lines_is_a_fair_sweep(folder: Path) -> None:
    assert len(dict(FILES)["sweeps/my_rates.yaml"].splitlines()) <= 11
    sweep = load("my_rates")
    runs = jobs(sweep, "smoke", seeds=(0,))
    found = audit(sweep, {job.arm: compose(job.overrides) for job in runs})
    assert found["differences"]["r40"] == {"masking.rate": [0.15, 0.4]}


def test_every_command_is_a_verb_and_every_verb_is_shown() -> None:
    shown = set(re.findall(r"^paribus (\w+)", COMMANDS_PAGE, re.MULTILINE))
    assert shown == set(cli.VERBS)


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_is_accepted(line: str, folder: Path) -> None:
    check(line)


@pytest.mark.parametrize(
    "line",
    ["paribus run roberta_table1 slot=2", "paribus table roberta_table --check", "paribus train masking.rte=0.4"],
)
def test_a_command_with_a_slip_would_be_noticed(line: str) -> None:
    with pytest.raises((UserError, AssertionError)):
        check(line)


@pytest.mark.parametrize(("group", "named"), CHOICES)
def test_every_choice_exists(group: str, named: str, folder: Path) -> None:
    if group in groups() and group != "experiment":
        assert set(named.split("\\|")) <= set(choices(group))


def test_every_sweep_and_make_target_exists() -> None:
    for name in re.findall(r"`((?:[a-z]+\d?)_(?:table\d+|[a-z_]*warmup))`", TEXT):
        load(name)
    makefile = (ROOT / "Makefile").read_text()
    phony = set(makefile.split(".PHONY:")[1].split("\n\n")[0].replace("\\", "").split())
    targets = phony | {path.stem for path in (ROOT / "sweeps").glob("*.yaml")}
    named = set(re.findall(r"(?:^|`)make ([a-z][\w-]*)", TEXT, re.MULTILINE))
    assert {"demo", "test", "roberta_table1"} <= named <= targets


@pytest.mark.parametrize("name", [name for name, text in FILES if name.startswith("sweeps/")])
def test_every_sweep_of_a_page_is_fair(name: str, folder: Path) -> None:
    sweep = load(name)
    runs = jobs(sweep, "test", seeds=(0,), anchor=True)
    found = audit(sweep, {job.arm: compose(job.overrides) for job in runs if job.arm in sweep.arms})
    assert found["differences"]


def test_the_files_of_init_are_those_that_it_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my/trec").mkdir(parents=True)
    for split, count in (("train", 24), ("test", 12)):
        rows = [{"text": f"who is {n}", "label": ("DESC", "HUM", "LOC")[n % 3]} for n in range(count)]
        (tmp_path / f"my/trec/{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "my/ner").mkdir()
    for split, count in (("train", 24), ("dev", 12)):
        sentences = [f"Anna B-PER\nLee I-PER\nlives{n} O\nin O\nOslo B-LOC\n\n" for n in range(count)]
        (tmp_path / f"my/ner/{split}.conll").write_text("".join(sentences))
    tagged = InitRequest("books_ner", "my/books", "ner", guess_task("my/ner"), "masking=bernoulli,whole_word")
    assert dict(FILES)["conf/task/ner.yaml"] == write_task(tagged)
    question = InitRequest("books_trec", "my/books", "trec", guess_task("my/trec"), "masking.rate=0.15,0.4")
    assert dict(FILES)["sweeps/books_trec.yaml"] == write_sweep(question)
    assert dict(FILES)["conf/task/trec.yaml"] == write_task(question)
    (told,) = re.findall(r"^metrics: .* # or (.*);", write_task(question), re.MULTILINE)
    assert set(told.split(", ")) <= set(METRICS)


def test_the_python_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    examples = {page: re.findall(r"```python\n(.*?)```", text, re.DOTALL) for page, text in PAGES.items()}
    assert sorted(page for page, found in examples.items() for _ in found) == ["architecture", "python", "wandb"]
    exec(compile(examples["architecture"][0], "architecture", "exec", dont_inherit=True), {"__name__": "builtins"})
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(examples["wandb"][0], names)
    assert list(names["frames"].curves.columns) == ["arm", "seed", "step", "metric", "value"]
    roles = {
        name: f"[{name[:-6].upper()}]" for name in ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
    }
    made = Tokenizer(WordLevel({token: at for at, token in enumerate(roles.values())}, unk_token="[UNK]"))
    names = {
        **dict.fromkeys(("model", "arguments", "data")),
        "tokenizer": PreTrainedTokenizerFast(tokenizer_object=made, **roles),
        "Trainer": lambda *given, **options: options,
    }
    exec(examples["python"][0], names)
    assert names["trainer"]["data_collator"] is names["collator"]


def test_every_picture_and_file_that_is_linked_is_there() -> None:
    linked = re.findall(r"\]\(([^)#]+)", README)
    assert re.findall(r"!\[[^\]]*\]\(([^)]+)\)", README) == ["analysis/results/report.png"], "one picture"
    assert [name for name in linked if not (ROOT / name).is_file()] == []
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", EXAMPLE)
    assert pictures == ["../analysis/results/cpu/roberta_table1/effects.png"]
    assert (ROOT / "docs" / pictures[0]).is_file()


def test_results_are_those_of_the_committed_tables() -> None:
    """`make results` writes the page; the example shows some of its claims, with the same verdicts and differences."""
    entries = collect(ROOT / "nothing", ROOT / "nothing", ROOT / "analysis/results")
    lines = make_lines(entries, load_sweeps())
    assert PAGES["results"].encode() == render_overview(lines, predict_large([entry.table for entry in entries]))
    (table,) = re.findall(r"^\| claim .*\n\| :-- .*\n((?:\| .*\n)+)", EXAMPLE, re.MULTILINE)
    said = {(line.claim.says, line.study): line.measured[-1] for line in lines if line.measured}
    at_cpu = PAGES["results"].partition("## At cpu scale")[2].partition("\n## ")[0]
    told = re.findall(r"^- About (.*), (exploratory|confirmed): (\d+) claims: (.*)\.$", at_cpu, re.MULTILINE)
    for kind, stage, asked, verdicts in told:
        assert f"{asked} claims: {verdicts}" in EXAMPLE
        decided = int(asked) - int(re.findall(r"(\d+) undecided", verdicts)[0])
        solid = sum(map(int, re.findall(r"(\d+) solid", verdicts)))
        assert f"| {kind} | {stage} | {asked} | {decided} | {solid} |" in README
    for row in table.splitlines():
        sentence, _, verdict, difference, study = (cell.strip() for cell in row.strip("|").split("|"))
        entry, claim = said[sentence, study.strip("`")]
        assert entry.scale == "cpu"
        assert verdict == replace(claim, below=()).short_word + "*" * ("bag of words" in claim.word)
        assert difference in [format_effect(entry.table, contrast) for contrast in claim.contrasts]


def test_no_placeholder_is_left_and_the_readme_is_short() -> None:
    assert "@" not in README
    assert len(README.split()) <= 500


def test_the_demo_trains_its_runs_itself() -> None:
    """Committed runs count as finished."""
    asked = ["git", "ls-files", "analysis/results/smoke/roberta_table1"]
    found = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False)
    if found.returncode:
        pytest.skip("this is not a git checkout")
    assert found.stdout == ""
