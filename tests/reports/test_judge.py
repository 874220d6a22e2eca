"""Runs of other frameworks get the same tables: CSV files, W&B, MLflow, lm-eval."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import wandb
from scipy import stats

from paribus.commands.cli import main
from paribus.core.errors import UserError
from paribus.integrations.column_kinds import Kind, read_kind
from paribus.integrations.foreign_records import JudgeOptions
from paribus.integrations.readers import open_source
from paribus.reports.judge import Judged, judge

BASE, WARM = [0.81, 0.82, 0.80, 0.815], [0.83, 0.845, 0.82, 0.83]
CLAIM = "warm > base, margin 0.5 points"


def asked(**changes: Any) -> JudgeOptions:
    return JudgeOptions(**{"metrics": ("acc",), "baseline": "base", **changes})


def write(folder: Path, *lines: str, name: str = "runs.csv") -> str:
    path = folder / name
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def judge_csv(folder: Path, *lines: str, name: str = "runs.csv", **changes: Any) -> Judged:
    return judge(open_source(write(folder, *lines, name=name)), asked(**changes))


def arms(*, delimiter: str = ",", decimal: str = ".") -> Iterator[str]:
    yield delimiter.join(("arm", "seed", "acc"))
    for arm, values in (("base", BASE), ("warm", WARM)):
        for seed, value in enumerate(values):
            yield delimiter.join((arm, str(seed), str(value).replace(".", decimal)))


def test_a_csv_file_gets_the_paired_interval_and_the_verdict(tmp_path: Path) -> None:
    table = judge_csv(tmp_path, *arms(), claims=(CLAIM,)).table
    (row,) = table.claims[0].contrasts
    differences = [warm - base for warm, base in zip(WARM, BASE, strict=True)]
    test = stats.ttest_1samp(differences, 0.0)
    low, high = test.confidence_interval()
    assert (row.difference, row.p) == (pytest.approx(sum(differences) / 4), pytest.approx(test.pvalue))
    assert (row.ci_low, row.ci_high, row.n) == (pytest.approx(low), pytest.approx(high), 4)
    assert (row.verdict, row.margin) == ("reproduced", 0.005)


def test_the_table_says_what_was_not_checked_in_every_format(tmp_path: Path) -> None:
    files = judge_csv(tmp_path, *arms(), claims=(CLAIM,)).files
    assert {"table.md", "table.tex", "table.html", "table.json", "plot.svg", "effects.png"} <= files.keys()
    for name in ("table.md", "table.tex", "table.html"):
        assert b"their settings, budgets and texts were not compared" in files[name]
        assert b"pre-training" not in files[name]
        assert b" scale" not in files[name]
    assert b"no model from scratch" in files["table.md"]


@pytest.mark.parametrize(("delimiter", "decimal"), [(";", ","), ("\t", "."), ("|", ".")])
def test_delimiters_and_decimal_commas_give_the_same_table(tmp_path: Path, delimiter: str, decimal: str) -> None:
    lines = list(arms(delimiter=delimiter, decimal=decimal))
    assert judge_csv(tmp_path, *lines).table == judge_csv(tmp_path, *arms()).table


def test_a_byte_order_mark_percents_and_jsonl_are_read(tmp_path: Path) -> None:
    found = judge_csv(tmp_path, "\ufeffarm,seed,acc", "base,0,81.0%", "base,1,82%", "warm,0,83%", "warm,1,84.5%")
    assert found.table.arms[1].metrics["acc"].values == (pytest.approx(0.83), pytest.approx(0.845))
    lines = [
        json.dumps({"arm": arm, "cfg": {"seed": k}, "acc": v}) for arm, k, v in (("base", 0, 0.5), ("warm", 0, 0.6))
    ]
    found = judge_csv(tmp_path, *lines, name="runs.jsonl", seed="cfg.seed")
    assert [arm.metrics["acc"].mean for arm in found.table.arms] == [0.5, 0.6]


def test_missing_cells_unequal_seeds_and_repeated_rows_are_named_and_never_guessed(tmp_path: Path) -> None:
    table = judge_csv(
        tmp_path,
        "arm,seed,acc",
        "base,0,0.81", "base,1,0.82", "base,3,0.80",
        "warm,0,0.83", "warm,1,0.85", "warm,1,0.85", "warm,2,0.82", "warm,3,",
        "odd,0,0.5", "odd,0,0.6", "odd,1,0.5", ",1,0.5", "odd,,0.5",
    ).table  # fmt: skip
    found = {arm.name: arm for arm in table.arms}
    assert found["warm"].versus_baseline["acc"].counts == (3, 3), "all runs count, whatever their seeds"
    assert found["warm"].metrics["acc"].seeds == (0, 1, 2)
    assert found["odd"].metrics["acc"].seeds == (1,)
    for note in (
        "warm/seed3: acc has no number and is left out.",
        "warm/seed1 counts once: line 6, line 7 have the same numbers.",
        "odd/seed0 is left out: its rows differ in acc (line 10, line 11); with --step the last one counts.",
        "line 13 is left out: it has no arm.",
        "line 14 is left out: it has no seed.",
    ):
        assert note in table.notes


@pytest.mark.parametrize("huge", ["1e200", "-1e308", "inf"])
def test_a_value_too_large_to_square_is_left_out_like_one_that_is_not_a_number(tmp_path: Path, huge: str) -> None:
    found = judge_csv(tmp_path, *arms(), f"warm,4,{huge}", "base,4,1e308", claims=(CLAIM,))
    assert [arm.metrics["acc"].seeds for arm in found.table.arms] == [(0, 1, 2, 3)] * 2
    assert found.table.about["acc"].unit == "points"
    assert "warm: 1 of 5 runs diverged in acc (seed 4); its mean leaves them out." in found.table.notes
    without = judge_csv(tmp_path, *arms(), claims=(CLAIM,)).table.claims[0]
    (claim,) = found.table.claims
    assert without.verdict == "reproduced"
    assert claim.contrasts[0].difference == without.contrasts[0].difference
    assert claim.said == "undecided (1 of 5 runs of warm diverged, and a diverged run counts as the worst)"


def test_an_arm_all_of_whose_runs_diverged_is_undecided_and_its_mean_over_tasks_counts_them(tmp_path: Path) -> None:
    lines = ["arm,seed,a/acc,b/acc", *(f"base,{seed},0.8{seed},0.7{seed}" for seed in range(4))]
    lines += [
        *(f"warm,{seed},nan,0.8{seed**2}" for seed in range(4)),
        *(f"cold,{seed},0.4{seed},nan" for seed in (0, 1)),
    ]
    lines += [f"cold,{seed},0.4{seed},0.3{seed**2}" for seed in (2, 3)]
    claims = ("warm > base on a/acc", "base > warm on a/acc", "warm > base on b/acc", "cold > base on mean",
              "base > cold on mean")  # fmt: skip
    found = judge_csv(tmp_path, *lines, metrics=("acc", "mean"), claims=claims)
    said = list(found.verdicts.values())
    assert said[:2] == ["undecided (all 4 runs of warm diverged)"] * 2
    assert said[2].startswith("reproduced")
    assert said[4] == "reproduced (not counting 2 of 4 runs of cold, which diverged)"
    assert "warm: all 4 runs diverged in a/acc." in found.table.notes
    assert "cold: 2 of 4 runs diverged in b/acc (seed 0, 1); its mean leaves them out." in found.table.notes


def test_a_log_of_steps_is_read_at_its_last_step_and_rows_can_be_chosen(tmp_path: Path) -> None:
    lines = ["arm,seed,step,split,acc", *(f"{arm},0,{step},{split},0.{step}{at}" for arm in ("base", "warm")
             for step in (9, 8, 7) for at, split in enumerate(("dev", "test")))]  # fmt: skip
    found = judge_csv(tmp_path, *lines, step="step", where={"split": "test"})
    assert [arm.metrics["acc"].mean for arm in found.table.arms] == [0.91, 0.91]
    with pytest.raises(UserError, match="no row of runs has split=train: change --where"):
        judge_csv(tmp_path, *lines, where={"split": "train"})


def test_columns_are_read_by_their_names_unless_it_is_said_otherwise(tmp_path: Path) -> None:
    lines = ["arm,seed,val_loss,wer,bleu,score", "base,0,2.5,0.2,27.1,3", "warm,0,2.4,0.1,27.9,4"]
    metrics = ("val_loss", "wer", "bleu", "score")
    about = judge_csv(tmp_path, *lines, metrics=metrics, lower=("score",)).table.about
    assert [about[column].higher_is_better for column in metrics] == [False, False, True, False]
    assert [about[column].unit for column in metrics] == ["own", "points", "own", "own"]
    assert judge_csv(tmp_path, *lines, metrics=metrics, higher=("wer",)).table.about["wer"].higher_is_better
    assert judge_csv(tmp_path, *arms()).table.about["acc"].unit == "points"


LOWER = (
    "val_loss_epoch", "valLoss", "valloss", "loss/val", "MSELoss", "val_mse_mean", "test_ppl", "neg_log_likelihood",
    "word_error_rate", "error_rate", "eer", "ECE", "WER (%)", "top1Err", "accuracy_loss", "step_time",
)  # fmt: skip
HIGHER = (
    "lossless", "gloss", "error_free", "errorReduction", "neg_log_loss", "neg_mean_squared_error", "tokens_per_second",
    "time_qa/accuracy", "uptime", "steps", "mirror", "bleu",
)  # fmt: skip


def test_losses_and_errors_are_known_by_a_word_anywhere_in_their_names(tmp_path: Path) -> None:
    rows = (f"{arm},0{',3' * len(LOWER + HIGHER)}" for arm in ("base", "warm"))
    table = judge_csv(tmp_path, f"arm,seed,{','.join(LOWER + HIGHER)}", *rows, metrics=LOWER + HIGHER).table
    assert [column for column in table.columns if not table.about[column].higher_is_better] == list(LOWER)


def test_a_direction_that_nobody_gave_is_said_to_be_guessed(tmp_path: Path) -> None:
    lines, metrics = ["arm,seed,wer,odd,said", "base,0,0.2,1,1", "warm,0,0.1,2,2"], ("wer", "odd", "said")
    notes = judge_csv(tmp_path, *lines, metrics=metrics, higher=("said",)).table.notes
    guess = "lower is better in wer (--higher changes it); higher is better in odd (--lower changes it)"
    assert f"Guessed from names: {guess}." in notes
    assert "Guessed" not in " ".join(judge_csv(tmp_path, *lines, metrics=("odd",), lower=("odd",)).table.notes)


def test_a_margin_on_error_rates_is_in_points_and_one_on_losses_in_their_own_unit(tmp_path: Path) -> None:
    lines = ["arm,seed,wer,mse", "base,0,0.19,0.3", "base,1,0.2,0.3", "warm,0,0.12,0.31", "warm,1,0.11,0.33"]
    with pytest.raises(UserError, match=r"wer, whose values lie between 0 and 1, is 50 points: write `margin 0\.5"):
        judge_csv(tmp_path, *lines, metrics=("wer",), claims=("warm ~ base, margin 0.5",))
    for metric, margin, size in (("wer", "0.5 points", 0.005), ("mse", "0.5", 0.5)):
        table = judge_csv(tmp_path, *lines, metrics=(metric,), claims=(f"warm ~ base, margin {margin}",)).table
        assert table.claims[0].contrasts[0].margin == size


def test_fractions_beside_percents_are_refused_with_both_arms(tmp_path: Path) -> None:
    rows = ["base,0,0.80,0.5", "base,1,0.81,0.6", "warm,0,83,2", "warm,1,84,3"]
    with pytest.raises(UserError, match=r"acc is 0\.81 in base and 83 in warm: write it as fractions in all arms"):
        judge_csv(tmp_path, "arm,seed,acc,reward", *rows)
    judge_csv(tmp_path, "arm,seed,acc,reward", *rows, metrics=("reward",))
    with pytest.raises(UserError, match=r"score is 0\.81 in base and 83 in warm"):
        judge_csv(tmp_path, "arm,seed,score,reward", *rows, metrics=("score",))


def test_a_margin_in_points_is_about_the_columns_in_points(tmp_path: Path) -> None:
    rows = ["base,0,0.80,2.5", "base,1,0.81,2.4", "warm,0,0.85,2.5", "warm,1,0.86,2.4"]
    asked_for = {
        "metrics": ("acc", "val_loss"),
        "claims": ("warm > base, margin 0.5 points", "warm > base on val_loss"),
    }
    table = judge_csv(tmp_path, "arm,seed,acc,val_loss", *rows, **asked_for).table
    assert [[row.column for row in claim.contrasts] for claim in table.claims] == [["acc"], ["val_loss"]]
    note = (
        "warm > base, margin 0.5 points: not about val_loss, which the margin does not fit (`on COLUMN` names columns)."
    )
    assert note in table.notes
    (claim,) = judge_csv(
        tmp_path, "arm,seed,acc,val_loss", *rows, **{**asked_for, "claims": ("warm > base, margin 0.1 nats",)}
    ).table.claims
    assert [row.column for row in claim.contrasts] == ["val_loss"]


def test_runs_without_shared_seeds_are_not_missing_any(tmp_path: Path) -> None:
    table = judge_csv(tmp_path, "arm,acc", "base,0.80", "base,0.81", "warm,0.85", seed="none").table
    assert [arm.n for arm in table.arms] == [2, 1]
    assert not any("no record of seed" in note for note in table.notes)
    assert "The runs share no seeds: the arms are compared by all their runs." in table.notes


def test_a_mean_is_in_points_whatever_else_is_judged(tmp_path: Path) -> None:
    lines = ["arm,seed,a/acc,a/wer,score", "base,0,0.76,0.1,76", "base,1,0.75,0.1,75", "warm,0,0.78,0.2,78"]
    metrics = ("acc", "wer", "score", "mean")
    table = judge_csv(tmp_path, *lines, metrics=metrics, claims=("warm ~ base on mean, margin 1 points",)).table
    assert (table.about["mean"].unit, table.claims[0].contrasts[0].margin) == ("points", 0.01)
    assert table.arms[1].metrics["mean"].values == (0.78,)
    with pytest.raises(UserError, match=r"margin 1 on mean.* is 100 points"):
        judge_csv(tmp_path, *lines, metrics=metrics, claims=("warm ~ base on mean, margin 1",))


@pytest.mark.parametrize(
    ("header", "metrics", "message"),
    [
        ("acc", ("mean",), "mean has no column to average: it averages scores such as TASK/acc"),
        ("a/acc", ("acc", "mean"), r"mean has no column to average: .* write 85\.2 as 0\.852 or 85\.2%"),
        ("mean", ("mean",), "runs has a column 'mean', a name of the mean over tasks: rename that column"),
    ],
)
def test_a_mean_over_no_task_is_refused(tmp_path: Path, header: str, metrics: tuple[str, ...], message: str) -> None:
    with pytest.raises(UserError, match=message):
        judge_csv(tmp_path, f"arm,seed,{header}", "base,0,76", "base,0,76", "warm,0,78", metrics=metrics)


def test_true_and_false_are_numbers(tmp_path: Path) -> None:
    table = judge_csv(tmp_path, "arm,seed,acc", "base,0,False", "warm,0,true").table
    assert [arm.metrics["acc"].mean for arm in table.arms] == [0.0, 1.0]


def test_one_name_of_a_column_leaves_others_of_the_process_as_they_are(tmp_path: Path) -> None:
    judge_csv(tmp_path, "arm,seed,sst2/accuracy", "base,0,1", "warm,0,0", metrics=("accuracy",), lower=("accuracy",))
    from paribus.verdict.metrics import is_score, lower_is_better

    assert is_score("sst2/accuracy")
    assert not lower_is_better("sst2/accuracy")


def test_arms_of_several_columns_and_odd_names_can_be_claimed_about(tmp_path: Path) -> None:
    lines = [
        "model,lr,seed,acc",
        *(f"my bert,{lr},{k},{acc + k / 100}" for lr, acc in ((0.1, 0.5), (0.2, 0.7)) for k in (1, 2)),
    ]
    found = judge_csv(
        tmp_path, *lines, arm=("model", "lr"), baseline="my bert+0.1", claims=('"my bert+0.2" >= "my bert+0.1"',)
    )
    assert [arm.name for arm in found.table.arms] == ["my_bert+0.1", "my_bert+0.2"]
    assert found.verdicts == {"my_bert+0.2 >= my_bert+0.1": found.table.claims[0].said}


def test_seeds_that_are_words_are_numbered_and_said(tmp_path: Path) -> None:
    table = judge_csv(tmp_path, "arm,seed,acc", "base,b,0.1", "base,a,0.2", "warm,a,0.3", "warm,b,0.4").table
    assert table.arms[1].metrics["acc"].values == (0.3, 0.4)
    assert "Seeds are numbered: 0 is a, 1 is b." in table.notes


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"metrics": ("acuracy",)}, "has no column 'acuracy': did you mean acc"),
        ({"seed": "run"}, "has no column 'run': name it with --seed COLUMN, or write --seed none if the runs share"),
        ({"arm": ("model",)}, "has no column 'model': --arm COLUMN names another one"),
        ({"baseline": "bse"}, "'bse' is not an arm: did you mean base"),
        ({"claims": ("warm > cold",)}, "names the unknown arm 'cold'"),
        ({"claims": ("warm > base, margin 0.5",)}, "is 50 points: write `margin 0.5 points`"),
        ({"lower": ("ac",)}, "--lower names 'ac', which is not judged: did you mean acc"),
        ({"higher": ("seed",)}, "--higher names 'seed', which is not judged: known: acc"),
        ({"metrics": ("acc", "mean"), "lower": ("mean",)}, "--lower names mean, which averages scores"),
        ({"lower": ("acc",), "higher": ("acc",)}, "--lower and --higher both name acc: keep one of them"),
        ({"where": {"split": "test"}}, "has no column 'split': known: arm, seed, acc"),
        ({"pattern": "{arm}_{seed}"}, "no name in runs matches"),
        ({"pattern": "{arm}-{arm}"}, "name each column once"),
        ({"pattern": "arm-seed"}, "name each column once"),
    ],
)  # fmt: skip
def test_a_slip_is_refused_with_what_to_type(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        judge_csv(tmp_path, *arms(), **changes)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (("base,,0.1", "warm,,0.2"), "no row of runs has a value in seed: fill it in"),
        (("base,,0.1", ",0,0.2"), "no row of runs has a value in arm and a value in seed"),
        (
            ("base,0,0.1", "base,0,0.2", "warm,0,0.3"),
            r"no run of the baseline 'base' counts: base/seed0 is left out: its rows differ in acc \(line 2, line 3\)",
        ),
    ],
)
def test_rows_that_leave_no_run_are_refused_with_the_reason(
    tmp_path: Path, rows: tuple[str, ...], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        judge_csv(tmp_path, "arm,seed,acc", *rows)


def test_an_arm_whose_runs_contradict_themselves_stays_in_the_table_with_the_reason(tmp_path: Path) -> None:
    table = judge_csv(tmp_path, "arm,seed,acc", "base,0,0.1", "warm,0,0.2", "warm,0,0.3", claims=(CLAIM,)).table
    assert [(arm.name, list(arm.metrics)) for arm in table.arms] == [("base", ["acc"]), ("warm", [])]
    assert table.claims[0].verdict == "not run"
    assert any(note.startswith("warm/seed0 is left out: its rows differ in acc") for note in table.notes)


@pytest.mark.parametrize("lines", [["a,b"], ["arm;seed;acc"], ["arm,seed,acc", "base,0,0.1,7"], ["arm,arm", "1,2"]])
def test_a_broken_file_is_refused(tmp_path: Path, lines: list[str]) -> None:
    with pytest.raises(UserError):
        judge_csv(tmp_path, *lines)


def test_a_line_that_is_no_json_is_refused_with_what_to_write(tmp_path: Path) -> None:
    (tmp_path / "runs.jsonl").write_text('{"arm": "base", "seed": 0\n')
    with pytest.raises(UserError, match=r"line 1 of .*runs\.jsonl is not JSON \(.*\): write one object per run"):
        open_source(str(tmp_path / "runs.jsonl"))


def test_a_file_that_is_not_there_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"runs\.csv does not exist: give a CSV"):
        open_source(str(tmp_path / "runs.csv"))


def test_the_command_writes_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], refusal: Callable[..., str]
) -> None:
    monkeypatch.chdir(tmp_path)
    file = write(tmp_path, *arms())
    given = [
        "judge",
        file,
        "--metric",
        "acc",
        "--baseline",
        "base",
        "--claim",
        CLAIM,
        "--claim",
        "warm ~ base, margin 1 points",
    ]
    assert main(given) == 0
    shown = capsys.readouterr().out
    assert shown.count("margin 0.5 points") == shown.count("margin 1 points") == 1
    assert (tmp_path / "reports/judged/runs/table.tex").is_file()
    assert "judge needs --baseline" in refusal("judge", file, "--metric", "acc")


def test_columns_whose_names_hold_blanks_can_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = write(tmp_path, "the arm,seed,WER (%),top 1 [%]", "base,0,20,70", "warm,0,19,71")
    given = ["--arm", "the arm", "--metric", "WER (%), top 1 [%]", "--higher", "top 1 [%]", "--baseline", "base"]
    assert main(["judge", file, *given, "--claim", "warm > base on WER (%)"]) == 0
    table = json.loads(Path("reports/judged/runs/table.json").read_text())
    assert table["columns"] == ["WER (%)", "top 1 [%]"]


def lm_eval(folder: Path, arm: str, seed: int, acc: float) -> None:
    """A file in the layout of lm-eval 0.4."""
    own = folder / f"out__{arm}-s{seed}"
    own.mkdir(parents=True)
    results = {
        "arc_easy": {"alias": "arc_easy", "acc,none": acc, "acc_stderr,none": 0.01},
        "piqa": {"alias": "piqa", "acc,none": acc + 0.1, "acc_stderr,none": 0.01},
        "gsm8k": {"alias": "gsm8k", "exact_match,strict-match": acc / 2, "exact_match_stderr,strict-match": 0.01},
        "lambada": {"alias": "lambada", "perplexity,none": 20 * acc, "bits,none": 9 * acc, "bits_stderr,none": "N/A"},
    }
    content = {
        "results": results,
        "higher_is_better": {"arc_easy": {"acc": True}, "gsm8k": {"exact_match": True}, "lambada": {"bits": False}},
        "config": {"model": "hf", "model_args": f"pretrained=out/{arm}-s{seed}", "random_seed": 0, "limit": None},
        "model_name": f"out/{arm}-s{seed}",
    }
    (own / "results_2026-11-01T10-00-00.123456.json").write_text(json.dumps(content))


def test_lm_eval_gives_a_column_per_task_and_their_mean(tmp_path: Path) -> None:
    for arm, values in (("base", BASE), ("warm", WARM)):
        for seed, value in enumerate(values):
            lm_eval(tmp_path, arm, seed, value - 0.3)
    metrics = ("acc", "exact_match@strict-match", "bits", "mean")
    found = judge(
        open_source(str(tmp_path)), asked(metrics=metrics, pattern="{arm}-s{seed}", claims=("warm > base on mean",))
    )
    table = found.table
    assert table.columns == ("arc_easy/acc", "piqa/acc", "gsm8k/exact_match@strict-match", "lambada/bits", "mean")
    assert not table.about["lambada/bits"].higher_is_better
    tasks = [WARM[0] - 0.3, WARM[0] - 0.2, (WARM[0] - 0.3) / 2]
    assert table.arms[1].metrics["mean"].values[0] == pytest.approx(sum(tasks) / 3)
    assert table.claims[0].verdict == "reproduced"
    assert table.aggregate is not None


def test_the_tasks_of_a_group_of_lm_eval_count_once(tmp_path: Path) -> None:
    for arm, value in (("base", 0.5), ("warm", 0.6)):
        lm_eval(tmp_path, arm, 0, value)
    for path in tmp_path.rglob("*.json"):
        content = json.loads(path.read_text())
        content["results"]["science"] = {"alias": "science", "acc,none": 0.7}
        content["group_subtasks"] = {"science": ["arc_easy"], "other": ["piqa"], "arc_easy": []}
        path.write_text(json.dumps(content))
    source = open_source(str(tmp_path))
    table = judge(source, asked(metrics=("acc", "mean"), pattern="{arm}-s{seed}")).table
    assert table.columns == ("piqa/acc", "science/acc", "mean")
    assert any(note.startswith("No column of their own: arc_easy/acc, a part of science/acc;") for note in table.notes)
    named = judge(source, asked(metrics=("arc_easy/acc", "science/acc"), pattern="{arm}-s{seed}")).table
    assert named.columns == ("arc_easy/acc", "science/acc")


def test_a_single_file_of_lm_eval_is_read(tmp_path: Path) -> None:
    lm_eval(tmp_path, "base", 3, 0.5)
    (path,) = tmp_path.rglob("*.json")
    table = judge(open_source(str(path)), asked(metrics=("arc_easy/acc",), pattern="{arm}-s{seed}")).table
    assert table.arms[0].metrics["arc_easy/acc"].seeds == (3,)


def test_a_folder_with_a_foreign_json_is_refused(tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text("[1]")
    with pytest.raises(UserError, match="holds no results of lm-eval"):
        open_source(str(tmp_path))


def mlflow_folder(root: Path, run: str, status: int, params: dict[str, str], metrics: dict[str, str]) -> None:
    """A run as MLflow's file store lays it out."""
    folder = root / "778633" / run
    (folder / "tags").mkdir(parents=True)
    (folder / "meta.yaml").write_text(f"run_id: {run}\nrun_name: {run}\nstatus: {status}\nlifecycle_stage: active\n")
    (folder / "tags" / "mlflow.user").write_text("me")
    for part, values in (("params", params), ("metrics", metrics)):
        for name, text in values.items():
            path = folder / part / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


def test_an_mlflow_folder_is_read_with_the_last_value_of_each_metric(tmp_path: Path) -> None:
    (tmp_path / "778633").mkdir()
    (tmp_path / "778633" / "meta.yaml").write_text("experiment_id: 778633\nname: exp\n")
    for arm, value in (("base", 0.8), ("warm", 0.9)):
        mlflow_folder(
            tmp_path, f"{arm}0", 3, {"arm": arm, "seed": "0"}, {"eval/acc": f"17 0.1 0\n18 {value} 2\n19 0.5 1\n"}
        )
    mlflow_folder(tmp_path, "bad", 4, {"arm": "warm", "seed": "1"}, {})
    table = judge(open_source(f"mlflow:{tmp_path}"), asked(metrics=("acc",))).table
    assert [arm.metrics["eval/acc"].mean for arm in table.arms] == [0.8, 0.9]
    assert "warm/seed1 failed: its status in MLflow is FAILED." in table.notes


def test_an_mlflow_database_is_read(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "mlflow.db") as store:
        store.execute("CREATE TABLE runs (run_uuid, name, status, lifecycle_stage)")
        for table in ("params", "tags", "latest_metrics"):
            store.execute(f"CREATE TABLE {table} (key, value, run_uuid)")
        for arm, value, stage in (("base", 0.8, "active"), ("warm", 0.9, "active"), ("cold", 0.1, "deleted")):
            store.execute("INSERT INTO runs VALUES (?, ?, 'FINISHED', ?)", (arm, f"{arm}-s3", stage))
            store.execute("INSERT INTO latest_metrics VALUES ('acc', ?, ?)", (value, arm))
    store.close()
    for name in (str(tmp_path / "mlflow.db"), f"mlflow:{tmp_path}"):
        table = judge(open_source(name), asked(pattern="{arm}-s{seed}")).table
        assert [(arm.name, arm.metrics["acc"].mean) for arm in table.arms] == [("base", 0.8), ("warm", 0.9)]


def test_offline_runs_of_wandb_are_read_as_it_wrote_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_SILENT", "true")
    for arm, value in (("base", 0.7), ("warm", 0.8)):
        config = {"model": {"arm": arm}, "seed": 4, "acc": "as configured"}
        run = wandb.init(mode="offline", dir=tmp_path, project="p", name=f"{arm}-s4", config=config)
        run.log({"loss": 2.0, "acc": 0.1})
        run.log({"loss": 1.0, "acc": value})
        run.finish(exit_code=int(arm == "cold"))
    source = open_source(str(tmp_path))
    table = judge(source, asked(metrics=("summary.acc", "loss"), arm=("model.arm",))).table
    assert {arm.name: arm.metrics["summary.acc"].mean for arm in table.arms} == {"base": 0.7, "warm": 0.8}
    assert not table.about["loss"].higher_is_better


def test_the_runs_of_a_wandb_project_are_asked_for_by_its_client(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(arm: str, seed: int, state: str, acc: float) -> SimpleNamespace:
        named = {"id": f"{arm}{seed}", "name": f"{arm}-s{seed}", "state": state}
        return SimpleNamespace(**named, config={"arm": arm, "seed": seed}, summary_metrics={"acc": acc, "_step": 3})

    asked_for = []

    class Api:
        def runs(self, path: str, **more: Any) -> list[SimpleNamespace]:
            asked_for.append(path)
            return [run("base", 0, "finished", 0.7), run("warm", 0, "finished", 0.8), run("warm", 1, "crashed", 0.2)]

    monkeypatch.setattr(wandb, "Api", Api)
    table = judge(open_source("wandb:me/project"), asked()).table
    assert asked_for == ["me/project"]
    assert table.study == "project"
    assert table.arms[1].metrics["acc"].values == (0.8,)
    assert "warm/seed1 failed: its state in W&B is crashed." in table.notes


def test_a_server_that_cannot_be_asked_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise ConnectionError("no route")

    monkeypatch.setattr(wandb, "Api", fail)
    with pytest.raises(UserError, match="W&B cannot load me/project"):
        open_source("wandb:me/project")


@pytest.mark.parametrize("column", ["error (%)", "err_pct", "val/error_percent"])
@pytest.mark.parametrize("sign", ["", "%"])
def test_a_header_that_says_percent_gives_the_unit_once(tmp_path: Path, column: str, sign: str) -> None:
    rows = [f"{arm},{seed},{value}{sign}" for arm, low in (("base", 0.8), ("warm", 0.7))
            for seed, value in enumerate((low, low + 0.11))]  # fmt: skip
    judged = judge_csv(tmp_path, f"arm,seed,{column}", *rows, metrics=(column,), claims=(CLAIM,))
    (row,) = judged.table.claims[0].contrasts
    assert row.difference == pytest.approx(-0.001)
    assert judged.columns[column].points
    assert any("0.91 is read as 0.91%" in note for note in judged.table.notes) == (not sign)


def test_percents_above_100_and_two_units_are_refused(tmp_path: Path) -> None:
    rows = ["arm,seed,acc (%)", "base,0,81", "warm,0,"]
    with pytest.raises(UserError, match=r"acc \(%\) says percent, and line 3 has 812"):
        judge_csv(tmp_path, *rows[:2], rows[2] + "812", metrics=("acc (%)",))
    with pytest.raises(UserError, match="write it as fractions in all arms"):
        judge_csv(tmp_path, *rows[:2], rows[2] + "0.83", metrics=("acc (%)",))


def test_resources_and_ranks_keep_their_unit_and_are_better_if_lower() -> None:
    losses = ("gpu_hours", "minutes", "latency_ms", "ms_per_token", "energy_kwh", "memory_gb", "rank", "entropy")
    assert {read_kind(column) for column in losses} == {Kind.LOSS}
    assert {read_kind(column) for column in ("toxicity", "miss_rate", "val_acc_drop")} == {Kind.RATE}
    higher = ("tokens_per_hour", "mean_reciprocal_rank", "rank_correlation", "memory_free", "ms_marco/ndcg", "drop/em")
    assert {read_kind(column) for column in higher} <= {Kind.SCORE, None}
