"""The map of the code is true: files, rooms, base classes and links of the documents exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "paribus"
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
DOCUMENTS = ["README.md", *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md")))]
# By a user, by a run, by an archive
WRITTEN = ("conf/trusted.yaml", "config.yaml", "configs.yaml", "conf/task/trec.yaml", "sweeps/my_rates.yaml")


def section(title: str) -> str:
    """The text below a heading, up to the next one."""
    return ARCHITECTURE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def rows(title: str) -> list[list[str]]:
    """The cells of the table in a section, without its head."""
    lines = [line for line in section(title).splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def named_files(text: str) -> list[str]:
    return re.findall(r"`([\w./]+\.(?:py|yaml))`", text)


def find(name: str) -> Path:
    """A file as the document names it: below the package, or at the top of the checkout."""
    top = name.split("/")[0] in ("analysis", "conf", "docs", "src", "tests")
    return (ROOT if top else PACKAGE) / name


def anchors(document: Path) -> set[str]:
    """The anchors that GitHub gives the headings."""
    heads = re.findall(r"^#+ (.*)$", document.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def test_every_file_exists() -> None:
    text = "".join((ROOT / name).read_text(encoding="utf-8") for name in DOCUMENTS)
    names = [name for name in named_files(text) if "NAME" not in name and name not in WRITTEN]
    assert len(names) > 20
    assert [name for name in names if not find(name).is_file()] == []


def test_the_rooms_are_the_folders_of_the_package_in_the_order_of_the_layers() -> None:
    listed = [name.strip("`") for name, _ in rows("The fifteen rooms")]
    assert sorted(listed) == sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))
    (layers,) = re.findall(r"^layers = \[(.*?)\]", (ROOT / "pyproject.toml").read_text(), re.DOTALL | re.MULTILINE)
    assert listed == re.findall(r'"(\w+)"', layers)


@pytest.mark.parametrize("row", rows("Where do I add X?"), ids=lambda row: row[0])
def test_an_addition_is_at_most_four_new_files_beside_others_of_its_kind(row: list[str]) -> None:
    _, new, base, shown = row
    files = [find(name) for name in named_files(new)]
    assert 1 <= len(files) <= 4
    for path in files:
        assert path.stem == "NAME"
        assert len(list(path.parent.glob(f"*{path.suffix}"))) >= 2, path.parent
    assert named_files(shown)
    source = "".join(find(name).read_text() for name in named_files(f"{base} {shown}"))
    classes = re.findall(r"`([A-Z]\w+)`", f"{base} {shown}")
    assert classes or "tests/" in shown
    assert [name for name in classes if f"class {name}" not in source and f"{name}(" not in source] == []


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_link_leads_somewhere(document: str) -> None:
    path = ROOT / document
    for target, anchor in re.findall(r"\]\((?!http)([^)#\s]*)#?([^)\s]*)\)", path.read_text(encoding="utf-8")):
        linked = path.parent / target if target else path
        assert linked.exists(), target
        assert not anchor or anchor in anchors(linked), anchor
