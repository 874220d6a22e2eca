"""An existing model as plain settings; torch is imported when it is built."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from paribus.core import hub
from paribus.core.errors import UserError
from paribus.core.settings import within
from paribus.models.any_encoder import KINDS, AnyEncoder
from paribus.models.bert import Bert
from paribus.models.change import Change
from paribus.models.spec import ModelSpec
from paribus.models.xlnet import ForeignXLNet

if TYPE_CHECKING:
    from torch import Tensor, nn

    from paribus.data.tokens.tokenizer import Tokenizer
    from paribus.data.tokens.vocabulary import Vocabulary
    from paribus.models.network import Network

FAMILIES = ("bert", "roberta", "roberta-prelayernorm")  # kinds of foreign checkpoints, by their `model_type`
MODES = ("cls", "mean", "max")
ORDER = "order"  # what ALBERT's head on pairs was trained on
PADDED = 128  # fewer rows than this may follow the vocabulary in a table of embeddings of others
WORDS = "tokenizer.json"
OWN_TOKENIZER = "set tokenizer=pretrained and tokenizer.name to the value of model.name"


@dataclass(frozen=True)
class Foreign(Bert):
    """The shape of an encoder that others have trained, from its `config.json`.

    `words`: rows of its embeddings; `pooling`: what its rows are summarized by.
    """

    words: int = 0
    kind: str = "bert"
    activation: str = "gelu"
    epsilon: float = 1e-12
    types: int = 2
    pooling: str = "cls"

    @property
    def family(self) -> str:
        return self.kind

    @property
    def further_arguments(self) -> dict[str, Any]:
        return {
            "vocab_size": self.words,
            "hidden_act": self.activation,
            "layer_norm_eps": self.epsilon,
            "type_vocab_size": self.types,
        }

    def load(self, network: Network, folder: Path) -> None:
        from paribus.models import checkpoint

        checkpoint.load_foreign(network, folder)


def _of_shape(name: str) -> Any:
    """A property that is the checkpoint's own."""
    return property(lambda model: getattr(model.shape, name))


@dataclass(frozen=True)
class Pretrained(ModelSpec):
    """The weights of a checkpoint from which pre-training resumes, or which is fine-tuned as it is (max_steps=0).

    The properties that other rooms read come from the checkpoint's settings.

    Attributes:
        name: see `core.hub.folder`; or a name on the hub. Its own tokenizer reads it: tokenizer=pretrained.
        revision: commit or tag of a hub name.
        runs: where runs are looked up by their signature.
        fresh: keep the shape alone, with initial weights that follow the seed.
        dropout, attention_dropout: None for the checkpoint's own.
        norm, initializer_range, changes: no effect; recipes set them, and positions, for models trained from scratch.

    Raises UserError for checkpoints that are missing or have a different layout, and for changes but of positions.
    """

    name: str
    revision: str | None = None
    runs: str = "runs"
    fresh: bool = False
    dropout: float | None = field(default=None, metadata=within(0, 1))
    attention_dropout: float | None = field(default=None, metadata=within(0, 1))
    norm: str | None = None
    initializer_range: float | None = None  # type: ignore[assignment]
    changes: Mapping[str, Change] = field(default_factory=dict)
    semantics: ClassVar[int] = 2
    ignored_settings: ClassVar[frozenset[str]] = frozenset(
        {"name", "revision", "runs", "norm", "initializer_range", "changes"}
    )

    def __post_init__(self) -> None:
        if added := [name for name in self.changes if name != "position"]:  # that of a recipe
            cause = f"model.changes.{added[0]} does not apply to model=pretrained, which has the checkpoint's own parts"
            raise UserError(cause, "leave it out")

    @cached_property
    def folder(self) -> Path:
        return hub.folder(self.name, self.revision, Path(self.runs))

    @cached_property
    def shape(self) -> ModelSpec:
        """The checkpoint's own settings: those of our run, or `Foreign`."""
        shape: Any = _settings_of_run(self.folder) or read_config(self.folder / hub.CONFIG)
        dropouts = {"dropout": self.dropout, "attention_dropout": self.attention_dropout}
        known = {field.name for field in fields(shape)}
        changed: ModelSpec = replace(shape, **{k: v for k, v in dropouts.items() if v is not None and k in known})
        return changed

    hidden, layers, table_width = _of_shape("hidden"), _of_shape("layers"), _of_shape("table_width")
    attention, open_layers, pooling = _of_shape("attention"), _of_shape("open_layers"), _of_shape("pooling")
    writes_text, single, tied_head = _of_shape("writes_text"), _of_shape("single"), _of_shape("tied_head")
    collator, two_streams, memory = _of_shape("collator"), _of_shape("two_streams"), _of_shape("memory")

    def check_length(self, length: int, key: str) -> None:
        self.shape.check_length(length, key)

    def forward_flops(self, tokens: float, length: float, written: float = 0.0, rows: float = 0.0) -> float:
        return self.shape.forward_flops(tokens, length, written, rows)

    def require(self) -> None:
        """Raise Unavailable if a package is not installed."""
        hub.require(self.name, "model.name")

    def content(self) -> dict[str, Any]:
        """Identifies the checkpoint independent of its location, by its shape and the hashes of its weights."""
        weights = None if self.fresh else _hash(self.folder / hub.WEIGHTS)
        settings: Any = self.shape
        shape = asdict(settings)
        if changes := shape.pop("changes", None):
            shape["changes"] = {name: _describe(settings.changes[name], part) for name, part in changes.items()}
        content = {"kind": type(settings).__name__, "shape": shape, "weights": weights}
        if (heads := self.folder / hub.HEADS).is_file() and not self.fresh:
            content["heads"] = _hash(heads)
        if isinstance(settings, AnyEncoder) and _trained_pairs(self.folder) == ORDER:
            content["pairs"] = ORDER
        return content

    def check_tokenizer(self, tokenizer: Tokenizer) -> None:
        """The words of our run, whose tokenizer lies beside its weights, must be those of the tokenizer."""
        path = self.folder / WORDS
        if self.fresh or _settings_of_run(self.folder) is None or not path.is_file():
            return
        theirs = json.loads(path.read_text(encoding="utf-8"))["model"]["vocab"]
        words = theirs if isinstance(theirs, dict) else {word: at for at, (word, _) in enumerate(theirs)}
        ours = tokenizer.backend.get_vocab()
        if word := next((word for word, at in words.items() if ours.get(word) != at), None):
            raise UserError(f"the tokenizer has other words than the checkpoint, such as {word!r}", OWN_TOKENIZER)

    def build(self, vocabulary: Vocabulary, seed: int) -> Network:
        """The network with the checkpoint's weights, or with initial ones.

        Raises UserError for weights that do not fit, and for a vocabulary that is not the checkpoint's.
        """
        config = json.loads((self.folder / hub.CONFIG).read_text(encoding="utf-8"))
        rows, pad = int(config["vocab_size"]), config.get("pad_token_id")
        padded = 1 if _settings_of_run(self.folder) else PADDED
        if not 0 <= rows - vocabulary.size < padded or pad not in (None, vocabulary.pad):
            raise UserError(
                f"the tokenizer has {vocabulary.size} entries and the padding id {vocabulary.pad}, "
                f"the checkpoint {rows} and {pad}",
                OWN_TOKENIZER,
            )
        network = self.shape.build(vocabulary, seed)
        if not self.fresh:
            self.shape.load(network, self.folder)
        return network

    def initial(self, vocabulary: Vocabulary, seed: int) -> Network:
        return self.shape.build(vocabulary, seed)

    def fill(self, network: Network, head: nn.Module) -> bool:
        """Give the head on tokens the checkpoint's weights if it has them all.

        Raises UserError, with the class of the objective that trained it, for a head of another shape.
        """
        from paribus.models import checkpoint

        try:
            return not self.fresh and checkpoint.load_head(network, head, self.folder)
        except UserError as error:
            if (objective := _build_from_run(self.folder, "objective")) is None:
                raise
            kind = type(objective)
            raise UserError(f"{error}, which is of class {kind.__module__}.{kind.__qualname__}") from error

    def fill_pairs(self, network: Network, head: nn.Module, pairs: str | None) -> bool:
        """Give the head on pairs the checkpoint's pooler, and its classifier if that was trained on such pairs."""
        from paribus.models import checkpoint

        if self.fresh:
            return False
        return checkpoint.load_pair_head(network, head, self.folder, pairs == _trained_pairs(self.folder))

    def fill_further(self, parts: Mapping[str, nn.Module]) -> None:
        from paribus.models import checkpoint

        if not self.fresh:
            checkpoint.load_further(parts, self.folder)

    def lacks_pooler(self, network: Network) -> bool:
        from paribus.models import checkpoint

        return not self.fresh and checkpoint.find_pooler(network, self.folder) is None

    def pooler(self, network: Network, seed: int) -> dict[str, Tensor] | None:
        from paribus.models import checkpoint

        pooler = checkpoint.find_pooler(network, self.folder)
        return checkpoint.fresh_pooler(network, seed) if pooler is not None and self.fresh else pooler


def read_config(path: Path) -> Foreign | ForeignXLNet | AnyEncoder:
    """The shape that a `config.json` of `transformers` gives. Raises UserError for other kinds of models."""
    try:
        config: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        kind = str(config["model_type"])
        if kind in KINDS:
            return AnyEncoder(kind, config, _read_pooling(path.parent / hub.POOLING))
        if kind == "xlnet":
            return ForeignXLNet.of(config)
        if kind not in FAMILIES:
            known = ", ".join(sorted((*FAMILIES, *KINDS, "xlnet")))
            raise UserError(f"{path} has model_type {kind}", f"give a checkpoint of {known}, or our own run")
        relative = config.get("position_embedding_type", "absolute") != "absolute"
        narrow = config.get("embedding_size", config["hidden_size"]) != config["hidden_size"]
        if relative or narrow or config.get("is_decoder"):
            raise UserError(f"{path} is not a plain encoder", "use absolute positions, full attention and one width")
        offset = 0 if kind == "bert" else int(config["pad_token_id"]) + 1  # RoBERTa counts from the padding id
        return Foreign(
            layers=config["num_hidden_layers"],
            hidden=config["hidden_size"],
            heads=config["num_attention_heads"],
            intermediate=config["intermediate_size"],
            positions=config["max_position_embeddings"] - offset,
            dropout=config.get("hidden_dropout_prob", 0.1),
            attention_dropout=config.get("attention_probs_dropout_prob", 0.1),
            norm="pre" if kind == "roberta-prelayernorm" else "post",
            initializer_range=config.get("initializer_range", 0.02),
            words=config["vocab_size"],
            kind=kind,
            activation=config.get("hidden_act", "gelu"),
            epsilon=config.get("layer_norm_eps", 1e-12),
            types=config.get("type_vocab_size", 2),
            pooling=_read_pooling(path.parent / hub.POOLING),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"{path} is not the config of an encoder ({error!r})", "give a checkpoint that AutoModelForMaskedLM loads"
        ) from error


def _read_pooling(path: Path) -> str:
    """What a model of sentence-transformers summarizes a row by; [CLS] for others."""
    if not path.is_file():
        return "cls"
    settings: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    on = [key.removeprefix("pooling_mode_").removesuffix("_tokens") for key, value in settings.items() if value is True]
    modes = [mode.removesuffix("_token") for mode in on if mode != "include_prompt"]
    if len(modes) != 1 or modes[0] not in MODES:
        raise UserError(f"{path} asks for {' and '.join(modes) or 'no pooling'}", f"give a model of {', '.join(MODES)}")
    return modes[0]


def _settings_of_run(folder: Path) -> Any:
    """The model settings of our run; None for another checkpoint, or a run that started from one."""
    settings = _build_from_run(folder, "model")
    return None if isinstance(settings, Pretrained) else settings


def _trained_pairs(folder: Path) -> str | None:
    """The kind of pairs that a checkpoint's head on pairs was trained on; that of others is BERT's or ALBERT's."""
    if (objective := _build_from_run(folder, "objective")) is not None:
        return str(objective.needed_pairs)
    config = json.loads((folder / hub.CONFIG).read_text(encoding="utf-8"))
    return ORDER if config["model_type"] == "albert" else "next"


def _build_from_run(folder: Path, part: str) -> Any:
    """A component of the run of ours that wrote a checkpoint; None for other checkpoints."""
    import yaml

    from paribus.core.build import build
    from paribus.core.stages import settle
    from paribus.core.trust import check_tree

    path = folder.parent / "config.yaml"
    if folder.name != hub.MODEL or not path.is_file():
        return None
    try:
        config = yaml.safe_load(path.read_text(encoding="utf-8"))
        node = settle(config)[part]
    except (ValueError, TypeError, KeyError, AttributeError, yaml.YAMLError) as error:
        raise UserError(
            f"{path} is not the config of a run", "name the checkpoint of a run or of another model"
        ) from error
    check_tree(config)
    return build(node)


def _describe(change: Change, settings: dict[str, Any]) -> list[Any]:
    """A change by its public name, settings and behavior."""
    from paribus.core.build import public_name

    later = [change.semantics] if change.semantics != 1 else []  # content of a first version has no number
    return [public_name(type(change)), settings, *later]


def _hash(path: Path) -> str:
    """Of a large file, read again only if its size or time has changed."""
    stat = path.stat()
    return _hashed(path.resolve(), stat.st_size, stat.st_mtime_ns)


@lru_cache(maxsize=64)
def _hashed(path: Path, size: int, changed: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]
