"""A verdict on runs that another framework made: a frame or a CSV file with a row per run."""

# %% Five seeds of two arms, as any tracker exports them
import pandas as pd

import paribus

runs = pd.DataFrame(
    {
        "arm": ["static"] * 5 + ["dynamic"] * 5,
        "seed": [0, 1, 2, 3, 4] * 2,
        "accuracy": [0.812, 0.809, 0.815, 0.811, 0.806, 0.824, 0.818, 0.829, 0.821, 0.817],
        "loss": [2.31, 2.33, 2.30, 2.32, 2.34, 2.29, 2.31, 2.27, 2.33, 2.30],
    }
)

# %% The same table as `paribus judge runs.csv --metric accuracy,loss --baseline static --claim ...`
judged = paribus.judge(
    runs,
    metric=["accuracy", "loss"],
    baseline="static",
    claims="dynamic > static, margin 0.5 points, margin 0.01 on loss",
)
print(judged)
print(judged.verdicts)

# %% All formats: Markdown, LaTeX, HTML, JSON, CSV and drawings
print(sorted(judged.files))

# %% How many seeds would a difference of one point have needed, if seeds differ by 0.8 points?
print(paribus.plan_seeds(sd=0.8, effect=1.0))
