#!/usr/bin/env bash
# Installs the load generators that brimful is compared with, each by its registry's own client:
#
#   bench/peers.sh            all that are not installed yet
#   bench/peers.sh k6 oha     only these
#
# zrk and gcannon are in no registry. `make bench` builds them where --sources names their sources (bench/README.md).
# Debian's packages need root. The script names those that it cannot install; the comparison runs without them.
set -euo pipefail

main() {
    local peer missing=()
    (($#)) || set -- nginx wrk httperf h2load ab hey vegeta k6 oha
    for peer in "$@"; do
        have "$peer" || get "$peer" || missing+=("$peer")
    done
    have wrk2 || echo "peers: to include wrk2, which is in no registry, build it and put it on PATH as wrk2" >&2
    ((${#missing[@]} == 0)) || { echo "peers: could not install: ${missing[*]}" >&2; exit 3; }
}

have() { PATH=$PATH:/usr/sbin:$HOME/.cargo/bin:$HOME/go/bin command -v "$1" >/dev/null; }

get() {
    case $1 in
        nginx | wrk | httperf | hey) debian "$1" ;;
        h2load) debian nghttp2-client ;;
        ab) debian apache2-utils ;;
        vegeta) go install github.com/tsenart/vegeta/v12@latest ;;
        k6) go install go.k6.io/k6@latest ;;
        oha) cargo install --locked oha ;;
        zrk | gcannon)
            echo "peers: $1 is in no registry: make bench BENCH='--sources $1=DIR' builds it" >&2
            return 1
            ;;
        *) echo "peers: $1 is unknown" >&2; return 1 ;;
    esac
}

debian() { DEBIAN_FRONTEND=noninteractive apt-get -q install --yes --no-install-recommends "$1"; }

main "$@"
