#!/usr/bin/env bash
# From your own text and your own task to a table: bash docs/first_table.sh TEXT TASK [SCALE] [KEY=VALUE ...]
# TEXT is a file or a folder of .txt, .jsonl or .parquet; TASK is a .jsonl, .csv or .parquet file with a text and a
# label on each line, or a folder with one such file per split. At SCALE=smoke it takes minutes on two cores. Further
# settings hold for all arms: tokenizer.vocab_size=4000 if the text is small.
set -euo pipefail

text=${1:?give a text: a file or a folder}
task=${2:?give a task: a file, or a folder with a file per split}
scale=${3:-smoke}

paribus init --text "$text" --task "$task" --compare masking.rate=0.15,0.4 name=my_rates scale="$scale" "${@:4}"
paribus run my_rates scale="$scale"
paribus table my_rates scale="$scale"
