#!/usr/bin/env bash
# Sends one follow-up with the Temporal server's HTTP API and prints its pull request: curl.sh WORKFLOW_ID REQUEST_AS_JSON
set -euo pipefail

[[ $# == 2 ]] || { echo 'usage: curl.sh WORKFLOW_ID REQUEST_AS_JSON' >&2 && exit 2; }

# The workflow ID contains percent signs, which the URL must encode.
workflow="${TEMPORAL_HTTP_URL:-http://localhost:7243}/api/v1/namespaces/${TEMPORAL_NAMESPACE:-default}/workflows/${1//%/%25}"
start=$(jq -n --argjson request "$2" '{
  workflowType: { name: "followUp" }, taskQueue: { name: "follow-up" }, input: [$request],
  workflowIdConflictPolicy: "WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING",
  workflowIdReusePolicy: "WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE" }')

# 200: the follow-up was started, or the start attached to a running one. 409: the follow-up has ended, and its result can be read.
response=$(curl -sS --json "$start" -w '%{http_code}' "$workflow")
[[ $response == *200 || $response == *409 ]] || { echo "$response" >&2 && exit 1; }

# The Temporal server responds when the follow-up has ended, or without an event after about 20 s.
ended="$workflow/history?waitNewEvent=true&historyEventFilterType=HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT"
until end=$(curl -sS "$ended" | jq -e '.history.events[0] // empty | select(.eventType | endswith("CONTINUED_AS_NEW") | not)'); do
  sleep 1
done
prompt=$(jq -j '.prompt? // ""' <<<"$2" | sha256sum)
jq -r --arg digest "${prompt%% *}" -f "$(dirname "$0")/end.jq" <<<"$end"
