"""Committed runs in an archive: the same records, configs and curves as in folders, in three files."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from fake_records import design, record, study

from paribus.core.checksums import hash_file, seal
from paribus.core.errors import UserError
from paribus.reports.tables.build import assemble
from paribus.reports.tables.files import render_texts
from paribus.runs import store
from paribus.runs.archive import ARCHIVE, CONFIGS_FILE, RECORDS_FILE, FolderStore, open_archive
from paribus.runs.folder import RunFolder, StoredRun
from paribus.runs.manifest import Manifest, read_manifest, write_manifest
from paribus.runs.record import Record, read_record
from paribus.training.reproduce import find_run

STUDY = "roberta_table1"
CONFIG: dict[str, Any] = {
    "seed": 0,
    "corpus": {"_target_": "x.Text", "path": "books", "hidden": ["w&b", "naïve"]},
    "model": {"_target_": "x.Bert", "layers": 2, "hidden": 128},
    "tokenizer": {"_target_": "x.WordPiece", "vocab_size": 8192},
    "optimizer": {"lr": 1e-05, "betas": [0.9, 0.999], "on": "off"},
    "arm": "?",
}
MANIFEST = Manifest("hash", ["scale=smoke"], {}, {"dynamic": 781})


def put(root: Path, made: dict[str, Any], config: dict[str, Any]) -> Path:
    folder = root / made["study"] / made["arm"] / f"seed{made['seed']}-{made['signature']}"
    (folder / "stages" / "first").mkdir(parents=True)
    (folder / "config.yaml").write_text(yaml.safe_dump(config, sort_keys=False, allow_unicode=True))
    (folder / "metrics.jsonl").write_text('{"step": 1, "train/tokens": 9, "validation/mlm_loss": 5.5}\n' * 3)
    (folder / "stages" / "first" / "metrics.jsonl").write_text('{"step": 1}\n{"half')
    curves = {"metrics.jsonl": hash_file(folder / "metrics.jsonl")}
    (folder / "result.json").write_text(json.dumps(seal({**made, "curves": curves})))
    return folder


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """Twelve runs in folders; one has a key that the first run of its arm lacks."""
    for made in study(3):
        odd = {"extra": {"x": 1}} if (made["arm"], made["seed"]) == ("static", 2) else {}
        put(tmp_path, made, {**CONFIG, "seed": made["seed"], "arm": made["arm"], **odd})
    runs = {f"{one['arm']}/seed{one['seed']}": one["signature"] for one in study(3)}
    write_manifest(tmp_path, STUDY, "smoke", MANIFEST._replace(runs=runs))
    return tmp_path


def read_all(runs: list[StoredRun]) -> list[tuple[Record | None, dict[str, Any] | None, dict[str, bytes | None]]]:
    return [
        (run.read_record()[0], run.read_config(), {name: run.read(name) for name in run.list_curves()}) for run in runs
    ]


def test_an_archive_holds_what_the_folders_held(kept: Path) -> None:
    before, texts = read_all(list(FolderStore(kept / STUDY).list_runs())), render_texts(assemble(design(), [kept]))
    manifest = read_manifest(kept, STUDY, "smoke")
    assert store.archive(kept, STUDY, "smoke") == 12
    assert sorted(path.name for path in (kept / STUDY).iterdir()) == sorted(ARCHIVE)
    archive = open_archive(kept / STUDY)
    assert archive is not None
    after = read_all(list(archive.list_runs()))
    assert after == before
    assert list(after[0][1] or {}) == list(before[0][1] or {}), "keys keep their order"
    assert read_manifest(kept, STUDY, "smoke") == manifest
    assert render_texts(assemble(design(), [kept])) == texts


def test_the_same_runs_give_the_same_bytes(kept: Path) -> None:
    store.archive(kept, STUDY, "smoke")
    first = {name: (kept / STUDY / name).read_bytes() for name in ARCHIVE}
    assert store.archive(kept, STUDY, "smoke") == 12
    assert {name: (kept / STUDY / name).read_bytes() for name in ARCHIVE} == first


def test_later_runs_join_an_archive_and_a_kept_run_is_not_copied_again(kept: Path, tmp_path: Path) -> None:
    store.archive(kept, STUDY, "smoke")
    later = record("dynamic", 3, {"mlm_loss": 4.9})
    folder = put(tmp_path / "runs", later, {**CONFIG, "seed": 3, "arm": "dynamic"})
    assert isinstance(store.keep(folder, kept, STUDY), RunFolder)
    assert len(store.find_records(STUDY, "smoke", [kept]).records) == 12, "the manifest does not have it yet"
    runs = {**(read_manifest(kept, STUDY, "smoke") or MANIFEST).runs, "dynamic/seed3": "dynamic-3"}
    write_manifest(kept, STUDY, "smoke", MANIFEST._replace(runs=runs))
    assert len(store.find_records(STUDY, "smoke", [kept]).records) == 13
    assert store.archive(kept, STUDY, "smoke") == 13
    assert len(store.find_records(STUDY, "smoke", [kept]).records) == 13
    assert not isinstance(store.keep(folder, kept, STUDY), RunFolder)
    found = store.find_kept(kept, STUDY, folder)
    assert found == read_record(folder / "result.json")[0]


def test_a_run_is_found_by_its_signature(kept: Path) -> None:
    made = record("static", 9, {"mlm_loss": 5.0}, signature="ab12cd")
    put(kept, made, CONFIG)
    store.archive(kept, STUDY, "smoke")
    assert str(find_run("ab12", [kept.parent])) == f"{kept / STUDY / RECORDS_FILE}: static/seed9-ab12cd"


@pytest.mark.parametrize("name", ARCHIVE)
@pytest.mark.parametrize("how", ["deleted", "empty", "edited"])
def test_an_archive_with_an_odd_file_is_refused_and_stays(name: str, how: str, kept: Path) -> None:
    """Reading half of it would call finished runs missing, and archiving again would make that last."""
    store.archive(kept, STUDY, "smoke")
    path = kept / STUDY / name
    if how == "deleted":
        path.unlink()
    elif how == "empty":
        path.write_bytes(b"" if name == CONFIGS_FILE else gzip.compress(b""))
    else:
        text = path.read_bytes() if name == CONFIGS_FILE else gzip.decompress(path.read_bytes())
        text = text.replace(b"8192", b"4096").replace(b"5.5", b"4.5").replace(b'"seed": 1', b'"seed": 7')
        path.write_bytes(text if name == CONFIGS_FILE else gzip.compress(text))
    before = {one.name: one.read_bytes() for one in (kept / STUDY).iterdir()}
    for use in (
        lambda: store.archive(kept, STUDY, "smoke"),
        lambda: store.find_records(STUDY, "smoke", [kept]),
        lambda: store.find_kept(kept, STUDY, kept / STUDY / "dynamic" / "seed0-dynamic-0"),
    ):
        with pytest.raises(UserError, match=f"{name} is damaged, edited or missing: restore it: git checkout"):
            use()
    assert {one.name: one.read_bytes() for one in (kept / STUDY).iterdir()} == before


def test_a_killed_archiving_loses_nothing_and_the_next_one_ends_it(
    kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = read_all(list(FolderStore(kept / STUDY).list_runs()))
    count = iter(range(10**6))
    stop = {"at": 0}

    def dying(original: Any) -> Any:
        def operate(*given: Any, **named: Any) -> Any:
            if next(count) == stop["at"]:
                raise KeyboardInterrupt
            return original(*given, **named)

        return operate

    with monkeypatch.context() as patch:
        for owner, name in ((Path, "replace"), (Path, "rename"), (Path, "unlink"), (os, "unlink"), (os, "rmdir")):
            patch.setattr(owner, name, dying(getattr(owner, name)))
        for at in range(60):
            root = tmp_path / f"copy{at}"
            shutil.copytree(kept / STUDY, root / STUDY)
            count, stop["at"] = iter(range(10**6)), at
            with suppress(KeyboardInterrupt):
                store.archive(root, STUDY, "smoke")
            stop["at"] = -1
            found = [store.find_stored(made, [root]) for made, _, _ in wanted if made]
            assert read_all([one for one in found if one]) == wanted, at
            assert store.archive(root, STUDY, "smoke") == 12
            assert sorted(path.name for path in (root / STUDY).iterdir()) == sorted(ARCHIVE)
            archive = open_archive(root / STUDY)
            assert archive is not None
            assert read_all(list(archive.list_runs())) == wanted


def test_a_folder_with_weights_is_not_archived(kept: Path) -> None:
    folder = next((kept / STUDY).glob("dynamic/seed0-*"))
    (folder / "model").mkdir()
    (folder / "model" / "model.safetensors").write_bytes(b"weights")
    with pytest.raises(UserError, match=r"also holds model/model.safetensors, which an archive does not keep"):
        store.archive(kept, STUDY, "smoke")
    assert (folder / "model" / "model.safetensors").is_file()
    assert not (kept / STUDY / RECORDS_FILE).exists()


def test_an_empty_folder_hides_no_archived_run(kept: Path) -> None:
    store.archive(kept, STUDY, "smoke")
    folder = kept / STUDY / "dynamic" / "seed0-dynamic-0"
    folder.mkdir(parents=True)
    assert store.find_kept(kept, STUDY, folder) is not None


def test_a_damaged_record_is_not_archived(kept: Path) -> None:
    path = next(kept.glob("*/dynamic/*/result.json"))
    path.write_text(path.read_text().replace("done", "diverged"))
    with pytest.raises(UserError, match="edited after the run"):
        store.archive(kept, STUDY, "smoke")
    assert not (kept / STUDY / CONFIGS_FILE).exists()
    assert path.is_file()
