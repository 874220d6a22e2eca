"""What a step costs with each change of an encoder, beside what its FLOPs say, both relative to the plain encoder.

A step forward and backward of two layers of width 192 on one thread in fp32, without heads: rows of 128 tokens, and of
512 for the choices of who sees whom. All encoders take turns in one process. Changes that leave the forward pass of the
encoder as it is are left out.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from turns import Row, main

HEADS_AND_WEIGHTS = {"counted_bias", "untied", "depth_scaled", "mup", "mask_decoder"}  # of heads, or initial weights
OF_POST_NORM = {"deepnorm"}
WORDS, TOKENS, SHORT, LONG = 100, 2048, 128, 512


class Case(NamedTuple):
    """An encoder, and the name of the one without its change."""

    name: str
    spec: Any
    plain: str


def list_cases(sizes: Mapping[str, int]) -> list[Case]:
    """The plain encoder with each placement of norms, then every packaged choice with its settings there."""
    from paribus.core.build import build
    from paribus.core.config_names import choices, conf_dir, load_mapping
    from paribus.models.bert import Bert

    shape: dict[str, Any] = {"layers": 2, "hidden": 192, "heads": 3, "intermediate": 384, **sizes}
    plain = {norm: Bert(**shape, dropout=0.0, attention_dropout=0.0, norm=norm) for norm in ("pre", "post")}
    files = {name: f"model/change/{name}" for name in choices("model/change") if name not in HEADS_AND_WEIGHTS}
    files |= {f"position={name}": f"model/position/{name}" for name in choices("model/position") if name != "learned"}
    cases = [Case(f"plain, {norm}", spec, f"plain, {norm}") for norm, spec in plain.items()]
    for name, path in files.items():
        change, norm = build(load_mapping(conf_dir() / f"{path}.yaml")), "post" if name in OF_POST_NORM else "pre"
        cases.append(Case(name, replace(plain[norm], changes={"part": change}), f"plain, {norm}"))
    return cases


def make_step(spec: Any, length: int, tokens: int) -> Callable[[], None]:
    """A step forward and backward on rows of random words."""
    import torch

    from paribus.data.tokens.vocabulary import Vocabulary

    model = spec.build(Vocabulary(size=WORDS, pad=0, unk=1, cls=2, sep=3, mask=4, specials=(0, 1, 2, 3, 4)), 0)
    count = tokens // length
    ids_BL = torch.randint(5, WORDS, (count, length), generator=torch.Generator().manual_seed(0))
    batch = {"ids_BL": ids_BL, "part_BL": torch.zeros_like(ids_BL), "length_B": torch.full((count,), length)}

    def step() -> None:
        model({**batch, "full": True}).hidden_BLD.sum().backward()
        model.zero_grad()

    return step


def rows(
    turns: int = 9, tokens: int = TOKENS, short: int = SHORT, long: int = LONG, sizes: Mapping[str, int] | None = None
) -> list[Row]:
    """The seconds of a step over those of the plain encoder, in the same turn, and the same of FLOPs.

    Args:
        tokens: of a step.
        short, long: tokens of a row, of most choices and of those of who sees whom.
        sizes: {key of the model: value} instead of that of BERT-micro.
    """
    import torch

    torch.set_num_threads(1)
    steps: dict[tuple[str, int], Callable[[], None]] = {}
    flops: dict[tuple[str, int], float] = {}
    cases = list_cases(sizes or {})
    for case in cases:
        seen = any("visibility" in change.sets for change in case.spec.changes.values())
        for length in (short, long) if case.name == case.plain else (long,) if seen else (short,):
            steps[case.name, length] = make_step(case.spec, length, tokens)
            flops[case.name, length] = case.spec.forward_flops(tokens, length)
    seconds: dict[tuple[str, int], list[float]] = {key: [] for key in steps}
    for turn in range(turns + 1):
        for key, step in steps.items():
            start = time.perf_counter()
            step()
            if turn > 0:  # the first one only warms up
                seconds[key].append(time.perf_counter() - start)
    plain = {case.name: case.plain for case in cases}
    return [
        Row(
            f"changes: {name} / plain, a step on rows of {length}",
            statistics.median(
                own / base for own, base in zip(seconds[name, length], seconds[plain[name], length], strict=True)
            ),
            "x",
            note=f"FLOPs {flops[name, length] / flops[plain[name], length]:.3g} x",
        )
        for name, length in steps
        if name != plain[name]
    ]


if __name__ == "__main__":
    sys.exit(main(rows, __doc__, turns=9))
