"""The trials from which conf/recipe/bert/cpu.yaml was chosen; docs/small-models.md says what they show.

python analysis/recipe_search.py search     # trains what analysis/results/recipe/trials.json lacks
python analysis/recipe_search.py draw       # the plot
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from paribus.core.config import compose
from paribus.core.console import say
from paribus.core.files import write_json
from paribus.training.description import Run
from paribus.training.run import run

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "recipe"
TRIALS, PLOT = RESULTS / "trials.json", RESULTS / "curves.png"
LEFT = 0.9  # of the trivial floor
EVALUATED = 256 * 64  # held-out tokens of each evaluation of the own loss
PATH = (  # from the recipe before to the one that was chosen
    ("explore", "bert/v1/cpu on fresh text"),
    ("explore", "rotary"),
    ("explore", "rotary, rows of 32"),
    ("explore", "rows of 32, Muon"),
)


def asked(plan: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], list[str]]]:
    """Phase, name and seed of every trial, and its settings."""
    for phase, group in plan["trials"].items():
        for name, settings in group["settings"].items():
            tokens = group["tokens"]
            budget = tokens[name] if isinstance(tokens, dict) else tokens
            for seed in group["seeds"]:
                yield (
                    {"phase": phase, "name": name, "seed": seed},
                    [*plan["common"], *flat(settings), f"trainer.max_tokens={budget}", f"seed={seed}"],
                )


def flat(settings: Sequence[Any]) -> list[str]:
    """The overrides of a list that holds other lists."""
    return [text for part in settings for text in ([part] if isinstance(part, str) else flat(part))]


def last_of_each(overrides: Sequence[str]) -> list[str]:
    """The overrides, without those that a later one of the same key replaces."""
    return list({text.partition("=")[0]: text for text in overrides}.values())


def train(label: Mapping[str, Any], settings: Sequence[str]) -> dict[str, Any]:
    """Train one trial."""
    length = compose(last_of_each(settings)).input.length
    held_out = f"evaluation.own_examples={EVALUATED // length}"
    folder = run(Run.of(compose([*last_of_each(settings), held_out, "study=recipe_search", f"arm={label['phase']}"])))
    record = json.loads((folder / "result.json").read_text())
    own = record["own"]
    return {
        **label,
        "loss": own["loss"],
        "floor": own["floor"],
        "exit_tokens": next((tokens for _, tokens, loss in own["curve"] if loss < LEFT * own["floor"]), None),
        "tokens": record["budget"]["input_tokens"],
        "tokens_per_second": record["speed"]["tokens_per_second"],
        "mlm_loss": record["metrics"]["mlm_loss"],
        "curve": [[tokens, loss] for _, tokens, loss in own["curve"]],
    }


def search() -> None:
    """Train the trials that the file of results lacks."""
    trials = json.loads(TRIALS.read_text()) if TRIALS.is_file() else []
    for label, settings in asked(yaml.safe_load((HERE / "recipe_search.yaml").read_text())):
        if any(label.items() <= trial.items() for trial in trials):
            continue
        trials.append(trial := train(label, settings))
        write_json(TRIALS, trials)
        say(
            f"{label['name']}, seed {label['seed']}: {trial['loss']:.3f}, plateau left at {trial['exit_tokens']} tokens"
        )


def draw() -> None:
    """How far below their floors runs are: over tokens on the way to the recipe, over seconds beside the one before."""
    import matplotlib.pyplot as plt

    from paribus.reports.plots.style import DASHES, SERIES, STYLE

    trials = json.loads(TRIALS.read_text())
    with plt.rc_context(STYLE):
        figure, (way, race) = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained", sharey=True)
        for look, (phase, name) in enumerate(PATH):
            trial = next(one for one in trials if (one["phase"], one["name"]) == (phase, name))
            tokens, loss = zip(*trial["curve"], strict=True)
            share = [value / trial["floor"] for value in loss]
            way.plot([count / 1e6 for count in tokens], share, color=SERIES[look], ls=DASHES[look], label=name)
        for trial in (one for one in trials if one["phase"] == "equal seconds"):
            look = 0 if trial["name"] == "bert/v1/cpu" else 3
            tokens, loss = zip(*trial["curve"], strict=True)
            seconds = [count / trial["tokens_per_second"] for count in tokens]
            label = trial["name"] if trial["seed"] == 300 else None
            race.plot(
                seconds, [value / trial["floor"] for value in loss], color=SERIES[look], ls=DASHES[look], label=label
            )
        way.set(xlabel="million tokens, seed 100", ylabel="own loss / trivial floor")
        race.set(xlabel="seconds, seeds 300 and 301")
        for axes in (way, race):
            axes.axhline(LEFT, lw=0.5, color="gray")
            axes.legend(frameon=False)
        figure.savefig(PLOT, dpi=150)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("search", "draw"))
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit({"search": search, "draw": draw}[parser.parse_args().part]())
