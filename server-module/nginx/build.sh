#!/bin/sh
# Builds the Server Module for the installed nginx: build.sh OUT.so
#
#   NGINX_BINARY  path of the nginx that will load the module; "nginx" by default
#   NGINX_SOURCE  directory of nginx's source in the same version; by default that of the Debian package nginx-dev
#   CFLAGS        additional compiler flags for the module; not used for configuring nginx's source
#
# Exit codes: 0 built, 2 usage, 3 something is missing.
set -eu

fail() {
    echo "error: $1" >&2
    exit "${2:-3}"
}

[ $# -eq 1 ] || fail "name one file to write, such as build.sh ngx_http_brimful_module.so" 2
case $1 in
    /*) out=$1 ;;
    *) out=$PWD/$1 ;;
esac
here=$(cd "$(dirname "$0")" && pwd)
nginx=${NGINX_BINARY:-nginx}
source=${NGINX_SOURCE:-/usr/share/nginx/src}

command -v "$nginx" >/dev/null || fail "$nginx is not there: apt-get install nginx, or name it: \
NGINX_BINARY=/usr/sbin/nginx"
command -v cc >/dev/null || fail "there is no C compiler: apt-get install gcc"
command -v make >/dev/null || fail "there is no make: apt-get install make"
[ -x "$source/configure" ] || fail "there is no nginx source in $source: apt-get install nginx-dev, or name the \
unpacked source of the same version: NGINX_SOURCE=DIR"

installed=$("$nginx" -v 2>&1 | sed -n 's,.*nginx/\([0-9.]*\).*,\1,p')
of_source=$(sed -n 's/^#define NGINX_VERSION *"\(.*\)".*/\1/p' "$source/src/core/nginx.h")
[ "$installed" = "$of_source" ] || fail "nginx is $installed, its source in $source $of_source: \
a module must be built from the source of the very version; apt-get install nginx nginx-dev, or NGINX_SOURCE=DIR"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
cp -R "$source/." "$work/source"

# Configures nginx's source with the arguments that the installed nginx was built with, but without other modules and
# without options for the compiler and the linker.
arguments=$("$nginx" -V 2>&1 | sed -n 's/^configure arguments: //p')
eval "set -- $arguments"
for argument; do
    shift
    case $argument in
        *=dynamic | --add-module=* | --add-dynamic-module=* | --with-ld-opt=* | --with-cc-opt=*) ;;
        --with-stream* | --with-mail*) ;;
        *) set -- "$@" "$argument" ;;
    esac
done
cd "$work/source"
./configure "$@" --with-cc-opt="-O2 -g" --add-dynamic-module="$here" >"$work/log" 2>&1 || {
    tail -n 20 "$work/log" >&2
    fail "nginx's configure failed, see above: a library that nginx was built with is missing; \
apt-get install nginx-dev"
}
[ -z "${CFLAGS:-}" ] || sed -i "s|^CFLAGS = |CFLAGS = $CFLAGS |" objs/Makefile
make -f objs/Makefile modules >"$work/log" 2>&1 || {
    tail -n 40 "$work/log" >&2
    fail "the module does not compile, see above" 1
}
built=objs/ngx_http_brimful_module.so

# Prints the signature of a program or module. nginx compares the signatures when it loads a module, so without this
# check a user would learn of a mismatch only at nginx's next restart.
signature() {
    grep -aoE '[0-9],[0-9],[0-9],[01]{30,}' "$1" | head -n 1
}
wanted=$(signature "$(command -v "$nginx")")
[ -z "$wanted" ] || [ "$wanted" = "$(signature "$built")" ] || fail "the module's signature is not that of $nginx: \
$(signature "$built") instead of $wanted; nginx must be built --with-compat, or with the very options of $source"

install -m 0644 "$built" "$out"
