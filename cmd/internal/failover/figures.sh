#!/usr/bin/env bash
# The figures of a backlog, each by one command that ends by itself; what they mean is in docs/performance.md. All of them take about
# twenty minutes on a machine that does nothing else. Words after the name choose: figures.sh stall restart. What each
# command says in full is in $FIGURES_DIR (a temporary directory unless it is set). The status is that of the worst.
set -euo pipefail
cd "$(dirname "$0")/../../.."
wanted=$*
dir=${FIGURES_DIR:-$(mktemp -d /tmp/warren-figures.XXXXXX)}
mkdir -p "$dir"
failed=0

# Built first: compiling beside a measurement would be measured.
CGO_ENABLED=0 go build -o "$dir/warren" ./cmd/warren
go test -c -o "$dir/failover.test" ./cmd/internal/failover
go test -c -o "$dir/fsm.test" ./fsm

# figure NAME SECONDS WHAT COMMAND… prints what the command measured, and why it failed.
figure() {
	local name=$1 within=$2 what=$3 status=0
	shift 3
	if [ -n "$wanted" ] && [[ " $wanted " != *" $name "* ]]; then return; fi
	echo "== $name: $what"
	echo "   $*"
	timeout -k 10 "$within" "$@" >"$dir/$name.log" 2>&1 || status=$?
	grep -E '^Benchmark|^ +[a-z_]+_test\.go:|^ *--- |^panic' "$dir/$name.log" || true
	case $status in
	0) ;;
	124 | 137) echo "   did not end within $within s: $dir/$name.log" ;;
	*) echo "   failed with status $status: $dir/$name.log" ;;
	esac
	if [ $status -ne 0 ]; then failed=1; fi
}
nodes=("$dir/failover.test" -warren "$dir/warren" -long -test.v -test.timeout 30m -test.run)
machine=("$dir/fsm.test" -test.run - -test.benchtime 1x -test.bench)

figure memory 900 "3,000,000 messages of 1 KiB through a node of 768 MiB" "${nodes[@]}" '^TestBacklogMemory$'
figure stall 600 "how long an entry takes to apply beside snapshots of 5,000,000 messages" "${machine[@]}" SnapshotStall
figure unchanged 600 "what a snapshot of 5,000,000 messages costs with nothing new" "${machine[@]}" SnapshotHold
figure disk 900 "what one message held keeps on the disk while 20 GB pass" "${nodes[@]}" '^TestBacklogDisk$'
figure restart 600 "kill -9 to ready with 5,000,000 messages and 10,000 queues" \
	"${nodes[@]}" '^TestBacklogIdle$/^10000-queues-of-10-and-4900000$'
figure throughput 900 "confirmed messages a second with snapshots one after the other, and without" "${nodes[@]}" '^TestBacklogThroughput$'
figure idle 900 "what queues cost while nobody uses them" "${nodes[@]}" '^TestBacklogIdle$/and-0$'
exit $failed
