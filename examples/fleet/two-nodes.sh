#!/usr/bin/env bash
# Starts a Ray cluster of two nodes on this machine, and runs one load from both. Needs `pip install 'brimful[fleet]'`.
#
#   examples/fleet/two-nodes.sh http://127.0.0.1:8080/
set -euo pipefail
url=${1:?"usage: $0 URL"}

stop() { kill "$head" "$other" 2> /dev/null || true; }
# With --block each node is a child process, which this script ends. Port 6399 avoids other clusters on this machine.
ray start --head --block --node-ip-address 127.0.0.1 --port 6399 --num-cpus 1 --include-dashboard false --disable-usage-stats &
head=$!
other=
trap stop EXIT
until ray status --address 127.0.0.1:6399 > /dev/null 2>&1; do sleep 0.2; done
ray start --block --address 127.0.0.1:6399 --node-ip-address 127.0.0.1 --num-cpus 1 --disable-usage-stats &
other=$!
until [[ $(ray status --address 127.0.0.1:6399 2> /dev/null | grep -c node_) -ge 2 ]]; do sleep 0.2; done

brimful fleet run --shards 2 --address 127.0.0.1:6399 --rate 2000 --duration 10s "$url"
