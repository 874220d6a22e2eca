"""Documents in the files that people give to `corpus=text`."""

from __future__ import annotations

import gzip
import json
import random
from dataclasses import dataclass

from strange_case import INVISIBLE, LINE_SEPARATORS, SPACES, StrangeFile, parquet, phrase, vary


@dataclass
class Draft:
    """Documents as lists of paragraphs, and the layout of the file."""

    documents: list[list[str]]
    suffix: str = "txt"
    newline: str = "\n"
    encoding: str = "utf-8"
    border: str = ""  # the line between two documents of plain text
    first: str = ""
    last: str | None = None  # what follows the last document; None: a newline
    column: str = "text"
    ascii: bool = False
    members: bool = False  # a .gz file of several parts
    ambiguous: bool = False


def corpus_file(draw: random.Random) -> StrangeFile:
    """Three to six documents and 1 to 4 variations."""
    documents = [
        [f"{phrase(draw)} {number}." for _ in range(draw.randint(1, 3))] for number in range(draw.randint(3, 6))
    ]
    draft = Draft(documents)
    why = vary(draw, draft, AXES)
    content = plain(draft) if draft.suffix.startswith("txt") else rows(draft)
    if draft.encoding == "latin-1":
        draft.ambiguous |= any(byte > 127 for byte in content)
    if draft.suffix.endswith(".gz"):
        half = content.index(b"\n") + 1 if draft.members and b"\n" in content else 0
        content = (gzip.compress(content[:half]) if half else b"") + gzip.compress(content[half:])
    arguments = () if draft.column == "text" else (f"corpus.text_column={draft.column}",)
    written = ["\n".join(paragraphs) for paragraphs in draft.documents]
    return StrangeFile("corpus", {f"books.{draft.suffix}": content}, None, arguments, written, draft.ambiguous, why)


def plain(draft: Draft) -> bytes:
    """A paragraph per line, an empty line between documents."""
    blocks = [draft.newline.join(paragraphs) for paragraphs in draft.documents]
    text = (draft.newline + draft.border + draft.newline).join(blocks)
    text = draft.first + text + (draft.newline if draft.last is None else draft.last)
    return text.encode(draft.encoding, "ignore" if draft.encoding == "latin-1" else "strict")


def rows(draft: Draft) -> bytes:
    """A row per document; in JSON, line ends within a text are escaped."""
    texts = [draft.newline.join(paragraphs) for paragraphs in draft.documents]
    if draft.suffix == "parquet":
        return parquet({"id": list(range(len(texts))), draft.column: texts}, row_group=2)
    lines = [json.dumps({"id": n, draft.column: text}, ensure_ascii=draft.ascii) for n, text in enumerate(texts)]
    return (draft.newline.join(lines) + (draft.newline if draft.last is None else draft.last)).encode(draft.encoding)


def json_lines(draw: random.Random, draft: Draft) -> None:
    draft.suffix = draw.choice(("jsonl", "ndjson", "json"))


def compressed(draw: random.Random, draft: Draft) -> None:
    draft.suffix, draft.members = draw.choice(("jsonl.gz", "txt.gz")), draw.random() < 0.5


def parquet_rows(draw: random.Random, draft: Draft) -> None:
    draft.suffix = "parquet"


def another_column(draw: random.Random, draft: Draft) -> None:
    draft.suffix, draft.column = draw.choice(("jsonl", "parquet")), "body"


def insert(draw: random.Random, draft: Draft, added: str) -> None:
    """Put a text between two words of every document."""
    for paragraphs in draft.documents:
        paragraphs[0] = paragraphs[0].replace(" ", f"{added}", 1)


def line_separators(draw: random.Random, draft: Draft) -> None:
    insert(draw, draft, draw.choice(LINE_SEPARATORS))


def odd_spaces(draw: random.Random, draft: Draft) -> None:
    insert(draw, draft, draw.choice((*SPACES, "\t", "  ")))


def invisible_characters(draw: random.Random, draft: Draft) -> None:
    insert(draw, draft, draw.choice(INVISIBLE))


def form_feeds_before_pages(draw: random.Random, draft: Draft) -> None:
    for paragraphs in draft.documents:
        paragraphs[-1] = f"\x0c{paragraphs[-1]}"


def blanks_around_paragraphs(draw: random.Random, draft: Draft) -> None:
    draft.documents = [[f"  {text} " for text in paragraphs] for paragraphs in draft.documents]


def very_long_paragraphs(draw: random.Random, draft: Draft) -> None:
    draft.documents[0] = [" ".join(f"word{number}" for number in range(130_000))]


def empty_lines_within_rows(draw: random.Random, draft: Draft) -> None:
    """A row is one document, whatever its lines are."""
    draft.suffix = draw.choice(("jsonl", "parquet"))
    draft.documents[0] = ["first", "", "second"]


def escaped_line_ends(draw: random.Random, draft: Draft) -> None:
    """A backslash and an n are two letters."""
    insert(draw, draft, draw.choice(("\\n", "\\u2028", "\\\\")))


def byte_order_mark(draw: random.Random, draft: Draft) -> None:
    draft.encoding = "utf-8-sig"


def utf_16(draw: random.Random, draft: Draft) -> None:
    draft.encoding = "utf-16"


def latin_1(draw: random.Random, draft: Draft) -> None:
    """The text is ASCII, or nobody knows its encoding."""
    if draft.suffix == "txt":
        draft.encoding = "latin-1"
        if draw.random() < 0.5:
            keep = [[text.encode("ascii", "ignore").decode() for text in paragraphs] for paragraphs in draft.documents]
            draft.documents = keep


def escaped_letters(draw: random.Random, draft: Draft) -> None:
    draft.ascii = True


def windows_line_ends(draw: random.Random, draft: Draft) -> None:
    draft.newline = "\r\n"


def old_mac_line_ends(draw: random.Random, draft: Draft) -> None:
    if draft.suffix.startswith("txt"):
        draft.newline = "\r"


def several_blank_lines(draw: random.Random, draft: Draft) -> None:
    draft.border = draft.newline * draw.randint(1, 3)


def blank_lines_of_spaces(draw: random.Random, draft: Draft) -> None:
    draft.border = draw.choice((" ", "   ", "\t"))


def blank_lines_around(draw: random.Random, draft: Draft) -> None:
    draft.first, draft.last = draft.newline * 2, draft.newline * 3


def no_final_newline(draw: random.Random, draft: Draft) -> None:
    draft.last = ""


AXES = (
    (json_lines, compressed, parquet_rows, another_column),
    (very_long_paragraphs, empty_lines_within_rows),
    (
        line_separators, odd_spaces, invisible_characters, form_feeds_before_pages, blanks_around_paragraphs,
        escaped_line_ends,
    ),
    (byte_order_mark, utf_16, latin_1, escaped_letters),
    (windows_line_ends, old_mac_line_ends),
    (several_blank_lines, blank_lines_of_spaces, blank_lines_around, no_final_newline),
)  # fmt: skip
