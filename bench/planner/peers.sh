#!/usr/bin/env bash
# Installs the solvers that the planner is compared with, from PyPI and Debian:
#
#   bench/planner/peers.sh [DIRECTORY]     LINE in a virtual environment in DIRECTORY, GNU Octave's queueing package
#
# Debian's package needs root. The script names those that it cannot install; the comparison runs without them.
set -euo pipefail

main() {
    local directory=${1:-$HOME/.cache/brimful-bench/planner} missing=()
    have_line "$directory" || get_line "$directory" || missing+=(LINE)
    have_octave || get_octave || missing+=("Octave queueing")
    ((${#missing[@]} == 0)) || { echo "peers: could not install: ${missing[*]}" >&2; exit 3; }
}

have_line() { "$1/bin/python" -c 'import importlib.metadata as m; m.version("line-solver")' 2>/dev/null; }

get_line() {
    python3 -m venv "$1"
    "$1/bin/pip" install --quiet line-solver==3.0.8.0
}

have_octave() { octave --no-gui --quiet --eval 'pkg load queueing' 2>/dev/null; }

get_octave() { DEBIAN_FRONTEND=noninteractive apt-get -q install --yes --no-install-recommends octave-queueing; }

main "$@"
