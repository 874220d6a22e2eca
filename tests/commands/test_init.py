"""`paribus init`, and all that follows it: from a user's own text and task to a table."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from stories import story

from paribus.commands.cli import main
from paribus.core.build import build
from paribus.core.config import compose
from paribus.core.errors import UserError
from paribus.sweeps.expand import expand
from paribus.sweeps.init import InitRequest, find_wrapped, name_of, name_task, say_power, split_compared, write_files
from paribus.sweeps.request import parse
from paribus.sweeps.sweep_file import load
from paribus.tasks.tables.guess import GuessedTable, guess_task, show_examples

DOCS = Path(__file__).parents[2] / "docs"
LABELS = ("DESC", "HUM", "no")  # the last one is no text in YAML 1.1
COMPARE = ["--compare", "masking.rate=0.15,0.4"]


def write_rows(path: Path, count: int, **names: str) -> None:
    rows = [
        {
            names.get("text", "text"): f"{('what', 'who', 'where')[n % 3]} is {n}",
            names.get("label", "label"): LABELS[n % 3],
        }
        for n in range(count)
    ]
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a folder of books and a task like TREC: train and test, labels are words."""
    (tmp_path / "books").mkdir()
    for book in range(4):
        text = "\n".join(story(number) for number in range(40 * book, 40 * book + 40))
        (tmp_path / f"books/Book {book}.txt").write_text(text + "\n")
    write_rows(tmp_path / "trec/train.jsonl", 24)
    write_rows(tmp_path / "trec/test.jsonl", 12)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither examples nor costs."""
    monkeypatch.setattr("paribus.commands.init.draw_baseline", lambda request: expand(request))
    monkeypatch.setattr("paribus.sweeps.plan.report", lambda request: "the cost")


def test_the_files_that_it_writes_are_a_fair_sweep_and_a_task(
    here: Path, quick: None, capsys: pytest.CaptureFixture[str], refusal: Callable[..., str]
) -> None:
    given = ["--text", "books", "--task", "trec", *COMPARE, "scale=smoke", "tokenizer.vocab_size=150"]
    assert main(["init", *given]) == 0
    out = capsys.readouterr().out
    assert out.endswith("then run\n\n  paribus run books_trec scale=smoke\n")
    assert "the cost" in out
    assert "With 80% power, 3 seeds see" in out
    sweep = load("books_trec")
    assert sweep.arms == {"rate_0.15": ("masking.rate=0.15",), "rate_0.4": ("masking.rate=0.4",)}
    assert (sweep.baseline, sweep.columns) == ("rate_0.15", ("mlm_loss", "trec/accuracy"))
    assert sweep.claims == ("rate_0.4 > rate_0.15 on trec/accuracy, margin 1 points",)
    assert "tokenizer.vocab_size=150" in sweep.base
    task = compose(["task=trec"]).tasks.trec
    assert (list(task.classes), dict(task.splits)) == (sorted(LABELS), {"train": "train", "validation": "test"})
    assert [list(config.tasks) for config in expand(parse("run", ["books_trec"])).configs.values()] == [["trec"]] * 3
    for path in ("sweeps/books_trec.yaml", "conf/task/trec.yaml"):
        assert Path(path).read_text().count("#") >= 5, "it is commented"
    before = Path("sweeps/books_trec.yaml").read_text()
    assert main(["init", *given]) == 0, "the same again changes nothing"
    said = "sweeps/books_trec.yaml already exists with other settings: add name=NAME, or remove the file"
    assert said in refusal("init", *given, "batch.size=2")
    Path("conf/task/trec.yaml").write_text("# mine\n")
    said = "conf/task/trec.yaml already exists with other settings: rename trec, or remove the file"
    assert said in refusal("init", *given, "name=other")
    assert Path("sweeps/books_trec.yaml").read_text() == before


def test_it_proposes_settings_around_the_recipe(here: Path, quick: None, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--text", "books", "--task", "trec", *COMPARE, "--universe", "scale=smoke", "tokenizer.vocab_size=150"]
    assert main(["init", *given]) == 0
    sweep, recipe = load("books_trec"), compose(["scale=smoke", "task=none"])
    universe = sweep.universe_at("smoke")
    assert universe is not None
    assert (universe.count, universe.known) == (12, {"dropped": "worse"})
    assert "masking.rate" not in universe.factors, "it is compared"
    assert "tokenizer.vocab_size" not in universe.factors, "the user has set it"
    assert recipe.model.hidden in universe.texts["model.hidden"]
    assert all(width % recipe.model.heads == 0 for width in universe.texts["model.hidden"])
    low, high = (universe.factors["optimizer.lr"].at(share) for share in (0.0, 1.0))
    assert (float(low), float(high)) == (recipe.optimizer.lr / 2, recipe.optimizer.lr * 2)
    assert set(sweep.arms) == {"rate_0.15", "rate_0.4", "dropped", "twin"}
    expanded = expand(parse("run", ["books_trec"]))
    assert len(expanded.jobs) == 12 * 5, "with the model from scratch"
    assert "12 settings see" in capsys.readouterr().out


def test_it_asks_on_a_terminal(here: Path, quick: None, monkeypatch: pytest.MonkeyPatch) -> None:
    answers, asked = iter(["books", "trec", "2"]), []
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda text: asked.append(text) or next(answers))
    assert main(["init", "name=words"]) == 0
    assert list(load("words").arms) == ["bernoulli", "whole_word"]
    assert len(asked) == 3
    assert "masking=bernoulli,whole_word" in asked[2]


def test_it_asks_again_after_an_answer_that_cannot_be_read(
    here: Path, quick: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = iter(["nowhere", "", "books", "trek", "trec", "masking", "9", "2"])
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda text: next(answers))
    assert main(["init", "name=words"]) == 0
    assert list(load("words").arms) == ["bernoulli", "whole_word"]
    said = capsys.readouterr().err
    for part in ("nowhere does not exist", "init needs --text", "no folder trek", "masking is not KEY", "9 is not KEY"):
        assert part in said


def test_the_end_of_the_input_is_no_answer(
    here: Path, monkeypatch: pytest.MonkeyPatch, refusal: Callable[..., str]
) -> None:
    def end(text: str) -> str:
        raise EOFError

    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", end)
    assert "init needs --text" in refusal("init")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--task", "trec", *COMPARE], "init needs --text: for example, paribus init --text"),
        (["--text", "books", *COMPARE], "init needs --task"),
        (["--text", "books", "--task", "trec"], "init needs --compare"),
        (["--text", "nowhere", "--task", "trec", *COMPARE], "--text=nowhere does not exist: give a file"),
        (["--text", "books", "--task", "nowhere", *COMPARE], "--task: no folder nowhere: give one file, or"),
        (["--text", "books", "--task", "books", *COMPARE], "--task: books has no train.jsonl"),
        (["--text", "books", "--task", "trec", "--compare", "masking.rate=0.4"], "is not KEY=A,B"),
        (
            ["--text", "books", "--task", "trec", "--compare", "masking.rate=0.1,0.4,0.4"],
            "--compare gives 0.4 twice: give different values of masking.rate",
        ),
        (["--text", "books", "--task", "trec", "--compare", "masking=bernoulli,whole_wrd"], "did you mean whole_word"),
        (["--text", "books", "--task", "trec", "--compare", "masking.rte=0.1,0.2"], "masking.rte"),
        (["--text", "books", "--task", "trec", *COMPARE, "columns=text,labl"], "trec has no column 'labl'"),
    ],
)
def test_bad_answers_leave_no_file(
    here: Path, quick: None, given: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["init", *given]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert not list(here.rglob("*.yaml"))


def test_columns_and_classes_are_told_from_the_files(here: Path) -> None:
    assert guess_task("trec") == GuessedTable(
        "trec", {"train": "train", "validation": "test"}, {"text": "text", "label": "label"}, tuple(sorted(LABELS)),
        {"train": 24, "validation": 12},
    )  # fmt: skip
    for split in ("train", "dev"):
        rows = [{"premise": f"a {n}", "hypothesis": "b", "label": n % 2} for n in range(6)]
        (here / f"{split}.csv").write_text(
            "premise,hypothesis,label\n" + "".join(f"{','.join(map(str, row.values()))}\n" for row in rows)
        )
    found = guess_task(".")
    assert found.columns == {"text": "premise", "pair": "hypothesis", "label": "label"}
    assert (found.classes, found.splits["validation"]) == (("0", "1"), "dev")
    write_rows(here / "odd/train.jsonl", 9, text="words", label="kind")
    write_rows(here / "odd/validation.jsonl", 9, text="words", label="kind")
    with pytest.raises(
        UserError, match="has the columns words, kind, and none of them is clearly the text: add columns"
    ):
        guess_task("odd")
    assert guess_task("odd", ("words", "kind")).columns == {"text": "words", "label": "kind"}
    (here / "odd/validation.jsonl").write_text('{"words": "a", "kind": 0.5}\n')
    (here / "odd/train.jsonl").write_text('{"words": "a", "kind": 0.25}\n')
    with pytest.raises(UserError, match="the column kind holds float, not classes"):
        guess_task("odd", ("words", "kind"))


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("train.jsonl", "", "mine has no examples: give a file with a line for each"),
        (
            "train.csv",
            "prose;kind\na, b;c\n",
            "mine separates its columns by ';': add columns=TEXT,LABEL",
        ),
        ("train.csv", "", r"--task: mine/train\.csv is not a readable csv file"),
    ],
)
def test_tables_without_columns_are_told(here: Path, name: str, content: str, said: str) -> None:
    (here / "mine").mkdir()
    (here / "mine" / name).write_text(content)
    with pytest.raises(UserError, match=said):
        guess_task("mine")


def test_one_file_is_split_by_a_hash_of_its_texts(
    here: Path, quick: None, arguments: list[str], refusal: Callable[..., str]
) -> None:
    write_rows(here / "mine.jsonl", 60)
    given = ["--text", "books", "--task", "mine.jsonl", *COMPARE, "scale=smoke", "tokenizer.vocab_size=150"]
    assert main(["init", *given]) == 0
    labeled = guess_task("mine.jsonl")
    assert (labeled.splits, labeled.held_out) == ({"train": "train"}, 0.2)
    task = build(compose(["task=mine"]).tasks.mine)
    examples = task.examples(here / "cache")
    assert {split: len(rows) for split, rows in examples.items()} == labeled.examples
    assert 4 <= len(examples["validation"]) <= 20
    texts = {split: {row.text for row in rows} for split, rows in examples.items()}
    assert len(texts["train"] | texts["validation"]) == 60
    write_rows(here / "more/train.jsonl", 80)
    again = build(compose(["task=mine", "tasks.mine.path=more"]).tasks.mine).examples(here / "cache")
    assert texts["validation"] <= {row.text for row in again["validation"]}, "new rows move no other"
    write_rows(here / "words.md", 3)
    assert "--task words.md has an unknown format: give a file that ends in .parquet, .jsonl" in refusal(
        "init", "--text", "books", "--task", "words.md", *COMPARE
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("held_out: 0", r"path=mine.jsonl is a file without a validation split: add tasks.mine.held_out=0.2"),
        ("held_out: 1.5", r"tasks.mine.held_out=1.5 is not a share: give a number between 0 and 1"),
        ("held_out: 0.2\nsplits: {train: train, validation: dev}", "names a validation split: remove one of them"),
    ],
)
def test_a_share_that_is_held_out_is_checked(here: Path, change: str, message: str) -> None:
    write_rows(here / "mine.jsonl", 60)
    (here / "conf/task").mkdir(parents=True)
    file = f"_target_: paribus.tasks.tables.table.LabelTable\nname: mine\npath: mine.jsonl\n{change}\n"
    (here / "conf/task/mine.yaml").write_text(
        f"{file}columns: {{text: text, label: label}}\nclasses: [{', '.join(LABELS)}]\nmetrics: [accuracy]\n"
    )
    with pytest.raises(UserError, match=message):
        build(compose(["task=mine"]).tasks.mine).examples(here / "cache")


def write_text(path: Path, text: str) -> str:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return str(path)


def test_tagged_words_are_proposed_and_shown(here: Path, quick: None, capsys: pytest.CaptureFixture[str]) -> None:
    for split in ("train", "dev"):
        rows = [f"Anna\tB-PER\nran\tO\nto\tO\nOslo{n}\tB-LOC\n\n" for n in range(12)]
        write_text(here / f"ner/{split}.conll", "".join(rows))
    given = ["--text", "books", "--task", "ner", *COMPARE, "scale=smoke", "tokenizer.vocab_size=150"]
    assert main(["init", *given]) == 0
    assert "Examples of ner, as they are read:\n  Anna/B-PER ran/O to/O Oslo0/B-LOC\n" in capsys.readouterr().out
    node = compose(["task=ner"]).tasks.ner
    assert node["_target_"].endswith(".TagTable")
    assert (list(node.classes), list(node.metrics)) == (["O", "B-LOC", "B-PER"], ["f1"])
    assert build(node).summary(here / "cache")["examples"] == {"train": 12, "validation": 12}
    assert load("books_ner").columns == ("mlm_loss", "ner/f1")
    nested = "".join(f"Uni\tB-ORG\tO\nBonn{n}\tI-ORG\tB-LOC\n\n" for n in range(40))
    write_text(here / "nested.conll", nested)
    with pytest.raises(UserError, match=r"2: B-ORG, I-ORG; 3: B-LOC, O\): name .* by number, such as columns=1,3"):
        guess_task("nested.conll")
    assert guess_task("nested.conll", ("1", "3")).classes == ("O", "B-LOC")


LINES = [f"{('DESC:manner How', 'HUM:ind Who', 'LOC:city Where')[n % 3]} is {n} ?" for n in range(60)]


@pytest.mark.parametrize(
    ("name", "lines", "columns", "classes", "note"),
    [
        ("a.label", LINES, {"text": "text", "label": "label"}, ("DESC", "HUM", "LOC"), "read as a label, a space and"),
        ("a.tsv", [f"{'ab'[n % 2]}\tThis is text {n}." for n in range(40)], {"text": 2, "label": 1}, ("a", "b"),
         "a.tsv is read without a header: its first line is an example"),
        ("a.csv", ["text,label", *(f"text {n},{n % 3 - 1}" for n in range(60))], {"text": "text", "label": "label"},
         ("-1", "0", "1"), '-1 in the column label is read as a class, not as "no label": remove it'),
        ("a.csv", ["text,label", *(f"text {n},{(n % 11) + 1}" for n in range(90))], {"text": "text", "label": "label"},
         tuple(map(str, range(1, 12))), None),
        ("a.csv", ["text,label", *(f"text {n},{n % 2 > 0}".lower() for n in range(60))],
         {"text": "text", "label": "label"}, ("false", "true"), None),
    ],
)  # fmt: skip
def test_the_reading_of_a_file_is_proposed_and_said(
    here: Path, name: str, lines: list[str], columns: dict[str, Any], classes: tuple[str, ...], note: str | None
) -> None:
    found = guess_task(write_text(here / name, "\n".join(lines)))
    assert (found.columns, found.classes) == (columns, classes)
    assert (note in found.notes[0]) if note else not found.notes
    (shown, *_) = show_examples(found, "mine")
    assert shown.partition(": ")[0] in classes
    with write_files(InitRequest("mine", "books", "mine", found, "masking.rate=0.15,0.4")):
        task = build(compose(["task=mine"]).tasks.mine)
    assert {split: len(rows) for split, rows in task.read("train", "validation").items()} == found.examples


def test_the_usual_names_tell_the_delimiter(here: Path) -> None:
    rows = "".join(f'{n};"one, or {n}; so";{"ab"[n % 2]}\n' for n in range(40))
    found = guess_task(write_text(here / "semicolons.csv", "id;Sentence;stars\n" + rows))
    assert (found.columns, found.classes) == ({"text": "Sentence", "label": "stars"}, ("a", "b"))
    rows = "".join(f"t,{n};a;b\n" for n in range(40))
    with pytest.raises(UserError, match="has the columns text, label if cells are separated by commas and by semi"):
        guess_task(write_text(here / "both.csv", "x;,text,label,;text;label\n" + rows))


def test_spellings_that_a_task_takes_as_one_class_are_one(here: Path) -> None:
    for split, labels in (("train", ("\u00e9t\u00e9", " hiver")), ("dev", ("e\u0301te\u0301", "hiver "))):
        write_text(here / f"mine/{split}.csv", "text,label\n" + "".join(f"t {n},{labels[n % 2]}\n" for n in range(20)))
        tags = "".join(f"Anna{n}\tB-{labels[0]}\nran\tO\n\n" for n in range(20))
        write_text(here / f"tagged/{split}.conll", tags)
    found = guess_task("mine")
    assert (found.classes, found.examples) == (("hiver", "\u00e9t\u00e9"), {"train": 20, "validation": 20})
    assert guess_task("tagged").classes == ("O", "B-\u00e9t\u00e9")
    for name in ("mine", "tagged"):
        with write_files(InitRequest(name, "books", name, guess_task(name), "masking.rate=0.15,0.4")):
            task = build(compose([f"task={name}"]).tasks[name])
        assert {split: len(rows) for split, rows in task.read("train", "validation").items()} == {
            "train": 20, "validation": 20
        }  # fmt: skip


def test_the_only_other_file_is_the_one_to_evaluate_on(here: Path) -> None:
    for name in ("train_5500", "TREC_10"):
        write_text(here / f"raw/{name}.label", "\n".join(LINES))
    found = guess_task("raw")
    assert found.splits == {"train": "train_5500", "validation": "TREC_10"}
    assert found.notes[0] == "TREC_10 in raw is read as the examples to evaluate on"
    write_text(here / "raw/more.label", "\n".join(LINES))
    assert guess_task("raw").held_out == 0.2


def test_minus_one_is_no_label_if_the_evaluation_lacks_it(here: Path) -> None:
    for split, shift in (("train", -1), ("dev", 0)):
        labels = [n % (2 - shift) + shift for n in range(30)]
        write_text(
            here / f"mine/{split}.csv", "text,label\n" + "".join(f"t {n},{label}\n" for n, label in enumerate(labels))
        )
    found = guess_task("mine")
    assert (found.classes, found.examples["train"]) == (("0", "1"), 20)
    assert 'read as "no label", not as a class: add "-1" to the classes' in found.notes[0]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("two.csv", "text,label\ngood,1\nbad,0\n", "two.csv has 2 labeled examples, too few to hold some out"),
        ("prose.txt", "".join(f"Word{n} of prose\n" for n in range(9)), "9 different first words in 9 lines"),
        ("tags.txt", "\nAnna\tB-PER\nran\tO\n" * 9, r"a word and its tags .*: rename it: mv .*tags\.txt .*tags\.conll"),
        ("docs.txt", "-DOCSTART- -X- O O\n\n" + "ran VB I-VP x\n" * 9, r"rename it: mv .*docs\.txt .*docs\.conll"),
        ("a.csv", "text,label\n" + "".join(f"t{n},{n / 4}\n" for n in range(9)), "holds numbers such as 0.25, not"),
        ("a.csv", "text,label\n" + "t,1\nu,1.0\nv,2\nw,2.0\n" * 9, "spells a label in two ways, among 1, 1.0, 2"),
        ("none.conll", "\n\n", "none.conll has no examples"),
        ("kind/train_1.parq", "x", r"read are \.parquet, \.jsonl, \.csv, \.tsv, \.conll, \.json, \.label, \.txt"),
    ],
)
def test_what_cannot_be_proposed_is_said(here: Path, name: str, text: str, said: str) -> None:
    path = write_text(here / name, text)
    with pytest.raises(UserError, match=said):
        guess_task(path if (here / name).suffix != ".parq" else str((here / name).parent))


def test_names_are_free_and_claims_are_on_what_can_carry_them(here: Path) -> None:
    assert (name_of("my/Fine Texts.jsonl"), name_of("20news"), name_task("my/sst2"), name_task("mails/Train.csv")) == (
        "fine_texts",
        "my_20news",
        "my_sst2",
        "mails",
    )
    packaged = InitRequest("roberta_table1", "books", "trec", guess_task("trec"), "masking.rate=0.15,0.4")
    with pytest.raises(UserError, match="roberta_table1 is the name of a packaged sweep"), write_files(packaged):
        pass
    assert split_compared("masking/schedule=static,dynamic") == ("masking/schedule", ["static", "dynamic"])
    labeled = guess_task("trec")
    with write_files(InitRequest("mine", "books", "trec", labeled, "masking/schedule=static,dynamic")):
        pass
    claim = "dynamic > static on mlm_loss, trec/accuracy, margin 1 points, margin 0.02 nats"
    assert load("mine").claims == (claim,)
    with write_files(InitRequest("mine5", "books", "trec", labeled, "masking.rate=0.15,0.5", ("model=t5_tiny",))):
        pass
    assert (load("mine5").family, load("mine5").columns[0]) == ("t5", "denoising_loss")


def test_files_of_a_sweep_that_cannot_run_are_removed(here: Path) -> None:
    asked = InitRequest("mine", "books", "trec", guess_task("trec"), "masking.rate=0.15,0.4")
    before = sorted(here.rglob("*"))
    with pytest.raises(UserError, match="too small"), write_files(asked):
        raise UserError("too small")
    assert sorted(here.rglob("*")) == before, "no file and no empty folder is left"


def test_hard_wrapped_text_is_told(here: Path) -> None:
    assert find_wrapped("books") == []
    lines = [("word " * 14).strip() if n % 5 else "" for n in range(200)]
    (here / "wrapped.txt").write_text("\n".join(lines))
    assert "wrapped.txt looks hard-wrapped" in find_wrapped("wrapped.txt")[0]


def test_what_seeds_could_see(here: Path, quick: None) -> None:
    assert main(["init", "--text", "books", "--task", "trec", *COMPARE]) == 0
    said = say_power(parse("run", ["books_trec", "scale=cpu"]))
    assert said.startswith("With 80% power, 5 seeds see 1.7 points, 10 seeds see 1.0 points")


SMALL = ["tokenizer.vocab_size=150", "profile.threads=1", "logger=none"]


def check_first_table(here: Path, said: str) -> None:
    assert "3 examples of the arm rate_0.15" in said
    assert "next: `paribus table my_rates scale=test`" in said
    table = json.loads((here / "reports/my_rates/test/table.json").read_text())
    assert table["columns"] == ["mlm_loss", "trec/accuracy"]
    assert {arm["name"]: arm["n"] for arm in table["arms"]} == {"rate_0.15": 2, "rate_0.4": 2}
    assert all(set(arm["metrics"]) == {"mlm_loss", "trec/accuracy"} for arm in table["arms"])
    assert len(table["claims"]) == 1
    assert yaml.safe_load((here / "sweeps/my_rates.yaml").read_text())["study"] == "my_rates"


def test_from_own_text_and_task_to_a_table(
    here: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What the script of the guide does, in this process."""
    monkeypatch.setenv("PARIBUS_CACHE", str(cache))
    monkeypatch.setattr("paribus.sweeps.plan.report", lambda request: "the cost")  # it starts processes
    given = ["--text", "books", "--task", "trec", *COMPARE, "name=my_rates", "scale=test", *SMALL]
    for command in (["init", *given], ["run", "my_rates", "scale=test"], ["table", "my_rates", "scale=test"]):
        assert main(command) == 0
    check_first_table(here, capsys.readouterr().err)


@pytest.mark.slow
def test_the_script_of_the_guide(here: Path, cache: Path) -> None:
    """With `paribus` on the path."""
    (here / "bin").mkdir()
    (here / "bin/paribus").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m paribus "$@"\n')
    (here / "bin/paribus").chmod(0o755)
    environment: dict[str, Any] = {
        **os.environ,
        "PATH": f"{here / 'bin'}:{os.environ['PATH']}",
        "PARIBUS_CACHE": str(cache),
    }
    command = ["bash", str(DOCS / "first_table.sh"), "books", "trec", "test", *SMALL]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=here)
    assert done.returncode == 0, done.stderr
    check_first_table(here, done.stderr)
