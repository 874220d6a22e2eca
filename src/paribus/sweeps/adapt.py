"""The sweep of `paribus adapt`: a checkpoint as it is, further pre-trained on a text, and its shape from scratch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from paribus.core import hub
from paribus.core.build import require_task
from paribus.core.config import compose, flat, plain
from paribus.core.config_names import choices, conf_dir, load_strict, readable
from paribus.core.errors import UserError, located
from paribus.core.files import write_text
from paribus.core.moved import find_moved
from paribus.data.corpus.text_files import find
from paribus.sweeps.columns import list_metrics
from paribus.sweeps.sweep import TRIAL, quote

AS_IT_IS, ADAPTED, STAGE = "as_it_is", "adapted", "further"
RATE = 5e-5  # of further pre-training (Sun et al., arXiv 1905.05583, section 5.1), for checkpoints of others
SHARE = 0.5  # of the peak of pre-training, for a run of ours
WIDE = 768  # from this width on, checkpoints are fine-tuned at the rate of BERT
TUNING = {True: 2e-5, False: 3e-4}  # whether it is wide: the rate; see conf/experiment/minilm.yaml
LOSSES = {"bert": "mlm_loss", "t5": "denoising_loss"}


class AdaptRequest(NamedTuple):
    """What the user asks.

    text: a file, a folder or a glob.
    task: a choice of the group `task`, or a YAML file like those of that group.
    checkpoint: see `core.hub.folder`; or a name on the hub.
    general: a choice of the group `corpus`, or a path; None for the text of the checkpoint's own run, or docstrings.
    epochs: passes over the text.
    """

    text: str
    task: str
    checkpoint: str
    general: str | None = None
    epochs: float = 10.0


def write_sweep(request: AdaptRequest, runs: Path) -> Path:
    """Write the sweep that answers a request below the folder of the runs; returns its file.

    The study of a second request on the same task ends in _2, so that both keep their tables.
    Raises UserError for a checkpoint, a text or a task that does not exist.
    """
    import yaml

    content = describe_sweep(request, runs)
    title = f"# Further pre-training of {request.checkpoint} on {request.text}: what it gains on {request.task}\n"
    first, number = content["study"], 1
    while True:
        path = runs / str(content["study"]) / "sweep.yaml"
        text = title + yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=1000)
        if not path.is_file():
            write_text(path, text)
            return path
        if path.read_text(encoding="utf-8") == text:
            return path
        number += 1
        content["study"] = f"{first}_{number}"


def describe_sweep(request: AdaptRequest, runs: Path) -> dict[str, Any]:
    """The content of the sweep file."""
    import yaml

    folder = hub.folder(request.checkpoint, None, runs, "--from")
    config: dict[str, Any] = {}  # of the run that wrote the checkpoint; empty for checkpoints of others
    path = folder.parent / "config.yaml"
    if folder.name == hub.MODEL and path.is_file():
        config = yaml.safe_load(path.read_text(encoding="utf-8"))
    task, metric, tasks = _name_task(request.task)
    general = _measure_forgetting_on(request.general, config)
    find(request.text, "--text")  # raises UserError if there is none
    family, name, stage = str(config.get("family", "bert")), quote(folder.resolve()), f"stages.{STAGE}"
    wide = int(json.loads((folder / hub.CONFIG).read_text(encoding="utf-8")).get("hidden_size", 0)) >= WIDE
    start = [
        "model=pretrained",
        f"model.name={name}",
        "model.dropout=null",
        "model.attention_dropout=null",
        "tokenizer=pretrained",
        f"tokenizer.name={name}",
        "trainer.max_steps=0",
        f"finetune.optimizer.lr={config['finetune']['optimizer']['lr'] if config else TUNING[wide]}",
        "finetune.forgetting=true",
    ]
    further = [
        f"+corpus@{stage}.corpus=text",
        f"{stage}.corpus.path={quote(Path(request.text).expanduser().absolute())}",
        f"+{stage}.trainer.max_steps=null",
        f"+{stage}.trainer.max_epochs={request.epochs}",
        f"+{stage}.trainer.train_tokens=null",
        f"+{stage}.optimizer.lr={SHARE * config['optimizer']['lr'] if config else RATE}",
        f"+{stage}.lr_schedule.warmup=0.1",
    ]
    score, at = f"{task}/{metric}", f"{stage}.trainer"
    says = "Further pre-training on the text makes fine-tuning on the task better"
    return {
        "study": f"adapt_{task}",
        "family": family,
        "base": [*tasks, *start, *general, *further],
        "varies": [f"{at}.max_steps"],
        "matched": f"{STAGE}.tokens",
        "arms": {AS_IT_IS: [f"+{at}.max_steps=0"], ADAPTED: []},
        "baseline": AS_IT_IS,
        "columns": [score, LOSSES.get(family, "mlm_loss"), "stage_forgetting", f"{task}/forgetting"],
        "claims": [{"claim": f"{ADAPTED} > {AS_IT_IS} on {score}", "says": says, "whose": "ours"}],
        "scales": {TRIAL: {"overrides": [f"+{at}.max_epochs=null", f"+{at}.max_steps=2"]}},
    }


def _name_task(task: str) -> tuple[str, str, list[str]]:
    """(its name, its main metric, the overrides that choose it). Raises UserError for a file of another kind."""
    if not task.endswith((".yaml", ".yml")):
        if {"/", "."} & set(task):
            raise UserError(
                f"--task {task} is not a YAML file", "give one, which `paribus init` writes, or a task by name"
            )
        node = plain(compose([f"task={task}"]).tasks)[task]
        return task, list_metrics(node)[0], [f"task={task}"]
    path = Path(task).expanduser()
    with located("--task"), readable(path):
        content = load_strict(path.read_text(encoding="utf-8"))
        require_task(str(path), content)
    node = {"name": path.stem, **content}
    return node["name"], list_metrics(node)[0], ["task=none", f"+tasks.{node['name']}={express(node)}"]


def _measure_forgetting_on(general: str | None, config: Mapping[str, Any]) -> list[str]:
    """The overrides that choose the general text. Raises UserError if there is none."""
    import yaml

    if general in choices("corpus"):
        return [f"corpus={general}"]
    if general is not None:
        find(general, "general")
        return ["corpus=text", f"corpus.path={quote(general)}"]
    if not config:
        return ["corpus=docstrings"]
    corpus = config["corpus"]
    leaves = [f"++corpus.{key}={express(value)}" for key, value in flat(corpus).items() if key != "_target_"]
    for name in choices("corpus"):
        path = conf_dir() / "corpus" / f"{name}.yaml"
        file = yaml.safe_load(path.read_text(encoding="utf-8")) if path.is_file() else {}
        same = find_moved(str(file.get("_target_"))) == corpus["_target_"]
        if same and file.get("sets", {}).keys() == corpus.get("sets", {}).keys():
            return [f"corpus={name}", *leaves]
    raise UserError(f"the corpus {corpus['_target_']} of the checkpoint's run is not available here", "give general=")


def express(value: object) -> str:
    """Plain data in Hydra's grammar of overrides."""
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{key}:{express(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(express, value)) + "]"
    if isinstance(value, str):
        return "'" + value.replace("'", "\\'") + "'"
    if isinstance(value, bool):
        return str(value).lower()
    return "null" if value is None else str(value)
