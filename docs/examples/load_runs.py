"""The runs of a study as a pandas frame, and the table of its sweep."""

# %% After `paribus run roberta_table1 scale=cpu`
import paribus

runs = paribus.load_runs("roberta_table1", "cpu")
print(runs.groupby("arm")["mlm_loss"].agg(["count", "mean", "std"]))

# %% The same table as `paribus table roberta_table1 scale=cpu`
table = paribus.table("roberta_table1", "cpu")
print(table)
print(table.verdicts)
