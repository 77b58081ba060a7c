#!/usr/bin/env bash
# The paths of our own C++ and CUDA files, each ended by a zero byte. With folders named: those folders of src/ only.
set -euo pipefail
cd "$(dirname "$0")/.."
roots=()
if (($#)); then
  for folder in "$@"; do if [ -d "src/$folder" ]; then roots+=("src/$folder"); fi; done
else
  for folder in src tests bench tools; do if [ -d "$folder" ]; then roots+=("$folder"); fi; done
fi
((${#roots[@]})) || exit 0
find "${roots[@]}" -type f \( -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' \) -print0 | sort -z
