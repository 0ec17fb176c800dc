#!/usr/bin/env bash
# Prints the workflow ID of a follow-up: workflow-id.sh PROJECT JOB REQUEST_ID
set -euo pipefail

encode() { # jq 1.6 does not encode !'()*
  jq -rn --arg part "$1" '$part | @uri' | sed "s/!/%21/g; s/'/%27/g; s/(/%28/g; s/)/%29/g; s/\*/%2A/g"
}

echo "follow-up:$(encode "$1"):$(encode "$2"):$(encode "$3")"
