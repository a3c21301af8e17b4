#!/usr/bin/env bash
# Installs the packages that building or testing brimful needs, or says what is missing:
#
#   scripts/setup.sh build    for `make build` and `make demo`
#   scripts/setup.sh test     for `make test`
#
# The script installs Debian packages if it runs as root or sudo needs no password. Otherwise it prints the command to
# run and exits with 3. It never installs the toolchains of Rust and Node, because Debian's versions are too old: it
# prints the commands to run, and exits with 3. It neither starts nor enables servers that are in the packages.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

packages=()
toolchains=()

main() {
    local name
    case "${1:-}" in
        build)
            look_for_build_tools
            page_is_built || look_for_node
            ;;
        test)
            look_for_build_tools
            look_for_node
            look_for_test_tools
            ;;
        install) # used by this script itself, through sudo
            install_packages "${@:2}"
            exit
            ;;
        *)
            echo "usage: scripts/setup.sh build|test" >&2
            exit 2
            ;;
    esac
    ((${#packages[@]} == 0)) || get_packages
    if ((${#toolchains[@]})); then
        for name in "${toolchains[@]}"; do
            say "still missing: $name"
        done
        exit 3
    fi
    say "everything that $1 needs is installed"
}

look_for_build_tools() {
    local rust
    rust=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
    { at_least "$rust" "$(version_of rustc)" && at_least "$rust" "$(version_of cargo)"; } ||
        toolchain "Rust $rust or newer" "brimful is written in it" "see https://rustup.rs, or run: rustup update stable"
    links "" || package "a C compiler that links" "Rust links with it" gcc libc6-dev
    runs make --version || package make "it runs the steps" make
    runs clang --version || package clang "the eBPF programs are compiled with it" clang
    links '#include <libelf.h>' -l:libelf.a -lz -lzstd || links '#include <libelf.h>' -l:libelf.a -lz ||
        package libelf "it reads compiled eBPF programs, and is linked in" libelf-dev
    links '#include <zlib.h>' -l:libz.a || package zlib "libelf needs it" zlib1g-dev
    runs pkg-config --version || package pkg-config "libbpf is built with it" pkg-config
}

# Source archives of a release contain the report page. Node is needed only if a source of the page is newer.
page_is_built() {
    local page=web/dist/report.html
    [[ -f $page && -z $(find web \( -name node_modules -o -name dist -o -name test -o -name documents \) -prune \
        -o -type f -newer "$page" -print -quit) ]]
}

look_for_node() {
    local node
    node=$(sed -n 's/.*"node": ">=\(.*\)".*/\1/p' web/package.json)
    { at_least "$node" "$(version_of node)" && runs npm --version; } ||
        toolchain "Node.js $node or newer with npm" "it builds the report page" "see https://nodejs.org/en/download"
}

look_for_test_tools() {
    # If cargo is missing, the toolchain has been reported already.
    if runs cargo --version; then
        { runs cargo fmt --version && runs cargo clippy --version; } ||
            toolchain "rustfmt and clippy" "they check the sources" "run: rustup component add rustfmt clippy"
    fi
    runs python3 --version || package python3 "scripts and tests are written in it" python3
    runs git --version || package git "tests read Records from its notes" git
    [[ -x /usr/sbin/nginx ]] || package nginx "tests measure it" nginx
    [[ -x /usr/sbin/apache2 ]] || package Apache "tests measure it" apache2-bin
    [[ -x /usr/bin/caddy ]] || package Caddy "tests measure HTTP/2 with it" caddy
    [[ -x /usr/sbin/nghttpd ]] || package nghttpd "tests measure HTTP/2 with it" nghttp2-server
    [[ -f /usr/share/nginx/src/src/core/nginx.h ]] || package "nginx's headers" "tests build a module for it" nginx-dev
    runs apxs -q INCLUDEDIR || package "Apache's headers" "tests build a module for it" apache2-dev
    [[ -x /usr/bin/httperf ]] || package httperf "tests compare its report with brimful's" httperf
    runs openssl version || package openssl "tests make certificates with it" openssl
    runs ip -Version || package iproute2 "tests make network namespaces with it" iproute2
    [[ -x ${CHROMIUM:-/usr/bin/chromium} ]] || package chromium "tests open the report page in it" chromium
}

# --- Checks ----------------------------------------------------------------------------------------------------------

runs() { "$@" >/dev/null 2>&1; }

# Prints the first version number in the output of `$1 --version`, or nothing if the program $1 cannot run.
version_of() { { "$1" --version 2>/dev/null || true; } | grep -oEm1 '[0-9]+(\.[0-9]+)+' | head -n 1 || true; }

at_least() { [[ -n $2 ]] && printf '%s\n' "$1" "$2" | sort --check=quiet --version-sort; }

# Succeeds if a C program whose first line is $1 compiles and links; the other arguments go to the compiler.
links() {
    local status=0 scratch
    scratch=$(mktemp)
    printf '%s\n' "$1" 'int main(void) { return 0; }' | runs cc -x c -o "$scratch" - "${@:2}" || status=$?
    rm -f "$scratch"
    return "$status"
}

toolchain() { # WHAT WHY HOW
    say "missing: $1 ($2): $3"
    toolchains+=("$1")
}

package() { # WHAT WHY PACKAGE...
    say "missing: $1 ($2)"
    packages+=("${@:3}")
}

# --- Installation ----------------------------------------------------------------------------------------------------

get_packages() {
    if ! command -v apt-get >/dev/null; then
        say "there is no apt-get here: install the equivalents of these Debian packages, then try again: ${packages[*]}"
        exit 3
    elif ((EUID == 0)); then
        install_packages "${packages[@]}"
    elif runs sudo -n true; then
        sudo -n scripts/setup.sh install "${packages[@]}"
    else
        say "installing packages needs root; run this, then try again:"
        echo "    sudo apt-get install --no-install-recommends ${packages[*]}" >&2
        exit 3
    fi
}

install_packages() {
    local get=(apt-get -o DPkg::Lock::Timeout=300 -q)
    export DEBIAN_FRONTEND=noninteractive
    say "installing $*"
    forbid_starting_services
    { "${get[@]}" update && "${get[@]}" install --yes --no-install-recommends "$@"; } >&2 || {
        say "apt-get failed (see above); fix that, then run: apt-get install --no-install-recommends $*"
        exit 3
    }
    # The policy applies only during the installation. Disable the units too: otherwise they start at the next boot, and
    # occupy port 80.
    local unit
    for unit in nginx caddy; do
        if [[ " $* " == *" $unit "* ]] && command -v systemctl >/dev/null; then
            runs systemctl disable $unit.service || say "$unit is enabled; to disable it: systemctl disable $unit"
        fi
    done
}

# Keeps Debian from starting the services of installed packages. Debian runs policy-rc.d before it starts a service;
# exit code 101 forbids the start. An existing policy file is kept.
forbid_starting_services() {
    local policy=/usr/sbin/policy-rc.d
    if [[ ! -e $policy ]]; then
        trap "rm -f $policy" EXIT
        printf '#!/bin/sh\nexit 101\n' >"$policy"
        chmod 755 "$policy"
    fi
}

say() { echo "setup: $*" >&2; }

main "$@"
