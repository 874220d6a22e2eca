"""The site of the documents: pages that explain an interface name all of it, and the whole is built strictly."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from stories import story

from paribus.commands.cli import VERBS, main
from paribus.core.config_names import conf_dir, groups, list_keys, sweeps_dir
from paribus.core.errors import UserError
from paribus.corruption.masking.pattern import NoisePattern
from paribus.data.sequences import Text
from paribus.sweeps.sweep import MATCHED, SCRATCH
from paribus.sweeps.sweep_file import BLOCKS, load, names
from paribus.sweeps.tuning import SAMPLERS
from paribus.tasks.types.base import TaskType
from paribus.tasks.types.classification import Classification
from paribus.tasks.types.generation import FreeText
from paribus.tasks.types.multiple_choice import MultipleChoice
from paribus.tasks.types.question_answering import ExtractiveQA
from paribus.tasks.types.regression import Regression
from paribus.tasks.types.scored import Scored
from paribus.tasks.types.tagging import Tagging
from paribus.verdict.claims import OWNERS, SUBJECTS

ROOT = Path(__file__).parents[2]
MASKING = (ROOT / "docs/own-masking.md").read_text(encoding="utf-8")
LABELS = ("DESC", "HUM", "LOC")
SWEEP = (ROOT / "docs/own-sweep.md").read_text(encoding="utf-8")


def files_of(page: str) -> dict[str, str]:
    """{name: text} of the files that a page shows."""
    return dict(re.findall(r'```\w+ title="([^"]+)"\n(.*?)```', page, re.DOTALL))


@pytest.fixture
def reference() -> ModuleType:
    """The hook that writes pages."""
    spec = importlib.util.spec_from_file_location("reference", ROOT / "docs/reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_template_of_a_masking_works_as_it_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    files = files_of(MASKING)
    template = [text for name, text in files.items() if not name.startswith("sweeps/")]
    assert len(template) == 3
    assert sum(len(text.splitlines()) for text in template) <= 20
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place != ""])  # as in the installed command
    commands = re.findall(r"^paribus ((?:show|train) .*)", MASKING, re.MULTILINE)
    assert len(commands) == 3
    small = [text for text in arguments if not text.startswith("scale=")]
    for command in commands:
        extra = [] if command.startswith("show") else ["logger=none", "task=none"]
        assert main([*shlex.split(command), *small, *extra]) == 0
    out = capsys.readouterr().out
    assert float(re.findall(r'"masking_rate": ([\d.]+)', out)[0]) == pytest.approx(1 / 7, abs=0.03)
    assert out.count('"status": "done"') == 2


TYPED = ("own-text", "own-task", "own-masking", "own-sweep", "searches")
ELSEWHERE = ("adapt", "optuna_lr", "docs_package")  # they need a checkpoint, or the text of installed packages
SMALL = ["tokenizer.vocab_size=150", "profile.threads=1", "logger=none"]


@pytest.mark.slow
@pytest.mark.parametrize("page", TYPED)
def test_a_reader_can_type_every_command_of_a_page(page: str, tmp_path: Path) -> None:
    write_data(tmp_path)
    text = (ROOT / f"docs/{page}.md").read_text(encoding="utf-8")
    for name, content in files_of(text).items():
        if name != "sweeps/books_trec.yaml":  # `paribus init` writes it
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(content)
    lines = re.findall(r"^paribus .+$", text, re.MULTILINE)
    typed = [line for line in lines if not any(word in line for word in ELSEWHERE)]
    assert len(typed) >= 2
    for line in typed:
        verb, *words = shlex.split(re.sub(r"scale=\w+", "scale=test", line), comments=True)[1:]
        words += SMALL if verb in ("init", "plan", "run", "show", "train") else []
        if verb in ("plan", "run", "show", "train"):
            words += ["corpus=text", "corpus.path=my/books"]
        if page == "searches" and verb in ("train", "run"):
            words += ["hydra.sweeper.n_trials=1", "scale=test"]
        command = [sys.executable, "-P", "-m", "paribus", verb, *words]
        environment = {**os.environ, "PARIBUS_CACHE": str(tmp_path / "cache"), "WANDB_MODE": "offline"}
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode in ((0, 1) if verb == "audit" else (0,)), f"{line}\n{done.stderr[-2000:]}"


def write_data(folder: Path) -> None:
    """A text and a task, as the pages call them."""
    (folder / "my/trec").mkdir(parents=True)
    (folder / "my/books").mkdir()
    for book in range(4):
        (folder / f"my/books/{book}.txt").write_text("\n".join(story(n) for n in range(40 * book, 40 * book + 40)))
    for split, count in (("train", 24), ("test", 12)):
        rows = [{"text": f"{('what', 'who', 'where')[n % 3]} is {n}", "label": LABELS[n % 3]} for n in range(count)]
        (folder / f"my/trec/{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "my/ner").mkdir()
    for split, count in (("train", 24), ("dev", 12)):
        sentences = [f"Anna B-PER\nLee I-PER\nlives{n} O\nin O\nOslo B-LOC\n\n" for n in range(count)]
        (folder / f"my/ner/{split}.conll").write_text("".join(sentences))


def test_the_page_on_masking_names_the_whole_interface() -> None:
    offered = {name for name in (*vars(NoisePattern), *NoisePattern.__annotations__) if not name.startswith("_")}
    assert {"counts", "by_words", "unset_values", "rate"} <= offered
    given = {field.name for field in dataclasses.fields(Text)} | {"word_BL"}
    told = re.findall(r"^\| `(\w+)", MASKING, re.MULTILINE)
    assert sorted({*offered, *given} - set(told)) == []


def test_the_page_on_masking_says_the_defaults() -> None:
    rows = re.findall(r"^\| `(\w+)` \| .* \| (True|False|1) \|$", MASKING, re.MULTILINE)
    assert len(rows) >= 9
    for name, default in rows:
        found = vars(NoisePattern)[name]
        assert str(found.fget(None) if isinstance(found, property) else found) == default, name


def test_the_page_on_sweeps_names_every_key_and_value(tmp_path: Path) -> None:
    content = yaml.safe_load(files_of(SWEEP)["sweeps/redraw.yaml"])
    content["tune"] = {"on" if key is True else key: value for key, value in content["tune"].items()}
    blocks = [content, content["scales"]["cpu"], content["tune"], content["claims"][0], content["published"]]
    accepted = [list_accepted(content, block, tmp_path / "sweep.yaml") for block in blocks]
    told = set(re.findall(r"`([\w./]+)`", SWEEP))
    for block, known in zip(blocks, accepted, strict=True):
        assert block.keys() <= set(known), "the example uses keys that a sweep has"
        assert sorted(set(known) - told) == []
    # for arms that differ in their labels, instead of seeds and tune, and instead of arms
    others = {SCRATCH, "universe", "design", "factors", "generators", "folded"}
    assert set(accepted[0]) - others == content.keys(), "it is a file with every other key"
    values = {*MATCHED, *SAMPLERS, *OWNERS, *SUBJECTS, *BLOCKS, SCRATCH}
    assert sorted(value for value in values if value not in SWEEP) == []


def list_accepted(content: dict[str, Any], block: dict[str, Any], path: Path) -> list[str]:
    """The keys that a block of a sweep file may have, as the error for another one lists them."""
    block["nonsense"] = 1
    path.write_text(yaml.safe_dump(content))
    with pytest.raises(UserError, match=r"unknown key '[\w.]*nonsense': known: ") as caught:
        load(str(path))
    del block["nonsense"]
    return str(caught.value).partition("known: ")[2].split(", ")


def test_the_reference_has_every_key_choice_command_and_sweep(reference: ModuleType) -> None:
    keys, commands, sweeps = reference.write_keys(), reference.write_commands(), reference.write_sweeps()
    for group in groups():
        assert f"\n## {group}\n" in keys
        for path in (conf_dir() / group).glob("*.yaml"):
            for key in list_keys(path):
                assert re.search(rf"^\| `(?:[\w.]+\.)?{re.escape(key.name)}` \|", keys, re.MULTILINE), key
    assert re.search(r"^\| `masking\.mean_length` \| tokens of a span.* \| `3` \| random_spans \|$", keys, re.MULTILINE)
    assert [name for name in VERBS if f"\nUsage: paribus {name}" not in commands] == []
    assert [path for path in names() if f"| `{path}` |" not in sweeps] == []
    for text in (keys, sweeps):
        bars = {len(re.findall(r"(?<!\\)\|", line)) for line in text.splitlines() if line.startswith("|")}
        assert bars <= {3, 4, 5}, "no cell breaks its row"


def test_the_page_of_comparisons_names_every_sweep_and_no_other() -> None:
    page = (ROOT / "docs/what-you-can-compare.md").read_text(encoding="utf-8")
    cells = " ".join(line.rsplit("|", 2)[1] for line in page.splitlines() if line.startswith("|"))
    ranges = re.findall(r"`(\w+?)(\d+)` to `\w+?(\d+)`", cells)
    between = {f"{stem}{at}" for stem, first, last in ranges for at in range(int(first), int(last))}
    assert {*re.findall(r"`(\w+)`", cells), *between} == {path.stem for path in sweeps_dir().glob("*.yaml")}


@pytest.mark.parametrize(
    "kind",
    [Classification, Regression, Tagging, ExtractiveQA, FreeText, MultipleChoice, Scored],
    ids=lambda k: k.__name__,
)
def test_the_page_on_tasks_names_every_metric(kind: type[TaskType]) -> None:
    table = (ROOT / "docs/own-task.md").read_text(encoding="utf-8").partition("## Metrics")[2]
    rows = [set(re.findall(r"`(\w+)`", line)) for line in table.splitlines() if line.startswith("|")]
    assert [row for row in rows if set(kind.known_metrics) <= row] or set(kind.known_metrics) <= set.union(*rows[-2:])


class Loaded(HTMLParser):
    """What a page loads when it is opened."""

    def __init__(self) -> None:
        super().__init__()
        self.sources: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        key = {"script": "src", "img": "src", "iframe": "src", "link": "href"}.get(tag)
        given = dict(attrs)
        if key and given.get(key) and given.get("rel") not in ("canonical", "next", "prev"):
            self.sources.append(str(given[key]))


def loaded_by(folder: Path) -> Iterator[tuple[Path, str]]:
    for path in folder.rglob("*.html"):
        parser = Loaded()
        parser.feed(path.read_text(encoding="utf-8"))
        yield from ((path, source) for source in parser.sources)


def test_the_site_is_built_strictly_and_loads_nothing_from_other_hosts(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", ".mkdocs.yml", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    pages = {path.name for path in tmp_path.glob("*.html")} - {"404.html"}
    assert {f"{path.stem}.html" for path in (ROOT / "docs").glob("*.md")} < pages
    assert {"index.html", "config-keys.html", "commands.html", "sweeps.html"} <= pages
    found = list(loaded_by(tmp_path))
    assert [source for _, source in found if re.match(r"(https?:)?//", source)] == []
    here = [(path, source.partition("?")[0]) for path, source in found if path.name in pages]
    assert [source for path, source in here if not (path.parent / source).is_file()] == []
    assert "<code>masking/schedule=static|copies|dynamic</code>" in (tmp_path / "what-you-can-compare.html").read_text(
        encoding="utf-8"
    )
    assert '<a href="config-keys.html">Config keys</a>' in (tmp_path / "own-sweep.html").read_text(encoding="utf-8")
