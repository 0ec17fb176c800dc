#!/usr/bin/env bash
# Sends one follow-up with the Temporal CLI and prints its pull request: cli.sh WORKFLOW_ID REQUEST_AS_JSON
set -euo pipefail

# What the CLI writes of errors: of a follow-up that has failed it says no more than that, below its end.
errors=$(mktemp)
trap 'rm -f "$errors"' EXIT

# While it runs, attach to it. After its end, don't send again: the CLI then prints the result that is there.
# It exits with 1 for a failed follow-up as for a server that isn't there; only the first has an end to print.
end=$(temporal workflow execute --type followUp --task-queue follow-up --workflow-id "$1" --input "$2" \
  --id-conflict-policy UseExisting --id-reuse-policy RejectDuplicate --output json 2>"$errors") ||
  [[ $end == *closeEvent* ]] || { cat "$errors" >&2 && exit 1; }

prompt=$(jq -j '.prompt? // ""' <<<"$2" | sha256sum)
jq '.closeEvent' <<<"$end" | jq -r --arg digest "${prompt%% *}" -f "$(dirname "$0")/end.jq"
