"""A run is named by its meaning: signatures from the resolved semantic config and the data. No torch here."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from paribus.core.build import kind
from paribus.core.config import plain, root_seed
from paribus.core.hashing import digest

SEMANTICS = 1  # raised when the meaning of a run changes as a whole

# What may differ between runs of one meaning: places and names of places. The text behind them is fingerprinted.
_PLACES = frozenset({"path", "name", "hub", "cache"})
_PRETRAINING = ("input", "masking", "objective", "model", "optimizer", "lr_schedule", "batch", "trainer", "evaluation")
# What is only measured or kept on the way
_REPORTING = {"trainer": {"log_every", "noise_every"}, "finetune": {"keep", "points"}}
# Settings of plain groups that came after the first records, each with the value at which it changes nothing; those of
# components stand in their `neutral`.
NEUTRAL: dict[str, dict[str, Any]] = {
    "evaluation": {"probe_examples": 0},
    "finetune": {
        "ensemble": 1,
        "pooler": "fresh",
        "bilstm": False,
        "layers": None,
        "combine": "concat",
        "pooling": "cls",
        "truncation": "head",
        "label_smoothing": 0.0,
        "focal": 0.0,
        "head_lr": None,
        "target_length": 64,
        "windows": None,
        "stride": None,
        "most_windows": 16,
        "siamese": None,
    },
}


class Identity(NamedTuple):
    """signature: of the run; pretrain: of its pre-training alone; folder: where it lives; data, tasks: fingerprints."""

    signature: str
    pretrain: str
    folder: Path
    data: dict[str, Any]
    tasks: dict[str, str]


def identify(cfg: Any) -> Identity:
    """The names of a run. Reads the corpus once where its fingerprint is not cached.

    Raises UserError for anything that is wrong with the config, the corpus or the tasks, and Unavailable for an
    annotator that is not here.
    """
    from paribus.data.annotators.annotator import annotator_of
    from paribus.core.build import build
    from paribus.data.tokens.prepare import data_fingerprint

    values = plain(cfg)
    cache = Path(values["paths"]["cache"]).expanduser()
    data = data_fingerprint(cfg.corpus, cfg.tokenizer, cache, annotator_of(cfg.masking))
    tasks = task_fingerprints(cfg, cache)
    from paribus.corruption import examples
    from paribus.core import noise

    meaning = {part: _group(values, part) for part in _PRETRAINING}
    if values.get("mixture"):
        own = build(cfg.mixture).chosen(list(tasks))
        meaning["mixture"] = {**_group(values, "mixture"), "tasks": {name: tasks[name] for name in own}}
    pretrain = digest(
        {
            "semantics": [SEMANTICS, noise.SEMANTICS, examples.SEMANTICS],
            "seed": root_seed(values),
            "data": data,
            **meaning,
        }
    )
    whole: dict[str, Any] = {"pretrain": pretrain, "tasks": tasks}
    if tasks:
        whole["finetune"] = _group(values, "finetune")
    if (members := int(values.get("members", 1))) != 1:
        whole["members"] = members
    signature = digest(whole)
    return Identity(signature, pretrain, _folder(values, signature), data, tasks)


def task_fingerprints(cfg: Any, cache: Path) -> dict[str, str]:
    """{task: hash of its meaning, texts and labels}."""
    from paribus.core.build import build

    return {name: digest([build(node).fingerprint(cache), _meaning(plain(node))]) for name, node in cfg.tasks.items()}


def _group(values: dict[str, Any], part: str) -> Any:
    """The meaning of a group of the config, without what is only reporting or changes nothing."""
    reporting, neutral = _REPORTING.get(part, set()), NEUTRAL.get(part, {})
    return _meaning({k: v for k, v in values[part].items() if k not in reporting and (k, v) not in neutral.items()})


def _meaning(node: Any) -> Any:
    """A config node without places, with the `semantics` number of each component in it.

    A component's `neutral` holds settings that came after the first records, each with the value at which it changes
    nothing: at that value it is left out, so that older runs keep their names. Its `unmeant` names settings that tell
    where something is, whose content it gives in their place.
    """
    if isinstance(node, list):
        return [_meaning(item) for item in node]
    if not isinstance(node, dict):
        return node
    own = kind(node["_target_"]) if "_target_" in node else None
    neutral, unmeant = getattr(own, "neutral", {}), getattr(own, "unmeant", ())
    kept = {
        key: _meaning(value)
        for key, value in node.items()
        if key not in _PLACES and key not in unmeant and not (key in neutral and value == neutral[key])
    }
    if own is not None:
        kept["semantics"] = int(getattr(own, "semantics", 1))
    if hasattr(own, "content"):
        from paribus.core.build import build

        kept["content"] = build(node).content()
    return kept


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
