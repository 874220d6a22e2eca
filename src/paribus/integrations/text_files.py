"""The text of a file, which may be packed by gzip."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

from paribus.core.errors import UserError
from paribus.core.text_files import decode

PACKED = ".gz"
_TABLES = (".parquet", ".feather", ".arrow", ".xlsx", ".xls", ".ods", ".pkl", ".pickle", ".h5", ".npz")


def read_text(path: Path) -> str:
    """The text of a file in UTF-8, or in the encoding that its byte order mark names; line ends stay as they are.

    Raises UserError for a file that cannot be read, is damaged, or is in another encoding.
    """
    if path.is_file() and path.suffix.lower() in _TABLES:
        mend = f"write it as CSV: to_csv('{path.stem}.csv', index=False) in pandas, or export it as CSV"
        raise UserError(f"{path} is not a text file", mend)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror})", "give a text file, such as a CSV file") from error
    if path.suffix == PACKED:
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise UserError(f"{path} is damaged or not packed by gzip ({error})", "copy or pack it again") from error
    try:
        return decode(content)
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        mend = f"write it again in UTF-8: iconv -f ITS_ENCODING -t UTF-8 {path} > NEW_FILE"
        raise UserError(f"{path} is not a text in {error.encoding.upper()} (line {line})", mend) from error


def find_suffix(path: Path) -> str:
    """The file's ending in small letters, without that of gzip: `.csv` of `Runs.csv.gz`."""
    return (path.with_suffix("") if path.suffix == PACKED else path).suffix.lower()
