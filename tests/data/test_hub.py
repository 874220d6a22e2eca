"""Sets of the hub by way of local folders, and without a network."""

from __future__ import annotations

import gzip
import json
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from paribus.core.build import build
from paribus.core.config_names import conf_dir
from paribus.core.errors import UserError
from paribus.data.corpus.document import paragraphs
from paribus.data.corpus.splits import split_documents
from paribus.data.corpus.text_rows import Articles, Joined, TextRow


def corpus(name: str, **settings: Any) -> Any:
    from hydra import compose, initialize_config_dir

    overrides = [f"+corpus={name}", *(f"corpus.{key}={value}" for key, value in settings.items())]
    with initialize_config_dir(str(conf_dir()), version_base=None):
        return build(compose(overrides=overrides).corpus)


def rows(*lines: str) -> list[TextRow]:
    return [TextRow(f"r#{at}", line) for at, line in enumerate(lines)]


def parquet(path: Path, texts: list[str]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"text": texts}), path)


def test_articles_start_at_titles_between_blank_rows() -> None:
    lines = [
        "",
        " = Crab = \n",
        "",
        " Crabs walk . \n",
        " = not a title = \n",
        " = = Food = = \n",
        "",
        " = Eel = \n",
        "",
        "x",
    ]
    found = list(Articles()(rows(*lines)))
    assert [(one.name, len(paragraphs(one.text).split("\n"))) for one in found] == [("r#1", 4), ("r#7", 2)]
    assert "".join("".join(one.text for one in found).split()) == "".join("".join(lines).split())


def test_rows_joined_to_documents() -> None:
    assert [one.text for one in Joined(5)(rows("ab", "cd", "ef", "gh"))] == ["ab\ncd\nef", "gh"]


def test_wikitext_from_a_folder(shared: Path, tmp_path: Path) -> None:
    found = corpus("wikitext2", path=shared / "wikitext-2-v1")
    documents = list(found.documents(tmp_path))
    assert Counter(one.split for one in documents) == {"train": 600, "validation": 60, "test": 60}
    assert next(one for one in documents if one.split == "validation").text.startswith("= Homarus gammarus =\n")


def test_c4_from_a_folder_of_the_hub_s_layout(tmp_path: Path) -> None:
    (tmp_path / "en").mkdir()
    for name, count in (("c4-train.00000-of-01024", 9), ("c4-validation.00000-of-00008", 4)):
        lines = "\n".join(json.dumps({"text": f"Page {at}.\nEnd.", "url": "u"}) for at in range(count))
        (tmp_path / "en" / f"{name}.json.gz").write_bytes(gzip.compress(lines.encode()))
    found = Counter(one.split for one in corpus("c4", path=tmp_path, limit=5).documents(tmp_path))
    assert found == {"train": 5, "validation": 4}


def test_two_sets_from_sub_folders(tmp_path: Path) -> None:
    parquet(tmp_path / "bookcorpus" / "plain_text" / "train-00000-of-00001.parquet", ["one sentence ."] * 60_000)
    with pytest.raises(UserError, match="no folder wikipedia"):
        list(corpus("bookcorpus_wikipedia", path=tmp_path).documents(tmp_path))
    parquet(tmp_path / "wikipedia" / "train.parquet", [f"Article {at}.\n\nText." for at in range(7)])
    found = list(corpus("bookcorpus_wikipedia", path=tmp_path).documents(tmp_path))
    assert [len(one.text) > 390_000 for one in found] == [True, True, False] + [False] * 7
    assert {one.split for one in split_documents(found, 0.005)} == {"train", "validation"}


@pytest.mark.parametrize("name", ["wikitext2", "wikitext103", "bookcorpus_wikipedia", "c4"])
def test_without_a_network_one_line_says_what_to_do(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paribus.core.hub._reachable", lambda address: False)
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path))
    with pytest.raises(UserError, match=r"cannot be loaded from the hub.*corpus\.path=FOLDER"):
        next(iter(corpus(name).documents(tmp_path)))


def test_streams_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads = []

    def load_dataset(*names: Any, **settings: Any) -> dict[str, list[dict[str, str]]]:
        reads.append((names, settings))
        return {"train": [{"text": f"Page {at}."} for at in range(9)], "validation": [{"text": "Held out."}]}

    fake = ModuleType("datasets")
    fake.load_dataset = load_dataset  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "datasets", fake)
    monkeypatch.setattr("paribus.core.hub._reachable", lambda address: True)
    found = corpus("c4", limit=3)
    first = list(found.documents(tmp_path))
    assert [one.split for one in first] == ["train"] * 3 + ["validation"]
    assert list(found.documents(tmp_path)) == first
    assert reads == [(("allenai/c4", "en"), {"revision": None, "streaming": True})]


def test_sources_do_not_import_heavy_packages(tmp_path: Path) -> None:
    import subprocess

    (tmp_path / "a.txt").write_text("One.\n\nTwo.")
    code = (
        "import sys; from pathlib import Path; from paribus.data.corpus import docstrings, hub\n"
        "from paribus.data.corpus.text import Text\n"
        "list(Text(sys.argv[1]).documents(Path('.')))\n"
        "print([name for name in ('torch', 'transformers', 'datasets', 'pandas', 'pyarrow') if name in sys.modules])"
    )
    assert subprocess.check_output([sys.executable, "-c", code, str(tmp_path)], text=True).strip() == "[]"
