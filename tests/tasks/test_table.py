"""Tables as tasks: hub layout in a local folder, class numbers, limits, bad input."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paribus.core.errors import UserError
from paribus.tasks.examples import Example, count_leaks, limit_rows
from paribus.tasks.tables.delimited import find_delimiter
from paribus.tasks.tables.files import read_files
from paribus.tasks.tables.json_files import read_json_lines
from paribus.tasks.tables.table import LabelTable

ROOT = Path(__file__).parents[2]
GLUE = ROOT / "../shared/data/glue"
COLUMNS = {"text": "sentence", "label": "label"}


def write(folder: Path, split: str, **columns: list[Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), folder / f"{split}.parquet")


def task(folder: Path, **changes: Any) -> LabelTable:
    settings: dict[str, Any] = {"name": "toy", "columns": COLUMNS, "classes": ["bad", "good"], "path": str(folder)}
    return LabelTable(**{**settings, **changes})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "toy", "train", sentence=["fine film", "poor film", "No  light"], label=[1, 0, 0])
    write(tmp_path / "toy", "validation", sentence=["no LIGHT", "a fine one"], label=[0, 1])
    return tmp_path / "toy"


def test_rows_become_examples(folder: Path, tmp_path: Path) -> None:
    found = task(folder).examples(tmp_path)
    expected = [("fine film", 1), ("poor film", 0), ("No  light", 0)]
    assert found["train"] == [Example(text, None, label) for text, label in expected]
    assert found["validation"][1] == Example("a fine one", None, 1)


def test_leakage_is_counted_on_normalized_text(folder: Path, tmp_path: Path) -> None:
    summary = task(folder).summary(tmp_path)
    assert summary["leaked"] == {"validation": 1}
    assert summary["examples"] == {"train": 3, "validation": 2}
    assert summary["labels"]["train"] == {"bad": 2, "good": 1}


def test_leakage_of_pairs_needs_both_texts() -> None:
    rows = {"train": [Example("a", "b", 0)], "validation": [Example("a", "c", 0), Example("A", "b", 1)]}
    assert count_leaks(rows) == {"validation": 1}


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "tsv"])
def test_other_files_of_the_same_layout(folder: Path, tmp_path: Path, suffix: str) -> None:
    expected = task(folder).data_hash(tmp_path)
    for split in ("train", "validation"):
        rows = pq.read_table(folder / f"{split}.parquet").to_pylist()
        mark = {"csv": ",", "tsv": "\t"}.get(suffix, "")
        lines = [json.dumps(row) if suffix == "jsonl" else mark.join(map(str, row.values())) for row in rows]
        head = [] if suffix == "jsonl" else [mark.join(rows[0])]
        (tmp_path / "other").mkdir(exist_ok=True)
        (tmp_path / "other" / f"{split}.{suffix}").write_text("\n".join([*head, *lines]) + "\n")
    assert task(tmp_path / "other").data_hash(tmp_path) == expected


def test_parts_in_a_sub_folder_of_the_configuration(folder: Path, tmp_path: Path) -> None:
    whole = pq.read_table(folder / "train.parquet")
    (tmp_path / "hub/toy").mkdir(parents=True)
    for part in range(2):
        pq.write_table(whole.slice(part * 2, 2), tmp_path / f"hub/toy/train-0000{part}-of-00002.parquet")
    (folder / "validation.parquet").rename(tmp_path / "hub/toy/validation-00000-of-00001.parquet")
    assert len(task(tmp_path / "hub", config="toy").examples(tmp_path)["train"]) == 3


def test_labels_may_be_names_and_unlabeled_rows_are_left_out(tmp_path: Path) -> None:
    write(tmp_path, "train", sentence=["a", "b", "c"], label=["good", "bad", None])
    write(tmp_path, "validation", sentence=["d", "e"], label=[1, -1])
    found = task(tmp_path).examples(tmp_path / "cache")
    assert [row.label for row in found["train"]] == [1, 0]
    assert [row.text for row in found["validation"]] == ["d"]


def test_class_numbers_follow_the_names_in_the_schema(tmp_path: Path) -> None:
    named = {"info": {"features": {"label": {"names": ["good", "bad"], "_type": "ClassLabel"}}}}
    for split in ("train", "validation"):
        table = pa.table({"sentence": ["a", "b"], "label": [0, 1]})
        pq.write_table(table.replace_schema_metadata({"huggingface": json.dumps(named)}), tmp_path / f"{split}.parquet")
    assert [row.label for row in task(tmp_path).examples(tmp_path / "cache")["train"]] == [1, 0]
    with pytest.raises(UserError, match="the data has good, bad"):
        task(tmp_path, classes=["bad", "good", "odd"]).examples(tmp_path / "cache")


def test_fingerprint_follows_texts_and_labels_not_places(folder: Path, tmp_path: Path) -> None:
    first = task(folder).data_hash(tmp_path)
    moved = folder.rename(tmp_path / "moved")
    assert task(moved).data_hash(tmp_path) == first
    write(moved, "train", sentence=["fine film", "poor film", "No  light"], label=[1, 0, 1])
    assert task(moved).data_hash(tmp_path) != first


def test_limits_take_the_same_rows_when_others_are_added(tmp_path: Path) -> None:
    rows = [Example(f"text {i}", None, i % 2) for i in range(200)]
    some = limit_rows(rows, 50)
    assert len(some) == 50
    assert some == sorted(some, key=rows.index)
    kept = set(limit_rows([Example("new", None, 0), *rows], 50))
    assert len(kept & set(some)) >= 49
    assert limit_rows(rows, None) == limit_rows(rows, 500) == rows


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"path": "/nowhere"}, r"tasks\.toy\.path: no folder /nowhere"),
        ({"columns": {"text": "words", "label": "label"}}, r"no column 'words': choose from sentence, label"),
        ({"columns": {"text": "sentence"}}, r"tasks\.toy\.columns"),
        ({"columns": {"text": "label", "label": "label"}}, r"row 0 of train has int, not text, in column 'label'"),
        ({"splits": {"train": "train", "validation": "dev"}}, r"has no dev\.parquet.* only train\.parquet, valid"),
        ({"classes": ["one"]}, "at least two different classes"),
        ({"metrics": ["accurate"]}, r"is unknown: choose from accuracy, matthews, f1$"),
        ({"max_train": 1}, r"max_train=1 is out of range: allow at least 2"),
        ({"path": None}, r"tasks\.toy\.path is not set"),
        ({"splits": {"train": "train"}}, r"splits"),
    ],
)
def test_bad_settings(folder: Path, tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message) as error:
        task(folder, **changes).examples(tmp_path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {"sentence": ["a", "b", "c"], "label": [0, 1, 2]},
            "row 2 of train has the label 2: add it to the classes, now bad",
        ),
        ({"sentence": ["a", " "], "label": [0, 1]}, "row 1 of train has no text in column 'sentence'"),
        ({"sentence": ["a", None], "label": [0, 1]}, "row 1 of train has no text in column 'sentence'"),
        ({"sentence": ["a", "b"], "label": [-1, -1]}, "no labeled examples in train"),
        ({"sentence": ["a", "b"], "label": [1, 1]}, "the same label"),
        ({"sentence": ["a"], "label": [[1]]}, "'label' holds list"),
    ],
)
def test_bad_rows(folder: Path, tmp_path: Path, columns: dict[str, Any], message: str) -> None:
    write(folder, "train", **columns)
    with pytest.raises(UserError, match=message):
        task(folder).examples(tmp_path)
    assert not list(tmp_path.glob("tasks/toy*"))


def test_broken_file_is_named(folder: Path, tmp_path: Path) -> None:
    (folder / "train.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(UserError, match=r"train\.parquet is not a readable parquet"):
        task(folder).examples(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("null\n\na\tb\tc", r"readable jsonl file \(line 1 is not a JSON object\)"),  # Arrow's reader crashes on it
        ('{"sentence": "a", "label": 1}\n{"sentence": "a"', r"is not a readable jsonl file \(line 2 is not JSON: "),
        ('{"sentence": "a", "label": ' + "9" * 30 + "}", "is not a readable jsonl file"),
        ("[" * 100_000, r"\(line 1 is not JSON: nested too deep\)"),
    ],
)
def test_lines_that_are_no_objects_are_refused(content: str, message: str, folder: Path, tmp_path: Path) -> None:
    (folder / "train.parquet").unlink()
    (folder / "train.jsonl").write_text(content)
    with pytest.raises(UserError, match=message):
        task(folder).examples(tmp_path)


def test_rows_of_json_may_lack_a_key_and_texts_stay_as_they_are(tmp_path: Path) -> None:
    lines = ['{"sentence": "2020-01-01", "label": 1}', "", '{"label": 0, "sentence": "a\u2028b", "note": [1]}']
    (tmp_path / "train.jsonl").write_text("\n".join(lines), encoding="utf-8")
    rows = read_files([tmp_path / "train.jsonl"], (), "tasks.toy").to_pylist()
    assert rows == [
        {"sentence": "2020-01-01", "label": 1, "note": None}, {"sentence": "a\u2028b", "label": 0, "note": [1]},
    ]  # fmt: skip


@pytest.mark.parametrize("suffix", ["csv", "tsv"])
def test_cells_of_megabytes_and_files_without_a_header_are_read(tmp_path: Path, suffix: str) -> None:
    mark, quote = (",", '"') if suffix == "csv" else ("\t", "")
    wide = "[\n1,\n" * 300_000 if suffix == "csv" else "[ 1, " * 300_000
    for split in ("train", "validation"):
        rows = [f"{label}{mark}{quote}{wide}{label}{quote}" for label in ("good", "bad", "good")]
        (tmp_path / f"{split}.{suffix}").write_text("\n".join(rows) + "\n")
    found = task(tmp_path, columns={"text": 2, "label": 1}).read("train")["train"]
    assert [(row.text, row.label) for row in found] == [(f"{wide}good", 1), (f"{wide}bad", 0), (f"{wide}good", 1)]
    with pytest.raises(UserError, match="has no column '3': choose from 1, 2"):
        task(tmp_path, columns={"text": 3, "label": 1}).read("train")


def test_lines_that_begin_with_a_label(tmp_path: Path) -> None:
    lines = ["DESC:manner How did it go ?", "HUM:ind Who is\u2028he ?"]
    for split in ("train", "validation"):
        (tmp_path / f"{split}.label").write_text("\n".join(lines) + "\n", encoding="utf-8")
    coarse = task(tmp_path, columns={"text": "text", "label": "label"}, classes=["DESC", "HUM"])
    assert coarse.read("train")["train"][1] == Example("Who is\u2028he ?", None, 1)
    fine = task(tmp_path, columns={"text": "text", "label": "fine"}, classes=["HUM:ind", "DESC:manner"])
    assert [row.label for row in fine.read("train")["train"]] == [1, 0]
    (tmp_path / "train.label").write_bytes(b"DESC:manner Sauternes\xf0 ?")
    with pytest.raises(UserError, match=r"train\.label is not UTF-8 .* convert it, for example with iconv"):
        coarse.read("train")


def test_a_share_that_leaves_no_example_is_told(tmp_path: Path) -> None:
    (tmp_path / "two.csv").write_text("sentence,label\nsame,1\nsame,0\n")
    with pytest.raises(UserError, match=r"held_out=0\.2 leaves no example in .*two\.csv has 2 labeled examples"):
        task(tmp_path / "two.csv", held_out=0.2).read("train", "validation")


def test_hub_without_network_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    wanted = LabelTable(name="toy", columns=COLUMNS, classes=["a", "b"], hub="nobody/nothing-here", config="x")
    with pytest.raises(UserError, match=r"tasks\.toy\.hub: nobody/nothing-here/x .*tasks\.toy\.path=FOLDER") as error:
        wanted.examples(tmp_path)
    assert "\n" not in str(error.value)


def test_hub_gives_what_the_local_folder_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The `datasets` library reads a folder as it reads a repository of the hub."""
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "hub")
    features = datasets.Features(sentence=datasets.Value("string"), label=datasets.ClassLabel(names=["good", "bad"]))
    for split in ("train", "validation"):
        rows = datasets.Dataset.from_dict(
            {"sentence": [f"{split} {i}" for i in range(4)], "label": [0, 1, -1, 1]}, features
        )
        (tmp_path / "set").mkdir(exist_ok=True)
        rows.to_parquet(tmp_path / "set" / f"{split}.parquet")
    local = task(tmp_path / "set")
    hub = task(tmp_path, path=None, hub=str(tmp_path / "set"))
    assert hub.examples(tmp_path / "cache") == local.examples(tmp_path / "cache")
    assert hub.data_hash(tmp_path / "cache") == local.data_hash(tmp_path / "cache")
    assert [row.label for row in local.examples(tmp_path / "cache")["train"]] == [1, 0, 0]


def test_second_read_is_light(folder: Path, tmp_path: Path) -> None:
    expected = task(folder).data_hash(tmp_path)
    code = f"""
import sys
from pathlib import Path
from paribus.tasks.tables.table import LabelTable
task = LabelTable("toy", {COLUMNS!r}, ["bad", "good"], path={str(folder)!r})
print(task.data_hash(Path({str(tmp_path)!r})), len(task.examples(Path({str(tmp_path)!r}))["train"]))
print(sorted({{"torch", "datasets", "transformers", "pandas", "sklearn"}} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[1] == "[]"
    assert done.stdout.split()[:2] == [expected, "3"]


@pytest.mark.skipif(not (GLUE / "sst2").is_dir(), reason="no local GLUE")
def test_sst2_has_the_published_sizes(tmp_path: Path) -> None:
    from hydra.utils import instantiate
    from omegaconf import OmegaConf

    settings = OmegaConf.merge(OmegaConf.load(ROOT / "conf/task/sst2.yaml"), {"path": os.fspath(GLUE / "sst2")})
    sst2 = instantiate(settings)
    summary = sst2.summary(tmp_path)
    assert summary["examples"] == {"train": 67349, "validation": 872}
    assert summary["leaked"] == {"validation": 0}
    assert sst2.examples(tmp_path)["train"][0] == Example("hide new secretions from the parental units ", None, 0)


TEXTS = [("élève 😀", "good"), ("b c", "bad")]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-8-sig"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "json", "txt"])
def test_encodings_and_line_ends_are_those_of_the_file(tmp_path: Path, suffix: str, end: str, encoding: str) -> None:
    if suffix in ("jsonl", "json"):
        lines = [json.dumps({"sentence": text, "label": label}, ensure_ascii=False) for text, label in TEXTS]
    elif suffix == "txt":
        lines = [f"{label} {text}" for text, label in TEXTS]
    else:
        lines = [("\t" if suffix == "tsv" else ",").join(cells) for cells in [("sentence", "label"), *TEXTS]]
    for content in [end.join([*lines, ""]), *([f"[{','.join(lines)}]"] if suffix == "json" else [])]:
        (tmp_path / f"train.{suffix}").write_bytes(content.encode(encoding))
        columns = {"text": "text", "label": "label"} if suffix == "txt" else COLUMNS
        found = task(tmp_path, columns=columns).read("train")["train"]
        assert found == [Example("élève 😀", None, 1), Example("b c", None, 0)]
    (tmp_path / f"train.{suffix}").write_bytes(end.join(lines).encode("utf-16-be"))
    with pytest.raises(UserError, match=rf"train\.{suffix} is not UTF-8 .*convert it"):
        task(tmp_path).read("train")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("label;sentence\ngood;a, b\nbad;c|d\n", ["a, b", "c|d"]),
        ('sentence|label|n\na, b|good|1\n"c|d;"|bad|2\n', ["a, b", "c|d;"]),
        ("label\tsentence\ngood\ta, b;\nbad\tc\n", ["a, b;", "c"]),
        ('label,"sentence",x;y|z\ngood,a;b|c,1\nbad,d,2\n', ["a;b|c", "d"]),
        ("label:sentence\ngood:a\n", "has no column .*: choose from label:sentence"),
    ],
)
def test_the_header_tells_the_delimiter(tmp_path: Path, content: str, expected: list[str] | str) -> None:
    (tmp_path / "train.csv").write_text(content)
    if isinstance(expected, str):
        with pytest.raises(UserError, match=expected):
            task(tmp_path).read("train")
    else:
        assert [(row.text, row.label) for row in task(tmp_path).read("train")["train"]] == list(
            zip(expected, [1, 0], strict=True)
        )


def test_a_header_that_two_delimiters_split_is_refused() -> None:
    with pytest.raises(UserError, match=r"a\.csv has the columns b if cells are separated by commas and by semicolons"):
        find_delimiter("b,a;b\n1,2;3\n", ["b"], "a.csv")


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (['"a\tb ""c"""', "d"], ['a\tb "c"', "d"]),
        (['"a ""b"""', "c"], ['a "b"', "c"]),
        (['"a, b"', "c"], ["a, b", "c"]),
        (['"a"', '"b"'], ["a", "b"]),
        (['"a', 'b"'], ['"a', 'b"']),
        (['"a" b', '"c"'], ['"a" b', '"c"']),
        (
            ['"a"', "b"],
            r'train\.tsv: the quotes of the cell "a" may be letters, or enclose it: put quotes',
        ),
        (['"a" b\tc', "d"], "its quotes are neither letters, since lines .* whole cells: double the quotes"),
    ],
)
def test_quotes_of_a_tsv_file_enclose_cells_or_are_letters(
    tmp_path: Path, cells: list[str], expected: list[str] | str
) -> None:
    rows = [f"{cell}\t{label}\n" for cell, label in zip(cells, ("good", "bad"), strict=True)]
    (tmp_path / "train.tsv").write_text("sentence\tlabel\n" + "".join(rows))
    if isinstance(expected, str):
        with pytest.raises(UserError, match=expected):
            task(tmp_path).read("train")
    else:
        assert [row.text for row in task(tmp_path).read("train")["train"]] == expected


def test_objects_over_several_lines_are_read_with_the_line_ends_in_their_texts() -> None:
    rows = [{"text": "a\nb" * 400_000, "label": 1}, {"text": "c", "label": 0}]
    text = "".join(f'{{"text": "{row["text"]}",\n "label": {row["label"]}}}\n' for row in rows)
    assert read_json_lines(text).to_pylist() == rows
    with pytest.raises(ValueError, match="line 1 is not JSON"):
        read_json_lines(text + '{"text": "cut')
