"""What a step costs with rotary positions, beside the same step with learned ones."""

from __future__ import annotations

import sys

from bench_training import SIZES
from turns import Row, Side, main, take_turns


def rows(turns: int = 9) -> list[Row]:
    """The seconds of a step, rotary over learned, of BERT-tiny on one thread and BERT-mini on all."""
    found = []
    for name, label in (("tiny", "BERT-tiny, one thread"), ("mini", "BERT-mini")):
        kinds = {"learned": name, "rotary": f"{name}_rotary"}
        speed = take_turns({kind: Side("bench_training", "ours", own, SIZES[0]) for kind, own in kinds.items()}, turns)
        ratio = speed["learned"] / speed["rotary"]
        found.append(Row(f"{label}: a step with rotary / learned positions", ratio, "x", most=1.05))
    return found


if __name__ == "__main__":
    sys.exit(main(rows, __doc__, turns=9))
