"""Two models on the same examples: McNemar's test, paired intervals, and what is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from paribus.commands.cli import main
from paribus.commands.compare import ID
from paribus.core.errors import UserError
from paribus.core.files import write_sealed
from paribus.reports.compare import _KEYS, Comparison, FileOptions, compare_runs
from paribus.reports.compare_arms import ArmComparison
from paribus.runs.gold import Gold, write_gold

RNG = np.random.default_rng(0)
A, B = (RNG.random(200) < 0.7).astype(float), (RNG.random(200) < 0.55).astype(float)


def samples(folder: Path, name: str, acc: np.ndarray[Any, Any], **more: Any) -> str:
    """A file as lm-eval writes it with --log_samples."""
    path = folder / name
    rows = (
        {
            "doc_id": at,
            "doc": {"question": f"q{at}"},
            "target": 1,
            "metrics": ["acc"],
            "doc_hash": f"h{at}",
            "acc": value,
        }
        for at, value in enumerate(acc.tolist())
    )
    path.write_text("".join(json.dumps({**row, **more}) + "\n" for row in rows))
    return str(path)


def run(folder: Path, golds: dict[str, list[float]], **changes: Any) -> str:
    """A finished run with one fine-tuning per entry."""
    folder.mkdir(parents=True)
    write_gold(folder, {
        name: Gold(np.array(values, np.float16), np.array(values) > 0.5) for name, values in golds.items()
    })  # fmt: skip
    record = {"schema": 1, "signature": "x", "study": "s", "arm": "a", "seed": 0, "scale": "test", "status": "done"}
    write_sealed(
        folder / "result.json", {**record, "metrics": {}, "task_runs": [], "budget": {}, "data": {}, **changes}
    )
    return str(folder)


def test_right_and_wrong_answers_get_mcnemars_exact_test(tmp_path: Path) -> None:
    found = compare_runs(samples(tmp_path, "a.jsonl", A), samples(tmp_path, "b.jsonl", B))
    (row,) = found.rows
    assert (row.only_first, row.only_second) == (int(((A == 1) & (B == 0)).sum()), int(((A == 0) & (B == 1)).sum()))
    test = stats.binomtest(row.only_first, row.only_first + row.only_second)
    assert row.p == pytest.approx(test.pvalue)
    low, high = stats.ttest_1samp(A - B, 0.0).confidence_interval()
    assert (row.ci_low, row.ci_high) == (pytest.approx(low), pytest.approx(high))
    assert "not how two recipes differ" in str(found)


@pytest.mark.parametrize("name", ["jsonl", "csv"])
def test_true_and_false_are_right_and_wrong_answers(tmp_path: Path, name: str) -> None:
    for side, answers in (("a", A[:40] > 0), ("b", B[:40] > 0)):
        rows = enumerate(answers.tolist())
        lines = (
            [json.dumps({"id": at, "right": one}) for at, one in rows]
            if name == "jsonl"
            else ["id,right", *(f"{at},{one}" for at, one in rows)]
        )
        (tmp_path / f"{side}.{name}").write_text("\n".join(lines))
    (row,) = compare_runs(*(str(tmp_path / f"{side}.{name}") for side in "ab")).rows
    assert (row.first, row.only_first) == (A[:40].mean(), ((A[:40] == 1) & (B[:40] == 0)).sum())


def test_scores_get_the_paired_t_test_and_several_columns_holms_correction(tmp_path: Path) -> None:
    first, second = RNG.normal(0.8, size=50), RNG.normal(size=50)
    for name, values in (("a", first), ("b", second)):
        lines = [f"{at},{value},{value > 0:d},x" for at, value in enumerate(values)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["id,score,right,text", *lines]))
    found = compare_runs(str(tmp_path / "a.csv"), str(tmp_path / "b.csv"))
    assert [row.column for row in found.rows] == ["score", "right"]
    assert found.rows[0].p == pytest.approx(stats.ttest_rel(first, second).pvalue)
    assert found.rows[0].only_first is None
    raw = sorted(row.p or 0.0 for row in found.rows)
    assert sorted(row.p_holm or 0.0 for row in found.rows) == pytest.approx([2 * raw[0], max(2 * raw[0], raw[1])])


def test_the_answers_of_runs_are_means_over_their_fine_tunings(tmp_path: Path) -> None:
    first = run(tmp_path / "a" / "seed0-123", {"trec/seed0": [0.9, 0.2, 0.8], "trec/seed1": [0.7, 0.6, 0.8]})
    second = run(tmp_path / "b" / "seed0-456", {"trec/seed0": [0.1, 0.2, 0.8], "trec/seed1": [0.1, 0.2, 0.8]})
    found = compare_runs(str(tmp_path / "a" / "seed0"), second)
    rows = {row.column: row for row in found.rows}
    assert rows["trec/right"].first == pytest.approx((1 + 0.5 + 1) / 3)
    assert rows["trec/right"].only_first is None, "not 0 and 1 any more"
    assert rows["trec/gold"].difference == pytest.approx((0.7 + 0.2 + 0.0) / 3, abs=1e-3)
    assert isinstance(compare_runs(first, second, ["trec/gold"]), Comparison)
    by_record = compare_runs(f"{first}/result.json", f"{second}/gold.npz")
    assert by_record.rows == found.rows, "a file of the run names the run"


def test_other_examples_are_refused(tmp_path: Path) -> None:
    first = run(tmp_path / "a", {"trec/seed0": [0.9, 0.2]})
    second = run(tmp_path / "b", {"trec/seed0": [0.9, 0.2, 0.1]})
    with pytest.raises(UserError, match="different numbers of examples"):
        compare_runs(first, second)
    third = run(tmp_path / "c", {"trec/seed0": [0.9, 0.3]})
    for folder, path in (("a", "one.jsonl"), ("c", "other.jsonl")):
        (tmp_path / folder / "config.yaml").write_text(f"tasks: {{trec: {{path: {path}}}}}\n")
    with pytest.raises(UserError, match="trec/right differs in path"):
        compare_runs(first, third)
    files = samples(tmp_path, "a.jsonl", A), samples(tmp_path, "b.jsonl", B, doc_hash="another")
    with pytest.raises(UserError, match="have different examples"):
        compare_runs(*files)


def test_examples_that_one_file_lacks_are_left_out_and_counted(tmp_path: Path) -> None:
    found = compare_runs(samples(tmp_path, "a.jsonl", A), samples(tmp_path, "b.jsonl", B[:150]))
    assert found.rows[0].n == 150
    assert "acc: 50 examples are left out, since only one of the two has a number." in found.notes


def test_a_value_too_large_to_square_is_left_out_and_counted(tmp_path: Path) -> None:
    huge = np.array([1e308, 0.2, 0.4, 0.7])
    first = samples(tmp_path, "a.jsonl", huge)
    found = compare_runs(first, samples(tmp_path, "b.jsonl", np.array([-1e200, 0.1, 1e308, 0.3])))
    assert (found.rows[0].n, found.rows[0].difference) == (2, pytest.approx(0.25))
    assert "acc: 1 example is left out, since only one of the two has a number." in found.notes
    with pytest.raises(UserError, match="have no column of numbers in common"):
        compare_runs(samples(tmp_path, "c.jsonl", huge[:1]), first)


def filtered(folder: Path, name: str, right: dict[str, list[int]]) -> str:
    """Samples of lm-eval with a row for each example and filter."""
    rows = (
        {"doc_id": at, "filter": kind, "metrics": ["exact_match"], "doc_hash": f"h{at}", "exact_match": float(value)}
        for kind, values in right.items()
        for at, value in enumerate(values)
    )
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def test_each_filter_of_lm_eval_is_a_column(tmp_path: Path) -> None:
    first = filtered(tmp_path, "a.jsonl", {"strict-match": [0, 1, 0, 0], "flexible-extract": [1, 1, 1, 0]})
    second = filtered(tmp_path, "b.jsonl", {"strict-match": [1, 1, 1, 0], "flexible-extract": [0, 0, 1, 0]})
    strict, flexible = compare_runs(first, second).rows
    assert (strict.column, strict.difference) == ("exact_match@strict-match", -0.5)
    assert (flexible.column, flexible.difference) == ("exact_match@flexible-extract", 0.5)
    (one,) = compare_runs(first, second, ["exact_match@strict-match"]).rows
    assert one.difference == -0.5
    (chosen,) = compare_runs(first, second, ["exact_match"], FileOptions(where={"filter": "flexible-extract"})).rows
    assert chosen.difference == 0.5
    with pytest.raises(UserError, match="write exact_match@strict-match or exact_match@flexible-extract"):
        compare_runs(first, second, ["exact_match"])


def test_a_folder_of_samples_has_the_columns_of_all_tasks(tmp_path: Path) -> None:
    time = "2026-11-01T10-00-00.123"
    for model, shots in (("a", 5), ("b", 5), ("c", 0)):
        for task in ("gsm8k", "piqa"):
            filtered(tmp_path / model, f"samples_{task}_{time}.jsonl", {"none": [1, 0, int(model == "a"), 0]})
        found = {"results": {"gsm8k": {"exact_match,none": 0.5}}, "n-shot": {"gsm8k": shots}}
        (tmp_path / model / f"results_{time}.json").write_text(json.dumps(found))
    rows = compare_runs(str(tmp_path / "a"), str(tmp_path / "b")).rows
    assert {row.column: row.difference for row in rows} == {"gsm8k/exact_match": 0.25, "piqa/exact_match": 0.25}
    with pytest.raises(UserError, match=r"gsm8k/exact_match has num_fewshot 5 in .*a and 0 in .*c: evaluate both"):
        compare_runs(str(tmp_path / "a"), str(tmp_path / "c"))


def test_the_decimal_marks_of_a_file_are_inferred_or_refused(tmp_path: Path) -> None:
    for name, values in (("a", ("1,125", "1,250", "1,500")), ("b", ("1,375", "1,250", "1,125"))):
        (tmp_path / f"{name}.tsv").write_text("id\tscore\n" + "".join(f"{at}\t{v}\n" for at, v in enumerate(values)))
    files = str(tmp_path / "a.tsv"), str(tmp_path / "b.tsv")
    with pytest.raises(UserError, match="score of a can be read in two ways"):
        compare_runs(*files)
    assert compare_runs(*files, options=FileOptions(decimal=",")).rows[0].first == pytest.approx(3.875 / 3)


def test_what_cannot_be_compared_is_named(tmp_path: Path) -> None:
    failed = run(tmp_path / "failed", {"trec/seed0": [0.9]}, status="failed", error="stopped")
    file = samples(tmp_path, "a.jsonl", A)
    (tmp_path / "twice.csv").write_text("id,acc\n1,0\n1,1\n")
    for given, message in (
        ((failed, file), r"is not a finished run \(failed\): give the folder of one"),
        ((str(tmp_path), file), r"is not a finished run \(half-written or no record\): give the folder of one"),
        ((str(tmp_path / "none"), file), "neither a run nor a file"),
        ((file, str(tmp_path / "twice.csv")), "several rows with the same id"),
        ((file, file, ["f1"]), "'f1' has no numbers in both"),
        ((file, file, ["ac"]), r"did you mean acc\?"),
    ):
        with pytest.raises(UserError, match=message):
            compare_runs(*given)


def test_the_command_prints_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", samples(tmp_path, "a.jsonl", A), samples(tmp_path, "b.jsonl", B), "--metric", "acc"]) == 0
    shown = capsys.readouterr().out
    assert "| acc" in shown
    assert "p (Holm)" not in shown


def test_the_help_and_the_document_list_every_column_that_identifies_examples() -> None:
    document = (Path(__file__).parents[2] / "docs/judge.md").read_text()
    for key in _KEYS:
        assert key in re.split(r", | or ", str(ID.show_default))
        assert f"`{key}`" in document


def test_folders_of_arms_are_compared_over_their_seeds(tmp_path: Path) -> None:
    for arm, bias in (("dynamic", 0.3), ("static", 0.0)):
        for seed in range(3):
            golds = np.clip(RNG.random(40) * 0.6 + bias, 0, 1).tolist()
            run(tmp_path / arm / f"seed{seed}-abc", {"docs_package/seed0": golds}, seed=seed)
    found = compare_runs(str(tmp_path / "dynamic"), str(tmp_path / "static"))
    assert isinstance(found, ArmComparison)
    assert [(row.column, row.seeds, row.examples) for row in found.rows] == [
        ("docs_package/right", (3, 3), 40),
        ("docs_package/gold", (3, 3), 40),
    ]
    assert found.rows[1].ci_low > 0.2
    with pytest.raises(UserError, match="has one seed"):
        compare_runs(str(tmp_path / "dynamic"), str(tmp_path / "static" / "seed0-abc"))


def test_seeds_and_labels_are_no_metrics_and_a_note_names_what_is_compared(tmp_path: Path) -> None:
    files = [tmp_path / "a.csv", tmp_path / "b.csv"]
    for file, right in zip(files, (1, 0), strict=True):
        rows = [f"{at},{right},{at % 2},{at % 2},0,{at / 10 + right}" for at in range(4)]
        file.write_text("\n".join(["id,seed,label,Pred,correct,score", *rows]) + "\n")
    first, second = map(str, files)
    found = compare_runs(first, second)
    assert [row.column for row in found.rows] == ["correct", "score"]
    assert any("correct, score; --metric chooses" in note for note in found.notes)
    (row,) = compare_runs(first, second, ["Pred"]).rows
    assert row.column == "Pred"


def test_an_example_with_an_empty_cell_is_left_out_with_a_note(tmp_path: Path) -> None:
    first, second = tmp_path / "a.csv", tmp_path / "b.csv"
    first.write_text("id,correct\n1,1\n2,0\n3,\n4,1\n")
    second.write_text("id,correct\n1,0\n2,0\n3,1\n4,1\n")
    found = compare_runs(str(first), str(second))
    assert found.rows[0].n == 3
    assert "correct has no usable number in line 4 of a: left out." in found.notes
    assert "correct: 1 example is left out, since only one of the two has a number." in found.notes
