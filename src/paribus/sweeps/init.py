"""A user's first sweep: writes a commented sweep file and a task file from a text, a task and a comparison."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from paribus.core.build import kind
from paribus.core.config import compose, plain
from paribus.core.config_names import choices, conf_dir, sweeps_dir
from paribus.core.errors import UserError
from paribus.core.files import write_text
from paribus.core.recipes import family_of, table_seeds
from paribus.data.corpus.text_files import SPLITS, find
from paribus.sweeps.adapt import LOSSES
from paribus.sweeps.request import Request
from paribus.sweeps.sweep import quote
from paribus.tasks.tables.guess import GuessedTable
from paribus.verdict.metrics import find_incomparable
from paribus.verdict.power import POWER, detectable

USUAL = {  # what is often compared: the words for it
    "masking.rate=0.15,0.4": "mask 15% or 40% of the tokens",
    "masking=bernoulli,whole_word": "mask single tokens or whole words",
    "masking=bernoulli,geometric_span": "mask single tokens or spans",
    "masking/schedule=static,dynamic": "draw the masks once, or anew in every epoch",
    "objective=mlm,mlm_nsp": "predict masked tokens, or next segments too",
    "tokenizer=wordpiece,bpe": "WordPiece or byte-level BPE",
}
DROPOUT = "model.dropout"  # at 0.5 worse in every short pre-training
SETTINGS = 12  # of a universe that is proposed
MARGIN = {"points": 1.0, "nats": 0.02}
SAMPLE, LINES, WRAPPED = 1 << 16, 50, 90  # bytes, lines and characters by which hard-wrapped text is told
_COMPARED = re.compile(r"([\w./]+)=([^,\s]+(?:,[^,\s]+)+)")


class InitRequest(NamedTuple):
    """text: a file, a folder or a glob. compared: `key=a,b`; the first value is the baseline. base: further overrides
    of all arms. universe: a scale, whose recipe the settings of a universe lie around; None for seeds.
    """

    name: str
    text: str
    task: str
    labeled: GuessedTable
    compared: str
    base: tuple[str, ...] = ()
    universe: str | None = None


class Files(NamedTuple):
    """What was written."""

    sweep: Path
    task: Path


def name_of(path: str, taken: Sequence[str] = ()) -> str:
    """A name for the text at a path: letters, digits and _; with the prefix `my_` if the name is taken.

    A file that is named after a split has the name of its folder.
    """
    whole = Path(path).expanduser().absolute()
    stem = whole.name.partition(".")[0].lower()
    name = re.sub(r"\W+", "_", whole.parent.name.lower() if stem in SPLITS else stem, flags=re.ASCII)
    name = name.strip("_") or "task"
    return f"my_{name}" if name in taken or not name[0].isalpha() else name


def name_task(path: str) -> str:
    """The name of a task in a folder; no task that comes with the package has it."""
    return name_of(path, [file.stem for file in (conf_dir() / "task").glob("*.yaml")])


def split_compared(text: str) -> tuple[str, list[str]]:
    """(key, values). Raises UserError for a text that is not `key=a,b` with different values."""
    compared = _COMPARED.fullmatch(text.strip())
    if compared is None:
        raise UserError(f"--compare {text} is not KEY=A,B", f"for example, --compare {next(iter(USUAL))}")
    key, values = compared[1], compared[2].split(",")
    if twice := [value for value in dict.fromkeys(values) if values.count(value) > 1]:
        raise UserError(f"--compare gives {twice[0]} twice", f"give different values of {key}")
    return key, values


@contextmanager
def write_files(request: InitRequest) -> Iterator[Files]:
    """Write `sweeps/NAME.yaml` and `conf/task/TASK.yaml` in the working directory; they are removed if the block fails.

    Raises UserError, before anything is written, if one of them exists with different content, or if a packaged sweep
    has the name.
    """
    if (sweeps_dir() / f"{request.name}.yaml").is_file():
        raise UserError(f"{request.name} is the name of a packaged sweep", "add name=NAME with another name")
    files = Files(Path("sweeps") / f"{request.name}.yaml", Path("conf/task") / f"{request.task}.yaml")
    content = dict(zip(files, (write_sweep(request), write_task(request)), strict=True))
    new = [path for path in files if not path.is_file()]
    for path, text in content.items():
        if path not in new and path.read_text(encoding="utf-8") != text:
            other = "add name=NAME" if path == files.sweep else f"rename {request.task}"
            mend = f"{other}, or remove the file"
            raise UserError(f"{path} already exists with other settings", mend)
    folders = [folder for path in new for folder in (path.parent, *path.parent.parents) if not folder.exists()]
    try:
        for path in new:
            write_text(path, content[path])
        yield files
    except BaseException:
        for path in new:
            path.unlink(missing_ok=True)
        for folder in folders:
            with suppress(OSError):  # somebody has put something there
                folder.rmdir()
        raise


def say_power(request: Request) -> str:
    """What effect the seeds of a sweep could see."""
    n, unit = len(request.sweep.seeds_at(request.scale)), "settings" if request.sweep.universes else "seeds"
    seen = (
        f"{count} {unit} see {size:.1f} points"
        for count in dict.fromkeys((n, 5, 10))
        if (size := detectable(1.0 / math.sqrt(count), count - 1))
    )
    given = "if the differences between paired runs have a standard deviation of 1 point"
    return f"With {POWER:.0%} power, {', '.join(seen)}, {given}."


def find_wrapped(path: str) -> list[str]:
    """A line on the first file of a text if it is plain and seems to be hard-wrapped: a line counts as a paragraph."""
    file = find(path)[0]
    if file.kind != "text" or file.path.suffix == ".gz":
        return []
    with file.path.open("rb") as opened:
        lines = re.split("\r\n|\r|\n", opened.read(SAMPLE).decode("utf-8", "replace"))[:-1]
    lengths = sorted(len(line) for line in lines if line.strip())
    if len(lengths) < LINES or lengths[-1] > WRAPPED or lengths[len(lengths) // 2] < WRAPPED // 2:
        return []
    what = "each line counts as a paragraph, and each blank line ends a document"
    return [f"{file.path} looks hard-wrapped: {what}. Join the lines of its paragraphs to get longer documents."]


def write_task(request: InitRequest) -> str:
    """The task file."""
    labeled = request.labeled
    target, metrics = "LabelTable", "[accuracy]   # or f1, matthews; the first is the main one"
    if labeled.tagged:
        target = "TagTable"
        spans = f"[{labeled.metric}]   # of spans; or precision, recall, accuracy; the first is the main one"
        metrics = spans if labeled.metric == "f1" else "[accuracy]   # of tags; spans need the tags O, B-kind, I-kind"
    columns = ", ".join(f"{ours}: {_plain(str(theirs)) if isinstance(theirs, str) else theirs}"
                        for ours, theirs in labeled.columns.items())  # fmt: skip
    numbers = any(isinstance(theirs, int) for theirs in labeled.columns.values())
    splits = ", ".join(f"{ours}: {_plain(theirs)}" for ours, theirs in labeled.splits.items())
    names, held = ", ".join(map(_plain, labeled.classes)), labeled.held_out
    fine_tuning, evaluation = labeled.examples["train"], labeled.examples["validation"]
    return "\n".join([
        f"# Task {request.task}: {fine_tuning} examples to fine-tune on, {evaluation} to evaluate on.",
        f"_target_: paribus.tasks.tables.table.{target}   # LabelTable: classes; ValueTable: numbers; TagTable: tags",
        f"name: {request.task}",
        f"path: {_plain(labeled.path)}   # a folder with a .jsonl, .csv, .tsv or .parquet file per split, or one file",
        f"columns: {{{columns}}}   # our name: the file's {'column, from 1' if numbers else 'name'}",
        f"splits: {{{splits}}}   # our name: the file's name",
        *([f"held_out: {held:g}   # share of train to evaluate on, by a hash of the text"] if held else []),
        f"classes: [{names}]   # spelled as in the file",
        f"metrics: {metrics}",
        "max_train: null       # at most this many examples; null: all",
        "max_validation: null",
    ]) + "\n"  # fmt: skip


def write_sweep(request: InitRequest) -> str:
    """The sweep file."""
    key, values = split_compared(request.compared)
    base = ["corpus=text", f"corpus.path={quote(request.text)}", f"task={request.task}", *request.base]
    settings = None if request.universe is None else propose_universe(key, base, request.universe)
    arms = {}  # {`whole_word` or `rate_0.4`: its value}
    for value in values:
        plain = re.sub(r"[^\w.]+", "_", value).strip("_.")
        named = plain[:1].isalpha() and choices(key.replace(".", "/"))
        arms[plain if named else f"{re.split('[./]', key)[-1]}_{plain}"] = value
    family = family_of(next((text[6:] for text in request.base if text.startswith("model=")), ""))
    loss, score, (first, *others) = LOSSES[family], f"{request.task}/{request.labeled.metric}", arms
    compares = find_incomparable(loss, (key,)) is None
    margins = ", ".join(
        f"margin {MARGIN[unit]:g} {unit}" for unit in ("points", "nats") if compares or unit == "points"
    )
    more = f", {DROPOUT}" if settings else ""
    lines = [
        f"# {request.compared.replace(',', ' or ')}: which is better for {request.text} and {request.task}?",
        f"# paribus run {request.name}",
        f"study: {request.name}   # names the folders of runs and reports",
        f"family: {family}       # bert or t5; scale= chooses among its recipes",
        "base:               # settings of every arm",
        *(f"  - {_plain(text)}" for text in base),
        f"varies: [{key}{more}]   # what the arms may differ in; any other difference is an error",
        "matched: tokens     # the budget that is equal in all arms: tokens, predictions, sequences, steps or flops",
        "arms:               # key=value lists; `paribus train --cfg job` prints the keys",
        *(f"  {name}: [{_plain(f'{key}={value}')}]" for name, value in arms.items()),
        *(
            [f"  dropped: [{_plain(f'{key}={values[0]}')}, {DROPOUT}=0.5]   # of known effect: worse"]
            if settings
            else []
        ),
        f"baseline: {first}",
        f"columns: [{loss}, {score}]   # held-out loss and task; TASK/METRIC adds one",
        "claims:             # fixed before the first run; the margin is the smallest difference that matters to you",
    ]
    for other in others:
        lines += [
            f"  - claim: {other} > {first} on {f'{loss}, ' if compares else ''}{score}, {margins}",
            f"    says: {other} is better than {first}",
            "    whose: ours",
        ]
    if settings:
        return "\n".join([*lines, *settings]) + "\n"
    seeds = ", ".join(map(str, table_seeds(family, "cpu")))
    return "\n".join([*lines, f"# seeds: [{seeds}]   # of every arm; without this line, those of the scale"]) + "\n"


def propose_universe(key: str, base: Sequence[str], scale: str) -> list[str]:
    """The lines of a universe around the recipe of a scale: what another user of the text may have otherwise, within a
    factor of two. What is compared, and what the user has set, is no factor.

    Raises UserError for a scale without a recipe, and if the dropout is compared, which the arm of known effect sets.
    """
    config = plain(compose([*base, f"scale={scale}", "task=none"]))  # the task's file is yet to be written
    taken = [key, *(text.partition("=")[0].lstrip("+~") for text in base)]
    if any(_overlap(one, DROPOUT) for one in taken):
        raise UserError(f"--universe needs {DROPOUT} for its arm of known effect", f"leave out {DROPOUT}")
    model, trainer = config["model"], config["trainer"]
    factors: dict[str, str] = {}
    if model.get("layers"):
        factors["model.layers"] = _list_around(model["layers"], 1)
    if model.get("heads"):
        factors["model.hidden"] = _list_around(model["hidden"], 2 * model["heads"])
    factors["input.length"] = f"[{config['input']['length'] // 2}, {config['input']['length']}]"
    size = config["tokenizer"].get("vocab_size")
    if size and getattr(kind(config["tokenizer"]["_target_"]), "sized", False):
        factors["tokenizer.vocab_size"] = f"[{size // 2}, {size}]"
    if "rate" in config["masking"]:
        rate = config["masking"]["rate"]
        factors["masking.rate"] = f"interval({rate:g}, {min(2 * rate, 0.5):g})"
    factors["optimizer.lr"] = (
        f"tag(log, interval({config['optimizer']['lr'] / 2:g}, {config['optimizer']['lr'] * 2:g}))"
    )
    for budget in ("max_epochs", "max_tokens", "max_steps"):
        if value := trainer.get(budget):
            factors[f"trainer.{budget}"] = f"int(tag(log, interval({int(value)}, {2 * int(value)})))"
            break
    free = {factor: values for factor, values in factors.items() if not any(_overlap(one, factor) for one in taken)}
    return [
        f"universe:           # settings take the place of seeds: within a factor of two of scale={scale}'s recipe",
        f"  settings: {SETTINGS}      # drawn once; every setting trains every arm once",
        "  factors:          # add what you may have otherwise, such as corpus.path: [my/books, my/letters]",
        *(f"    {factor}: {values}" for factor, values in free.items()),
        "  known: {dropped: worse}",
    ]


def _list_around(value: int, step: int) -> str:
    """Half of a value, the value and half more, as multiples of a step."""
    values = (max(step, share * value // 2 // step * step) for share in (1, 2, 3))
    return f"[{', '.join(map(str, dict.fromkeys(values)))}]"


def _overlap(one: str, other: str) -> bool:
    """Whether one key holds the other, or is it."""
    first, second = (f"{text.replace('/', '.')}." for text in (one, other))
    return first.startswith(second) or second.startswith(first)


def _plain(text: str) -> str:
    """A text in YAML, quoted if it must be."""
    import yaml

    return text if re.fullmatch(r"[\w./=+-]+", text) and yaml.safe_load(text) == text else json.dumps(text)
