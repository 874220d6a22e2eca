"""From records to a table: the paper's numbers beside ours, with intervals and verdicts, in every format."""
