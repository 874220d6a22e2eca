"""Files as strangers have them: does Paribus read what their authors meant?

python analysis/check_reading.py [--cases 2000] [--seed 1]

`tests/support/strange_files.py` draws the cases: results for `paribus judge`, tables of labels, tags and questions, and
texts. A fault is a file that is read otherwise than it was meant, an ambiguous file that is read without a word, and a
traceback. To refuse a file that a careful person can read is counted, and is no fault. The entry `strange files` of
`analysis/results/chaos.json` is {kind, seed, cases, read, refused, noted, ambiguous, faults, git}: files `read` as they
were meant, files `refused` although they are clear, files of which a part was read and a note names the rest, and
`ambiguous` files that were refused or read with a note.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import math
import os
import re
import shutil
import sys
import tempfile
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from fuzzing import judge, said_by  # noqa: E402
from strange_case import StrangeFile  # noqa: E402
from strange_files import strange_files  # noqa: E402

from paribus.core.build import build  # noqa: E402
from paribus.core.config import compose, plain  # noqa: E402
from paribus.core.console import progress, say  # noqa: E402
from paribus.core.errors import UserError  # noqa: E402
from paribus.core.files import write_json  # noqa: E402
from paribus.runs.provenance import git_state  # noqa: E402

RESULTS = ROOT / "analysis" / "results" / "chaos.json"
USUAL_NOTES = ("Not checked, because", "Guessed from names", "Seeds are numbered", "No interval", "Budgets were")
EXPECTED = re.compile(r": no record of seed |counts once: ")  # notes on seeds that an arm lacks and on equal rows


def main() -> None:
    """Read every case and write what was found."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    place = Path(tempfile.mkdtemp(prefix="paribus-strange-"))
    os.chdir(place)
    os.environ["PARIBUS_CACHE"] = str(place / "configs")
    counts: Counter[str] = Counter()
    faults = []
    for number, case in enumerate(progress(strange_files(given.seed, given.cases), "strange files", given.cases)):
        outcome, said = attempt(place / str(number), case)
        counts[outcome] += 1
        shown = f"{outcome}: {case.kind} {number} ({case.why}): {said}"[:600]
        if outcome not in ("read", "ambiguous"):
            say(shown)
        if outcome not in ("read", "ambiguous", "refused", "noted"):
            faults.append(shown)
    found = {entry["kind"]: entry for entry in json.loads(RESULTS.read_text())} if RESULTS.is_file() else {}
    known = {name: counts[name] for name in ("read", "refused", "noted", "ambiguous")}
    entry = {"kind": "strange files", "seed": given.seed, "cases": given.cases, **known, "faults": faults}
    found["strange files"] = {**entry, "git": git_state()}
    write_json(RESULTS, list(found.values()))
    say(", ".join(f"{count} {outcome}" for outcome, count in counts.most_common()))
    shutil.rmtree(place, ignore_errors=True)


def attempt(folder: Path, case: StrangeFile) -> tuple[str, str]:
    """(outcome, what was said) of one case; `folder` is removed again."""
    folder.mkdir()
    for name, content in case.files.items():
        (folder / name).write_bytes(content)
    found: list[Any] = []
    said = judge(lambda: found.extend(READERS[case.kind](folder, case)))
    shutil.rmtree(folder)
    if said.startswith("fault"):
        return "traceback", said
    if said.startswith("refused"):
        return "ambiguous" if case.ambiguous else "refused", said
    read, notes = found
    if case.ambiguous:
        return ("ambiguous", "") if notes else ("ambiguous file read", f"{read}")
    different = [difference(case, meant, read, notes) for meant in (case.written, *case.also)]
    if "" in different:
        return "read", ""
    return ("noted" if notes and case.kind == "results" and is_part(case.written, read) else "different"), different[0]


# Readers: what Paribus makes of the files of a folder, and what it says about them


def read_results(folder: Path, case: StrangeFile) -> tuple[Any, list[str]]:
    """{arm: {seed: value}} and the notes of the table that `paribus judge` writes."""
    (name,) = case.files
    said = said_by(["judge", str(folder / name), *case.arguments, f"out={folder / 'out'}"])
    if said.startswith("refused: "):
        raise UserError(said.removeprefix("refused: "))
    if said != "ok":
        raise RuntimeError(said)
    table = json.loads((folder / "out" / "table.json").read_text(encoding="utf-8"))
    numbered = [note for note in table["notes"] if note.startswith("Seeds are numbered: ")]
    seeds = dict(re.findall(r"(\d+) is (.*?)(?:, (?=\d+ is )|\.$)", numbered[0].split(": ", 1)[1])) if numbered else {}
    (metric,) = table["columns"]
    read = {}
    for arm in table["arms"]:
        cell = arm["metrics"].get(metric) or {"seeds": [], "values": []}
        read[arm["name"]] = {
            seeds.get(str(seed), str(seed)): value for seed, value in zip(cell["seeds"], cell["values"], strict=True)
        }
    return read, [note for note in table["notes"] if not note.startswith(USUAL_NOTES) and not EXPECTED.search(note)]


def read_task(folder: Path, case: StrangeFile) -> tuple[dict[str, list[Any]], list[str]]:
    """{split: examples} of the task that the config describes, and the lines that were said."""
    (Path("conf") / "task").mkdir(parents=True, exist_ok=True)
    config = {**(case.config or {}), "path": str(folder)}
    (Path("conf") / "task" / "strange.yaml").write_text(yaml.safe_dump(config, allow_unicode=True), encoding="utf-8")
    with contextlib.redirect_stderr(io.StringIO()) as err:
        task = build(plain(compose(["scale=test", "task=strange"]))["tasks"]["strange"])
        examples = task.read(*config["splits"])
    return examples, err.getvalue().splitlines()


def read_labels(folder: Path, case: StrangeFile) -> tuple[Any, list[str]]:
    """Texts and names of classes."""
    examples, said = read_task(folder, case)
    return {split: [(row.text, case.classes[row.label]) for row in rows] for split, rows in examples.items()}, said


def read_tags(folder: Path, case: StrangeFile) -> tuple[Any, list[str]]:
    """Words and names of tags."""
    examples, said = read_task(folder, case)
    named = {
        split: [(list(row.words), [case.classes[tag] for tag in row.tags]) for row in rows]
        for split, rows in examples.items()
    }
    return named, said


def read_questions(folder: Path, case: StrangeFile) -> tuple[Any, list[str]]:
    """Questions, contexts and answers as (start, text)."""
    examples, said = read_task(folder, case)
    read = {
        split: [(row.question, row.context, list(zip(row.starts, row.answers, strict=True))) for row in rows]
        for split, rows in examples.items()
    }
    return read, said


def read_corpus(folder: Path, case: StrangeFile) -> tuple[list[str], list[str]]:
    """The texts of documents; the parts of a long one are joined."""
    (name,) = case.files
    config = compose(["scale=test", "corpus=text", f"corpus.path={folder / name}", *case.arguments])
    texts: dict[str, str] = {}
    with contextlib.redirect_stderr(io.StringIO()) as err:
        for document in build(plain(config)["corpus"]).documents(folder / "cache"):
            before = texts.get(document.id)
            texts[document.id] = document.text if before is None else f"{before}\n{document.text}"
    return list(texts.values()), err.getvalue().splitlines()


READERS: dict[str, Callable[[Path, StrangeFile], tuple[Any, list[str]]]] = {
    "results": read_results,
    "labels": read_labels,
    "tags": read_tags,
    "questions": read_questions,
    "corpus": read_corpus,
}


# Comparisons


def difference(case: StrangeFile, written: Any, read: Any, notes: list[str]) -> str:
    """What differs between what was written and what was read, or nothing."""
    if case.kind == "results":
        return runs_that_differ(written, read, notes)
    if case.kind == "corpus":
        return first_difference(list(map(paragraphs, written)), list(map(paragraphs, read)))
    if case.kind == "labels":  # rows without a label are left out
        written = {split: [row for row in rows if row[1] is not None] for split, rows in written.items()}
    differing = (first_difference(rows, read.get(split, [])) for split, rows in written.items())
    return next(filter(None, differing), "")


def first_difference(written: list[Any], read: list[Any]) -> str:
    """The first row that differs, or the numbers of rows."""
    for one, other in zip(written, read, strict=False):
        if one != other:
            return f"{short(one)} was read as {short(other)}"
    return "" if len(written) == len(read) else f"{len(written)} rows were read as {len(read)}"


def short(value: object) -> str:
    text = ascii(value)
    return text if len(text) < 250 else f"{text[:200]}... of {len(text)}"


def paragraphs(text: str) -> list[str]:
    """The docs promise paragraphs, one per line and never empty; a separator of lines may end one. The parts of a very
    long document are joined in some way.
    """
    if len(text) > 500_000:
        return text.split()
    return [line.strip() for line in text.splitlines() if line.strip()]


def runs_that_differ(written: Mapping[Any, Mapping[str, float]], read: Mapping[str, Any], notes: list[str]) -> str:
    """Arms and seeds may be spelled otherwise if that makes no two of them equal. A value that is no finite number may
    be left out with a note.
    """
    pairs = pairs_of_arms(written, read)
    if not pairs:
        return f"arms {short(list(written))} were read as {short(list(read))} {short(notes)}"
    for values, other in pairs:
        left_out = {seed for seed, value in values.items() if not math.isfinite(value) and seed not in other}
        if left_out and not notes:
            return f"{short(values)} was read as {short(other)}, without a note"
        kept = {seed: value for seed, value in values.items() if seed not in left_out}
        if set(kept) != set(other) or not all(same_number(value, other[seed]) for seed, value in kept.items()):
            return f"{short(values)} was read as {short(other)} {short(notes)}"
    return ""


def pairs_of_arms(
    written: Mapping[Any, Mapping[str, float]], read: Mapping[str, Mapping[str, float]]
) -> list[tuple[dict[Any, float], dict[Any, float]]]:
    """The values of each arm as written and as read; nothing if the arms are not the same."""
    if any(isinstance(arm, tuple) for arm in written):  # the names are joined in some way
        rows = [
            sorted(map(by_seed, side.values()), key=lambda values: sorted(map(str, values.items())))
            for side in (written, read)
        ]
        return list(zip(*rows, strict=True)) if len(written) == len(read) else []
    for key in (str, plain_name, letters_of):
        meant = {key(arm): by_seed(values) for arm, values in written.items()}
        got = {key(arm): by_seed(values) for arm, values in read.items()}
        if set(meant) == set(got) and len(meant) == len(written) and len(got) == len(read):
            return [(values, got[arm]) for arm, values in meant.items()]
    return []


def is_part(written: Mapping[Any, Mapping[str, float]], read: Mapping[str, Mapping[str, float]]) -> bool:
    """Every value that was read belongs to its arm and seed."""
    meant = {
        (letters_of("".join(arm)), seed): value
        for arm, values in written.items()
        for seed, value in by_seed(values).items()
    }
    got = {(letters_of(arm), seed): value for arm, values in read.items() for seed, value in by_seed(values).items()}
    return all(key in meant and same_number(meant[key], value) for key, value in got.items())


def by_seed(values: Mapping[str, float]) -> dict[Any, float]:
    return {same_seed(seed): value for seed, value in values.items()}


def same_seed(seed: str) -> object:
    """A number, if the seed is one."""
    try:
        return int(seed, 0) if seed.startswith("0x") else Decimal(seed)
    except InvalidOperation:
        return seed


def same_number(value: float, other: float | None) -> bool:
    """The table has ten digits."""
    if other is None or math.isnan(value):
        return other is None or math.isnan(other)
    return math.isclose(value, other, rel_tol=1e-9)


def plain_name(name: str) -> str:
    """A name without its outer blanks, the composition of its letters and the spelling of its number."""
    text = unicodedata.normalize("NFC", name).strip().casefold()
    try:
        return str(float(text))
    except ValueError:
        return text


def letters_of(name: str) -> str:
    """A name that is safe in a folder has no other signs."""
    return "".join(letter for letter in plain_name(name) if letter.isalnum())


if __name__ == "__main__":
    main()
