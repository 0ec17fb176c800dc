#!/usr/bin/env bash
# Sends one follow-up with the Temporal CLI and prints its pull request: cli.sh WORKFLOW_ID REQUEST_AS_JSON
set -euo pipefail

[[ $# == 2 ]] || { echo 'usage: cli.sh WORKFLOW_ID REQUEST_AS_JSON' >&2 && exit 2; }

# The file for the CLI's error output, which is printed only if there is no outcome.
errors=$(mktemp)
trap 'rm -f "$errors"' EXIT

# The start attaches to a running follow-up. If the follow-up has ended, the CLI prints its result, and nothing is sent again.
# The exit code is 1 both for a failed follow-up and for an unreachable server. In the first case, the output has a close event.
end=$(temporal workflow execute --type followUp --task-queue follow-up --workflow-id "$1" --input "$2" \
  --id-conflict-policy UseExisting --id-reuse-policy RejectDuplicate --output json 2>"$errors") ||
  [[ $end == *closeEvent* ]] || { cat "$errors" >&2 && exit 1; }

prompt=$(jq -j '.prompt? // ""' <<<"$2" | sha256sum)
jq '.closeEvent' <<<"$end" | jq -r --arg digest "${prompt%% *}" -f "$(dirname "$0")/end.jq"
