#!/usr/bin/env python3
"""Which folder of src/ may include which.

  cli -> server -> api -> engine -> {model|cache|grammar} -> {ops|ckpt|text} -> tensor -> device -> base

A file includes its own folder and folders further right; folders between bars do not include each other; include paths
start at src/, never with ../. CUDA's own headers stay in device/cuda, device/nccl and ops/**/*_cuda.cu and .cuh, so that a CPU
build needs no CUDA. Tests and benches may include anything.

Usage: check_layers.py [SRC]      prints FILE:LINE: RULE for each violation, and exits 1 when there is one.
"""
import pathlib
import re
import sys

LAYERS = [["cli"], ["server"], ["api"], ["engine"], ["model", "cache", "grammar"], ["ops", "ckpt", "text"],
          ["tensor"], ["device"], ["base"]]
DEPTH = {folder: depth for depth, layer in enumerate(LAYERS) for folder in layer}
SUFFIXES = {".h", ".hpp", ".cuh", ".inc", ".cpp", ".cc", ".cu"}
INCLUDE = re.compile(r'^\s*#\s*include\s*(?P<open>["<])(?P<path>[^">]+)[">]')
CUDA_HEADER = re.compile(r"^(cuda|cublas|cudnn|nvrtc|nccl|nvtx3/|cub/|thrust/|cutlass/|mma\.h|cooperative_groups)")


def allows_cuda(path):
    text = path.as_posix()
    return text.startswith(("device/cuda/", "device/nccl/")) or (text.startswith("ops/") and text.endswith(("_cuda.cu", ".cuh")))


def broken_rule(file, included, quoted):
    """The rule that `file` (relative to src/) breaks by including `included`, or None."""
    folder, target = file.parts[0], included.split("/")[0]
    if ".." in included.split("/"):
        return f'"{included}": include paths start at src/, never with ../'
    if target not in DEPTH:
        if quoted:
            return f'"{included}": include paths start at src/, as in "{folder}/{included}"'
        if CUDA_HEADER.match(included) and not allows_cuda(file):
            return f"<{included}>: CUDA headers stay in device/cuda, device/nccl and ops/**/*_cuda.cu and .cuh"
        return None
    if target == folder or DEPTH[target] > DEPTH[folder]:
        return None
    direction = "sideways" if DEPTH[target] == DEPTH[folder] else "upwards"
    return f"{folder}/ includes {target}/ ({included}): an include {direction}"


def violations(src):
    for path in sorted(p for p in src.rglob("*") if p.is_file() and p.suffix in SUFFIXES):
        file = path.relative_to(src)
        if len(file.parts) < 2 or file.parts[0] not in DEPTH:
            yield path, 1, "stands in no folder that check_layers.py knows; add the folder to LAYERS"
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            found = INCLUDE.match(line)
            if not found:
                continue
            rule = broken_rule(file, found["path"], found["open"] == '"')
            if rule:
                yield path, number, rule


def main():
    src = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent / "src"
    if not src.is_dir():
        sys.exit(f"check_layers.py: {src} is not a folder")
    found = list(violations(src))
    for path, number, rule in found:
        print(f"{path}:{number}: {rule}")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
