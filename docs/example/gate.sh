#!/bin/sh
# Ends with 1 where the ranking or the contexts are worse than they were.
set -eu
cento index notes --quiet
cento run --topics judged -o run.trec --contexts contexts.jsonl --budget 200 --quiet
cento eval judged run.trec --min nDCG@10=.85 --min R@100=1
cento eval-context judged contexts.jsonl -f title_recall |
  awk '$1 == "title_recall" { recall = $2 } END { print "recall at 200 tokens:", recall; exit recall < .70 }'
