"""Atomic writes: whole or absent, readable by others, and nothing left of those that were killed."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from paribus.commands.cli import main
from paribus.core.config import compose
from paribus.core.errors import UserError, permitted
from paribus.core.files import whole_folder, write_cached, write_text
from paribus.training.run import run

WRITER = """
import sys, time
from pathlib import Path
from paribus.core.files import whole_folder
with whole_folder(Path(sys.argv[1])) as work:
    (work / "half").write_text("a")
    print(work.name, flush=True)
    time.sleep(600)
"""


def start(target: Path) -> tuple[subprocess.Popen[str], str]:
    process = subprocess.Popen([sys.executable, "-c", WRITER, str(target)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, process.stdout.readline().strip()


def test_what_a_killed_build_leaves_is_removed_by_the_next_and_what_is_in_use_stays(tmp_path: Path) -> None:
    target = tmp_path / "store"
    live, its = start(target)
    dead, left = start(target)
    assert {path.name for path in tmp_path.iterdir()} == {its, left}
    dead.kill()
    dead.wait()
    with whole_folder(target) as work:
        (work / "whole").write_text("b")
        assert {path.name for path in tmp_path.iterdir()} == {its, work.name}
    live.kill()
    live.wait()
    write_text(tmp_path / "other", "a file cleans up for its own name alone")
    assert {path.name for path in tmp_path.iterdir()} == {its, "store", "other"}
    (tmp_path / ".other.0a1b2c3d").write_text("left by a process that was killed")
    write_text(tmp_path / "other", "again")
    assert {path.name for path in tmp_path.iterdir()} == {its, "store", "other"}
    assert (tmp_path / "other").read_text() == "again"


def test_a_cache_keeps_the_files_that_were_written_last(tmp_path: Path) -> None:
    for at in range(5):
        write_cached(tmp_path / f"{at}.json", b"{}", most=4)
        os.utime(tmp_path / f"{at}.json", (at, at))
    assert {path.name for path in tmp_path.iterdir()} == {"2.json", "3.json", "4.json"}


def test_a_block_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), whole_folder(tmp_path / "store"):
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


def test_stores_and_files_can_be_shared_as_the_umask_says(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        with whole_folder(tmp_path / "store") as work:
            (work / "part").write_text("a")
        write_text(tmp_path / "file", "b")
    finally:
        os.umask(before)
    modes = {name: (tmp_path / name).stat().st_mode & 0o777 for name in ("store", "store/part", "file")}
    assert modes == {"store": 0o750, "store/part": 0o640, "file": 0o640}


def test_checkpoints_do_not_pass_through_the_temporary_folder(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    real, made = tempfile.mkstemp, list[str]()

    def record(*own: Any, **more: Any) -> tuple[int, str]:
        found = real(*own, **more)
        made.append(found[1])
        return found

    monkeypatch.setattr(tempfile, "mkstemp", record)
    folder = run(compose([*arguments, "trainer.max_steps=3", "profile.checkpoint_steps=1", "task=none", "logger=none"]))
    assert (folder / "result.json").is_file()
    assert [path for path in made if Path(path).parent == Path(tempfile.gettempdir())] == []


def test_a_file_that_may_not_be_read_is_named_in_one_line(tmp_path: Path) -> None:
    with (
        pytest.raises(UserError, match=r"weights cannot be read or written \(Permission denied\): change its"),
        permitted(),
    ):
        raise PermissionError(13, "Permission denied", str(tmp_path / "weights"))
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"\(Not a directory\): choose another file or folder"), permitted():
        (tmp_path / "file" / "runs").mkdir()
    with pytest.raises(UserError, match=r"/proc/runs cannot be read or written \(No such file"), permitted():
        Path("/proc/runs").mkdir(parents=True)
    with pytest.raises(FileNotFoundError), permitted():
        (tmp_path / "missing").read_text()
    with pytest.raises(PermissionError, match="of a socket"), permitted():
        raise PermissionError("of a socket")


def test_a_run_in_a_folder_of_another_user(arguments: list[str], monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    def refuse(self: Path, *own: Any, **more: Any) -> None:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "mkdir", refuse)
    assert main(["train", *arguments, "task=none", "logger=none"]) == 2
    said = [line for line in capfd.readouterr().err.splitlines() if line.startswith("paribus: ")]
    assert len(said) == 1
    assert "cannot be" in said[0]
