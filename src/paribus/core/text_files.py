"""The encoding of a text file: that of its byte order mark, or UTF-8."""

from __future__ import annotations

import codecs
import re

_LINE_END = re.compile("\r\n|\r|\n")
_MARKS = {  # the longer ones first: UTF-32's begins with UTF-16's
    codecs.BOM_UTF32_LE: "utf-32-le",
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}


def find_encoding(content: bytes) -> tuple[str, bytes]:
    """(the encoding that the byte order mark names, the mark) of a text that begins with these bytes.

    Without a mark, the encoding is UTF-8.
    """
    marks = (mark for mark in _MARKS if content.startswith(mark))
    mark = next(marks, b"")
    return _MARKS.get(mark, "utf-8"), mark


def decode(content: bytes) -> str:
    """The text of a whole file, without its byte order mark; line ends stay as they are.

    Raises UnicodeDecodeError, whose position counts from the file's first byte, for bytes that are not text in this
    encoding; a NUL, as in UTF-16 without a mark, is none.
    """
    encoding, mark = find_encoding(content)
    try:
        text = content.removeprefix(mark).decode(encoding)
    except UnicodeDecodeError as error:
        raise UnicodeDecodeError(
            encoding, content, len(mark) + error.start, len(mark) + error.end, error.reason
        ) from None
    if (nul := text.find("\0")) >= 0:
        at = len(mark) + len(text[:nul].encode(encoding))
        raise UnicodeDecodeError(encoding, content, at, at + 1, "a NUL, as in UTF-16 without a byte order mark")
    return text


def split_lines(text: str) -> list[str]:
    """The lines of a text, which end in `\\n`, `\\r\\n` or `\\r` and in nothing else."""
    return _LINE_END.split(text)
