"""Two models on the same examples: McNemar's test, and a paired interval."""

# %% One row per example, as lm-eval's --log_samples or your own loop writes it
import json
import random
from pathlib import Path

import paribus

draw = random.Random(0)
for name, skill in (("first", 0.75), ("second", 0.6)):
    rows = [{"doc_id": at, "acc": float(draw.random() < skill)} for at in range(200)]
    Path(f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

# %% Runs of Paribus are given by their folders: paribus.compare("runs/STUDY/A/seed0", "runs/STUDY/B/seed0")
found = paribus.compare("first.jsonl", "second.jsonl", metric="acc")
print(found)
(row,) = found.rows
print(f"{row.difference:+.3f}, p = {row.p:.4f}, n = {row.n}")
