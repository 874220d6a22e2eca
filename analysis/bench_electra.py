"""ELECTRA's pre-training speed beside the masked LM, and beside the `transformers` Trainer with the same two networks.

BERT-mini (4 x 256) reads 32 rows of 128 tokens a step on all cores, and a generator of a quarter of its width, tied by
the embeddings, replaces 15 % of the tokens. The Trainer has `ElectraForMaskedLM` and `ElectraForPreTraining` in bf16.
"""

from __future__ import annotations

import sys
from typing import Any

from bench_training import SHAPES, SIZES, lightning, masked, masked_lm, parts
from turns import Measure, Row, Side, main, take_turns

SHAPE, SHARE, WEIGHT = SHAPES["mini"], 0.25, 50.0


def electra() -> Any:
    """ELECTRA's objective."""
    from paribus.corruption.views.replace import Replace
    from paribus.objectives.electra import Electra

    return Electra(Replace(mask=0.85, random=0.0, keep=0.15), generator=SHARE, weight=WEIGHT)


OBJECTIVES = {"electra": electra, "mlm": masked_lm}


def ours(objective: str, size: str) -> Measure:
    """Our tokens a second."""
    return lightning(*parts(SHAPE, int(size), OBJECTIVES[objective]()), SHAPE.batch, SHAPE.threads)


def peer(size: str) -> Measure:
    """The Trainer's tokens a second."""
    import torch
    from torch import Tensor, nn
    from transformers import ElectraConfig, ElectraForMaskedLM, ElectraForPreTraining

    def config(width: int) -> ElectraConfig:
        return ElectraConfig(
            vocab_size=int(size), embedding_size=SHAPE.width, hidden_size=width, num_hidden_layers=SHAPE.layers,
            num_attention_heads=max(1, width // 64), intermediate_size=4 * width, hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
        )  # fmt: skip

    class Both(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.generator = ElectraForMaskedLM(config(round(SHARE * SHAPE.width)))
            self.network = ElectraForPreTraining(config(SHAPE.width))
            self.network.electra.embeddings = self.generator.electra.embeddings

        def forward(self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor) -> dict[str, Tensor]:
            filled = self.generator(input_ids=input_ids, attention_mask=attention_mask, labels=labels)
            noised_BL = labels != -100
            with torch.no_grad():
                logits_PV = filled.logits[noised_BL].float()
                written_P = (logits_PV - torch.empty_like(logits_PV).exponential_().log()).argmax(dim=-1)
                read_BL = input_ids.masked_scatter(noised_BL, written_P)
                replaced_BL = torch.zeros_like(labels).masked_scatter(
                    noised_BL, (written_P != labels[noised_BL]).to(labels.dtype)
                )
            told = self.network(input_ids=read_BL, attention_mask=attention_mask, labels=replaced_BL)
            return {"loss": filled.loss + WEIGHT * told.loss}

    return masked(Both(), SHAPE, int(size), bf16=True)


def flops(objective: Any, size: int) -> float:
    """Of a training step for each input token, as budgets count them."""
    from paribus.objectives.spec import Statistics

    counts = {"input_tokens": 1.0, "predicted": 0.15, "sequences": 1.0 / SHAPE.length}
    return float(objective.flops(Statistics(counts, SHAPE.length, size), SHAPE.spec()))


def rows(turns: int = 3) -> list[Row]:
    """A step beside a masked LM's, and tokens a second beside the Trainer."""
    found, here = [], "bench_electra"
    for size in SIZES:
        sides = {name: Side(here, "ours", name, size) for name in OBJECTIVES} | {"peer": Side(here, "peer", size)}
        speed = take_turns(sides, turns)
        work = flops(electra(), size) / flops(masked_lm(), size)
        name, ratio = f"ELECTRA, BERT-mini, V {size}", speed["mlm"] / speed["electra"]
        note = f"{ratio:.2f} steps of the masked LM, {work:.2f} by FLOPs"
        found.append(Row(f"{name}: time of a step / what its FLOPs say", ratio / work, "x", most=1.35, note=note))
        note = f"{speed['electra']:,.0f} tokens/s"
        found.append(Row(f"{name}: ours / Trainer bf16", speed["electra"] / speed["peer"], "x", least=1.5, note=note))
    return found


if __name__ == "__main__":
    sys.exit(main(rows, __doc__, turns=3))
