#!/bin/sh
# Builds the Server Module for the Apache that is installed: build.sh OUT.so
#
# The variables APXS and CC replace apxs and its compiler. CFLAGS is added to the compiler's flags. Needs apxs, which
# is in the package apache2-dev on Debian, and in httpd-devel or apache2-devel elsewhere.
set -eu

fail() {
    echo "error: cannot build mod_brimful.so: $1" >&2
    exit 3
}

[ $# -eq 1 ] || { echo "usage: $0 OUT.so" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)

apxs=${APXS:-$(command -v apxs2 || command -v apxs || true)}
command -v "$apxs" > /dev/null || fail "apxs is not installed; sudo apt-get install apache2-dev"
cc=${CC:-$("$apxs" -q CC)}
command -v "${cc%% *}" > /dev/null || fail "the compiler ${cc%% *} is not installed; sudo apt-get install gcc"

headers=$("$apxs" -q INCLUDEDIR)
[ -f "$headers/httpd.h" ] || fail "$headers/httpd.h is missing; sudo apt-get install apache2-dev"
apr=$("$apxs" -q APR_INCLUDEDIR)
[ -f "$apr/apr.h" ] || fail "$apr/apr.h is missing; sudo apt-get install libapr1-dev libaprutil1-dev"

# The headers must have the version of the installed server, because the module shares structures with the server.
server=$("$apxs" -q SBINDIR)/$("$apxs" -q PROGNAME)
[ -x "$server" ] || fail "$server is not installed; sudo apt-get install apache2"
runs=$("$server" -v | sed -n 's|^Server version: Apache/\([0-9.]*\).*|\1|p')
built=$(sed -n 's/^#define AP_SERVER_\(MAJORVERSION\|MINORVERSION\|PATCHLEVEL\)_NUMBER *\([0-9]*\).*/\2/p' \
    "$headers/ap_release.h" | paste -sd .)
[ "$runs" = "$built" ] || fail "$server is Apache $runs, the headers are of $built;
sudo apt-get install --only-upgrade apache2-bin apache2-dev"

# shellcheck disable=SC2046,SC2086 # lists of flags
$cc -shared -fPIC -std=gnu11 -O2 -Wall -Wextra -Werror $("$apxs" -q EXTRA_CPPFLAGS) \
    -isystem "$headers" -isystem "$apr" -isystem "$("$apxs" -q APU_INCLUDEDIR)" ${CFLAGS:-} \
    -o "$1" "$here/mod_brimful.c" -lpthread
