"""Modules of components that have moved: records, saved fine-tunings and users' configs name them as they were.

A class keeps its name, so a run keeps its id (`runs/identity.py`).
"""

from __future__ import annotations

from typing import Any

# {module before: module now}, below `paribus`. An entry stays for as long as a committed record has the old name.
MOVED = {
    "corruption.masking.asked": "corruption.masking.one_span",
    "data.annotators.annotator": "data.annotators",
    "data.annotators.asked": "data.annotators",
    "data.annotators.capitals": "data.annotators",
    "data.annotators.spacy_spans": "data.annotators",
    "data.corpus.filtered": "data.corpus.cleaning",
    "data.corpus.rules": "data.corpus.cleaning",
    "data.corpus.units": "data.corpus.text_rows",
    "data.formats.sentences": "data.formats.full_sentences",
    "data.schedule": "data.mask_schedule",
    "finetuning.joint": "training.joint_settings",
    "objectives.mlm_pairs": "objectives.mlm",
    "objectives.mlm_sbo": "objectives.mlm",
    "objectives.several": "objectives.text_tasks",
    "optim.schedule": "optim.lr_schedule",
    "tasks.choices": "tasks.tables.choices",
    "tasks.docs_default": "tasks.docs.default",
    "tasks.docs_order": "tasks.docs.order",
    "tasks.docs_overlap": "tasks.docs.overlap",
    "tasks.docs_package": "tasks.docs.package",
    "tasks.docs_parameters": "tasks.docs.parameters",
    "tasks.docs_scored": "tasks.docs.scored",
    "tasks.docs_signature": "tasks.docs.signature",
    "tasks.docs_summary": "tasks.docs.summary",
    "tasks.ranking": "tasks.tables.ranking",
    "tasks.sampling": "tasks.mixtures",
    "tasks.similarity": "tasks.tables.ranking",
    "tasks.superglue": "tasks.tables.superglue",
    "tasks.tables": "tasks.tables.table",
    "tasks.text": "tasks.text_corpus",
    "tasks.types.entities": "tasks.types.question_answering",
    "tasks.types.grouped": "tasks.types.classification",
    "tasks.types.ranking": "tasks.types.multiple_choice",
    "tasks.types.similarity": "tasks.types.regression",
    "tasks.types.text": "tasks.types.generation",
    "tasks.types.written": "tasks.types.generation",
    "training.joint.settings": "training.joint_settings",
}


def find_moved(target: str) -> str:
    """The present dotted name of a class that a config names by its present or an earlier one."""
    package, _, name = target.partition(".")
    module, _, cls = name.rpartition(".")
    return f"{package}.{MOVED[module]}.{cls}" if package == "paribus" and module in MOVED else target


def update_targets(node: Any) -> Any:
    """A copy of plain data in which each `_target_` has its present name."""
    if isinstance(node, dict):
        return {
            key: find_moved(value) if key == "_target_" and isinstance(value, str) else update_targets(value)
            for key, value in node.items()
        }
    return [update_targets(value) for value in node] if isinstance(node, list) else node
