"""Text-to-text sweeps: arms are the rows of T5's table of objectives; what cannot work is refused before any run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from fake_text import noise
from fake_windows import windows

from paribus.core.build import build
from paribus.core.config import compose
from paribus.sweeps.sweep import arm_overrides
from paribus.sweeps.sweep_file import load
from paribus.training.description import Run

OBJECTIVES = {  # as the gin files of T5's code name them; the same pattern for BART's and MASS'
    "t5_table2": {
        "encoder_decoder": "iid_15_u_u",
        "prefix_lm": "iid_15_u_u",
        "encoder_decoder_lm": "prefix_lm",
        "prefix_lm_lm": "prefix_lm",
        "language_model_lm": "lm",
    },
    "t5_table4": {"prefix_lm": "prefix_lm", "bert_style": "iid_15_r10s90_f", "deshuffling": "all_permute"},
    "t5_table5": {
        "bert_style": "iid_15_r10s90_f",
        "mass_style": "iid_15_m_f",
        "replace_spans": "iid_15_u_u",
        "drop_tokens": "iid_15_d_d",
    },
    "t5_table6": {"r10": "iid_10_u_u", "r15": "iid_15_u_u", "r25": "iid_25_u_u", "r50": "iid_50_u_u"},
    "t5_table7": {
        "iid": "iid_15_u_u",
        "span2": "span_2_15_u_u",
        "span3": "span_3_15_u_u",
        "span5": "span_5_15_u_u",
        "span10": "span_10_15_u_u",
    },
    "mass_fragment": {
        "k10": "fragment_10_r10k10s80_fragment",
        "k50": "fragment_50_r10k10s80_fragment",
        "k90": "fragment_90_r10k10s80_fragment",
        "k100": "fragment_100_r10k10s80_fragment",
    },
    "bart_table1": {
        "masking": "iid_30_m_f",
        "deletion": "deletion_30_d_f",
        "infilling": "infilling_3_30_s_f",
        "rotation": "rotation_p_f",
        "sentence_shuffling": "sentences_p_f",
        "masked_seq2seq": "fragment_50_r10k10s80_fragment",
        "language_model": "lm",
    },
}


@pytest.mark.parametrize("arm", ["masking", "deletion", "infilling", "infilling_shuffling"])
def test_bart_s_arms_hide_as_much(arm: str) -> None:
    """Of 30% the authors' infilling hides 27, since its spans overlap; masking.exact keeps them apart."""
    pattern = build(compose(list(arm_overrides(load("bart_table1"), "cpu", arm))).masking)
    span_BL = pattern(windows([510] * 40), noise(40)).span_BL
    assert (span_BL > 0).mean() == pytest.approx(0.3, abs=0.01)


@pytest.mark.parametrize("study", OBJECTIVES)
def test_arms_are_the_paper_s_objectives(study: str) -> None:
    sweep = load(study)
    for arm, expected in OBJECTIVES[study].items():
        cfg = compose(list(arm_overrides(sweep, "test", arm)))
        run = Run.of(cfg)
        assert run.objective.corruption(run.masking).name == expected


OWN = """
study: own
family: t5
base: [objective=denoising, input=windows, masking=random_spans]
varies: [masking]
matched: sequences
arms: {{plain: [], odd: [{odd}]}}
baseline: plain
columns: [denoising_loss]
"""


@pytest.mark.parametrize(
    ("odd", "given", "said"),
    [
        ("masking.rate=0.0", [], "masking.rate=0"),
        ("masking.rate=1.0", [], "masking.rate=1"),
        ("masking.mean_length=10", [], "masking.mean_length=10 is longer than the noise"),
        ("masking.rate=0.5", ["tokenizer.sentinels=4"], "tokenizer.sentinels=4: set tokenizer.sentinels="),
        ("masking=iid", ["tokenizer.sentinels=0"], "tokenizer.sentinels=0"),
        ("masking=rotation", [], "Rotation reorders the text"),
    ],
)
def test_an_arm_that_cannot_work_stops_the_sweep_before_any_run(
    odd: str,
    given: list[str],
    said: str,
    arguments: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    refusal: Callable[..., str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.yaml").write_text(OWN.format(odd=odd))
    runs = tmp_path / "own_runs"
    settings = [text for text in arguments if not text.startswith("paths.runs")] + ["tokenizer.vocab_size=100"]
    assert said in refusal("run", "own.yaml", f"runs={runs}", "seeds=0", *settings, *given)
    assert not list(runs.rglob("config.yaml"))
