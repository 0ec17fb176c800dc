#!/usr/bin/env bash
# Sends one follow-up by the server's HTTP API and prints its pull request: curl.sh WORKFLOW_ID REQUEST_AS_JSON
set -euo pipefail

# The workflow id holds percent signs of its own.
workflow="${TEMPORAL_HTTP_URL:-http://localhost:7243}/api/v1/namespaces/${TEMPORAL_NAMESPACE:-default}/workflows/${1//%/%25}"
start=$(jq -n --argjson request "$2" '{
  workflowType: { name: "followUp" }, taskQueue: { name: "follow-up" }, input: [$request],
  workflowIdConflictPolicy: "WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING",
  workflowIdReusePolicy: "WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE" }')

# 200: started, or attached to while it runs. 409: it has ended, and its result is still there.
answer=$(curl -sS --json "$start" -w '%{http_code}' "$workflow")
[[ $answer == *200 || $answer == *409 ]] || { echo "$answer" >&2 && exit 1; }

# The server answers at the end of the follow-up, or without an event after some 20 s.
ended="$workflow/history?waitNewEvent=true&historyEventFilterType=HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT"
until end=$(curl -sS "$ended" | jq -e '.history.events[0] // empty | select(.eventType | endswith("CONTINUED_AS_NEW") | not)'); do
  sleep 1
done
prompt=$(jq -j '.prompt? // ""' <<<"$2" | sha256sum)
jq -r --arg digest "${prompt%% *}" -f "$(dirname "$0")/end.jq" <<<"$end"
