"""Every objective and input format: a run that dies inside a step resumes to the bits of one that does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from safetensors.numpy import load_file

from paribus.core.config import compose
from paribus.training.learner import Learner
from paribus.training.run import run

PAIRS = "input=segment_pair"
OBJECTIVES = {
    "mlm": ["objective=mlm"],
    "static": ["objective=mlm", "masking/schedule=copies", "masking.schedule.copies=2"],
    "clm": ["objective=clm", "masking=none", "model.attention=left"],
    "clm_right": ["objective=clm_right", "masking=none", "model.attention=right"],
    "clm_two_way": ["objective=clm_two_way", "masking=none", "model.attention=two_way"],
    "electra": ["objective=electra", "objective.generator=0.5"],
    "mlm_nsp": ["objective=mlm_nsp", PAIRS],
    "mlm_sop": ["objective=mlm_sop", PAIRS, "input.pairs=order"],
    "mlm_three": ["objective=mlm_three", PAIRS, "input.pairs=three"],
    "mlm_sbo": ["objective=mlm_sbo", "masking=geometric_span", "objective.view.unit=span"],
    "structbert": ["objective=structbert", PAIRS, "input.pairs=three"],
    "several": ["objective=several", PAIRS, "objective.tasks.capitalization=0", "objective.tasks.next=1"],
    "unilm": ["objective=unilm", PAIRS],
    "t5": ["family=t5", "tokenizer.vocab_size=100"],
}
INPUTS = ("doc_sentences", "full_sentences", "one_segment", "sentence_pair")
CASES = [*((name, own) for name, own in OBJECTIVES.items()), *((name, [f"input={name}"]) for name in INPUTS)]
LONG = [
    "trainer.max_steps=8",
    "trainer.max_epochs=null",
    "trainer.max_tokens=null",
    "batch.size=6",
    "profile.microbatch=2",
]
INSIDE = 3 * 5 + 2  # the second of three microbatches of step 6


@pytest.mark.slow
@pytest.mark.parametrize(
    ("own", "workers"), [(own, 4 * (at % 2)) for at, (_, own) in enumerate(CASES)], ids=dict(CASES)
)
def test_a_run_that_dies_inside_a_step_ends_with_the_same_bits(
    own: list[str], workers: int, arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = [*arguments, *own, *LONG, "logger=none"]
    whole = run(compose([*every, f"run_dir={tmp_path / 'whole'}"]))
    broken = compose(
        [*every, f"run_dir={tmp_path / 'broken'}", "profile.checkpoint_steps=3", f"profile.workers={workers}"]
    )
    backward, calls = Learner.manual_backward, 0

    def die_inside(self: Learner, *given: Any, **named: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == INSIDE:
            raise RuntimeError("the machine went away")
        backward(self, *given, **named)

    with monkeypatch.context() as patch:
        patch.setattr(Learner, "manual_backward", die_inside)
        with pytest.raises(RuntimeError, match="went away"):
            run(broken)
    assert calls == INSIDE
    assert (tmp_path / "broken" / "last.ckpt").is_file()
    resumed = run(broken)
    found, wanted = (load_file(folder / "model" / "model.safetensors") for folder in (resumed, whole))
    assert {name: found[name].tobytes() for name in found} == {name: wanted[name].tobytes() for name in wanted}
    assert (resumed / "metrics.jsonl").read_text() == (whole / "metrics.jsonl").read_text()
