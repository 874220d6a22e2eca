"""The rated snippets of vaderSentiment, on a small archive of the same form."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path

import pytest

from paribus.core.errors import UserError
from paribus.tasks import movie_reviews
from paribus.tasks.movie_reviews import (
    ARCHIVE,
    MEMBERS,
    NESTED,
    RatedSnippets,
    find_link,
    label_rows,
    main,
    read_members,
)

RATED = "0\t1.0\tWitty\r\n1\t2.5\tA ''gem'' .\r\n2\t-0.5\tToo long , d\u00e9j\u00e0 vu\r\n3\t0.0\tIt is a film\r\n"


def pack(members: dict[str, bytes], kind: bytes = tarfile.REGTYPE) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as tar:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, "/etc/passwd"
            member.size = len(content) if kind == tarfile.REGTYPE else 0
            tar.addfile(member, io.BytesIO(content))
    return made.getvalue()


def archive(text: str = RATED) -> bytes:
    inner = {place: text.encode() for place in MEMBERS.values()}
    return pack({"vaderSentiment-3.3.2/setup.py": b"raise SystemExit('it ran')", NESTED: pack(inner)})


def make_task(path: str) -> RatedSnippets:
    columns, classes = {"text": "text", "label": "label"}, ["negative", "positive"]
    return RatedSnippets("movie_reviews", columns, classes, path=path, splits={"train": "train"}, held_out=0.5)


@pytest.fixture
def known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An archive whose hash is the known one, in the working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(movie_reviews, "SHA256", hashlib.sha256(archive()).hexdigest())
    path = tmp_path / ARCHIVE
    path.write_bytes(archive())
    return path


def test_the_sign_of_the_rating_is_the_label_and_ties_are_dropped() -> None:
    rows = label_rows(RATED, "movie_reviews")
    assert rows == [
        {"text": "Witty", "rating": 1.0, "label": "positive"},
        {"text": "A ''gem'' .", "rating": 2.5, "label": "positive"},
        {"text": "Too long , d\u00e9j\u00e0 vu", "rating": -0.5, "label": "negative"},
    ]


@pytest.mark.parametrize("line", ["1\t2.5", "1\tgood\tA gem", "1\tnan\tA gem", "1\t5\tA gem", "1\t1\tA\tgem"])
def test_a_line_that_is_no_rating_is_refused(line: str) -> None:
    with pytest.raises(UserError, match="line 5 of tweets"):
        label_rows(RATED + line, "tweets")


def test_four_files_are_written_and_the_task_reads_them(known: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(known)]) == 0
    folder = known.parent / "data/rated_snippets"
    assert sorted(path.name for path in known.parent.rglob("*.*")) == sorted(
        [ARCHIVE, *(f"{name}.jsonl" for name in MEMBERS)]
    )
    assert "movie_reviews.jsonl: 3 snippets" in capsys.readouterr().out
    task = make_task(str(folder / "movie_reviews.jsonl"))
    rows = [json.loads(line) for line in (folder / "movie_reviews.jsonl").read_text().splitlines()]
    examples = task.read("train", "validation")
    found = {row.text: row.label for split in examples.values() for row in split}
    assert found == {row["text"]: int(row["label"] == "positive") for row in rows}


def test_a_task_without_its_file_says_what_to_type() -> None:
    with pytest.raises(UserError, match=r"no file data/nowhere.jsonl: type `make movie-reviews`"):
        make_task("data/nowhere.jsonl").source()


def test_another_archive_or_none_is_refused_in_one_line(known: Path, capsys: pytest.CaptureFixture[str]) -> None:
    known.write_bytes(archive(RATED + "4\t1\tanother\r\n"))
    assert main([str(known)]) == 2
    assert main(["nowhere.tar.gz"]) == 2
    assert main([str(known), "another.tar.gz"]) == 2
    said = capsys.readouterr().err.splitlines()
    assert said[0].startswith(f"the file is not {ARCHIVE}, or is damaged: its sha256 is not ")
    assert said[1].startswith("no file nowhere.tar.gz: ")
    assert said[2].startswith("2 paths: ")
    assert not (known.parent / "data").exists()


def test_a_link_in_place_of_a_file_is_not_followed() -> None:
    linked = pack({NESTED: b""}, tarfile.SYMTYPE)
    with pytest.raises(UserError, match=r"hutto_ICWSM_2014.tar.gz is not a file of the archive"):
        read_members(linked)


def test_the_archive_is_found_on_a_page_of_an_index() -> None:
    page = f"""<a href="../../p/{ARCHIVE}.asc">signature</a> <a href="/p/vaderSentiment-3.3.1.tar.gz">old</a>
    <a data-requires-python="&gt;=3" href="../../p/{ARCHIVE}#sha256=5d7c">{ARCHIVE}</a>"""
    assert find_link(page, "https://host/simple/vadersentiment/") == f"https://host/p/{ARCHIVE}"
    assert find_link(page.replace("3.3.2", "3.3"), "https://host/simple/vadersentiment/") is None


def test_an_index_that_cannot_be_read_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", (tmp_path / "nowhere").as_uri())
    assert main([]) == 2
    assert f"get {ARCHIVE} yourself" in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_is_named(known: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (known.parent / "data").write_text("a file")
    assert main([str(known)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "data" in line


def test_the_archive_comes_from_the_index_of_pip(
    known: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file address stands in for the index: urlopen reads both."""
    page = known.parent / "simple.html"
    page.write_text(f'<a href="{known.as_uri()}#sha256=0">{ARCHIVE}</a>')
    monkeypatch.setenv("PIP_INDEX_URL", "file:///index")
    opened = movie_reviews.urlopen
    pages = {"file:///index/vadersentiment/": page.as_uri()}
    monkeypatch.setattr(
        movie_reviews, "urlopen", lambda address, timeout: opened(pages.get(address, address), timeout=timeout)
    )
    assert main([]) == 0
    assert capsys.readouterr().out.count("3 snippets") == 4
