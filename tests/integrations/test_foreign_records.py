"""Which rows are one run, how arms and seeds are named, and which row of a log counts."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from foreign import collect, list_values, write

from paribus.core.errors import UserError


def csv(folder: Path, *lines: str) -> str:
    return write(folder / "runs.csv", "\n".join(lines) + "\n")


def test_only_an_empty_cell_is_no_name(tmp_path: Path) -> None:
    names = ["none", "NA", "null", "nan", "-", "True", "1.0"]
    file = csv(tmp_path, "arm,seed,acc", *(f"{name},0,0.{at}" for at, name in enumerate(names, 1)), ",0,0.9")
    runs = collect(file, baseline="none")
    assert list(runs.arms) == names
    assert "line 9 is left out: it has no arm." in runs.notes
    arms = [True, 1, 1.0, "none", None]
    lines = [json.dumps({"arm": arm, "seed": 0, "acc": 0.5}) for arm in arms]
    assert collect(write(tmp_path / "runs.jsonl", "\n".join(lines))).arms == ("true", "1", "1.0", "none")


@pytest.mark.parametrize(
    ("lines", "arm", "message"),
    [
        (
            ["re\u0301s", "r\u00e9s"],
            ("arm",),
            r"the arms 're\u0301s' and 'r\xe9s' would have the same name: write it in",
        ),
        (
            ["mine", "mine "],
            ("arm",),
            "the arms 'mine' and 'mine ' would have the same name: write it in one way in all",
        ),
        (["a b", "a/b"], ("arm",), "the arms 'a b' and 'a/b' would have the same name"),
        (["a,b c", "a,b/c"], ("arm", "more"), "the arms 'a + b c' and 'a + b/c' would have the same name: rename one"),
    ],
)
def test_arms_that_would_collapse_are_refused(
    tmp_path: Path, lines: list[str], arm: tuple[str, ...], message: str
) -> None:
    file = csv(tmp_path, f"{','.join(arm)},seed,acc", *(f"{line},0,0.5" for line in lines))
    with pytest.raises(UserError, match=re.escape(message)):
        collect(file, arm=arm)


def test_arms_of_two_columns_stay_apart(tmp_path: Path) -> None:
    runs = collect(csv(tmp_path, "arm,more,seed,acc", "a,b+c,0,0.1", "a+b,c,0,0.2", "d,e,0,0.3"), arm=("arm", "more"))
    assert list_values(runs) == [("a__b+c", 0, 0.1), ("a+b__c", 0, 0.2), ("d+e", 0, 0.3)]
    assert "Joined by __, because + gives these arms the same name: a__b+c, a+b__c." in runs.notes


def test_seeds_are_exact_and_have_one_spelling(tmp_path: Path) -> None:
    large = 2**53
    file = csv(tmp_path, "arm,seed,acc", f"base,{large},0.1", f"base,{large + 1},0.2")
    assert list_values(collect(file)) == [("base", large, 0.1), ("base", large + 1, 0.2)]
    runs = collect(csv(tmp_path, "arm,seed,acc", "base,1,0.1", "warm,1.0,0.2", "cold,01,0.3"))
    assert [run.seed for run in runs.records] == [1, 1, 1]
    assert "The same seed: 1 and 1.0 and 01." in runs.notes
    with pytest.raises(UserError, match=r"the seeds '1' and '1\.0' of arm base are the same: write each seed once"):
        collect(csv(tmp_path, "arm,seed,acc", "base,1,0.1", "base,1.0,0.2"))
    with pytest.raises(UserError, match="may be rounded: write it as a whole number"):
        collect(csv(tmp_path, "arm,seed,acc", "base,9007199254740993.0,0.1"))
    runs = collect(csv(tmp_path, "arm,seed,acc", "base,0x1F,0.1", "base,0x2,0.2", "warm,0x2,0.3"))
    assert [(run.arm, run.seed) for run in runs.records] == [("base", 0), ("base", 1), ("warm", 1)]


def test_runs_without_shared_seeds_have_a_number_each(tmp_path: Path) -> None:
    lines = ["arm,acc", "base,0.1", "base,0.2", "warm,0.3"]
    message = "runs has no column 'seed': name it with --seed COLUMN, or write --seed none if the runs share no seeds"
    with pytest.raises(UserError, match=message):
        collect(csv(tmp_path, *lines))
    runs = collect(csv(tmp_path, *lines), seed="none")
    assert list_values(runs) == [("base", 0, 0.1), ("base", 1, 0.2), ("warm", 2, 0.3)]
    assert not runs.shared
    named = ["arm,run,step,acc", "base,x,1,0.1", "base,x,2,0.2", "warm,y,1,0.3"]
    assert list_values(collect(csv(tmp_path, *named), seed="none")) == [("base", 0, 0.2), ("warm", 1, 0.3)]
    with pytest.raises(UserError, match="runs does not tell which rows are one run"):
        collect(csv(tmp_path, "arm,step,acc", "base,1,0.1"), seed="none", step="last")
    with pytest.raises(UserError, match="with --seed none each row is a run, but base has several values of step"):
        collect(csv(tmp_path, "arm,step,acc", "base,1,0.1", "base,2,0.2"), seed="none")
    column = collect(csv(tmp_path, "arm,none,acc", "base,7,0.1"), seed="none")
    assert (list_values(column), column.shared) == ([("base", 7, 0.1)], True)


def test_a_run_that_diverged_has_its_value_and_one_without_a_number_has_none(tmp_path: Path) -> None:
    cells = ["nan", "-inf", "NA", ""]
    runs = collect(csv(tmp_path, "arm,seed,acc", "base,9,0.5", *(f"base,{at},{cell}" for at, cell in enumerate(cells))))
    metrics = {run.seed: run.metrics for run in runs.records}
    assert math.isnan(metrics[0]["acc"] or 0.0)
    assert metrics[1] == {"acc": -math.inf}
    assert metrics[2] == metrics[3] == {}
    assert "base/seed3: acc has no number and is left out." in runs.notes


@pytest.mark.parametrize("cell", ["nan", "inf", "NA", "failed"])
def test_the_last_row_counts_whatever_its_cell_says(tmp_path: Path, cell: str) -> None:
    log = csv(tmp_path, "arm,seed,step,acc", f"base,0,2,{cell}", "base,0,1,0.5", "base,0,3,", "base,1,1,0.6")
    for runs in (collect(log), collect(log, step="step")):
        (first, second) = runs.records
        assert repr(first.metrics.get("acc")) == (cell if cell in ("nan", "inf") else "None")
        assert second.metrics == {"acc": 0.6}
    early = "acc: the last value of base/seed1 at step 1 counts, though others go on to 2."
    assert early in runs.notes
    noted = "base/seed0: acc has no number in its last row (line 2) and is left out." in runs.notes
    assert noted == (cell in ("NA", "failed"))
    chart = csv(tmp_path, '"Step","base-s0 - acc","base-s1 - acc"', '"1","0.5","0.4"', f'"2","{cell}",""')
    first, second = collect(chart, pattern="{arm}-s{seed}").records
    assert repr(first.metrics.get("acc")) == (cell if cell in ("nan", "inf") else "None")
    assert second.metrics == {"acc": 0.4}


LOG = (
    "arm,seed,epoch,step,loss,acc",
    "base,0,0,9,2.0,", "base,0,0,9,,0.5", "base,0,1,19,1.0,", "base,0,1,19,,0.7",
    "base,0,2,29,,0.6", "base,0,2,34,0.9,",
)  # fmt: skip


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (None, {"acc": 0.6, "loss": 0.9}),
        ("step", {"acc": 0.6, "loss": 0.9}),
        ("last", {"acc": 0.6, "loss": 0.9}),
        ("best", {"acc": 0.7, "loss": 0.9}),
        ("epoch=best", {"acc": 0.7, "loss": 0.9}),
        ("step=best", {"acc": 0.7, "loss": 0.9}),
        ("19", {"acc": 0.7, "loss": 1.0}),
        ("34", {"loss": 0.9}),
        ("9,29", {"acc@9": 0.5, "loss@9": 2.0, "acc@29": 0.6}),
    ],
)
def test_the_step_that_was_asked_for_counts_for_each_metric(
    tmp_path: Path, step: str | None, expected: dict[str, float]
) -> None:
    (run,) = collect(csv(tmp_path, *LOG), step=step, metrics=("acc", "loss")).records
    assert run.metrics == expected


def test_how_steps_were_read_is_noted(tmp_path: Path) -> None:
    notes = " ".join(collect(csv(tmp_path, *LOG)).notes)
    assert "Steps are read from the column step" in notes
    notes = " ".join(collect(csv(tmp_path, *LOG), step="best").notes)
    assert "The best value of each run by step counts: it was selected on the judged metric." in notes
    notes = " ".join(collect(csv(tmp_path, *LOG), step="34", metrics=("acc", "loss")).notes)
    assert "base/seed0: acc has no number at step 34 and is left out." in notes
    lines = ["arm,seed,last,acc", "base,0,1,0.5", "base,0,2,0.6"]
    runs = collect(csv(tmp_path, *lines), step="last")
    assert list_values(runs) == [("base", 0, 0.6)]
    assert "--step last is the column of that name; COLUMN=last asks for a row." in runs.notes


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ("stp", "has no column 'stp': --step COLUMN names another one, --step last, best or 1000 finds it; did you"),
        ("stp=best", "has no column 'stp': --step COLUMN=best names another one"),
        ("step=first", "--step step=first is not valid: write step=last, step=best or step=1000"),
        ("1,000", "has no column '1,000'"),
        ("9,9", "--step 9,9 names a step twice"),
    ],
)  # fmt: skip
def test_a_step_that_is_not_there_is_refused(tmp_path: Path, step: str, message: str) -> None:
    with pytest.raises(UserError, match=re.escape(message)):
        collect(csv(tmp_path, *LOG), step=step)


def test_different_numbers_at_the_same_step_contradict_each_other(tmp_path: Path) -> None:
    rows = ["arm,seed,step,acc", "base,0,1,0.1", "base,0,2,0.2", "base,0,2,0.3", "warm,0,2,0.5"]
    runs = collect(csv(tmp_path, *rows))
    assert list_values(runs) == [("warm", 0, 0.5)]
    assert "base/seed0 is left out: its rows differ in acc (line 3, line 4) of the same step." in runs.notes
    named = ["arm,seed,run,step,acc", "base,0,x,1,0.1", "base,0,y,2,0.2", "warm,0,z,2,0.5"]
    runs = collect(csv(tmp_path, *named), step="last")
    assert "base/seed0 is left out: its rows differ in acc (line 2, line 3) of the runs x and y." in runs.notes


def test_the_values_of_a_group_are_judged_apart(tmp_path: Path) -> None:
    rows = ["arm,seed,task,acc", "base,0,sst2,0.1", "base,0,mnli,0.2", "base,1,mnli,0.3", "base,1,,0.4"]
    runs = collect(csv(tmp_path, *rows), group="task", metrics=("acc", "mean"))
    assert runs.columns == ("sst2/acc", "mnli/acc", "mean")
    assert [dict(run.metrics) for run in runs.records] == [{"sst2/acc": 0.1, "mnli/acc": 0.2}, {"mnli/acc": 0.3}]
    assert "line 5 is left out: it has no task." in runs.notes
    with pytest.raises(UserError, match=re.escape("the values of --group 'a b' and 'a/b' would have the same name")):
        collect(csv(tmp_path, "arm,seed,task,acc", "base,0,a b,0.1", "base,0,a/b,0.2"), group="task")


def test_what_the_arms_spent_is_noted_if_it_is_not_equal(tmp_path: Path) -> None:
    header = "arm,seed,steps,num_tokens,gpu,batch_size,lr,acc"
    rows = [header, "base,0,10,5,h100,8,1,0.1", "base,1,10,5,h100,8,1,0.2", "warm,0,7,5,a100,8,2,0.3"]
    expected = "Not equal between arms: steps 10 in base, 7 in warm; gpu h100 in base, a100 in warm."
    assert expected in collect(csv(tmp_path, *rows)).notes
    assert not any("Not equal" in note for note in collect(csv(tmp_path, *rows, "warm,1,10,5,h100,8,2,0.3")).notes)


def options(**more: Any) -> dict[str, Any]:
    return {"pattern": "{arm}-s{seed}", "metrics": ("val_acc",), **more}


def test_a_chart_of_wandb_has_a_run_per_column(tmp_path: Path) -> None:
    runs = ["base-s0", "base-s1", "warm - up-s0"]
    header = ["Step", *(f"{run} - val_acc{end}" for run in runs for end in ("", "__MIN", "__MAX"))]
    lines = [header, ["0", *["0.5"] * 9], ["1", *["0.6"] * 6, "", "", ""], ["2", *["0.7"] * 3, *[""] * 6]]
    text = "\n".join(",".join(f'"{cell}"' for cell in line) for line in lines)
    file = write(tmp_path / "chart.csv", text)
    found = list_values(collect(file, **options()), "val_acc")
    assert found == [("base", 0, 0.7), ("base", 1, 0.6), ("warm_-_up", 0, 0.5)]
    own = collect(file, arm=("name",), seed="none", metrics=("val_acc",))
    assert own.arms == ("base-s0", "base-s1", "warm_-_up-s0")


def test_a_chart_over_time_or_without_extremes_is_read(tmp_path: Path) -> None:
    header = ["base-s0 - val_acc", "base-s0 - val_acc__MIN", "base-s0 - val_acc__MAX"]
    text = ",".join(["Relative Time (Process)", *header]) + "\n1,0.5,0.5,0.5\n2,0.6,0.6,0.6\n"
    assert list_values(collect(write(tmp_path / "a.csv", text), **options()), "val_acc") == [("base", 0, 0.6)]
    text = "Step,base-s0 - val_acc\n1,0.5\n2,0.6\n"
    assert list_values(collect(write(tmp_path / "b.csv", text), **options()), "val_acc") == [("base", 0, 0.6)]


def test_a_chart_of_groups_says_that_its_values_are_means(tmp_path: Path) -> None:
    text = '"Step","arm: base - acc","arm: base - acc__MIN","arm: base - acc__MAX"\n1,0.5,0.4,0.6\n'
    runs = collect(write(tmp_path / "chart.csv", text), arm=("name",), seed="none")
    assert list_values(runs) == [("arm_base", 0, 0.5)]
    assert any("arm: base - acc: its lowest and highest values differ" in note for note in runs.notes)


def test_the_logs_of_lightning_below_a_folder_are_read(tmp_path: Path) -> None:
    text = "epoch,step,train_loss,val_acc\n0,9,2.0,\n0,9,,0.{}\n1,12,1.0,\n"
    for at, place in enumerate(("base-s0/version_0", "warm-s0/lightning_logs/version_3"), 5):
        write(tmp_path / "logs" / place / "metrics.csv", text.format(at))
    assert list_values(collect(tmp_path / "logs", **options()), "val_acc") == [("base", 0, 0.5), ("warm", 0, 0.6)]
    for at in (5, 6):
        folder = tmp_path / "lightning_logs" / f"version_{at}"
        write(folder / "metrics.csv", text.format(at))
        write(folder / "hparams.yaml", f"model:\n  arm: v{at}\nseed: 3\n")
    runs = collect(tmp_path / "lightning_logs", arm=("model.arm",), metrics=("val_acc",))
    assert list_values(runs, "val_acc") == [("v5", 3, 0.5), ("v6", 3, 0.6)]
    named = collect(tmp_path / "lightning_logs", arm=("at",), pattern="version_{at}", metrics=("val_acc",))
    assert named.arms == ("5", "6")


def results(folder: Path, name: str, acc: float, config: dict[str, Any] | None = None, **more: Any) -> None:
    """A file in the layout of lm-eval 0.3."""
    content = {
        "results": {"piqa": {"acc": acc, "acc_stderr": 0.01, "acc_norm": acc / 2}},
        "versions": {"piqa": 0},
        "config": {"model": "hf-causal", "num_fewshot": 0, "limit": None, **(config or {})},
    }
    write(folder / name, json.dumps({**content, **more}))


def test_older_results_of_lm_eval_are_read(tmp_path: Path) -> None:
    for arm, acc in (("base", 0.5), ("warm", 0.6)):
        results(tmp_path / "named", f"results_{arm}-s0.json", acc)
        results(tmp_path / "plain", f"{arm}-s0.json", acc)
        results(tmp_path / "args", f"results_{arm}.json", acc, {"model_args": f"pretrained=out/{arm}-s0,dtype=float"})
    for folder in ("named", "plain", "args"):
        runs = collect(tmp_path / folder, **options(metrics=("acc", "acc_norm")))
        assert runs.columns == ("piqa/acc", "piqa/acc_norm")
        assert list_values(runs, "piqa/acc") == [("base", 0, 0.5), ("warm", 0, 0.6)]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"config": {"num_fewshot": 5}}, "piqa has num_fewshot 0 in base and 5 in warm: evaluate all arms"),
        ({"config": {"limit": 10}}, "piqa has limit None in base and 10 in warm"),
        ({"versions": {"piqa": 1}}, "piqa has version 0 in base and 1 in warm"),
    ],
)  # fmt: skip
def test_evaluations_with_other_settings_are_refused(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    results(tmp_path, "base-s0.json", 0.5)
    results(tmp_path, "warm-s0.json", 0.6, **changes)
    with pytest.raises(UserError, match=message):
        collect(tmp_path, **options(metrics=("acc",)))


def test_samples_without_results_are_averaged_by_task_and_filter(tmp_path: Path) -> None:
    for arm in ("base", "warm"):
        lines = [
            json.dumps({"doc_id": at, "filter": kind, "metrics": ["exact_match"], "exact_match": float(at < most)})
            for at in range(4)
            for kind, most in (("strict-match", 1), ("flexible-extract", 3))
        ]
        write(tmp_path / f"{arm}-s0" / "samples_gsm8k_2026-11-01T10-00-00.123.jsonl", "\n".join(lines))
    runs = collect(tmp_path, **options(metrics=("exact_match@strict-match", "exact_match@flexible-extract")))
    assert [dict(run.metrics) for run in runs.records] == [
        {"gsm8k/exact_match@strict-match": 0.25, "gsm8k/exact_match@flexible-extract": 0.75}
    ] * 2
    with pytest.raises(UserError, match="has exact_match of filters only: write gsm8k/exact_match@strict-match or"):
        collect(tmp_path, **options(metrics=("exact_match",)))


def test_rows_that_a_column_tells_apart_are_named_with_what_to_type(tmp_path: Path) -> None:
    lines = [
        "arm,seed,step,data,acc",
        *(f"base,0,{step},{data},0.{step}{len(data)}" for step in (1, 2) for data in ("a", "bb")),
    ]
    with pytest.raises(UserError, match=r"differ in acc .*; so does data: --group data judges .*, --where data=VALUE"):
        collect(csv(tmp_path, *lines))
    runs = collect(csv(tmp_path, "arm,data,acc", "base,x,0.1", "base,y,0.2"), seed="none", group="data")
    assert [run.metrics for run in runs.records] == [{"x/acc": 0.1}, {"y/acc": 0.2}]
    assert not [note for note in runs.notes if "no number" in note]
