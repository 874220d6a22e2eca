"""Names for print: `SST-2 accuracy` for `sst2/accuracy`, `static x10` for `static_x10`."""

from __future__ import annotations

from paribus.verdict.metrics import is_task

TASKS = {
    "sst2": "SST-2", "mnli": "MNLI", "qnli": "QNLI", "qqp": "QQP", "rte": "RTE", "mrpc": "MRPC", "cola": "CoLA",
    "stsb": "STS-B", "boolq": "BoolQ", "squad_v1": "SQuAD 1.1", "squad_v2": "SQuAD 2.0", "imdb": "IMDb",
    "ag_news": "AG News", "wnut_17": "WNUT-17", "race": "RACE", "nli_stsb": "STS-B",
}  # fmt: skip
WORDS = {
    "mlm": "MLM", "clm": "CLM", "nsp": "NSP", "sop": "SOP", "f1": "F1", "em": "EM", "mcc": "MCC", "rouge": "ROUGE",
    "bleu": "BLEU",
}  # fmt: skip


def name_column(column: str) -> str:
    """A column as a paper prints it."""
    task, _, metric = column.rpartition("/") if is_task(column) else ("", "", column)
    words = " ".join(WORDS.get(word, word) for word in metric.split("_"))
    return " ".join(filter(None, (TASKS.get(task, task.replace("_", " ")), words)))


def name_metric(metric: str) -> str:
    """A metric of a published table, such as `sst2_acc`, as a paper prints it."""
    return " ".join(TASKS.get(word, WORDS.get(word, word)) for word in metric.split("_"))


def name_arm(arm: str) -> str:
    """An arm as a paper prints it."""
    return arm.replace("_", " ")
