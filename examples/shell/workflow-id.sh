#!/usr/bin/env bash
# Prints the workflow ID of a follow-up: workflow-id.sh PROJECT JOB REQUEST_ID
set -euo pipefail

encode() { # A UUID is in lower case. jq 1.6 does not encode !'()*
  local uuid='^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$' part=$1
  [[ ! $part =~ $uuid ]] || part=${part,,}
  jq -rn --arg part "$part" '$part | @uri' | sed "s/!/%21/g; s/'/%27/g; s/(/%28/g; s/)/%29/g; s/\*/%2A/g"
}

[[ $# == 3 ]] || { echo 'usage: workflow-id.sh PROJECT JOB REQUEST_ID' >&2 && exit 2; }
project=$(encode "$1")
job=$(encode "$2")
request=$(encode "$3")
echo "follow-up:$project:$job:$request"
