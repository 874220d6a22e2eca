"""XLNet's two streams over the layers of `transformers`, with memory and rows that are read backwards.

`XLNetModel.forward` cannot empty the memory of single rows, and wants the rows of a batch that are read backwards to be
its second half. So its layers are called here; where `XLNetModel` can do the same, the numbers are the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot
from transformers import PretrainedConfig, XLNetConfig, XLNetModel

from paribus.models.heads.vocabulary import TiedHead
from paribus.models.in_order import read_in_order
from paribus.models.network import Batch, Network, Outputs, find_real

if TYPE_CHECKING:
    from paribus.data.tokens.vocabulary import Vocabulary
    from paribus.models.xlnet import XLNet

CLS_SEGMENT = 2  # [CLS] is in neither segment (the authors' `data_utils.py`)


class RowMemory(NamedTuple):
    """What rows leave to those that go on from them.

    Attributes:
        states: [B, M, D] each, the inputs of the layers, from below.
        real_BM: bool [B, M], which of the M places hold a token.
    """

    states: tuple[Tensor, ...]
    real_BM: Tensor


class Queries(NamedTuple):
    """The places that the query stream asks for, P in all and at most N in one row.

    Attributes:
        number_P, row_P: the number of each place in its row, and its row.
        map_NLB: 1 where query n of a row asks for a place, in the order of reading.
    """

    number_P: Tensor
    row_P: Tensor
    map_NLB: Tensor


class XLNetNetwork(Network):
    """XLNet without heads (arXiv 1906.08237, sections 2.3 to 2.5).

    Rows are `[CLS] A [SEP] B [SEP]`, as everywhere here, and XLNet reads them as it was published: `A [SEP] B [SEP]
    [CLS]`. Padding stays on the right, where nothing attends to it; with relative positions that is the same as on the
    left. The state of [CLS] is thus that of the last token read, and the first of the row: it summarizes the row.

    If a batch has `rank_BL`, a place sees ranks up to its own in the content stream, and the query stream asks for
    `slot_P`: its states, which see lower ranks only, are in `Outputs.hidden_BLD` at these places.
    A row of `reversed_B` is read from its end to [CLS], with distances that keep their sign in the text; so what it
    remembers is the text to its right. Of a row, the first `reused_B` tokens read are remembered; without these, all.
    """

    gives_layers = True
    reads_in_order = True

    def __init__(self, spec: XLNet, vocabulary: Vocabulary) -> None:
        super().__init__(spec, vocabulary, spec.hidden, spec.layers)
        self.memory = spec.memory
        self.backbone: Any = XLNetModel(
            XLNetConfig(
                vocab_size=vocabulary.size,
                d_model=spec.hidden,
                n_layer=spec.layers,
                n_head=spec.heads,
                d_inner=spec.intermediate,
                ff_activation="gelu",
                attn_type="bi",
                dropout=spec.dropout,
                initializer_range=float(spec.initializer_range),
                mem_len=spec.memory or None,
                use_mems_train=spec.memory > 0,
                use_mems_eval=spec.memory > 0,
                pad_token_id=vocabulary.pad,
                bos_token_id=vocabulary.cls,
                eos_token_id=vocabulary.sep,
            )
        )

    @property
    def table_VD(self) -> nn.Parameter:
        weight: nn.Parameter = self.backbone.word_embedding.weight
        return weight

    def forward(self, batch: Batch, state: RowMemory | None = None) -> Outputs:
        """As `Network.forward`; the rows of the memory that begin anew see nothing of it."""
        if "window_W" in batch:
            return read_in_order(self, batch)
        ids_BL, width = batch["ids_BL"], batch["ids_BL"].shape[1]
        order_BL = reading_order(batch)
        in_text_BL = torch.argsort(order_BL, 1)  # where each token of the row is read
        remembered_BM = ids_BL.new_zeros(len(ids_BL), 0, dtype=torch.bool)
        if state is not None:
            remembered_BM = state.real_BM & ~batch["begins_B"][:, None]

        content_mask, query_mask = self._masks(batch, order_BL, remembered_BM)
        queries = self._queries(batch, in_text_BL) if query_mask is not None else None
        segments = self._segments(batch, order_BL, remembered_BM.shape[1])
        distances = self._distances(batch, width, remembered_BM.shape[1])

        dropout = self.backbone.dropout
        content_LBD = dropout(self.backbone.word_embedding(ids_BL.gather(1, order_BL).T))
        query_NBD = None
        if queries is not None:
            query_NBD = dropout(self.backbone.mask_emb.expand(len(queries.map_NLB), len(ids_BL), -1))
        layers_LBD = [content_LBD]
        for number, layer in enumerate(self.backbone.layer):
            content_LBD, query_NBD = layer(
                content_LBD,
                query_NBD,
                content_mask,
                query_mask,
                distances,
                segments,
                mems=None if state is None else state.states[number].transpose(0, 1),
                target_mapping=None if queries is None else queries.map_NLB,
            )[:2]
            layers_LBD.append(content_LBD)

        def to_text(read_LBD: Tensor) -> Tensor:
            return read_LBD.transpose(0, 1).gather(1, in_text_BL[..., None].expand(-1, -1, self.width))

        hidden_BLD = to_text(dropout(content_LBD))
        if queries is not None and query_NBD is not None:
            query_PD = dropout(query_NBD)[queries.number_P, queries.row_P]
            hidden_BLD = (
                hidden_BLD.flatten(0, 1).index_copy(0, batch["slot_P"], query_PD.to(hidden_BLD)).view_as(hidden_BLD)
            )
        left = self._remember(batch, state, remembered_BM, layers_LBD) if self.memory and "begins_B" in batch else None
        layers = (*map(to_text, layers_LBD[:-1]), hidden_BLD) if batch.get("layers") else None
        return Outputs(hidden_BLD, left, layers=layers)

    def _masks(self, batch: Batch, order_BL: Tensor, remembered_BM: Tensor) -> tuple[Tensor | None, Tensor | None]:
        """(content stream, query stream): [L, M + L, B, 1], 1 where a place (first) does not see another; the first is
        None if all is seen, the second without ranks. All tokens see all of the memory.
        """
        real_BL = find_real(batch["length_B"], order_BL.shape[1])
        rank_BL = batch.get("rank_BL")
        if batch["full"] and rank_BL is None and not remembered_BM.shape[1]:
            return None, None
        width = order_BL.shape[1]
        memory_BLM = remembered_BM[:, None].expand(-1, width, -1)
        oneself_LL = torch.eye(width, dtype=torch.bool, device=order_BL.device)
        seen_BLL = real_BL[:, None].expand(-1, width, -1)
        queried = None
        if rank_BL is not None:
            rank_BL = rank_BL.gather(1, order_BL)
            queried = self._hide(memory_BLM, seen_BLL & (rank_BL[:, None] < rank_BL[:, :, None]))
            seen_BLL = seen_BLL & (rank_BL[:, None] <= rank_BL[:, :, None])
        return self._hide(memory_BLM, seen_BLL | oneself_LL), queried

    def _hide(self, memory_BLM: Tensor, seen_BLL: Tensor) -> Tensor:
        hidden_BLK = ~torch.cat([memory_BLM, seen_BLL], 2)
        return hidden_BLK.permute(1, 2, 0)[..., None].to(self.table_VD.dtype)

    def _queries(self, batch: Batch, in_text_BL: Tensor) -> Queries | None:
        """The places `slot_P`, which are in ascending order; None if there is none."""
        (rows, width), slot_P = in_text_BL.shape, batch["slot_P"]
        if not len(slot_P):
            return None
        row_P = slot_P // width
        count_B = torch.bincount(row_P, minlength=rows)
        number_P = torch.arange(len(slot_P), device=slot_P.device) - (count_B.cumsum(0) - count_B)[row_P]
        map_NLB = torch.zeros(int(count_B.max()), width, rows, device=slot_P.device, dtype=self.table_VD.dtype)
        map_NLB[number_P, in_text_BL.flatten()[slot_P], row_P] = 1.0
        return Queries(number_P, row_P, map_NLB)

    def _segments(self, batch: Batch, order_BL: Tensor, remembered: int) -> Tensor:
        """[L, M + L, B, 2]: one-hot, whether two places are in the same segment or not; the memory is in the first."""
        part_BL = batch["part_BL"].clone()
        part_BL[:, 0] = CLS_SEGMENT
        part_BL = part_BL.gather(1, order_BL)
        part_BK = torch.cat([part_BL.new_zeros(len(part_BL), remembered), part_BL], 1)
        other_LKB = (part_BL[:, :, None] != part_BK[:, None]).permute(1, 2, 0)
        return one_hot(other_LKB.long(), 2).to(self.table_VD.dtype)

    def _distances(self, batch: Batch, width: int, remembered: int) -> Tensor:
        """[M + 2 L, 1 or B, D]: sinusoids of the distances from M + L down to 1 - L. Those of rows that are read
        backwards have the other sign: sines change theirs, cosines do not.
        """
        distance_RD = self.backbone.relative_positional_encoding(
            width, remembered + width, device=batch["ids_BL"].device
        )
        if "reversed_B" in batch:
            sign_B2 = torch.stack(
                [1.0 - 2.0 * batch["reversed_B"].float(), torch.ones_like(batch["reversed_B"]).float()], 1
            )
            distance_RD = distance_RD * sign_B2.repeat_interleave(self.width // 2, 1)
        found: Tensor = self.backbone.dropout(distance_RD.to(self.table_VD.dtype))
        return found

    def _remember(
        self, batch: Batch, state: RowMemory | None, remembered_BM: Tensor, layers_LBD: list[Tensor]
    ) -> RowMemory:
        """The last `memory` tokens of the earlier memory and of what the next row does not read again."""
        length_B = batch["length_B"]
        kept_B = torch.minimum(batch["reused_B"], length_B) if "reused_B" in batch else length_B
        most = int(kept_B.max())
        before = remembered_BM.shape[1]
        place_M = torch.arange(min(self.memory, before + most), device=kept_B.device)
        at_BM = before + kept_B[:, None] - len(place_M) + place_M  # the last place is a token, not padding
        real_BM = at_BM >= before - remembered_BM.sum(1, keepdim=True)
        states = []
        for number, read_LBD in enumerate(layers_LBD[:-1]):
            new_BMD = read_LBD[:most].transpose(0, 1)
            both_BMD = new_BMD if state is None else torch.cat([state.states[number], new_BMD], 1)
            states.append(both_BMD.take_along_dim(at_BM.clamp(min=0)[..., None], 1).detach())
        return RowMemory(tuple(states), real_BM)

    def pick_rows(self, state: RowMemory, row_R: Tensor) -> RowMemory:
        return RowMemory(tuple(input_BMD[row_R] for input_BMD in state.states), state.real_BM[row_R])

    def depth_of(self, parameter: str) -> int:
        _, in_layer, rest = parameter.partition("layer.")
        return int(rest.partition(".")[0]) + 1 if in_layer else 0

    def checkpoint_config(self, head: nn.Module | None, pair: nn.Module | None) -> PretrainedConfig:
        """`XLNetLMHeadModel` loads the network with the head of the permutation objective, `XLNetModel` without it."""
        config: PretrainedConfig = self.backbone.config
        config.architectures = ["XLNetLMHeadModel" if isinstance(head, TiedHead) else "XLNetModel"]
        return config

    def tensor_names(self) -> dict[str, str]:
        return {name: f"transformer.{name}" for name in self.backbone.state_dict()}

    def owns(self, name: str) -> bool:
        return name.startswith("transformer.")

    @property
    def head_parts(self) -> Mapping[str, str]:
        return {"bias": "lm_loss.bias"}


def reading_order(batch: Batch) -> Tensor:
    """int64 [B, L]: the token of a row that is read at each place: [CLS] last; padding stays behind."""
    width, last_B1 = batch["ids_BL"].shape[1], batch["length_B"][:, None] - 1
    place_L = torch.arange(width, device=last_B1.device)
    forward_BL = torch.where(place_L < last_B1, place_L + 1, 0)
    order_BL = (
        forward_BL
        if "reversed_B" not in batch
        else torch.where(batch["reversed_B"][:, None], last_B1 - place_L, forward_BL)
    )
    return torch.where(place_L <= last_B1, order_BL, place_L)
