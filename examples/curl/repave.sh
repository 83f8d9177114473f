#!/bin/sh
# Repaves a machine with nothing but curl: every call is a POST of JSON to /package.Service/Method.
#
#   examples/curl/repave.sh MACHINE_ID [REQUEST_ID]
#
# MILLWRIGHT_SERVER is where the server is (http://127.0.0.1:8080), MILLWRIGHT_TOKEN a token with the role `operator`.
# The exit code is the result: 0 when the run SUCCEEDED, 1 when it did not, 2 when it could not be started.
set -eu

server="${MILLWRIGHT_SERVER:-http://127.0.0.1:8080}"
machine="${1:?usage: repave.sh MACHINE_ID [REQUEST_ID]}"
# Called again with the same request id it follows the same run.
request="${2:-curl-$(date +%s)-$$}"

call() {
  curl -sS --fail-with-body -H "authorization: Bearer ${MILLWRIGHT_TOKEN:-}" -H "content-type: application/json" \
    -d "$2" "$server/baremetal.v1.RunService/$1"
}

# The first value of a field of the answer; enough for flat fields. Use jq for more.
field() {
  sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p" | head -n 1
}

if ! run="$(call StartRun "{\"request_id\":\"$request\",\"machine_id\":\"$machine\",\"type\":\"REPAVE\"}")"; then
  echo "not started: $run" >&2
  exit 2
fi
id="$(printf '%s' "$run" | field runId)"
echo "run $id"

before=""
while :; do
  run="$(call GetRun "{\"run_id\":\"$id\"}")"
  phase="$(printf '%s' "$run" | field phase)"
  now="$phase $(printf '%s' "$run" | field currentStep)"
  if [ "$now" != "$before" ]; then echo "== $now"; fi
  before="$now"
  case "$phase" in
    SUCCEEDED) exit 0 ;;
    FAILED | CANCELED)
      printf '%s\n' "$run" >&2
      exit 1
      ;;
  esac
  sleep 1
done
