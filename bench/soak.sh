#!/usr/bin/env bash
# The long campaigns: every fuzz target for FUZZTIME, the campaigns of the log
# SOAK times their usual size, KILLS kills of a node or an instance of the control
# plane in each of the kill campaigns, a rolling restart for every tenth of them
# and 1,000 changes of metadata for every SOAK, then all tests COUNT times with
# the race detector in shuffled order.
#   bench/soak.sh FUZZTIME COUNT SOAK KILLS
set -euo pipefail
fuzztime=${1:-2m}
count=${2:-20}
soak=${3:-100}
kills=${4:-200}
cd "$(dirname "$0")/.."

for dir in $(go list -f '{{if .TestGoFiles}}{{.Dir}}{{end}}{{if .XTestGoFiles}} {{.Dir}}{{end}}' ./... | tr ' ' '\n' | sort -u); do
	for target in $(grep -hoE '^func (Fuzz[A-Za-z0-9_]*)' "$dir"/*_test.go | awk '{print $2}'); do
		echo "== fuzz ${dir#"$PWD"/} $target for $fuzztime"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "$fuzztime" "$dir"
	done
done

echo "== campaigns, $soak times their size"
SOAK=$soak go test -count=1 -timeout 12h ./storage/... ./broker/...

echo "== $kills kills"
KILLS=$kills ROUNDS=$((kills / 10 + 1)) CHANGES=$((soak * 1000)) go test -count=1 -v -timeout 6h ./durability/...

echo "== tests $count times"
go test -race -shuffle=on -count="$count" -timeout 6h ./...
