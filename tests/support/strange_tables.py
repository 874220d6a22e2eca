"""Examples of tasks in the files that people have: labels, tags and questions."""

from __future__ import annotations

import json
import random
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import yaml
from strange_case import INVISIBLE, LINE_SEPARATORS, SPACES, StrangeFile, delimited, parquet, phrase, vary

TABLE = "paribus.tasks.tables.table."
SPLITS = {"train": "train", "validation": "test"}


def config_of(target: str, **settings: Any) -> dict[str, Any]:
    """The YAML mapping of a task as `docs/own-task.md` describes it, without its path."""
    return {
        "_target_": TABLE + target, "name": "strange", "splits": dict(SPLITS), "max_train": None,
        "max_validation": None, **settings,
    }  # fmt: skip


# Labels


@dataclass
class Labels:
    """Rows of (text, class or None), how each class is spelled in the file, and the layout of the file."""

    rows: list[tuple[str, str | None]]
    classes: list[str]
    bare: bool  # the config has the classes without quotes: YAML makes 1 a number and no a boolean
    spelled: dict[str | None, Any]  # in CSV and TSV the str of it
    ambiguous: bool = False
    suffix: str = "csv"
    delimiter: str = ","
    newline: str = "\n"
    encoding: str = "utf-8"
    literal_quotes: bool = False
    names: tuple[str, str] = ("text", "label")
    more: dict[str, Callable[[int], str]] = field(default_factory=dict)
    shuffled: bool = False
    last_lines: str = ""


def label_file(draw: random.Random) -> StrangeFile:
    """A file per split with six texts each, and 1 to 4 variations."""
    classes = ["bad", "fine", "good"]
    rows = [(f"{phrase(draw)} {number}", classes[number % 3]) for number in range(12)]
    draft = Labels(rows, classes, draw.random() < 0.5, {name: name for name in [*classes, None]} | {None: ""})
    why = vary(draw, draft, LABEL_AXES)
    written = {"train": draft.rows[:6], "validation": draft.rows[6:]}
    order = [0, 1, *range(2, 2 + len(draft.more))]
    if draft.shuffled:
        draw.shuffle(order)
    files = {f"{SPLITS[split]}.{draft.suffix}": label_content(draft, rows, order) for split, rows in written.items()}
    columns = dict(zip(("text", "label"), draft.names, strict=True))
    names = [yaml.safe_load(name) for name in draft.classes] if draft.bare else draft.classes
    config = config_of("LabelTable", columns=columns, classes=names, metrics=["accuracy"])
    return StrangeFile("labels", files, config, (), written, draft.ambiguous, why, tuple(draft.classes))


def label_content(draft: Labels, rows: list[tuple[str, str | None]], order: list[int]) -> bytes:
    """One file."""
    lines: list[list[Any]] = [[*draft.names, *draft.more]]
    for number, (text, label) in enumerate(rows):
        lines.append([text, draft.spelled[label], *(cell(number) for cell in draft.more.values())])
    lines = [[line[column] for column in order] for line in lines]
    head, body = lines[0], lines[1:]
    if draft.suffix == "parquet":
        import pyarrow as pa

        columns = {name: pa.array([line[at] for line in body]) for at, name in enumerate(head)}
        label = columns[draft.names[1]]
        if pa.types.is_string(label.type):
            columns[draft.names[1]] = label.dictionary_encode()
        return parquet(columns)
    if draft.suffix == "jsonl":
        objects = [json.dumps(dict(zip(head, line, strict=True)), ensure_ascii=False) for line in body]
        text = "".join(line + draft.newline for line in objects)
    elif draft.literal_quotes:
        text = "".join(draft.delimiter.join(map(str, line)) + draft.newline for line in lines)
    else:
        text = delimited([list(map(str, line)) for line in lines], draft.delimiter, draft.newline)
    return (text + draft.last_lines).encode(draft.encoding)


def tsv(draw: random.Random, draft: Labels) -> None:
    draft.suffix, draft.delimiter = "tsv", "\t"


def csv_with_semicolons(draw: random.Random, draft: Labels) -> None:
    draft.delimiter = ";"


def json_lines(draw: random.Random, draft: Labels) -> None:
    draft.suffix, draft.spelled[None] = "jsonl", None


def parquet_file(draw: random.Random, draft: Labels) -> None:
    draft.suffix, draft.spelled[None] = "parquet", None


def call(draft: Labels, names: list[str], spelled: list[Any] | None = None) -> None:
    """Give the classes other names, and spell them in the file as `spelled` says."""
    new = dict(zip(draft.classes, names, strict=False))
    draft.rows = [(text, label and new[label if label in new else draft.classes[0]]) for text, label in draft.rows]
    draft.spelled = dict(zip(names, spelled or names, strict=True)) | {None: draft.spelled[None]}
    draft.classes = names


def true_and_false(draw: random.Random, draft: Labels) -> None:
    """JSON and parquet have booleans of their own."""
    typed = draft.suffix in ("jsonl", "parquet") and draw.random() < 0.7
    names = ["false", "true"] if typed else draw.choice((["false", "true"], ["False", "True"], ["no", "yes"]))
    call(draft, names, [False, True] if typed else None)


def booleans_for_words(draw: random.Random, draft: Labels) -> None:
    """Which of the two classes is true?"""
    call(draft, ["match", "mismatch"], [False, True])
    draft.ambiguous = True


def minus_one_to_one(draw: random.Random, draft: Labels) -> None:
    typed = draft.suffix in ("jsonl", "parquet")
    call(draft, ["-1", "0", "1"], [-1, 0, 1] if typed else None)


def one_to_three(draw: random.Random, draft: Labels) -> None:
    typed = draft.suffix in ("jsonl", "parquet")
    call(draft, ["1", "2", "3"], [1, 2, 3] if typed else None)


def zero_and_one(draw: random.Random, draft: Labels) -> None:
    typed = draft.suffix in ("jsonl", "parquet")
    call(draft, ["0", "1"], [0, 1] if typed else None)


def names_in_another_order(draw: random.Random, draft: Labels) -> None:
    """The class `1` has the number 0, but a cell that spells a class is that class."""
    typed = draft.suffix in ("jsonl", "parquet")
    call(draft, ["1", "0"], [1, 0] if typed else None)


def padded_numbers(draw: random.Random, draft: Labels) -> None:
    call(draft, ["01", "02", "03"])


def numbers_that_pandas_made_floats(draw: random.Random, draft: Labels) -> None:
    typed = draft.suffix in ("jsonl", "parquet")
    call(draft, ["1", "2", "3"], [1.0, 2.0, 3.0] if typed else ["1.0", "2.0", "3.0"])


def classes_with_points(draw: random.Random, draft: Labels) -> None:
    call(draft, ["1.0", "1.5", "2.0"], draw.choice((None, [1.0, 1.5, 2.0])))


def class_numbers(draw: random.Random, draft: Labels) -> None:
    call(draft, ["bad", "fine", "good"], [0, 1, 2])


def class_numbers_from_one(draw: random.Random, draft: Labels) -> None:
    """The docs say from 0: 1 and 2 are in range, 3 is not."""
    call(draft, ["bad", "fine", "good"], [1, 2, 3])
    draft.ambiguous = True


def classes_of_several_words(draw: random.Random, draft: Labels) -> None:
    call(draft, ["very bad", "so, so", "good; really"])


def classes_named_as_no_value(draw: random.Random, draft: Labels) -> None:
    call(draft, draw.choice((["none", "some", "all"], ["null", "one", "two"], ["NA", "EU", "AS"], ["nan", "inf", "0"])))


def decomposed_classes(draw: random.Random, draft: Labels) -> None:
    names = ["\u00e9l\u00e8ve", "ma\u00eetre", "\u00fcber"]
    call(draft, names, [unicodedata.normalize("NFD", name) for name in names])


def blanks_around_labels(draw: random.Random, draft: Labels) -> None:
    draft.spelled = {
        name: f" {cell} " if isinstance(cell, str) and cell else cell for name, cell in draft.spelled.items()
    }


def rows_without_label(draw: random.Random, draft: Labels) -> None:
    """An empty cell or null; such rows are not examples."""
    draft.rows = [(text, None if number % 4 == 1 else label) for number, (text, label) in enumerate(draft.rows)]


def minus_one_for_no_label(draw: random.Random, draft: Labels) -> None:
    """Unless a class has that name."""
    if "-1" not in draft.classes and True not in draft.spelled.values():
        rows_without_label(draw, draft)
        texts = any(isinstance(cell, str) for cell in draft.spelled.values())
        draft.spelled[None] = "-1" if texts else -1


def odd_texts(make: Callable[[random.Random], str]) -> Callable[[random.Random, Labels], None]:
    """A variation that puts something odd into every second text."""

    def variation(draw: random.Random, draft: Labels) -> None:
        draft.rows = [
            (text + make(draw) + text if n % 2 else text, label) for n, (text, label) in enumerate(draft.rows)
        ]

    return variation


def named(name: str, make: Callable[[random.Random], str]) -> Callable[[random.Random, Labels], None]:
    variation = odd_texts(make)
    variation.__name__ = name
    return variation


def texts_of_blanks(draw: random.Random, draft: Labels) -> None:
    draft.rows[draw.randrange(12)] = (draw.choice(("   ", "\u3000\u3000", "\u00a0")), draft.rows[0][1])


def blanks_around_texts(draw: random.Random, draft: Labels) -> None:
    draft.rows = [(f"  {text} ", label) for text, label in draft.rows]


def texts_that_look_like_values(draw: random.Random, draft: Labels) -> None:
    texts = ["null", "NA", "nan", "None", "true", "1.50", "007", "1e5", "-", "[]", "2024-01-02", "N/A"]
    draft.rows = [(text, label) for text, (_, label) in zip(texts, draft.rows, strict=True)]


def literal_quotes(draw: random.Random, draft: Labels) -> None:
    """A TSV whose program knows no quoting: a quote is a letter."""
    if draft.suffix in ("csv", "tsv"):
        draft.suffix, draft.delimiter, draft.literal_quotes = "tsv", "\t", True
        texts = [text.replace("\t", " ").replace("\n", " ").replace("\r", " ") for text, _ in draft.rows]
        texts[1], texts[3], texts[8] = f'"{texts[1]}', f'a 5" {texts[3]}', f'{texts[8]} "'
        draft.rows = [(text, label) for text, (_, label) in zip(texts, draft.rows, strict=True)]


def very_long_texts(draw: random.Random, draft: Labels) -> None:
    draft.rows[0] = ("word " * 30_000 + "end", draft.rows[0][1])


def other_columns(draw: random.Random, draft: Labels) -> None:
    draft.more = {"id": str, "comment": lambda number: f"{number}\u2028a,b\tc"}
    if draft.literal_quotes:
        draft.more = {"id": str}
    draft.shuffled = True


def other_names_of_columns(draw: random.Random, draft: Labels) -> None:
    draft.names = draw.choice(
        (
            ("Review Text", "Rating"),
            ("sentence", "gold_label"),
            ("label_text", "text_label"),
            ("texte", "\u00e9tiquette"),
        )
    )


def byte_order_mark(draw: random.Random, draft: Any) -> None:
    draft.encoding = "utf-8-sig"


def utf_16(draw: random.Random, draft: Any) -> None:
    draft.encoding = "utf-16"


def windows_line_ends(draw: random.Random, draft: Any) -> None:
    draft.newline = "\r\n"


def blank_lines_at_the_end(draw: random.Random, draft: Any) -> None:
    draft.last_lines = draft.newline * draw.randint(1, 3)


LABEL_AXES = (
    (tsv, csv_with_semicolons, json_lines, parquet_file),
    (
        true_and_false, booleans_for_words, minus_one_to_one, one_to_three, zero_and_one, names_in_another_order,
        padded_numbers, numbers_that_pandas_made_floats, classes_with_points, class_numbers, class_numbers_from_one,
        classes_of_several_words, classes_named_as_no_value, decomposed_classes, blanks_around_labels,
    ),
    (rows_without_label, minus_one_for_no_label),
    (
        named("line_separators_in_texts", lambda draw: draw.choice(("\n", "\r\n", "\n\n", *LINE_SEPARATORS))),
        named("odd_spaces_in_texts", lambda draw: draw.choice((*SPACES, "\t", "  "))),
        named("invisible_characters_in_texts", lambda draw: draw.choice(INVISIBLE)),
        named("delimiters_in_texts", lambda draw: draw.choice((",", ";", '"', '", "', "|", "\\", "\\n"))),
        texts_of_blanks, blanks_around_texts, texts_that_look_like_values, literal_quotes, very_long_texts,
    ),
    (other_columns, other_names_of_columns),
    (byte_order_mark, utf_16, windows_line_ends, blank_lines_at_the_end),
)  # fmt: skip


# Tags


@dataclass
class Tags:
    """Sentences of (word, tag), and the layout of the file; `before` and `between` are columns that nobody asks for."""

    sentences: list[list[tuple[str, str]]]
    classes: list[str]
    ambiguous: bool = False
    suffix: str = "conll"
    separator: str = " "
    newline: str = "\n"
    encoding: str = "utf-8"
    before: Callable[[int], list[str]] = lambda number: []
    between: Callable[[str], list[str]] = lambda tag: []
    head: Callable[[int, str], list[str]] = lambda number, text: []  # lines before a sentence
    first_lines: list[str] = field(default_factory=list)
    border: str = ""  # the line between two sentences
    last_lines: str | None = None  # None: as after every sentence
    numbers: bool = False  # JSON lines hold the numbers of tags
    names: tuple[str, str] = ("words", "tags")


def tag_file(draw: random.Random) -> StrangeFile:
    """A file per split with three sentences each, and 1 to 4 variations."""
    tags = ["O", "B-per", "I-per", "B-loc", "I-loc"]
    draft = Tags([], tags)
    for _ in range(6):
        words = phrase(draw, 3, 7).split()
        first, kind = draw.randrange(len(words)), draw.choice(("per", "loc"))
        marks = {first: f"B-{kind}", first + 1: f"I-{kind}"}
        draft.sentences.append([(word, marks.get(number, "O")) for number, word in enumerate(words)])
    why = vary(draw, draft, TAG_AXES)
    written = {"train": draft.sentences[:3], "validation": draft.sentences[3:]}
    content = conll if draft.suffix == "conll" else tag_lines
    files = {
        f"{SPLITS[split]}.{draft.suffix}": content(draft, written[split]).encode(draft.encoding) for split in written
    }
    columns = {"words": draft.names[0], "tags": draft.names[1]}
    config = config_of("TagTable", columns=columns, classes=draft.classes, metrics=["f1"])
    meant = {split: [tuple(map(list, zip(*pairs, strict=True))) for pairs in written[split]] for split in written}
    return StrangeFile("tags", files, config, (), meant, draft.ambiguous, why, tuple(draft.classes))


def conll(draft: Tags, sentences: list[list[tuple[str, str]]]) -> str:
    """One word per line, an empty line after each sentence."""
    blocks = []
    for number, pairs in enumerate(sentences):
        lines = draft.head(number, " ".join(word for word, _ in pairs))
        for at, (word, tag) in enumerate(pairs, start=1):
            cells = [*draft.before(at), word, *draft.between(tag), tag]
            lines.append(draft.separator.join(cells))
        blocks.append("".join(line + draft.newline for line in lines))
    first = "".join(line + draft.newline for line in draft.first_lines)
    text = first + (draft.border + draft.newline).join(blocks)
    return text + draft.newline if draft.last_lines is None else text.removesuffix(draft.newline) + draft.last_lines


def tag_lines(draft: Tags, sentences: list[list[tuple[str, str]]]) -> str:
    """One object per line."""
    lines = []
    for pairs in sentences:
        tags = [draft.classes.index(tag) if draft.numbers else tag for _, tag in pairs]
        row = {draft.names[0]: [word for word, _ in pairs], draft.names[1]: tags}
        lines.append(json.dumps(row, ensure_ascii=False) + draft.newline)
    return "".join(lines)


def tabs(draw: random.Random, draft: Tags) -> None:
    draft.separator = "\t"


def several_blanks(draw: random.Random, draft: Tags) -> None:
    draft.separator = "   "


def tags_in_json_lines(draw: random.Random, draft: Tags) -> None:
    draft.suffix, draft.numbers = "jsonl", draw.random() < 0.5


def other_names_of_lists(draw: random.Random, draft: Tags) -> None:
    draft.suffix, draft.names = "jsonl", ("tokens", "ner_tags")


def change_words(draft: Tags, change: Callable[[str], str]) -> None:
    """Change the first word of every sentence."""
    draft.sentences = [[(change(pairs[0][0]), pairs[0][1]), *pairs[1:]] for pairs in draft.sentences]


def odd_spaces_in_words(draw: random.Random, draft: Tags) -> None:
    change_words(draft, lambda word: f"10{draw.choice(SPACES)}000")


def line_separators_in_words(draw: random.Random, draft: Tags) -> None:
    change_words(draft, lambda word: f"{word}{draw.choice(LINE_SEPARATORS)}x")


def blanks_in_words(draw: random.Random, draft: Tags) -> None:
    """Only tabs and JSON can hold them."""
    draft.separator = "\t"
    change_words(draft, lambda word: f"{word} York")


def invisible_characters(draw: random.Random, draft: Tags) -> None:
    change_words(draft, lambda word: draw.choice(INVISIBLE) + word if word[0] != "\ufeff" else word)
    draft.sentences[0][0] = ("plain", draft.sentences[0][0][1])  # nothing that looks like a byte order mark
    draft.sentences[3][0] = ("plain", draft.sentences[3][0][1])


def words_that_look_like_marks(draw: random.Random, draft: Tags) -> None:
    """A number sign with a tag is a word, and so is a quote."""
    change_words(draft, lambda word: draw.choice(("#", "#1", '"', "--", "'", "_", "null", "NA", "1", "1-2")))


def comments(draw: random.Random, draft: Tags) -> None:
    draft.head = lambda number, text: [f"# sent_id = {number}", f"# text = {text}"]


def document_marks(draw: random.Random, draft: Tags) -> None:
    draft.first_lines = [draft.separator.join(["-DOCSTART-", *(["-X-", "O"] if draw.random() < 0.5 else []), "O"]), ""]


def part_of_speech_columns(draw: random.Random, draft: Tags) -> None:
    """Words first and tags last, as in CoNLL-2003; the classes are those of the last column only."""
    draft.between = lambda tag: ["NN", "B-NP"]


def an_index_first(draw: random.Random, draft: Tags) -> None:
    draft.before = lambda number: [str(number)]


def two_columns_of_tags(draw: random.Random, draft: Tags) -> None:
    """Nested names, as in GermEval: both columns hold the classes."""
    draft.between = lambda tag: ["O" if tag != "O" else "B-loc"]
    draft.ambiguous |= draft.suffix == "conll"


def several_blank_lines(draw: random.Random, draft: Tags) -> None:
    draft.border = draft.newline * draw.randint(1, 3)


def borders_of_blanks(draw: random.Random, draft: Tags) -> None:
    draft.border = draw.choice((" ", "  ", "\t"))


def no_final_newline(draw: random.Random, draft: Tags) -> None:
    draft.last_lines = ""


def blank_lines_after_all(draw: random.Random, draft: Tags) -> None:
    draft.last_lines = draft.newline * 4


def a_word_without_tag(draw: random.Random, draft: Tags) -> None:
    """The line has one cell."""
    if draft.suffix == "conll":
        draft.first_lines, draft.ambiguous = ["alone", ""], True


def an_empty_word(draw: random.Random, draft: Tags) -> None:
    if draft.suffix == "conll":
        draft.separator, draft.ambiguous = "\t", True
        change_words(draft, lambda word: "")


TAG_AXES = (
    (byte_order_mark, windows_line_ends, utf_16),
    (tabs, several_blanks, tags_in_json_lines, other_names_of_lists),
    (
        odd_spaces_in_words, line_separators_in_words, blanks_in_words, invisible_characters,
        words_that_look_like_marks, an_empty_word,
    ),
    (comments, document_marks, a_word_without_tag),
    (part_of_speech_columns, an_index_first, two_columns_of_tags),
    (several_blank_lines, borders_of_blanks, no_final_newline, blank_lines_after_all),
)  # fmt: skip


# Questions


@dataclass
class Questions:
    """Rows of a question, a context and answers as (start, text); `starts` spells an offset."""

    rows: list[tuple[str, str, list[tuple[int, str]]]]
    answerless: bool = False
    ambiguous: bool = False
    layout: str = "flat"  # flat, pairs or nested
    newline: str = "\n"
    encoding: str = "utf-8"
    ascii: bool = False
    start: Callable[[str, int], Any] = lambda context, start: start
    no_answers: Any = field(default_factory=lambda: {"text": [], "answer_start": []})
    last_lines: str = ""


def question_file(draw: random.Random) -> StrangeFile:
    """A file per split with three questions each, and 1 to 4 variations."""
    rows = []
    for number in range(6):
        context = f"{phrase(draw)} Ann went to Rome {phrase(draw)} in 19{number}5."
        rows.append((f"Where did Ann go {number}?", context, [(context.index("Rome"), "Rome")]))
    draft = Questions(rows)
    why = vary(draw, draft, QUESTION_AXES)
    written = {"train": draft.rows[:3], "validation": draft.rows[3:]}
    suffix, content = ("json", nested) if draft.layout == "nested" else ("jsonl", flat)
    files = {f"{SPLITS[split]}.{suffix}": content(draft, written[split]).encode(draft.encoding) for split in written}
    columns = {"question": "question", "context": "context", "answers": "answers"}
    settings = {"answerless": True} if draft.answerless else {}
    config = config_of("QuestionTable", columns=columns, metrics=["f1", "em"], **settings)
    return StrangeFile("questions", files, config, (), written, draft.ambiguous, why)


def flat(draft: Questions, rows: list[tuple[str, str, list[tuple[int, str]]]]) -> str:
    """One question per line."""
    lines = []
    for number, (question, context, answers) in enumerate(rows):
        starts = [draft.start(context, start) for start, _ in answers]
        lists = {"text": [text for _, text in answers], "answer_start": starts}
        found: Any = lists if answers else draft.no_answers
        if draft.layout == "pairs" and answers:
            found = [{"text": text, "answer_start": start} for text, start in zip(lists["text"], starts, strict=True)]
        row = {"id": str(number), "question": question, "context": context, "answers": found}
        lines.append(json.dumps(row, ensure_ascii=draft.ascii) + draft.newline)
    return "".join(lines) + draft.last_lines


def nested(draft: Questions, rows: list[tuple[str, str, list[tuple[int, str]]]]) -> str:
    """The file of SQuAD itself: articles, paragraphs, questions."""
    paragraphs = []
    for number, (question, context, answers) in enumerate(rows):
        found = [{"text": text, "answer_start": draft.start(context, start)} for start, text in answers]
        asked = {"id": str(number), "question": question, "answers": found, "is_impossible": not answers}
        paragraphs.append({"context": context, "qas": [asked]})
    return json.dumps({"version": "v2.0", "data": [{"title": "t", "paragraphs": paragraphs}]}, ensure_ascii=draft.ascii)


def pairs_of_text_and_start(draw: random.Random, draft: Questions) -> None:
    draft.layout = "pairs"


def nested_json(draw: random.Random, draft: Questions) -> None:
    draft.layout = "nested"


def before_all(draft: Questions, added: str) -> None:
    """Put a text before every context; the offsets grow by its characters."""
    draft.rows = [
        (question, added + context, [(start + len(added), text) for start, text in answers])
        for question, context, answers in draft.rows
    ]


def emojis_before(draw: random.Random, draft: Questions) -> None:
    before_all(draft, draw.choice(("\U0001f600 ", "\U0001f468\u200d\U0001f469\u200d\U0001f467 x ", "\U0001d4d0 ")))


def decomposed_letters_before(draw: random.Random, draft: Questions) -> None:
    before_all(draft, unicodedata.normalize("NFD", "\u00e9l\u00e8ve "))


def blanks_and_lines_before(draw: random.Random, draft: Questions) -> None:
    before_all(draft, draw.choice(("  ", "\n", "a\r\nb ", "a\u2028b  c ", "\t", "\ufeff", "\u3000")))


def float_offsets(draw: random.Random, draft: Questions) -> None:
    draft.start = lambda context, start: float(start)


def offsets_as_texts(draw: random.Random, draft: Questions) -> None:
    draft.start = lambda context, start: str(start)


def offsets_between_characters(draw: random.Random, draft: Questions) -> None:
    draft.start = lambda context, start: start + 0.6
    draft.ambiguous = True


def offsets_in_bytes(draw: random.Random, draft: Questions) -> None:
    """They are wrong as soon as a letter before has two bytes."""
    draft.start = lambda context, start: len(context[:start].encode())
    wrong = [not context[:start].isascii() for _, context, answers in draft.rows for start, _ in answers]
    draft.ambiguous |= any(wrong)


def offsets_off_by_one(draw: random.Random, draft: Questions) -> None:
    draft.start = lambda context, start: start + 1
    draft.ambiguous = True


def questions_without_answer(draw: random.Random, draft: Questions) -> None:
    """The task says so: `answerless: true`."""
    draft.answerless = True
    draft.rows = [(*row[:2], [] if number % 3 == 1 else row[2]) for number, row in enumerate(draft.rows)]


def null_answers(draw: random.Random, draft: Questions) -> None:
    questions_without_answer(draw, draft)
    draft.no_answers = None


def no_answer_where_one_must_be(draw: random.Random, draft: Questions) -> None:
    questions_without_answer(draw, draft)
    draft.answerless, draft.ambiguous = False, True


def several_answers(draw: random.Random, draft: Questions) -> None:
    draft.rows = [
        (question, context, [*answers, *answers, (context.index("Ann"), "Ann")])
        for question, context, answers in draft.rows
    ]


def escaped_letters(draw: random.Random, draft: Questions) -> None:
    """JSON of ASCII only: emojis are pairs of surrogates."""
    draft.ascii = True


QUESTION_AXES = (
    (pairs_of_text_and_start, nested_json),
    (emojis_before, decomposed_letters_before, blanks_and_lines_before),
    (questions_without_answer, null_answers, no_answer_where_one_must_be, several_answers),
    (float_offsets, offsets_as_texts, offsets_between_characters, offsets_in_bytes, offsets_off_by_one),
    (byte_order_mark, utf_16, windows_line_ends, escaped_letters, blank_lines_at_the_end),
)  # fmt: skip
