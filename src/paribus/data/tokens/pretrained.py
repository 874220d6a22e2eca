"""An existing tokenizer: a name on the hub, a local folder, or that of one of our runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from paribus.core.errors import UserError
from paribus.core.hub import PACKAGE, local, patience, require
from paribus.core.settings import within
from paribus.data.tokens.tokenizer import RECORD, Tokenizer, assemble, load_vocabulary

_ATTRIBUTES = {  # of a tokenizer of transformers, the first that is set
    "pad": ("pad_token",),
    "unk": ("unk_token",),
    "cls": ("cls_token", "bos_token"),
    "sep": ("sep_token", "eos_token"),
    "mask": ("mask_token",),
}
_MISSING = {"pad": "<pad>", "unk": "<unk>", "cls": "<s>", "sep": "</s>", "mask": "<mask>"}


@dataclass(frozen=True)
class Pretrained:
    """Special tokens are found by role (cls or bos, sep or eos, mask, pad, unk); a missing one is added with a new id.

    name: as in `models.source.local`; runs: the folder in which a run is found by its id.
    vocab_size: None or any number; it has no effect, and exists because recipes set the size of a trained vocabulary.
    """

    name: str
    revision: str | None = None
    vocab_size: int | None = field(default=None, metadata=within(1, 10**8))
    sentinels: int = 0
    runs: str = "runs"
    delimiters: bool = False

    trained: ClassVar[bool] = False
    semantics: ClassVar[int] = 2
    sees_more: ClassVar[str] = "choose tokenizer=bpe"

    def __post_init__(self) -> None:
        if self.sentinels < 0:
            raise UserError(f"tokenizer.sentinels={self.sentinels} is out of range", "give 0 or more")
        if not self.name.startswith(PACKAGE):
            self._folder()

    def require(self) -> None:
        """Raise Unavailable for a package that is not installed."""
        require(self.name, "tokenizer.name")

    def _folder(self) -> Path | None:
        """The tokenizer's folder, or None for a name on the hub."""
        return local(self.name, Path(self.runs), "tokenizer.name")

    def identity(self) -> dict[str, Any]:
        """What decides the vocabulary: the files of a local folder, or name and revision."""
        source: Any = [self.name, self.revision]
        if (folder := self._folder()) is not None:
            files = sorted(path for path in folder.iterdir() if path.is_file())
            stats = [(path.name, path.stat()) for path in files]
            source = [[name, stat.st_size, stat.st_mtime_ns] for name, stat in stats]
        delimiters = {"delimiters": True} if self.delimiters else {}
        counted = {"source": source, "sentinels": self.sentinels, **delimiters}
        return {"kind": "pretrained", "semantics": self.semantics, **counted}

    def build(self, texts: Iterable[str], folder: Path) -> Tokenizer:
        """Load and save to `folder`; the text is not read.

        Raises UserError if there is no such tokenizer or it has no fast form.
        """
        from transformers import AutoTokenizer

        place = str(self._folder() or self.name)
        try:
            with patience():
                loaded = AutoTokenizer.from_pretrained(place, revision=self.revision or "main", trust_remote_code=False)
        except Exception as error:  # transformers and the hub raise many kinds
            first = next(iter(str(error).splitlines()), type(error).__name__)
            mend = "give a hub name that can be reached, or a local folder with tokenizer.json"
            raise UserError(f"tokenizer.name={self.name} cannot be loaded ({first[:160]})", mend) from error
        if getattr(loaded, "backend_tokenizer", None) is None:
            raise UserError(f"tokenizer.name={self.name} has no tokenizer.json", "use one with a fast tokenizer")
        roles, name = _find_roles(loaded), Path(self.name).name
        spaces = (Path(place) / RECORD).is_file() and load_vocabulary(Path(place))[0].spaces
        tokenizer = assemble(loaded.backend_tokenizer, roles, self.sentinels, name, self.delimiters, spaces)
        tokenizer.save(folder)
        return tokenizer


def wrap(loaded: Any) -> Tokenizer:
    """A copy of a fast tokenizer of `transformers`. Raises UserError for one that is not fast."""
    from tokenizers import Tokenizer as Backend

    backend = getattr(loaded, "backend_tokenizer", None)
    if backend is None:
        raise UserError(
            f"{type(loaded).__name__} is not a fast tokenizer", "load it with AutoTokenizer.from_pretrained"
        )
    return assemble(Backend.from_str(backend.to_str()), _find_roles(loaded), 0, Path(str(loaded.name_or_path)).name)


def _find_roles(loaded: object) -> dict[str, str]:
    """The special token of each role; one that is missing gets a name of ours."""
    roles = {}
    for role, attributes in _ATTRIBUTES.items():
        tokens = (getattr(loaded, attribute, None) for attribute in attributes)
        roles[role] = next((str(token) for token in tokens if token is not None), "") or _MISSING[role]
    return roles
