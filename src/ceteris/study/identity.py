"""A run is named by its meaning: signatures from the resolved semantic config and the data. No torch here."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from ceteris.config import plain
from ceteris.errors import UserError
from ceteris.hashing import digest

SEMANTICS = 1  # raised when the meaning of a run changes as a whole

# What may differ between runs of one meaning: places and names of places. The text behind them is fingerprinted.
_PLACES = frozenset({"path", "name", "hub", "cache"})
_PRETRAINING = ("input", "masking", "objective", "model", "optimizer", "lr_schedule", "batch", "trainer", "evaluation")
_REPORTING = {"trainer": {"log_every", "noise_every"}}  # what is measured on the way


class Identity(NamedTuple):
    """signature: of the run; pretrain: of its pre-training alone; folder: where it lives; data, tasks: fingerprints."""

    signature: str
    pretrain: str
    folder: Path
    data: dict[str, Any]
    tasks: dict[str, str]


def identify(cfg: Any) -> Identity:
    """The names of a run. Reads the corpus once where its fingerprint is not cached.

    Raises UserError for anything that is wrong with the config, the corpus or the tasks.
    """
    from ceteris.tokens.prepare import data_fingerprint

    values = plain(cfg)
    cache = Path(values["paths"]["cache"]).expanduser()
    data = data_fingerprint(cfg.corpus, cfg.tokenizer, cache)
    tasks = task_fingerprints(cfg, cache)
    from ceteris import examples, noise

    meaning = {part: _meaning(values[part], _REPORTING.get(part, set())) for part in _PRETRAINING}
    pretrain = digest(
        {"semantics": [SEMANTICS, noise.SEMANTICS, examples.SEMANTICS], "seed": values["seed"], "data": data, **meaning}
    )
    whole = {"pretrain": pretrain, "tasks": tasks}
    if tasks:
        whole |= {part: _meaning(values[part]) for part in ("finetune", "finetuning")}
    signature = digest(whole)
    return Identity(signature, pretrain, _folder(values, signature), data, tasks)


def task_fingerprints(cfg: Any, cache: Path) -> dict[str, str]:
    """{task: hash of its meaning, texts and labels}."""
    from ceteris.components import build

    return {name: digest([build(node).fingerprint(cache), _meaning(plain(node))]) for name, node in cfg.tasks.items()}


def _meaning(node: Any, without: set[str] | frozenset[str] = frozenset()) -> Any:
    """A config node without places, with the `semantics` number of each component in it.

    A component's `neutral` holds settings that came after the first records, each with the value at which it changes
    nothing: at that value it is left out, so that older runs keep their names.
    """
    if isinstance(node, list):
        return [_meaning(item) for item in node]
    if not isinstance(node, dict):
        return node
    kind = _component(node["_target_"]) if "_target_" in node else None
    neutral = getattr(kind, "neutral", {})
    kept = {
        key: _meaning(value)
        for key, value in node.items()
        if key not in without | _PLACES and not (key in neutral and value == neutral[key])
    }
    if kind is not None:
        kept["semantics"] = int(getattr(kind, "semantics", 1))
    return kept


def _component(target: str) -> type:
    from hydra.utils import get_class

    try:
        return get_class(target)
    except Exception as error:  # Hydra wraps whatever the import raised
        raise UserError(f"_target_={target} cannot be imported", "name an importable class") from error


def _folder(values: dict[str, Any], signature: str) -> Path:
    name = Path(str(values["study"]), str(values["arm"]), f"seed{values['seed']}-{signature}")
    if values["run_dir"] is None:
        return Path(str(values["paths"]["runs"])) / name
    own = Path(str(values["run_dir"]))
    return own / name if _holds_another(own, signature) else own


def _holds_another(folder: Path, signature: str) -> bool:
    """Whether a folder already is the run of another signature: then new runs go below it and nothing is lost."""
    marker = folder / "signature"
    return marker.is_file() and marker.read_text(encoding="utf-8").strip() != signature
