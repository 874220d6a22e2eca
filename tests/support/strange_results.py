"""Results of runs in the files that people give to `paribus judge`."""

from __future__ import annotations

import json
import random
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from strange_case import LINE_SEPARATORS, StrangeFile, delimited, phrase, vary

NO_VALUE = ("", "NA", "N/A", "-", "null", "None", "#N/A", "--")
JSON_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?|NaN|-?Infinity")


@dataclass
class Row:
    """The cells of one line; `more` holds the columns that are neither the arm, the seed nor the metric."""

    arm: str
    seed: str
    value: str
    more: dict[str, str] = field(default_factory=dict)


@dataclass
class Draft:
    """A file before it is written: its rows, what they mean, and its layout."""

    arms: list[str]
    rows: list[Row]
    written: dict[str | tuple[str, ...], dict[str, float]]  # an arm of several columns is a tuple
    baseline: str
    scales: list[float] = field(default_factory=list)  # factors of other right readings
    metric: str = "acc"
    flags: dict[str, str] = field(default_factory=dict)
    other_spellings: dict[str, str] = field(default_factory=dict)  # of arms: {as in the file: as it is meant}
    plain_seeds: dict[str, str] = field(default_factory=dict)  # {as in the file: as it is meant}, where these differ
    ambiguous: bool = False
    suffix: str = "csv"
    delimiter: str = ","
    newline: str = "\n"
    encoding: str = "utf-8"
    quote_all: bool = False
    unquoted: bool = False  # decimal commas bare in a comma-separated file
    first_line: str = ""
    line_end: str = ""  # what every line has before its newline
    last_lines: str = ""
    nested: bool = False
    typed_arms: bool = False  # JSON numbers and booleans instead of strings
    chart: bool = False
    shuffled: bool = False
    padded_header: bool = False


def results_file(draw: random.Random) -> StrangeFile:
    """Two or three arms with three to five seeds, and 1 to 4 variations."""
    arms = draw.choice((["static", "dynamic"], ["base", "wide", "deep"], ["mask-15", "mask-40"]))
    seeds = [str(seed) for seed in range(draw.randint(3, 5))]
    draft = Draft(arms, [Row(arm, seed, "") for arm in arms for seed in seeds], {arm: {} for arm in arms}, arms[0])
    set_values(draw, draft, "acc", 0.7, 0.95, 4, lambda value: f"{value:.4f}")
    why = vary(draw, draft, AXES)
    if draft.shuffled:
        draw.shuffle(draft.rows)
    text = (
        chart_text(draft) if draft.chart else json_text(draft) if draft.suffix == "jsonl" else table_text(draw, draft)
    )
    if draft.encoding == "latin-1":
        try:
            text.encode("latin-1")
            draft.ambiguous |= not text.isascii()
        except UnicodeEncodeError:
            draft.encoding = "utf-8"
    return StrangeFile(
        kind="results",
        files={f"results.{draft.suffix}": text.encode(draft.encoding)},
        config=None,
        arguments=arguments(draft),
        written=draft.written,
        ambiguous=draft.ambiguous,
        why=why,
        also=tuple(scaled(draft.written, factor) for factor in draft.scales),
    )


def arguments(draft: Draft) -> tuple[str, ...]:
    """What a user types after the path: nested keys with their dots, and names as the shell passes them."""
    metric, flags = draft.metric, dict(draft.flags)
    if draft.nested:
        metric = f"summary.{metric}"
        columns = flags.get("--arm", "arm").split(",")
        flags |= {"--arm": ",".join(f"config.{column}" for column in columns), "--seed": "config.seed"}
        flags |= {flag: f"config.{flags[flag]}" for flag in ("--step", "--where") if flag in flags}
    given = {"--metric": metric, "--baseline": draft.baseline, **flags}
    return tuple(text for pair in given.items() for text in pair)


def scaled(written: dict[Any, dict[str, float]], factor: float) -> dict[Any, dict[str, float]]:
    """The same runs in another unit."""
    return {arm: {seed: value * factor for seed, value in values.items()} for arm, values in written.items()}


# What is written


def cells(draft: Draft, row: Row) -> dict[str, str]:
    """{column: cell}; a row that names its arm and seed in other columns has neither."""
    named = {"arm": row.arm, "seed": row.seed, draft.metric: row.value, **row.more}
    return {name: cell for name, cell in named.items() if name not in ("arm", "seed") or cell}


def table_text(draw: random.Random, draft: Draft) -> str:
    """The text of a table with a header."""
    rows = [cells(draft, row) for row in draft.rows]
    header = list(dict.fromkeys(name for row in rows for name in row))
    if draft.shuffled:
        draw.shuffle(header)
    heads = [f" {name} " if draft.padded_header else name for name in header]
    lines = [delimited([heads], draft.delimiter, "", draft.quote_all)]
    for row in rows:
        line = delimited([[row.get(name, "") for name in header]], draft.delimiter, "", draft.quote_all)
        value = row[draft.metric]
        lines.append(line.replace(f'"{value}"', value) if draft.unquoted else line)
    body = "".join(line + draft.line_end + draft.newline for line in lines)
    return (draft.first_line and draft.first_line + draft.newline) + body + draft.last_lines


def json_text(draft: Draft) -> str:
    """One object per line, with numbers in the columns that hold nothing else, and for each value that is one."""
    rows = [cells(draft, row) for row in draft.rows]
    names = {name for row in rows for name in row}
    numeric = {name for name in names if all(JSON_NUMBER.fullmatch(row.get(name) or "0") for row in rows)}
    numeric = numeric if draft.typed_arms else numeric - {"arm"}
    # a number of JSON is never ambiguous: 1.186 that means 1186 can only be a text
    numeric = numeric - {draft.metric} if draft.ambiguous else numeric | {draft.metric}
    lines = []
    for row in rows:
        line: dict[str, Any] = {}
        for name, cell in row.items():
            number = name in numeric and JSON_NUMBER.fullmatch(cell)
            boolean = name == "arm" and draft.typed_arms and cell in ("true", "false")
            line[name] = json.loads(cell) if number or boolean else cell
        if draft.nested:
            value = {draft.metric: line.pop(draft.metric)}
            line = {"config": line, "summary": value}
        lines.append(json.dumps(line, ensure_ascii=False) + draft.newline)
    return "".join(lines) + draft.last_lines


def chart_text(draft: Draft) -> str:
    """W&B's export of a chart: a row per step, three columns per run. The last row holds the values that are meant."""
    header, last = ["Step"], ["300"]
    runs = {(row.arm, row.seed, row.value): row for row in draft.rows}
    for row in runs.values():
        run = f"{row.arm}-s{row.seed} - {draft.metric}"
        header += [run, f"{run}__MIN", f"{run}__MAX"]
        last += [row.value] * 3
    earlier = [[str(step), *["0.5"] * (len(header) - 1)] for step in (100, 200)]
    return delimited([header, *earlier, last], draft.delimiter, draft.newline, quote_all=True)


# Layouts


def semicolons(draw: random.Random, draft: Draft) -> None:
    draft.delimiter = ";"


def sep_line(draw: random.Random, draft: Draft) -> None:
    draft.delimiter, draft.first_line = ";", "sep=;"


def tabs(draw: random.Random, draft: Draft) -> None:
    draft.suffix, draft.delimiter = draw.choice(("tsv", "csv", "txt")), "\t"


def pipes(draw: random.Random, draft: Draft) -> None:
    draft.delimiter = "|"


def json_lines(draw: random.Random, draft: Draft) -> None:
    draft.suffix = "jsonl"


def nested_json_lines(draw: random.Random, draft: Draft) -> None:
    draft.suffix, draft.nested = "jsonl", True


def all_cells_quoted(draw: random.Random, draft: Draft) -> None:
    draft.quote_all = True


# Names of arms


def rename(draft: Draft, names: dict[str, str]) -> None:
    """Give arms other names."""
    draft.arms = [names.get(arm, arm) for arm in draft.arms]
    draft.written = {names.get(arm, arm): values for arm, values in draft.written.items()}
    draft.rows = [replace(row, arm=names.get(row.arm, row.arm)) for row in draft.rows]
    draft.baseline = names.get(draft.baseline, draft.baseline)


def an_arm_named_as_no_value(draw: random.Random, draft: Draft) -> None:
    """The flag names the other arms, so that this one is a name too."""
    name = draw.choice(("none", "null", "nan", "NA", "N/A", "-", "None", "inf"))
    rename(draft, {draw.choice(draft.arms): name})


def boolean_arms(draw: random.Random, draft: Draft) -> None:
    yes, no = draw.choice((("True", "False"), ("true", "false"), ("yes", "no"), ("on", "off")))
    rename(draft, {draft.arms[0]: no, draft.arms[1]: yes})
    draft.typed_arms = draw.random() < 0.5


def numeric_arms(draw: random.Random, draft: Draft) -> None:
    spelled = draw.choice((["1", "2", "3"], ["1.0", "2.0", "3.0"], ["01", "02", "03"], ["1e-3", "3e-4", "1e-4"]))
    rename(draft, dict(zip(draft.arms, spelled, strict=False)))
    draft.typed_arms = draw.random() < 0.5


def arms_that_are_equal_numbers(draw: random.Random, draft: Draft) -> None:
    """They share seeds, so that they cannot be one arm."""
    rename(draft, dict(zip(draft.arms[:2], draw.choice((("1", "1.0"), ("01", "1"), ("0.1", "0.10"))), strict=True)))


def one_arm_in_two_spellings(draw: random.Random, draft: Draft) -> None:
    """The arm has another spelling in the rows after its first, which looks the same and shares no seed with it."""
    name, other = draw.choice((("broad", "broad "), ("\u00e9l\u00e8ve", "e\u0301le\u0300ve")))
    rename(draft, {draft.arms[-1]: name})
    first = draft.rows[0].seed
    draft.rows = [replace(row, arm=other) if row.arm == name and row.seed != first else row for row in draft.rows]
    draft.other_spellings = {other: name}


def decomposed_names(draw: random.Random, draft: Draft) -> None:
    rename(draft, {draft.arms[-1]: unicodedata.normalize("NFD", "gro\u00dfz\u00fcgig-\u00e9l\u00e8ve")})


def names_that_only_look_alike(draw: random.Random, draft: Draft) -> None:
    """The same letters, composed in one arm and decomposed in the other."""
    rename(draft, {draft.arms[0]: "\u00e9l\u00e8ve", draft.arms[1]: unicodedata.normalize("NFD", "\u00e9l\u00e8ve")})
    draft.ambiguous = True


def blanks_around_names(draw: random.Random, draft: Draft) -> None:
    rename(draft, {draft.arms[-1]: draw.choice((" {}", "{} ", "  {}  ")).format(draft.arms[-1])})


def names_that_differ_in_a_blank(draw: random.Random, draft: Draft) -> None:
    rename(draft, {draft.arms[1]: f"{draft.arms[0]} "})
    draft.ambiguous = True


def delimiters_in_names(draw: random.Random, draft: Draft) -> None:
    rename(
        draft,
        {arm: draw.choice(("lr=1,wd=0 {}", "a;{}", "x+{}", "a|{}", '"{}"', "{}: b")).format(arm) for arm in draft.arms},
    )


def line_ends_in_names(draw: random.Random, draft: Draft) -> None:
    rename(draft, {draft.arms[-1]: draw.choice(("two\u2028lines", "two\x85lines", "two\x0blines"))})


def foreign_names(draw: random.Random, draft: Draft) -> None:
    rename(
        draft,
        {
            draft.arms[-1]: draw.choice(
                ("Gr\u00f6\u00dfe", "\u6771\u4eac", "\u05e9\u05dc\u05d5\u05dd", "\U0001f600", "\u03bb=0.1")
            )
        },
    )


# Seeds


def reseed(draft: Draft, seeds: list[str], meant: list[str] | None = None) -> None:
    """Spell the seeds otherwise; `meant` are their plain spellings."""
    old = list(dict.fromkeys(row.seed for row in draft.rows))
    spelled = dict(zip(old, seeds, strict=False))
    plain = dict(zip(old, meant or seeds, strict=False))
    draft.plain_seeds = dict(zip(seeds, meant or seeds, strict=True))
    draft.rows = [replace(row, seed=spelled[row.seed]) for row in draft.rows]
    draft.written = {
        arm: {plain[seed]: value for seed, value in values.items()} for arm, values in draft.written.items()
    }


def large_seeds(draw: random.Random, draft: Draft) -> None:
    reseed(draft, [str(draw.randrange(10**9, 2**32)) for _ in range(5)])


def seeds_above_the_exact_floats(draw: random.Random, draft: Draft) -> None:
    first = 2**53 + draw.randrange(1000)
    reseed(draft, [str(first + number) for number in range(5)])


def seeds_that_are_words(draw: random.Random, draft: Draft) -> None:
    reseed(draft, draw.choice((["s0", "s1", "s2", "s3", "s4"], ["ann", "bob", "eve", "joe", "zoe"])))


def hexadecimal_seeds(draw: random.Random, draft: Draft) -> None:
    reseed(draft, draw.choice((["0x1f", "0x20", "0xff", "0x2a", "0x07"], ["1e5", "a3f", "2e3", "0b1", "77c"])))


def seeds_that_pandas_made_floats(draw: random.Random, draft: Draft) -> None:
    reseed(draft, [f"{seed}.0" for seed in range(5)], [str(seed) for seed in range(5)])


def padded_seeds(draw: random.Random, draft: Draft) -> None:
    reseed(draft, ["00", "01", "02", "03", "04"], ["0", "1", "2", "3", "4"])


def one_arm_with_float_seeds(draw: random.Random, draft: Draft) -> None:
    """Two frames were concatenated, and one of them had a gap."""
    own = [draft.other_spellings.get(row.arm, row.arm) == draft.arms[-1] for row in draft.rows]
    draft.rows = [
        replace(row, seed=f"{row.seed}.0") if last else row for row, last in zip(draft.rows, own, strict=True)
    ]
    draft.plain_seeds = {f"{seed}.0": str(seed) for seed in range(5)}


# Values


def values_of(draft: Draft, row: Row) -> dict[str, float]:
    """{seed: value} of the arm that a row belongs to."""
    return draft.written[draft.other_spellings.get(row.arm, row.arm)]


def set_values(
    draw: random.Random,
    draft: Draft,
    metric: str,
    least: float,
    most: float,
    digits: int,
    spell: Callable[[float], str],
) -> None:
    """New numbers of `digits` decimals from `least` to `most`, the first below their middle and the second above."""
    draft.metric = metric
    for number, row in enumerate(draft.rows):
        middle = (least + most) / 2
        value = draw.uniform(*((least, middle), (middle, most), (least, most))[min(number, 2)])
        values_of(draft, row)[draft.plain_seeds.get(row.seed, row.seed)] = round(value, digits)
        row.value = spell(round(value, digits))


def decimal_commas(draw: random.Random, draft: Draft) -> None:
    set_values(draw, draft, "acc", 0.7, 0.95, 4, lambda value: f"{value:.4f}".replace(".", ","))


def decimal_commas_that_may_be_thousands(draw: random.Random, draft: Draft) -> None:
    set_values(draw, draft, "score", 2.0, 9.0, 3, lambda value: f"{value:.3f}".replace(".", ","))
    draft.ambiguous = True


def unquoted_decimal_commas(draw: random.Random, draft: Draft) -> None:
    """In a comma-separated file, each row then has one cell more than the header."""
    decimal_commas(draw, draft)
    if draft.suffix == "csv" and draft.delimiter == "," and not draft.quote_all:
        draft.unquoted = draft.ambiguous = True


def thousands_commas(draw: random.Random, draft: Draft) -> None:
    """Such as `1,067` beside `987`."""
    set_values(draw, draft, "perplexity", 900, 1098, 0, lambda value: f"{value:,.0f}")


def thousands_commas_and_points(draw: random.Random, draft: Draft) -> None:
    set_values(draw, draft, "perplexity", 900, 12900, 2, lambda value: f"{value:,.2f}")


def thousands_points(draw: random.Random, draft: Draft) -> None:
    """Such as `1.167` beside `987`."""
    set_values(draw, draft, "perplexity", 900, 1290, 0, lambda value: f"{value:,.0f}".replace(",", "."))
    draft.ambiguous = True


def thousands_points_and_commas(draw: random.Random, draft: Draft) -> None:
    exchanged = str.maketrans(",.", ".,")
    set_values(draw, draft, "perplexity", 900, 12900, 2, lambda value: f"{value:,.2f}".translate(exchanged))


def thousands_apostrophes(draw: random.Random, draft: Draft) -> None:
    mark = draw.choice(("'", "\u2019"))
    set_values(draw, draft, "perplexity", 900, 12900, 2, lambda value: f"{value:,.2f}".replace(",", mark))


def thousands_spaces(draw: random.Random, draft: Draft) -> None:
    space, point = draw.choice((" ", "\u00a0", "\u2009", "\u202f")), draw.choice((".", ","))
    spelled = str.maketrans({",": space, ".": point})
    set_values(draw, draft, "perplexity", 900, 12900, 2, lambda value: f"{value:,.2f}".translate(spelled))


def minus_signs(draw: random.Random, draft: Draft) -> None:
    set_values(draw, draft, "log_likelihood", -3, -2, 4, lambda value: f"{value:.4f}".replace("-", "\u2212"))


def scientific_commas(draw: random.Random, draft: Draft) -> None:
    set_values(draw, draft, "mse", 0.0001, 0.0009, 7, lambda value: f"{value:.3e}".replace(".", ","))


def scientific(draw: random.Random, draft: Draft) -> None:
    spell = draw.choice(("{:.4e}", "{:.4E}", "{:g}"))
    set_values(draw, draft, "mse", 0.00001, 0.00009, 9, spell.format)


def bare_points(draw: random.Random, draft: Draft) -> None:
    """`.5` and `5.`"""
    set_values(draw, draft, "score", 0.1, 9, 1, lambda value: f"{value:.1f}".removesuffix("0").removeprefix("0"))


def signs_and_blanks(draw: random.Random, draft: Draft) -> None:
    spell = draw.choice(("+{:.4f}", " {:.4f}", "{:.4f} ", "  {:.4f}  "))
    set_values(draw, draft, "acc", 0.7, 0.95, 4, spell.format)


def percents(draw: random.Random, draft: Draft) -> None:
    """81.2% may be read as 81.2 or as 0.812."""
    spell = draw.choice(("{:.2f}%", "{:.2f} %", "{:.2f}\u00a0%"))
    set_values(draw, draft, "acc", 70, 95, 2, spell.format)
    draft.scales.append(0.01)


def percents_in_some_cells(draw: random.Random, draft: Draft) -> None:
    set_values(draw, draft, "acc", 70, 95, 2, "{:.2f}".format)
    for row in draw.sample(draft.rows, len(draft.rows) // 2):
        row.value += "%"
    draft.ambiguous = True


def percents_in_one_arm(draw: random.Random, draft: Draft) -> None:
    set_values(draw, draft, "acc", 0.7, 0.95, 4, "{:.4f}".format)
    for row in draft.rows:
        if draft.other_spellings.get(row.arm, row.arm) == draft.arms[1]:
            row.value = f"{float(row.value) * 100:.2f}"
    draft.ambiguous = True


def diverged_runs(draw: random.Random, draft: Draft) -> None:
    metric, spelled = draw.choice(("acc", "val_loss")), draw.choice(("nan", "NaN", "inf", "Infinity", "-inf", "-nan"))
    set_values(draw, draft, metric, 0.7, 0.95, 4, "{:.4f}".format)
    row = draw.choice(draft.rows)
    row.value = spelled
    values_of(draft, row)[draft.plain_seeds.get(row.seed, row.seed)] = float(spelled)


def high_precision(draw: random.Random, draft: Draft) -> None:
    set_values(draw, draft, "acc", 0.7, 0.95, 16, repr)


# Gaps and repeated rows


def empty_cells(draw: random.Random, draft: Draft) -> None:
    row = draw.choice(draft.rows)
    row.value = draw.choice(NO_VALUE)
    values_of(draft, row)[draft.plain_seeds.get(row.seed, row.seed)] = float("nan")


def unshared_seeds(draw: random.Random, draft: Draft) -> None:
    row = draw.choice(draft.rows)
    draft.rows.remove(row)
    del values_of(draft, row)[draft.plain_seeds.get(row.seed, row.seed)]


def a_row_twice(draw: random.Random, draft: Draft) -> None:
    draft.rows.append(replace(draw.choice(draft.rows)))


def rows_that_contradict(draw: random.Random, draft: Draft) -> None:
    row = draw.choice(draft.rows)
    other = draw.choice([other.value for other in draft.rows if other.arm != row.arm])
    draft.rows.append(replace(row, value=other))
    draft.ambiguous |= other != row.value


# Shapes


def logged_steps(draw: random.Random, draft: Draft) -> None:
    """Lightning's CSVLogger: rows of training and of validation are apart, and the last value logged is meant.

    A run without a value logged none.
    """
    spell = draw.choice((str, "{:,}".format, "{}.0".format))
    rows = []
    for row in {(row.arm, row.seed, row.value): row for row in draft.rows}.values():
        for step in (500, 1000, 1500):
            steps = {"epoch": str(step // 500), "step": spell(step)}
            rows.append(replace(row, value="", more={**row.more, **steps, "train_loss": f"{draw.random():.4f}"}))
            value = row.value if step == 1500 or row.value in NO_VALUE else draw.choice(draft.rows).value
            rows.append(replace(row, value=value, more={**row.more, **steps, "train_loss": ""}))
    draft.rows = rows
    draft.flags["--step"] = "step"


def steps_in_any_order(draw: random.Random, draft: Draft) -> None:
    logged_steps(draw, draft)
    draft.shuffled = True


def steps_of_whole_rows(draw: random.Random, draft: Draft) -> None:
    """Every row has a value and a step, such as 500, 1,000 and 1,500."""
    spell = draw.choice((str, "{:,}".format, "{}.0".format, "{:.1e}".format))
    earlier = [row.value for row in draft.rows]
    rows = {(row.arm, row.seed, row.value): row for row in draft.rows}.values()
    draft.rows = [
        replace(
            row,
            value=row.value if step == 1500 or row.value in NO_VALUE else draw.choice(earlier),
            more={**row.more, "step": spell(step)},
        )
        for row in rows
        for step in (500, 1000, 1500)
    ]
    draft.flags["--step"] = "step"


def rows_of_two_splits(draw: random.Random, draft: Draft) -> None:
    others = [
        replace(row, value=draw.choice(draft.rows).value, more={**row.more, "split": "dev"}) for row in draft.rows
    ]
    draft.rows = [replace(row, more={**row.more, "split": "test"}) for row in draft.rows] + others
    draft.flags["--where"] = "split=test"


def run_names(draw: random.Random, draft: Draft) -> None:
    """W&B's export of its table of runs."""
    for row in draft.rows:
        row.more = {**row.more, "Name": f"{row.arm}-s{row.seed}", "State": "finished"}
        row.arm = row.seed = ""
    draft.nested, draft.flags["--name"] = False, "{arm}-s{seed}"


def chart_export(draw: random.Random, draft: Draft) -> None:
    draft.chart, draft.suffix = True, "csv"
    draft.delimiter = draft.delimiter if draft.delimiter in ",;" else ","
    draft.nested, draft.flags["--name"] = False, "{arm}-s{seed}"


def two_arm_columns(draw: random.Random, draft: Draft) -> None:
    join_columns(draft, {arm: ("adam", arm) for arm in draft.arms}, draft.arms[0])


def two_arm_columns_that_join_alike(draw: random.Random, draft: Draft) -> None:
    """a, b+c and a+b, c: two arms, whatever their names are in the table."""
    parts = [("a", "b+c"), ("a+b", "c"), ("d", "e")]
    join_columns(draft, dict(zip(draft.arms, parts, strict=False)), draft.arms[-1])
    draft.ambiguous |= len(draft.arms) == 2  # --baseline a+b+c names both


def join_columns(draft: Draft, parts: dict[str, tuple[str, str]], baseline: str) -> None:
    """Name each arm in two columns; the command line joins them by a plus sign."""
    for row in draft.rows:
        first, second = parts[draft.other_spellings.get(row.arm, row.arm)]
        row.more = {"optimizer": first, "data": second, **row.more}
        row.arm = ""
    draft.written = {parts[str(arm)]: values for arm, values in draft.written.items()}
    draft.baseline = "+".join(parts[baseline])
    draft.flags["--arm"] = "optimizer,data"


# Columns that nobody needs


def add_column(draft: Draft, name: str, cell: Callable[[], str]) -> None:
    for row in draft.rows:
        row.more = {**row.more, name: cell()}


def notes_with_line_ends(draw: random.Random, draft: Draft) -> None:
    add_column(draft, "notes", lambda: draw.choice(("\n", "\r\n", *LINE_SEPARATORS)).join((phrase(draw), phrase(draw))))


def notes_with_quotes(draw: random.Random, draft: Draft) -> None:
    add_column(draft, "notes", lambda: draw.choice(('said "yes", then no', '5" screen', "it's; fine", "a\tb", '"')))


def configs(draw: random.Random, draft: Draft) -> None:
    add_column(draft, "config", lambda: json.dumps({"lr": draw.random(), "layers": [1, 2], "name": phrase(draw)}))


def very_long_cells(draw: random.Random, draft: Draft) -> None:
    add_column(draft, "log", lambda: "x" * draw.choice((131_071, 131_073, 200_000)))


def other_metrics(draw: random.Random, draft: Draft) -> None:
    add_column(draft, "runtime", lambda: draw.choice(("1:02:03", "3h 20m", "12.5", "")))
    add_column(draft, "date", lambda: "2024-05-01T12:00:00Z")


def an_index_without_a_name(draw: random.Random, draft: Draft) -> None:
    for number, row in enumerate(draft.rows):
        row.more = {**row.more, "": str(number)}


def any_order(draw: random.Random, draft: Draft) -> None:
    draft.shuffled = True


def odd_name_of_the_metric(draw: random.Random, draft: Draft) -> None:
    draft.metric = draw.choice(("WER (dev)", "eval/accuracy", "metrics.acc", "acc\u00fa", "test acc"))


def blanks_in_the_header(draw: random.Random, draft: Draft) -> None:
    draft.padded_header = True


# Bytes


def byte_order_mark(draw: random.Random, draft: Draft) -> None:
    draft.encoding = "utf-8-sig"


def utf_16(draw: random.Random, draft: Draft) -> None:
    draft.encoding = "utf-16"


def latin_1(draw: random.Random, draft: Draft) -> None:
    draft.encoding = "latin-1"


def windows_line_ends(draw: random.Random, draft: Draft) -> None:
    draft.newline = "\r\n"


def old_mac_line_ends(draw: random.Random, draft: Draft) -> None:
    draft.newline = "\r"


def blank_lines_at_the_end(draw: random.Random, draft: Draft) -> None:
    draft.last_lines = draft.newline * draw.randint(1, 3)


def trailing_delimiters(draw: random.Random, draft: Draft) -> None:
    draft.line_end = draft.delimiter


AXES = (
    (semicolons, sep_line, tabs, pipes, json_lines, nested_json_lines, all_cells_quoted),
    (
        an_arm_named_as_no_value, boolean_arms, numeric_arms, arms_that_are_equal_numbers, one_arm_in_two_spellings,
        decomposed_names, names_that_only_look_alike, blanks_around_names, names_that_differ_in_a_blank,
        delimiters_in_names, line_ends_in_names, foreign_names,
    ),
    (
        large_seeds, seeds_above_the_exact_floats, seeds_that_are_words, hexadecimal_seeds,
        seeds_that_pandas_made_floats, padded_seeds, one_arm_with_float_seeds,
    ),
    (
        decimal_commas, decimal_commas_that_may_be_thousands, unquoted_decimal_commas, thousands_commas,
        thousands_commas_and_points, thousands_points, thousands_points_and_commas, thousands_apostrophes,
        thousands_spaces, minus_signs, scientific_commas, scientific, bare_points, signs_and_blanks, percents,
        percents_in_some_cells, percents_in_one_arm, diverged_runs, high_precision,
    ),
    (empty_cells, unshared_seeds, a_row_twice, rows_that_contradict),
    (
        logged_steps, steps_in_any_order, steps_of_whole_rows, rows_of_two_splits, run_names, chart_export,
        two_arm_columns, two_arm_columns_that_join_alike,
    ),
    (
        notes_with_line_ends, notes_with_quotes, configs, very_long_cells, other_metrics, an_index_without_a_name,
        any_order, odd_name_of_the_metric, blanks_in_the_header,
    ),
    (
        byte_order_mark, utf_16, latin_1, windows_line_ends, old_mac_line_ends, blank_lines_at_the_end,
        trailing_delimiters,
    ),
)  # fmt: skip
