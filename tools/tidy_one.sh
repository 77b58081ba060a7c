#!/usr/bin/env bash
# clang-tidy on one file: its findings in one piece, and nothing when there are none.
found=$(clang-tidy-14 -p "$1" --quiet "$2" 2>&1) && exit 0
printf '%s\n' "$found" | grep -vE '^([0-9]+ warnings? |Suppressed |Use -header-filter)' >&2
exit 1
