"""What stands for a whole row."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from paribus.models.encoder import Outputs
from paribus.models.heads.wrapper import Wrapper

POOLINGS = ("cls", "mean", "max", "cnn")
WIDTHS = (3, 4, 5)  # tokens that a filter of the TextCNN spans (arXiv 1408.5882, section 3.1)
FILTERS = 100  # of each width


class OnPooled(Wrapper):
    """Any head, on the mean or the largest values of a row's states, special tokens included and padding left out."""

    def __init__(self, kind: str, head: Any) -> None:
        super().__init__(head)
        self.kind = kind

    def read(self, outputs: Outputs, batch: dict[str, Any]) -> Outputs:
        """The same states with another summary."""
        hidden_BLD = outputs.hidden_BLD
        real_BL1 = _real(hidden_BLD, batch["length_B"])
        if self.kind == "max":
            row_BD = hidden_BLD.masked_fill(~real_BL1, float("-inf")).amax(1)
        else:
            row_BD = (hidden_BLD * real_BL1).sum(1) / batch["length_B"][:, None].to(hidden_BLD.dtype)
        return Outputs(hidden_BLD, outputs.state, row_BD)


class OnTextCNN(Wrapper):
    """Any head, on the largest values of new convolutions over a row's states (TextCNN, arXiv 1408.5882)."""

    width = len(WIDTHS) * FILTERS

    def __init__(self, width: int, head: Any) -> None:
        super().__init__(head)
        self.filters = nn.ModuleList(nn.Conv1d(width, FILTERS, size, padding=size - 1) for size in WIDTHS)

    def read(self, outputs: Outputs, batch: dict[str, Any]) -> Outputs:
        """The same states with another summary. Padding reads as zeros, as it does beyond the end of a row."""
        hidden_BLD = outputs.hidden_BLD
        state_BDL = (hidden_BLD * _real(hidden_BLD, batch["length_B"])).transpose(1, 2)
        row_BD = torch.cat([self._largest(conv, state_BDL, batch["length_B"]) for conv in self.filters], dim=-1)
        return Outputs(hidden_BLD, outputs.state, row_BD)

    def _largest(self, conv: nn.Module, state_BDL: Tensor, length_B: Tensor) -> Tensor:
        """Over the windows that hold a real token, so that a row's padding moves nothing."""
        found_BFL = conv(state_BDL).relu()
        windows_B = length_B + found_BFL.shape[2] - state_BDL.shape[2]
        inside_BL = torch.arange(found_BFL.shape[2], device=length_B.device) < windows_B[:, None]
        largest_BF: Tensor = (found_BFL * inside_BL[:, None]).amax(2)
        return largest_BF


def _real(hidden_BLD: Tensor, length_B: Tensor) -> Tensor:
    """[B, L, 1]: where no padding is."""
    return (torch.arange(hidden_BLD.shape[1], device=length_B.device) < length_B[:, None])[..., None]
