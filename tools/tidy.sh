#!/usr/bin/env bash
# clang-tidy, by .clang-tidy, over what fits: the folders whose files do not pull in Beast or CLI11, where one file takes
# half a minute. Reads the compile commands of the build folder given; a file that this build does not compile is named.
#
#   tools/tidy.sh [BUILD [FOLDER ...]]
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build}
shift || true
folders=("$@")
((${#folders[@]})) || folders=(base device tensor ckpt ops text cache grammar model engine api)

commands=$build/compile_commands.json
[ -f "$commands" ] || {
  echo "tidy.sh: $commands is missing; configure first (cmake --preset release)" >&2
  exit 1
}
files=() left_out=()
while IFS= read -r -d '' file; do
  case $file in
    *.cpp) if grep -qF "\"$PWD/$file\"" "$commands"; then files+=("$file"); else left_out+=("$file"); fi ;;
  esac
done < <(tools/sources.sh "${folders[@]}")
((${#left_out[@]} == 0)) || echo "clang-tidy: not compiled by this build, so not looked at: ${left_out[*]}"
((${#files[@]})) || {
  echo "tidy.sh: $commands names no file of ${folders[*]}" >&2
  exit 1
}
# A kernel source is compiled once for each instruction set; looking at it once is enough.
mkdir -p "$build/tidy"
python3 - "$commands" >"$build/tidy/compile_commands.json" <<'PYTHON'
import json, sys
commands = {}
for each in json.load(open(sys.argv[1], encoding="utf-8")):
    commands.setdefault(each["file"], each)
json.dump(list(commands.values()), sys.stdout)
PYTHON
echo "clang-tidy: ${#files[@]} files of ${folders[*]}"
printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P "$(nproc)" tools/tidy_one.sh "$build/tidy"
