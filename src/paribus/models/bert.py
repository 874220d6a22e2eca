"""BERT-style encoders as plain settings; torch is imported when one is built."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

from paribus.core.errors import UserError
from paribus.core.settings import within
from paribus.models.change import Change
from paribus.models.spec import ModelSpec

if TYPE_CHECKING:
    from paribus.data.tokens.vocabulary import Vocabulary
    from paribus.models.encoder import Encoder
    from paribus.models.network import Network

NORMS = ("post", "pre")
ATTENTIONS = ("full", "left", "right", "two_way")
SIDES = ("left", "right")
SHARINGS = ("none", "all", "attention", "ffn")


@dataclass(frozen=True)
class Bert(ModelSpec):
    """An encoder in the shape of BERT (arXiv 1810.04805, section 3), with initial weights.

    `norm="post"` is BERT; `norm="pre"` puts the LayerNorm before each sublayer and one at the end
    (arXiv 2002.04745). `embedding` is the width of the embeddings, which one matrix projects to `hidden` after their
    LayerNorm; `sharing` says which part of the layers of a group has the same weights, each part with its LayerNorm
    (ALBERT, arXiv 1909.11942, section 3.1). `attention="left"` hides from every token those to its right, in
    fine-tuning too (BERT, section 5.1: LTR), `"right"` those to its left; `"two_way"` is one encoder of each kind,
    with their states concatenated (section 5.1, which does not measure it). `changes` are the parts that are not
    BERT's, by name. Raises UserError for a shape that cannot be built.
    """

    layers: int = field(metadata=within(1, 10**3))
    hidden: int = field(metadata=within(1, 10**5))
    heads: int = field(metadata=within(1, 10**4))
    intermediate: int = field(metadata=within(1, 10**6))
    positions: int = field(default=512, metadata=within(1, 10**6))
    dropout: float = field(default=0.1, metadata=within(0, 1))
    attention_dropout: float = field(default=0.1, metadata=within(0, 1))
    norm: str = "post"
    attention: str = "full"
    initializer_range: float = 0.02
    embedding: int | None = field(default=None, metadata=within(1, 10**5))
    sharing: str = "none"
    groups: int = 1
    changes: Mapping[str, Change] = field(default_factory=dict, hash=False)
    semantics: ClassVar[int] = 1
    unset_values: ClassVar[Mapping[str, Any]] = {"changes": {}}

    def __post_init__(self) -> None:
        if min(self.layers, self.hidden, self.heads, self.intermediate, self.positions) < 1:
            raise UserError("model has a size below 1", "give positive whole numbers")
        if self.hidden % self.heads:
            raise UserError(
                f"model.hidden={self.hidden} is not a multiple of model.heads={self.heads}", "change one of them"
            )
        for key, value, known in (("norm", self.norm, NORMS), ("attention", self.attention, ATTENTIONS)):
            if value not in known:
                raise UserError(f"model.{key}={value} is unknown", f"use {' or '.join(known)}")
        if self.embedding is not None and self.embedding < 1:
            raise UserError(f"model.embedding={self.embedding} is below 1", "give a width, or null for model.hidden")
        if self.sharing not in SHARINGS:
            raise UserError(f"model.sharing={self.sharing} is unknown", f"use {', '.join(SHARINGS)}")
        if not 1 <= self.groups <= self.layers:
            raise UserError(
                f"model.groups={self.groups} does not fit model.layers={self.layers}", f"give 1 to {self.layers}"
            )
        if self.groups > 1 and self.sharing == "none":
            raise UserError(f"model.groups={self.groups} needs sharing", "set model.sharing=all, attention or ffn")
        for name, change in self.sorted_changes:
            if not isinstance(change, Change):
                cause = f"model.changes.{name} is {type(change).__name__}, not a change of an encoder"
                raise UserError(cause, f"write +model/change@model.changes.{name}=NAME")
        setting: dict[str, str] = {}
        for name, change in self.sorted_changes:
            change.check(self)
            for part in sorted(change.sets):
                if part in setting:
                    cause = f"model.changes.{setting[part]} and model.changes.{name} both set the {part}"
                    learned = "; model/position=learned leaves out model.changes.position"
                    raise UserError(cause, f"leave one of them out{learned if part == 'positions' else ''}")
                setting[part] = name

    @property
    def family(self) -> str:
        """The model type in `transformers` that has these layers."""
        return "bert" if self.norm == "post" else "roberta-prelayernorm"

    @property
    def further_arguments(self) -> dict[str, Any]:
        """Arguments of the `transformers` config that do not depend on our settings."""
        return {}

    @property
    def lacks_class(self) -> str | None:
        """Why `transformers` has no class for the encoder, so that Paribus alone loads its checkpoints, or None."""
        for _, change in self.sorted_changes:
            if (why := change.lacks_class(self)) is not None:
                return why
        different = [change for _, change in self.sorted_changes if not change.keeps_class]
        if len(different) > 1:
            names = " and ".join(type(change).__name__ for change in different)
            return f"transformers has no class for an encoder with {names}"
        return None

    @property
    def sorted_changes(self) -> list[tuple[str, Change]]:
        """By name: the order in a config does not count."""
        return sorted(self.changes.items(), key=lambda named: named[0])

    @property
    def key_size(self) -> int:
        """Width of the queries and keys of a head."""
        given = (change.key_size(self) for change in self.changes.values())
        return next((size for size in given if size is not None), self.hidden // self.heads)

    @property
    def value_size(self) -> int:
        """Width of the values of a head."""
        given = (change.value_size(self) for change in self.changes.values())
        return next((size for size in given if size is not None), self.hidden // self.heads)

    @property
    def score_scale(self) -> float:
        """What the products of queries and keys are multiplied by."""
        given = (change.score_scale(self) for change in self.changes.values())
        return next((scale for scale in given if scale is not None), self.key_size**-0.5)

    @property
    def whole_batches(self) -> bool:
        return any(change.whole_batches for change in self.changes.values())

    @property
    def table_width(self) -> int:
        return self.hidden if self.embedding is None else self.embedding

    def group(self, layer: int) -> int:
        """floor(layer / layers * groups), exactly (ALBERT, `modeling.py`)."""
        return layer * self.groups // self.layers

    def first_of_group(self, layer: int) -> int:
        """The layer whose weights `layer` has if they are shared."""
        return -(-self.group(layer) * self.layers // self.groups)

    def attention_of(self, layer: int) -> int:
        """The layer whose attention `layer` has."""
        return self.first_of_group(layer) if self.sharing in ("all", "attention") else layer

    def check_length(self, length: int, key: str) -> None:
        if length > self.positions:
            raise UserError(
                f"{key}={length} exceeds model.positions={self.positions}", "shorten it or raise the positions"
            )
        for change in self.changes.values():
            change.check_length(length, key)

    def matmul_parameters(self) -> int:
        """Weights by which every token is multiplied, counted once per use: the layers, shared ones too, and the
        projection of the embeddings; without embeddings and heads.
        """
        projection = self.table_width * self.hidden if self.table_width != self.hidden else 0
        attention = 2 * self.hidden * self.heads * (self.key_size + self.value_size)
        return projection + self.layers * (attention + 2 * self.hidden * self.intermediate)

    def forward_flops(self, tokens: float, length: float, written: float = 0.0, rows: float = 0.0) -> float:
        """As `Shape.forward_flops`; an encoder writes nothing, and rows count as full."""
        if self.attention == "two_way":
            return len(SIDES) * replace(self, attention="left").forward_flops(tokens, length, written, rows)
        seen = length if self.attention == "full" else (length + 1) / 2
        seen = min([seen, *(change.seen(self, length) for change in self.changes.values())])
        further = sum(change.forward_flops(self, tokens, length) for change in self.changes.values())
        read = self.heads * (self.key_size + self.value_size) / 2  # of each key and value, by scores and their weights
        return tokens * (2.0 * self.matmul_parameters() + 4.0 * self.layers * seen * read) + further

    def build(self, vocabulary: Vocabulary, seed: int) -> Network:
        from paribus.models.encoder import TwoWay

        if self.attention == "two_way":
            encoders = {side: replace(self, attention=side).build_one(vocabulary, seed) for side in SIDES}
            return TwoWay(self, vocabulary, encoders)
        return self.build_one(vocabulary, seed)

    def build_one(self, vocabulary: Vocabulary, seed: int) -> Encoder:
        """A single encoder with its initial weights."""
        from paribus.models.encoder import Encoder

        return Encoder(self, vocabulary).begin(seed)
