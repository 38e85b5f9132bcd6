#!/usr/bin/env bash
# The long campaigns: every fuzz target for FUZZTIME, then all tests COUNT
# times with the race detector in shuffled order.
#   bench/soak.sh FUZZTIME COUNT
set -euo pipefail
fuzztime=${1:-2m}
count=${2:-20}
cd "$(dirname "$0")/.."

for dir in $(go list -f '{{if .TestGoFiles}}{{.Dir}}{{end}}{{if .XTestGoFiles}} {{.Dir}}{{end}}' ./... | tr ' ' '\n' | sort -u); do
	for target in $(grep -hoE '^func (Fuzz[A-Za-z0-9_]*)' "$dir"/*_test.go | awk '{print $2}'); do
		echo "== fuzz ${dir#"$PWD"/} $target for $fuzztime"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "$fuzztime" "$dir"
	done
done

echo "== tests $count times"
go test -race -shuffle=on -count="$count" -timeout 6h ./...
