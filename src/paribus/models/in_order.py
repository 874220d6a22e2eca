"""The windows of long texts, read in order by a network with memory."""

from __future__ import annotations

import torch

from paribus.models.network import Batch, Network, Outputs, State


def read_in_order(network: Network, batch: Batch) -> Outputs:
    """The states of the windows of texts, each of which remembers the windows of its text before it.

    A pass of the network reads one window of each text. Texts with fewer windows begin in a later pass, so that all of
    them end in the last one. Gradients flow through that pass alone, as they flow through no memory in pre-training.
    """
    count_B = (batch["place_BK"] >= 0).sum(1)
    text_B = count_B.argsort(descending=True, stable=True)  # the texts of a pass are the first of those of the next
    place_BK, count_B = batch["place_BK"][text_B], count_B[text_B]
    passes = place_BK.shape[1]
    state: State = None
    parts: list[Outputs] = []
    rows: list[torch.Tensor] = []
    for number in range(passes):
        window_B = count_B - passes + number
        window_R = window_B[window_B >= 0]
        row_R = place_BK[: len(window_R)].gather(1, window_R[:, None])[:, 0]
        if rows and len(row_R) > len(rows[-1]):  # what a text begins with counts for nothing
            known_R = torch.arange(len(row_R), device=row_R.device)
            state = network.pick_rows(state, known_R.where(known_R < len(rows[-1]), 0))
        read = {name: batch[name][row_R] for name in ("ids_BL", "part_BL", "length_B")}
        read |= {"begins_B": window_R == 0, "full": batch["full"], "layers": batch.get("layers", False)}
        part = network(read, state)
        state = part.state
        parts.append(part if number == passes - 1 else _detach(part))
        rows.append(row_R)
    return _join(parts, torch.cat(rows).argsort())


def _detach(part: Outputs) -> Outputs:
    summary_BD = None if part.summary_BD is None else part.summary_BD.detach()
    layers = None if part.layers is None else tuple(state_BLD.detach() for state_BLD in part.layers)
    return part._replace(hidden_BLD=part.hidden_BLD.detach(), state=None, summary_BD=summary_BD, layers=layers)


def _join(parts: list[Outputs], at_W: torch.Tensor) -> Outputs:
    """All passes as one batch, in its order of rows."""
    hidden_BLD = torch.cat([part.hidden_BLD for part in parts])[at_W]
    summaries = [part.summary_BD for part in parts if part.summary_BD is not None]
    layers = [part.layers for part in parts if part.layers is not None]
    return Outputs(
        hidden_BLD,
        summary_BD=torch.cat(summaries)[at_W] if summaries else None,
        layers=tuple(torch.cat(states)[at_W] for states in zip(*layers, strict=True)) if layers else None,
        summarize=parts[-1].summarize,
    )
