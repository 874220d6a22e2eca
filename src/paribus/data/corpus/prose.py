"""Prose out of docstrings: no code, no tables, no markup that is not prose."""

from __future__ import annotations

import re
from collections.abc import Iterator
from inspect import cleandoc
from itertools import pairwise

_RULER = re.compile(r"^([=\-~^*#\"'+`.:_])\1{2,}$|^[=\s]+=$|^[|+].*[|+]$|^:?-{2,}(\s*\|\s*:?-+)*$")
_TABLE = re.compile(r"^\s*=+(?:\s+=+)+\s*$")
_FENCE = re.compile(r"^(```|~~~)")
_CODE_DIRECTIVE = re.compile(r"^\.\.\s*(?:[\w-]+::|\[|_|\|)")
_PROSE_DIRECTIVE = re.compile(
    r"^\.\.\s*(?:note|warning|tip|important|caution|attention|danger|hint|deprecated|versionadded|versionchanged|seealso|admonition)::\s*(?P<text>.*)$"
)
_FIELD = re.compile(
    r"^:(?:param|parameter|arg|argument|key|keyword|raises?|returns?|yields?|ivar|cvar|var)\b[^:]*:\s*(?P<text>.*)$"
)
_OTHER_FIELD = re.compile(r"^:[\w\s]+:(?!`).*$|^@\w+.*$")
_NAME = r"[*`:~]{0,3}[\w.*][\w.*`]*"
_ITEM = re.compile(rf"^{_NAME}(?:, ?{_NAME})*+(?:\s*\([^)]{{0,160}}\))?`{{0,2}}:\s+(?P<text>\S.*)$")  # Google style
_NUMPY_ITEM = re.compile(r"^[*\w, `.]{1,60}\s:\s.*$|^[*\w, ]{1,40}:$")
_BULLET = re.compile(r"^(?:[-*+•]|\d{1,2}[.)]|\(\d\)|#\.)\s+")
_INLINE = (
    (re.compile(r"!\[[^\]]*\]\([^)]*\)"), ""),  # Markdown image
    (re.compile(r"\[([^\]]+)\]\((?:[^)\s]+)\)"), r"\1"),  # Markdown link
    (re.compile(r":[\w:+-]+:`[!~.]*([^`<]+?)\s*(?:<[^>`]*>)?`"), r"\1"),  # role
    (re.compile(r"`([^`<]+?)\s*<[^>`]+>`_{1,2}"), r"\1"),  # reST link
    (re.compile(r"`{1,3}([^`]+)`{1,3}_{0,2}"), r"\1"),  # code, reference
    (re.compile(r"\s?\[[\w#*-]{1,12}\]_"), ""),  # citation
    (re.compile(r"\*{2}([^*]+)\*{2}"), r"\1"),  # bold
    (re.compile(r"(?<![\w*])\*([^*\s][^*]*)\*(?![\w*])"), r"\1"),  # emphasis
    (re.compile(r"</?[a-zA-Z][^<>]{0,80}>"), ""),  # HTML tag
    (re.compile(r"\|([\w-]+)\|"), r"\1"),  # substitution
    (re.compile(r"\\(?=[*`_|\\ ])"), ""),  # escape
)
_URL = re.compile(r"<?\b(?:https?|ftp)://\S+|\bwww\.\S+")
_WORD = re.compile(r"[^\W\d_]{2,}")
_SYMBOL = re.compile(r"[=(){}\[\]<>|/\\#@$^&*~_%+:;]")
MIN_WORDS, MAX_SYMBOLS, MIN_LETTERS = 5, 0.035, 0.74  # a paragraph: words, symbols a character, share of letters
LONGEST_TERM = 14  # words


def prose(docstring: str) -> list[str]:
    """The paragraphs of prose in a docstring, in order."""
    kept = []
    for lines in _group_lines(cleandoc(docstring).splitlines()):
        text = " ".join(lines)
        for pattern, replacement in _INLINE:
            text = pattern.sub(replacement, text)
        text = re.sub(r"\s+", " ", _URL.sub("", text)).strip()
        if is_prose(text):
            kept.append(text)
    return kept


def is_prose(text: str) -> bool:
    """Whether a paragraph reads like sentences: enough words, mostly letters, few symbols, a sentence's end."""
    words = _WORD.findall(text)
    letters = sum(map(str.isalpha, text)) + text.count(" ")
    return (
        len(words) >= MIN_WORDS
        and letters >= MIN_LETTERS * len(text)
        and len(_SYMBOL.findall(text)) <= MAX_SYMBOLS * len(text)
        and sum(map(str.islower, words)) >= 0.5 * len(words)
        and text[0].isalnum()
    )


def _group_lines(lines: list[str]) -> Iterator[list[str]]:
    """The lines of each paragraph, code and tables left out."""
    held: list[str] = []
    items_at: int | None = None  # indent of the list of parameters that is being read
    before = ""
    for line, following in pairwise([*_strip_code(list(_strip_tables(lines))), "", ""]):
        text, indent = line.strip(), _indent(line)
        begins = not before or indent != _indent(before) or indent == items_at
        item = _read_item(text, begins) if text else None
        if item is None and begins and _is_term(text, indent, following):
            item = ""
        if item is not None or not text:
            if held:
                yield held
            held = [item] if item else []
            items_at = indent if item is not None else items_at
        else:
            held.append(text)
        before = line if text and item != "" else ""


def _is_term(text: str, indent: int, following: str) -> bool:
    """A name or a type with its description indented below it."""
    deeper = bool(following.strip()) and _indent(following) > indent
    return deeper and not text.endswith((".", "!", "?")) and len(text.split()) <= LONGEST_TERM


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _read_item(text: str, begins: bool) -> str | None:
    """The text of a line that begins a paragraph, "" for one without text; None for any other line.

    `begins`: a parameter of a list may begin here.
    """
    for pattern in (_PROSE_DIRECTIVE, _FIELD, *([_ITEM] if begins else [])):
        if match := pattern.match(text):
            return match["text"]
    if _RULER.match(text) or _OTHER_FIELD.match(text) or _NUMPY_ITEM.match(text):
        return ""
    if match := _BULLET.match(text):
        rest = text[match.end() :]
        inner = _ITEM.match(rest)
        return inner["text"] if inner else rest
    return None


def _strip_tables(lines: list[str]) -> Iterator[str]:
    """The lines outside of tables between rulers; such a table ends at a blank line after a ruler but its first."""
    rulers, before = 0, ""
    for line in lines:
        if not line.strip() and rulers > 1 and _TABLE.match(before):
            rulers = 0
        rulers += bool(_TABLE.match(line))
        if not rulers:
            yield line
        before = line


def _strip_code(lines: list[str]) -> Iterator[str]:
    """The lines outside of fences, doctests and literal blocks; headings over a ruler are left out too."""
    block: int | None = None  # indent of the line whose deeper block is code
    fenced = doctest = False
    for at, line in enumerate(lines):
        text = line.strip()
        if _FENCE.match(text):
            fenced = not fenced
            yield ""
            continue
        if block is not None and text and _indent(line) <= block:
            block = None
        doctest = (doctest and bool(text)) or text.startswith((">>>", "In [", "$ "))
        if fenced or doctest or block is not None:
            continue
        following = lines[at + 1].strip() if at + 1 < len(lines) else ""
        if text and following and len(set(following)) == 1 and _RULER.match(following):
            yield ""
            continue
        if _CODE_DIRECTIVE.match(text) and not _PROSE_DIRECTIVE.match(text):
            block = _indent(line)
            yield ""
            continue
        if text.endswith("::") and not _PROSE_DIRECTIVE.match(text):
            block, line = _indent(line), line.rstrip()[:-1]
        yield line
