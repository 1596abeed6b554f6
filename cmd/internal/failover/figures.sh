#!/usr/bin/env bash
# The five figures of a backlog, each by one command; what they mean is in docs/performance.md. It takes about an hour, most of
# it for the 20 GB of the third, on a machine that does nothing else. Words after the name choose: figures.sh stall restart
set -euo pipefail
cd "$(dirname "$0")/../../.."

figure() {
	local name=$1 what=$2
	shift 2
	if [ -n "$wanted" ] && [[ " $wanted " != *" $name "* ]]; then return; fi
	echo "== $name: $what"
	echo "   $*"
	"$@" 2>&1 | grep -E '^Benchmark|_test\.go:|^ *--- |^(ok|FAIL|panic)' || true
}
wanted=$*
failover=(go test ./cmd/internal/failover -long -v -timeout 60m -run)

figure stall "how long an entry takes to apply beside snapshots of 5,000,000 messages" \
	go test ./fsm -run - -bench SnapshotStall -benchtime 1x
figure unchanged "what a snapshot of 5,000,000 messages costs with nothing new" \
	go test ./fsm -run - -bench SnapshotHold -benchtime 1x
figure disk "what one message held keeps on the disk while 20 GB pass" \
	"${failover[@]}" BacklogDisk
figure restart "kill -9 to ready with 5,000,000 messages and 10,000 queues" \
	"${failover[@]}" 'BacklogIdle/10000-queues-of-10-and-4900000'
figure throughput "confirmed messages a second with snapshots one after the other, and without" \
	"${failover[@]}" BacklogThroughput
