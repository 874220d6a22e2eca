"""Text files as they come: line ends, encodings, packed and damaged ones."""

from __future__ import annotations

import codecs
import gzip
import json
from pathlib import Path

import pytest
from foreign import collect, list_values, write

from paribus.core.errors import UserError

ROWS = [("base", 0, 0.81), ("base", 1, 0.82), ("warm", 0, 0.83), ("warm", 1, 0.84)]
TEXT = "arm,seed,acc\n" + "".join(f"{arm},{seed},{acc}\n" for arm, seed, acc in ROWS)
INDEXED = "arm,seed,acc\n" + "".join(f"{at},{arm},{seed},{acc}\n" for at, (arm, seed, acc) in enumerate(ROWS, 1))
OBJECTS = [{"arm": arm, "seed": seed, "acc": acc, "note": "a\u2028b\u0085c\u000bd\u001ce"} for arm, seed, acc in ROWS]
LINES = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in OBJECTS)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("runs.csv", TEXT.replace("\n", "\r\n")),
        ("runs.csv", codecs.BOM_UTF8 + TEXT.encode()),
        ("runs.csv", TEXT.encode("utf-16")),
        ("runs.csv", TEXT.encode("utf-32")),
        ("runs.csv", TEXT.replace("\n", ",\n")),
        ("runs.csv", "sep=;\n" + TEXT.replace(",", ";").replace(".", ",")),
        ("runs.csv", "sep=,\n" + TEXT),
        ("runs.csv", TEXT.replace("\n", "\r")),
        ("runs.csv", "sep=,\r" + TEXT.replace("acc\n", 'acc,"no\nte"\n').replace("\n", "\r")),
        ("runs.csv", TEXT.replace("acc\n", "acc,note\n").replace("\n", "\r").replace("0.81\r", '0.81,"a\rb\nc"\r')),
        ("runs.jsonl", LINES.replace("\n", "\r")),
        ("runs.csv", INDEXED),
        ("runs.csv", INDEXED.replace("\n", ",\n")),
        ("runs.csv", TEXT.replace("acc\n", "acc,\n").replace("1\n", "1,x\n")
         .replace("2\n", "2,y\n").replace("3\n", "3,z\n").replace("4\n", "4,z\n")),
        ("runs.csv", TEXT.replace("acc\n", 'acc,note\n').replace("0.81\n", '0.81,"one\ntwo\u2028three"\n')),
        ("runs.csv", TEXT.replace("acc\n", "acc,note\n").replace("0.81\n", f"0.81,{'k' * 140_000}\n")),
        ("runs.csv", TEXT.replace("acc\n", "acc,note\n").replace("0.81\n", "0.81,a\u2028b\u0085c\u000bd\u001ce\n")),
        ("runs.csv.gz", gzip.compress(TEXT.encode())),
        ("runs.md", "| arm  | seed | acc |\n|:---|---:|---|\n" + "".join(f"| {a} | {s} | {v} |\n" for a, s, v in ROWS)),
        ("runs.md", "arm | seed | acc\n--- | --- | ---\n" + "".join(f"{a} | {s} | {v}\n" for a, s, v in ROWS)),
        ("runs.txt", TEXT.replace(",", " ")),
        ("runs.txt", INDEXED.replace(",", "   ")),
        ("runs.txt", TEXT.replace(",", " ").replace("0.", "0,")),
        ("runs.txt", '"arm" "seed" "acc"\n' + "".join(f'"{n}" "{a}" {s} {v}\n' for n, (a, s, v) in enumerate(ROWS, 1))),
        ("runs.jsonl", LINES),
        ("runs.jsonl.gz", gzip.compress(LINES.encode())),
        ("runs.json", json.dumps(OBJECTS, indent=1)),
    ],
)  # fmt: skip
def test_a_file_is_read_as_it_comes(tmp_path: Path, name: str, content: str | bytes) -> None:
    assert list_values(collect(write(tmp_path / name, content))) == ROWS


def test_names_of_rows_are_names_of_runs(tmp_path: Path) -> None:
    text = "acc;steps\n" + "".join(f"{arm}-s{seed};{acc};100\n" for arm, seed, acc in ROWS)
    assert list_values(collect(write(tmp_path / "runs.csv", text), pattern="{arm}-s{seed}")) == ROWS


def damage(content: bytes) -> bytes:
    return content[:-12] + bytes([content[-12] ^ 8]) + content[-11:]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("runs.csv", "arm,seed,acc\nbäse,0,1\n".encode("latin-1"), r"is not a text in UTF-8 \(line 2\): .*iconv"),
        ("runs.csv", TEXT.encode("utf-16-le"), r"runs\.csv is not a text in UTF-8 \(line 1\)"),
        ("runs.csv.gz", damage(gzip.compress(TEXT.encode())), r"runs\.csv\.gz is damaged or not packed by gzip"),
        ("runs.csv.gz", gzip.compress(TEXT.encode())[:-9], r"runs\.csv\.gz is damaged or not packed by gzip"),
        ("runs.csv", TEXT.replace("acc\n", "acc,\n").replace("0.81\n", "0.81,7\n"), "has 4 cells for 3 columns"),
        ("runs.csv", TEXT.replace("0.8", "0,8"), "has 4 cells for 3 columns: quote each cell that holds ','"),
        ("runs.csv", "arm,acc\nbase,0,81\nwarm,0,82\n", "one cell more than names in every row: .* or 0,81 is one"),
        ("runs.csv", TEXT + '"warm,2,0.8\n', r"line 6 of .*runs\.csv is not CSV \(unexpected end of data\)"),
        ("runs.json", '[{"arm": 1}, 2]', r"row 2 of .*runs\.json is not a JSON object"),
        ("runs.jsonl", "[" * 100_000, r"line 1 of .*runs\.jsonl is not JSON"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused_in_one_line(
    tmp_path: Path, name: str, content: str | bytes, message: str
) -> None:
    with pytest.raises(UserError, match=message):
        collect(write(tmp_path / name, content))


@pytest.mark.parametrize("column", ["State", "state"])
def test_runs_that_wandb_calls_unfinished_do_not_count(tmp_path: Path, column: str) -> None:
    states = ["finished", "crashed", "finished", "running"]
    rows = [f"{arm},{seed},{acc},{state}" for (arm, seed, acc), state in zip(ROWS, states, strict=True)]
    runs = collect(write(tmp_path / "runs.csv", "\n".join([f"arm,seed,acc,{column}", *rows])))
    assert [(run.status, run.error) for run in runs.records] == [
        ("done", None), ("failed", "its state is crashed"), ("done", None), ("failed", "its state is running"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("runs.txt", "arm seed acc\nthe base 0 0.81\nwarm 0 0.83\n", r"not as many cells .* write.csv\(...\) in R"),
        ("runs.json", '{"arm": {"0": "base"}, "acc": {"0": 0.8}}', r'is not a list of rows: .*orient="records"'),
        ("runs.parquet", "PAR1", r"is not a text file: write it as CSV: to_csv\('runs.csv', index=False\)"),
    ],
)
def test_files_of_another_layout_are_refused_with_what_to_type(
    tmp_path: Path, name: str, content: str, message: str
) -> None:
    with pytest.raises(UserError, match=message):
        collect(write(tmp_path / name, content))
