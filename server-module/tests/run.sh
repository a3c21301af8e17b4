#!/bin/sh
# Compiles and runs the recorder's tests with each installed compiler (gcc, clang). With gcc, also with the sanitizers.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
strict="-std=gnu11 -Wall -Wextra -Werror -Wshadow -Wconversion -pthread"
tried=0
for compiler in gcc clang; do
    command -v "$compiler" >/dev/null || continue
    tried=1
    # Debian's clang has no sanitizers. gcc's thread sanitizer warns that it does not support fences: -Wno-tsan.
    for options in "-O2" "-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all" "-O1 -g -fsanitize=thread -Wno-tsan"; do
        [ "$compiler" = gcc ] || [ "$options" = "-O2" ] || continue
        for program in offsets record recorder_test file_test; do
            # shellcheck disable=SC2086 # each variable contains several words
            "$compiler" $strict $options -o "$work/$program" "$here/$program.c"
        done
        rm -rf "$work/files"
        mkdir "$work/files"
        "$work/offsets" >"$work/layout"
        "$work/record" "$work/files/known"
        # The programs do not run inside the echo command, because echo would hide their exit status.
        recorder=$("$work/recorder_test" "$work/files")
        file=$("$work/file_test" "$work/files")
        echo "$compiler $options: $recorder; $file"
        if [ -f "$work/layout.first" ]; then
            cmp "$work/layout" "$work/layout.first"
        else
            cp "$work/layout" "$work/layout.first"
        fi
    done
done
[ "$tried" = 1 ] || { echo "error: there is neither gcc nor clang: apt-get install gcc" >&2; exit 3; }
