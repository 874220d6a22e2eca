"""Files of text: documents, splits, bad input, memory."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from paribus.core.errors import UserError
from paribus.data.corpus import document
from paribus.data.corpus.document import Document, in_parts
from paribus.data.corpus.splits import split_documents
from paribus.data.corpus.text import Text
from paribus.data.corpus.text_files import find


def read(path: Path | str, **settings: object) -> list[Document]:
    return list(Text(str(path), **settings).documents(Path("unused")))  # type: ignore[arg-type]


def parquet(path: Path, **columns: list[object]) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)
    return path


def test_blank_lines_end_documents_of_plain_text(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("\ufeffOne.\r\n  Two. \r\n\r\n \r\nThree.\rFour".encode())
    assert read(tmp_path / "a.txt") == [Document("a.txt#0", "One.\nTwo."), Document("a.txt#1", "Three.\nFour")]


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.json.gz", "rows.parquet"])
def test_rows_are_documents(tmp_path: Path, name: str) -> None:
    rows = [{"key": "x", "body": "One.\n\nTwo."}, {"key": "y", "body": ""}, {"key": "z", "body": "Three."}]
    lines = "\n".join(map(json.dumps, rows)) + "\n"
    if name.endswith("parquet"):
        parquet(tmp_path / name, key=["x", "y", "z"], body=[row["body"] for row in rows])
    elif name.endswith("gz"):
        (tmp_path / name).write_bytes(gzip.compress(lines.encode()))
    else:
        (tmp_path / name).write_text(lines)
    found = read(tmp_path, text_column="body", id_column="key")
    assert found == [Document("x", "One.\nTwo."), Document("z", "Three.")]


@pytest.mark.parametrize(
    ("names", "splits"),
    [
        (["train.txt", "validation.txt", "test.txt"], ["test", "train", "validation"]),
        (["train/a.txt", "dev/a.txt"], ["validation", "train"]),
        (["train-00000-of-00002.txt", "train-00001-of-00002.txt", "valid.txt"], ["train", "train", "validation"]),
        (["wiki.train.tokens", "wiki.valid.tokens"], ["train", "validation"]),
        (["train.txt", "test.txt"], ["test", None]),  # no validation file: drawn from the training documents
        (["other.txt", "validation.txt"], ["train", "validation"]),
        (["train.txt"], [None]),
        (["training_day.txt", "test_of_time.txt", "a.txt"], [None, None, None]),
    ],
)
def test_names_of_files_and_folders_are_splits(tmp_path: Path, names: list[str], splits: list[str | None]) -> None:
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("Text.")
    assert [file.split for file in find(str(tmp_path))] == splits
    assert [found.split for found in read(tmp_path)] == splits


def test_glob_and_hidden_files(tmp_path: Path) -> None:
    for name in ("b.txt", "a.txt", ".hidden.txt", "notes.md"):
        (tmp_path / name).write_text(f"From {name}.")
    assert [found.text for found in read(tmp_path)] == ["From a.txt.", "From b.txt."]
    assert [found.text for found in read(f"{tmp_path}/*.md")] == ["From notes.md."]


@pytest.mark.parametrize("before", [b"", b"fine.\n" * 90_000, "é".encode() * 200_000])
def test_bad_bytes_are_named_by_file_and_offset(tmp_path: Path, before: bytes) -> None:
    file = tmp_path / "bad.txt"
    file.write_bytes(before + b"caf\xe9 au lait\n")
    with pytest.raises(UserError, match=rf"bad\.txt: byte {len(before) + 3} .*corpus\.errors=replace"):
        read(file)
    assert read(file, errors="replace")[0].text.endswith("caf\ufffd au lait")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-8-sig"])
@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz", "a.ndjson", "a.jsonl.gz", "a.md"])
def test_a_byte_order_mark_names_the_encoding(tmp_path: Path, name: str, encoding: str) -> None:
    long = "élève 😀 " * 70_000  # of several blocks
    text = "\r".join([f'{{"text": "{long}"}}', '{"text": "b"}'] if "json" in name else [long, "", "b"])
    content = text.encode(encoding)
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    texts = [document.text for document in read(tmp_path / name)]
    assert texts[-1] == "b"
    assert "".join(texts[:-1]).replace(" ", "").replace("\n", "") == long.replace(" ", "")


def test_utf_16_without_a_mark_or_with_half_a_character_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("plain".encode("utf-16-le"))
    with pytest.raises(UserError, match="byte 1 is a NUL, as in UTF-16 without a byte order mark: convert"):
        read(tmp_path / "a.txt")
    (tmp_path / "a.txt").write_bytes("plain".encode("utf-16")[:-1])
    with pytest.raises(UserError, match=r"byte 10 is not UTF-16-LE: convert"):
        read(tmp_path / "a.txt")


def test_bad_bytes_at_the_very_end(tmp_path: Path) -> None:
    (tmp_path / "cut.txt").write_bytes(b"abc" + "é".encode()[:1])
    with pytest.raises(UserError, match="byte 3 "):
        read(tmp_path / "cut.txt")


@pytest.mark.parametrize(
    ("name", "content", "settings", "message"),
    [
        ("a.jsonl", b'{"text": "x"}\n{"text": \n', {}, r"a\.jsonl: line 2 is not JSON"),
        ("a.jsonl", b'["x"]\n', {}, r"a\.jsonl: line 1 is not a JSON object"),
        ("a.jsonl", b'{"body": "x", "n": 1}\n', {}, r"no column 'text'.*body, n"),
        ("a.jsonl", b'{"text": "x"}\n', {"id_column": "key"}, r"no column 'key'.*corpus\.id_column.*text"),
        ("a.jsonl", b'{"text": 3}\n', {}, "holds int, not text"),
        ("a.jsonl", b'{"text": "\\ud800"}\n', {}, "surrogate"),
        ("a.parquet", b"no parquet", {}, r"a\.parquet cannot be read as parquet"),
        ("a.txt.gz", b"no gzip", {}, r"a\.txt\.gz cannot be read"),
        ("a.md", b"text", {}, "folder without text"),
        ("a.txt", b"text", {"errors": "skip"}, "corpus.errors=skip"),
        ("a.txt", b"text", {"validation": 1.5}, "corpus.validation=1.5"),
    ],
)
def test_bad_files_say_what_to_mend(
    tmp_path: Path, name: str, content: bytes, settings: dict[str, object], message: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=message):
        read(tmp_path, **settings)


@pytest.mark.parametrize("name", ["a.txt.gz", "a.jsonl.gz", "a.parquet"])
def test_a_flipped_bit_is_one_line_with_the_name_of_the_file(tmp_path: Path, name: str) -> None:
    rows = [f"text {n} of {n * n % 997}" for n in range(200)]
    if name == "a.parquet":
        whole = parquet(tmp_path / name, text=rows).read_bytes()
    else:
        lines = [json.dumps({"text": row}) for row in rows] if "json" in name else rows
        whole = gzip.compress("\n".join(lines).encode())
    refused = []
    for at in range(0, len(whole), max(1, len(whole) // 60)):
        (tmp_path / name).write_bytes(whole[:at] + bytes([whole[at] ^ 16]) + whole[at + 1 :])
        try:
            read(tmp_path / name)
        except UserError as error:
            refused.append(str(error))
    assert len(refused) > 10
    assert all(name in said and "\n" not in said for said in refused)


@pytest.mark.parametrize("code", [0x0B, 0x0C, 0x1C, 0x85, 0x2028, 0x2029])
def test_only_line_feeds_and_carriage_returns_end_a_line(tmp_path: Path, code: int) -> None:
    line = f"one{chr(code)}two"
    (tmp_path / "a.txt").write_bytes(f"{line}\r\n{line}\r\r{line}\n".encode())
    (tmp_path / "b.jsonl").write_text(json.dumps({"text": f"{line}\r\n{line}"}, ensure_ascii=False), encoding="utf-8")
    assert [one.text for one in read(tmp_path)] == [f"{line}\n{line}", line, f"{line}\n{line}"]


def test_missing_parquet_column_names_those_that_exist(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"a\.parquet has no column 'text': set corpus\.text_column.* body, title"):
        read(parquet(tmp_path / "a.parquet", body=["x"], title=["y"]))


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/nowhere", "corpus.path=/nowhere does not exist"),
        ("/dev/null", "corpus.path=/dev/null is neither a file nor a folder"),
        ("", "corpus.path is empty: give a file, a folder or a glob"),
    ],
)
def test_a_path_without_files_is_refused(path: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        read(path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"text,label\nx,1\n", r"a\.csv is a table \(\.csv\): save the texts as \.txt"),
        ("a.docx", b"PK\x03\x04\x14\x00\x06\x00", r"a\.docx is not text: save the texts as \.txt"),
    ],
)
def test_a_single_file_of_another_kind_is_refused(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=message):
        read(tmp_path / name)
    (tmp_path / "README").write_bytes(b"a text without an ending")
    assert len(read(tmp_path / "README")) == 1


def test_long_documents_come_in_parts_without_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document, "LONGEST", 50)
    blocks = ["word " * 30, "short", "x" * 120, "a b"]
    parts = list(in_parts("d", blocks, None))
    assert [part.part for part in parts] == list(range(len(parts)))
    assert max(len(part.text) for part in parts) <= 50
    assert "".join("".join(part.text for part in parts).split()) == "".join("".join(blocks).split())


def test_a_lone_giant_is_cut_by_block(tmp_path: Path) -> None:
    line = "All happy families are alike. " * 30
    (tmp_path / "giant.txt").write_text(f"{line}\n" * 10_000)
    found = list(split_documents(Text(str(tmp_path / "giant.txt"), validation=0.1).documents(tmp_path), 0.1))
    sizes = Counter({one.split: 0 for one in found})
    for one in found:
        sizes[one.split] += len(one.text)
    assert sizes["validation"] / sizes.total() == pytest.approx(0.1, abs=0.001)
    order = [one.split for one in found]
    assert order == sorted(order, key=str)
    assert len(order) > 3


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["documents", "one document", "one line"])
def test_a_gigabyte_is_read_in_bounded_memory(tmp_path: Path, unit: str) -> None:
    sentence = "All happy families are alike; every unhappy family is unhappy in its own way. "
    end = {"documents": "\n\n", "one document": "\n", "one line": " "}[unit]
    with (tmp_path / "big.txt").open("w") as out:
        for _ in range(1000):
            out.write((sentence * 128 + end) * 100)
    code = (
        "import re, sys; from pathlib import Path; from paribus.data.corpus.text import Text\n"
        "from paribus.data.corpus.splits import fingerprint\n"
        "found = fingerprint(Text(sys.argv[1]), Path(sys.argv[2]))\n"
        "peak = re.search(r'VmHWM:\\s+(\\d+)', Path('/proc/self/status').read_text())[1]\n"
        "print(sum(found.characters.values()), int(peak) // 1024)"  # ru_maxrss would count the parent before exec
    )
    command = [sys.executable, "-c", code, str(tmp_path / "big.txt"), str(tmp_path)]
    characters, megabytes = map(int, subprocess.check_output(command).split())
    assert characters > 990_000_000
    assert megabytes < 300


def test_novels(shared: Path) -> None:
    rows = read(shared / "novels-en", id_column="doc_id")
    assert Counter(one.split for one in rows if not one.part) == {"train": 72, "validation": 3, "test": 3}
    assert len({one.id for one in rows}) == 78
    plain = read(shared / "novels-en-txt")
    assert Counter(one.split for one in plain if not one.part) == {"train": 10, "validation": 3, "test": 3}
    of_rows = {one.text for one in rows if one.split == "test"}
    assert {one.text for one in plain if one.split == "test"} == of_rows
