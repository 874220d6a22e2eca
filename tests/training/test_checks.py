"""What a run refuses from its settings alone."""

from __future__ import annotations

import pytest

from paribus.core.config import compose
from paribus.core.errors import UserError
from paribus.training.checks import check_run
from paribus.training.description import Run
from paribus.training.profile import resolve


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        (["batch.size=1"], r"batch.size=1, but the norms of the model take statistics over the rows"),
        (["finetune.batch_size=1"], r"finetune.batch_size=1, but the norms"),
        (["profile.microbatch=2"], r"profile.microbatch=2 would cut the batches"),
    ],
)
def test_batch_norm_needs_its_rows_together(changes: list[str], match: str) -> None:
    settings = ["scale=test", "batch.size=4", *changes]
    config = compose([*settings, "+model/change@model.changes.norm=batch_norm"])
    with pytest.raises(UserError, match=match):
        check_run(Run.of(config), resolve(config.profile))
    plain = compose(settings)
    check_run(Run.of(plain), resolve(plain.profile))
