"""The encoding of a text file."""

from __future__ import annotations

import pytest

from paribus.core.text_files import decode, split_lines


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_a_text_is_decoded_by_its_mark(encoding: str) -> None:
    assert decode("a\r\ufeffé😀".encode(encoding)) == "a\r\ufeffé😀"


@pytest.mark.parametrize(
    ("content", "encoding", "at"),
    [
        ("ab".encode("utf-16-le"), "utf-8", 1),
        ("ab".encode("utf-32-be"), "utf-8", 0),
        ("ab".encode("utf-16")[:-1], "utf-16-le", 4),
        ("\ufeffé".encode() + b"\xe9", "utf-8", 5),
        ("ab\0".encode("utf-16"), "utf-16-le", 6),
    ],
)
def test_what_is_no_text_is_named_by_its_byte(content: bytes, encoding: str, at: int) -> None:
    with pytest.raises(UnicodeDecodeError) as found:
        decode(content)
    assert (found.value.encoding, found.value.start) == (encoding, at)


def test_only_line_feeds_and_carriage_returns_end_lines() -> None:
    assert split_lines("a\rb\r\nc\n\nd\u2028\x85e\x0b") == ["a", "b", "c", "", "d\u2028\x85e\x0b"]
