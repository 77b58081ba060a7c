#!/usr/bin/env python3
"""Decodes every quantised matrix of a checkpoint in plain Python, and compares it bit by bit with what we decode it to.

The program `quantise` writes MODEL in FORMAT, and then that in float32; this script reads both files by itself: its own
safetensors reader, its own tables of E4M3 and E2M1, integers of any length for packed codes, and one rounding of an exact
sum to float32 at the end.

  quant_oracle.py --quantise build/tools/quantise/quantise --model FOLDER --format fp8|nvfp4|affine4|affine6|affine8
"""

import argparse
import json
import pathlib
import struct
import subprocess
import sys
import tempfile
from fractions import Fraction


def read_file(path):
    raw = path.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + length])
    data = raw[8 + length :]
    return {k: (v["dtype"], v["shape"], data[slice(*v["data_offsets"])]) for k, v in header.items()}


def e4m3(code):
    exponent, mantissa = code >> 3 & 15, code & 7
    if exponent == 15 and mantissa == 7:
        return float("nan")
    size = mantissa / 512 if exponent == 0 else (1 + mantissa / 8) * 2.0 ** (exponent - 7)
    return -size if code & 128 else size


E4M3 = [e4m3(code) for code in range(256)]
E2M1 = [0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6]


def floats(tensor):
    dtype, _, data = tensor
    if dtype == "F32":
        return struct.unpack(f"<{len(data) // 4}f", data)
    if dtype == "F16":
        return struct.unpack(f"<{len(data) // 2}e", data)
    if dtype == "F8_E4M3":
        return [E4M3[code] for code in data]
    assert dtype == "BF16", dtype
    return [struct.unpack("<f", b"\0\0" + data[i : i + 2])[0] for i in range(0, len(data), 2)]


def as_f32(value):
    """The nearest float32 of an exact fraction: by way of a double only where the double is exact."""
    if isinstance(value, Fraction):
        double = float(value)
        if Fraction(double) != value:
            below = struct.unpack("<f", struct.pack("<f", double))[0]
            near = [below, *(struct.unpack("<f", struct.pack("<I", struct.unpack("<I", struct.pack("<f", below))[0] + d))[0]
                             for d in (-1, 1))]
            return min(near, key=lambda each: abs(Fraction(each) - value))
        value = double
    return struct.unpack("<f", struct.pack("<f", value))[0]


def find_scale(tensors, base):
    for suffix in (".weight_scale_inv", ".weight_scale"):
        if base + suffix in tensors:
            return tensors[base + suffix]
    return tensors[base.split(".shard_")[0] + ".weight_scale"]


def decode_fp8(tensors, base, shape, codes, block):
    scale = find_scale(tensors, base)
    scales = floats(scale)
    rows, columns = shape
    if len(scales) == 1 and scale[1] != [-(-rows // block), -(-columns // block)]:
        return [as_f32(E4M3[code] * scales[0]) for code in codes]
    stride = -(-columns // block)
    return [as_f32(E4M3[codes[r * columns + c]] * scales[r // block * stride + c // block])
            for r in range(rows) for c in range(columns)]


def decode_nvfp4(tensors, base, shape, codes):
    rows, columns = shape[0], shape[1] * 2
    scales = floats(tensors[base + ".weight_scale"])
    (whole,) = floats(tensors[base + ".weight_scale_2"])
    out = []
    for r in range(rows):
        for c in range(columns):
            pair = codes[r * columns // 2 + c // 2]
            out.append(as_f32(E2M1[pair >> 4 if c % 2 else pair & 15] * scales[r * columns // 16 + c // 16] * whole))
    return out


def decode_affine(tensors, base, shape, codes, columns):
    words = shape[-1]
    bits = words * 32 // columns
    rows = len(codes) // (words * 4)
    scales, biases = floats(tensors[base + ".scales"]), floats(tensors[base + ".biases"])
    groups = len(scales) // rows
    out = []
    for r in range(rows):
        stream = int.from_bytes(codes[r * words * 4 : (r + 1) * words * 4], "little")
        for c in range(columns):
            at = r * groups + c * groups // columns
            code = stream >> (c * bits) & ((1 << bits) - 1)
            out.append(as_f32(Fraction(code) * Fraction(scales[at]) + Fraction(biases[at])))
    return out


def decoded_name(name):
    """As the float32 checkpoint names it: without MLX's prefix."""
    name = name.removeprefix("language_model.")
    return name


def expected(tensors, plain, block):
    """Name in the float32 file -> the values it must have, for each quantised matrix."""
    for name, (dtype, shape, data) in tensors.items():
        if dtype not in ("F8_E4M3", "U8", "U32") or name.endswith("_scale"):
            continue
        base = name.removesuffix(".weight")
        if dtype == "F8_E4M3":
            yield name, decode_fp8(tensors, base, shape, data, block)
        elif dtype == "U8":
            yield name, decode_nvfp4(tensors, base, shape, data)
        elif ".switch_mlp." in name:
            prefix, part = decoded_name(name).split(".switch_mlp.")
            each = f"{prefix}.experts.%d.{part}"
            columns = plain[each % 0][1][1]
            values = decode_affine(tensors, base, shape, data, columns)
            size = len(values) // shape[0]
            for expert in range(shape[0]):
                yield each % expert, values[expert * size : (expert + 1) * size]
        else:
            target = decoded_name(name)
            yield target, decode_affine(tensors, base, shape, data, plain[target][1][1])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quantise", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--format", required=True)
    parser.add_argument("--plant", action="store_true", help="one code changed: exits 0 when the difference is seen")
    args = parser.parse_args()
    block = 32
    with tempfile.TemporaryDirectory() as folder:
        coded, plain = pathlib.Path(folder, "coded"), pathlib.Path(folder, "plain")
        subprocess.run([args.quantise, args.model, coded, args.format, str(block)], check=True)
        subprocess.run([args.quantise, coded, plain, "f32"], check=True)
        tensors, decoded = read_file(coded / "model.safetensors"), read_file(plain / "model.safetensors")
    if args.plant:
        name = next(name for name, each in tensors.items() if each[0] == "U32")
        dtype, shape, data = tensors[name]
        tensors[name] = dtype, shape, bytes([data[0] ^ 1]) + data[1:]
    num_matrices = num_values = num_wrong = 0
    for name, values in expected(tensors, decoded, block):
        got = decoded[name][2]
        want = struct.pack(f"<{len(values)}f", *values)
        num_matrices += 1
        num_values += len(values)
        wrong = [i for i in range(len(values)) if got[4 * i : 4 * i + 4] != want[4 * i : 4 * i + 4]]
        num_wrong += len(wrong) + abs(len(got) - len(want))
        if wrong:
            i = wrong[0]
            print(f"{name}[{i}]: {struct.unpack('<f', got[4 * i : 4 * i + 4])[0]!r}, Python has {values[i]!r}")
    print(f"{args.format}: {num_matrices} matrices, {num_values} values, {num_wrong} differ")
    if num_matrices < 10:
        sys.exit("too few quantised matrices: nothing was compared")
    sys.exit(0 if (num_wrong == 1) == args.plant and (num_wrong == 0 or args.plant) else 1)


if __name__ == "__main__":
    main()
