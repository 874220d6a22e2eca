"""Changes of one part of a BERT-style encoder, as plain settings; torch is imported when an encoder is built.

`model.changes` names them: `{position: Rotary(...)}`. Each says what it does to the modules of the encoder and to the
attention of its layers, which shapes it fits, what it costs, and whether `transformers` has a class for the result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final

from paribus.core.errors import UserError
from paribus.core.settings import within
from paribus.models.encoder_names import ROFORMER, Layout

if TYPE_CHECKING:
    from paribus.models.attention_part import AttentionPart
    from paribus.models.bert import Bert
    from paribus.models.encoder import Encoder

ROFORMER_BASE: Final = 10000.0


class Change:
    """One part of an encoder that is not BERT's. A subclass is a frozen dataclass and states what differs.

    Attributes:
        sets: what two changes cannot both set, such as "positions"; their combination is refused.
        exact_at_places: whether the last layer, computed only at the places that heads read, has the states that the
            whole layer has there. If not, the whole layer is computed.
        whole_batches: whether the states of a row depend on the other rows, so that a batch stays in one piece.
        one_part: whether the attention of all layers has the part of the first one.
        keeps_class: whether every class in `transformers` that has the encoder without it has the one with it.
        layout: the names of its class in `transformers`, if that is not the class of the encoder without it.
    """

    semantics: ClassVar[int] = 1
    sets: ClassVar[Set[str]] = frozenset()
    exact_at_places: ClassVar[bool] = False
    whole_batches: ClassVar[bool] = False
    one_part: ClassVar[bool] = False
    keeps_class: ClassVar[bool] = False
    layout: ClassVar[Layout | None] = None

    @property
    def reads_both_sides(self) -> bool:
        """Whether it shows a token what is to its left and to its right."""
        return True

    def check(self, shape: Bert) -> None:
        """Raise UserError for a shape that the change does not fit."""

    def check_length(self, length: int, key: str) -> None:
        """Raise UserError, under the config key, for inputs of a length that the change does not fit."""

    def alter(self, encoder: Encoder) -> None:
        """Replace modules of a new encoder, before parts are added and initial weights are drawn."""

    def begin(self, encoder: Encoder) -> None:
        """Set initial weights that follow from others, after those are drawn."""

    def attention(self, shape: Bert, layer: int) -> AttentionPart | None:
        """What it does in the attention of a layer, counted from 0; None for nothing."""
        return None

    def tie(self, parts: Sequence[AttentionPart]) -> None:
        """Let its parts in the attention of the layers, which are given from below, share weights."""

    def key_size(self, shape: Bert) -> int | None:
        """Width of the queries and keys of a head; None for hidden / heads."""
        return None

    def value_size(self, shape: Bert) -> int | None:
        """Width of the values of a head; None for hidden / heads."""
        return None

    def score_scale(self, shape: Bert) -> float | None:
        """What the products of queries and keys are multiplied by; None for 1 / sqrt(width of a key)."""
        return None

    def std(self, shape: Bert, name: str) -> float | None:
        """Standard deviation of the initial weights of a parameter of the encoder; None for what it is without it."""
        return None

    def rate(self, shape: Bert, name: str) -> float:
        """Learning rate of a parameter of the encoder, as a share of what it is without it."""
        return 1.0

    def seen(self, shape: Bert, length: float) -> float:
        """How many keys a query sees at most, averaged over a row of this length and the layers."""
        return length

    def forward_flops(self, shape: Bert, tokens: float, length: float) -> float:
        """Floating-point operations beyond those of BERT's own layers in a forward pass over `tokens` tokens.

        Below 0 if some are saved. What is saved because fewer keys are seen follows from `seen`.
        """
        return 0.0

    def lacks_class(self, shape: Bert) -> str | None:
        """Why `transformers` has no class for the changed encoder; None if it has one."""
        return None if self.keeps_class else f"transformers has no class for an encoder with {type(self).__name__}"


class Positions(Change):
    """Positions of another kind than BERT's learned table, which is left out."""

    sets: ClassVar[Set[str]] = frozenset({"positions"})
    exact_at_places: ClassVar[bool] = True

    @property
    def at_layers(self) -> bool:
        """Whether they are added to what every layer reads."""
        return False

    def alter(self, encoder: Encoder) -> None:
        from paribus.models.positions import NoTable

        encoder.backbone.embeddings.position_embeddings = NoTable()


@dataclass(frozen=True)
class Rotary(Positions):
    """Rotary positions (RoFormer, arXiv 2104.09864, section 3.2) instead of a learned table of them.

    Every pair of neighboring features of a query and of a key is rotated by position x base^(-2i / rotated width), so
    that scores depend on the distance alone. With a `share` below 1 only the first features of each head are rotated,
    64 of 256 in GPT-J. Raises UserError for a base that is not above 1 and for a share that is no even number of
    features.
    """

    base: float = ROFORMER_BASE
    share: float = field(default=1.0, metadata=within(0, 1))
    layout: ClassVar[Layout | None] = ROFORMER
    unset_values: ClassVar[Mapping[str, Any]] = {"share": 1.0}

    def __post_init__(self) -> None:
        if not self.base > 1:
            raise UserError(f"model.changes.position.base={self.base} is not above 1", "give 10000, RoFormer's")
        if not 0 < self.share <= 1:
            raise UserError(f"model.changes.position.share={self.share} is not above 0 and at most 1", "give 0.25 or 1")

    def check(self, shape: Bert) -> None:
        if (width := shape.key_size) % 2:
            cause = f"model.position=rotary rotates pairs of features, but each head has {width}"
            raise UserError(cause, "choose model.hidden and model.heads so that hidden / heads is even")
        if (rotated := self.share * width) % 2:
            cause = f"model.changes.position.share={self.share} rotates {rotated:g} of the {width} features of a head"
            raise UserError(cause, f"give a share of pairs, such as {2 / width:g} for one")

    def attention(self, shape: Bert, layer: int) -> AttentionPart:
        from paribus.models.rotary import RotaryPart

        return RotaryPart(round(self.share * shape.key_size), float(self.base))

    def forward_flops(self, shape: Bert, tokens: float, length: float) -> float:
        """Each of the queries' and keys' rotated pairs takes four products and two sums."""
        return tokens * shape.layers * 2 * shape.heads * shape.key_size * self.share * 3.0

    def lacks_class(self, shape: Bert) -> str | None:
        if shape.norm == "pre":
            return "transformers has no class for a pre-LN encoder with rotary positions"
        if self.share != 1.0:
            return "RoFormer in transformers rotates all features"
        return None if self.base == ROFORMER_BASE else f"RoFormer in transformers rotates with base {ROFORMER_BASE:g}"
