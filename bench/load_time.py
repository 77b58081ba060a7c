#!/usr/bin/env python3
"""How long a model takes to be ready, next to how long its files take to read.

  bench/load_time.py FOLDER RONDO [LAYERS]     writes to FOLDER, once, a checkpoint of Qwen3.8 27B's widths with made-up weights
                                               and so many layers (default 8: 12 GB); then reads its files, and starts
                                               `RONDO bench FOLDER --device cuda`, each with the files dropped from memory
                                               (as root; else they are read warm, and the output says so) and with them in it
"""
import json
import math
import os
import re
import struct
import subprocess
import sys
import time

CONFIG = {
    "architectures": ["Qwen3_5ForCausalLM"], "model_type": "qwen3_5_text", "attention_bias": False, "hidden_act": "silu",
    "bos_token_id": 3, "eos_token_id": 3, "dtype": "bfloat16", "head_dim": 256, "hidden_size": 5120, "intermediate_size": 17408,
    "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128, "linear_num_key_heads": 16, "linear_num_value_heads": 48,
    "linear_value_head_dim": 128, "max_position_embeddings": 262144, "num_attention_heads": 24, "num_key_value_heads": 4,
    "rms_norm_eps": 1e-6, "tie_word_embeddings": False, "vocab_size": 248320, "mtp_num_hidden_layers": 1,
    "rope_parameters": {"partial_rotary_factor": 0.25, "rope_theta": 1e7, "rope_type": "default", "mrope_interleaved": True,
                        "mrope_section": [11, 11, 10]},
}


def layer_shapes(prefix, is_linear):
    c = CONFIG
    hidden, wide, dim = c["hidden_size"], c["intermediate_size"], c["head_dim"]
    shapes = {"input_layernorm.weight": [hidden], "post_attention_layernorm.weight": [hidden],
              "mlp.gate_proj.weight": [wide, hidden], "mlp.up_proj.weight": [wide, hidden], "mlp.down_proj.weight": [hidden, wide]}
    if is_linear:
        heads = c["linear_num_value_heads"]
        values = heads * c["linear_value_head_dim"]
        channels = 2 * c["linear_num_key_heads"] * c["linear_key_head_dim"] + values
        shapes |= {"linear_attn.A_log": [heads], "linear_attn.dt_bias": [heads], "linear_attn.conv1d.weight": [channels, 1, 4],
                   "linear_attn.in_proj_a.weight": [heads, hidden], "linear_attn.in_proj_b.weight": [heads, hidden],
                   "linear_attn.in_proj_qkv.weight": [channels, hidden], "linear_attn.in_proj_z.weight": [values, hidden],
                   "linear_attn.norm.weight": [c["linear_value_head_dim"]], "linear_attn.out_proj.weight": [hidden, values]}
    else:
        q, kv = c["num_attention_heads"] * dim, c["num_key_value_heads"] * dim
        shapes |= {"self_attn.q_proj.weight": [2 * q, hidden], "self_attn.k_proj.weight": [kv, hidden],
                   "self_attn.v_proj.weight": [kv, hidden], "self_attn.o_proj.weight": [hidden, q],
                   "self_attn.q_norm.weight": [dim], "self_attn.k_norm.weight": [dim]}
    return {f"{prefix}.{name}": shape for name, shape in shapes.items()}


def shards(layers):
    """Tensors by file: a layer each, the rest, and the head."""
    hidden, vocab = CONFIG["hidden_size"], CONFIG["vocab_size"]
    for i in range(layers):
        yield f"model-layer-{i:02}.safetensors", layer_shapes(f"model.layers.{i}", i % 4 != 3)
    yield "model-rest.safetensors", {"model.embed_tokens.weight": [vocab, hidden], "lm_head.weight": [vocab, hidden],
                                     "model.norm.weight": [hidden]}
    yield "model-mtp.safetensors", layer_shapes("mtp.layers.0", False) | {
        "mtp.fc.weight": [hidden, 2 * hidden], "mtp.norm.weight": [hidden], "mtp.pre_fc_norm_embedding.weight": [hidden],
        "mtp.pre_fc_norm_hidden.weight": [hidden]}


def write_checkpoint(folder, layers):
    os.makedirs(folder, exist_ok=True)
    kinds = ["linear_attention" if i % 4 != 3 else "full_attention" for i in range(layers)]
    config = CONFIG | {"num_hidden_layers": layers, "layer_types": kinds}
    # bfloat16 of some hundredths, of either sign.
    count = 1 << 25
    block = bytearray(2 * count)
    block[0::2] = os.urandom(count)
    block[1::2] = os.urandom(count).translate(bytes(0x3C | (each & 0x80) for each in range(256)))
    where = {}
    for name, shapes in shards(layers):
        header, at = {}, 0
        for tensor, shape in shapes.items():
            size = 2 * math.prod(shape)
            header[tensor] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + size]}
            at += size
            where[tensor] = name
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        with open(f"{folder}/{name}", "wb") as out:
            out.write(struct.pack("<Q", len(text)) + text)
            while at > 0:
                out.write(block[:at])
                at -= len(block)
    with open(f"{folder}/model.safetensors.index.json", "w", encoding="utf-8") as out:
        json.dump({"metadata": {}, "weight_map": where}, out)
    with open(f"{folder}/config.json", "w", encoding="utf-8") as out:
        json.dump(config, out)


def files_of(folder):
    return [f"{folder}/{name}" for name in sorted(os.listdir(folder)) if name.endswith(".safetensors")]


def drop_from_memory():
    try:
        os.sync()
        with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as kernel:
            kernel.write("3")
        return True
    except OSError:
        return False


def read_s(folder):
    begin = time.monotonic()
    for path in files_of(folder):
        with open(path, "rb", buffering=0) as file:
            while file.read(64 << 20):
                pass
    return time.monotonic() - begin


def ready_s(folder, rondo, *flags):
    told = subprocess.run([rondo, "bench", folder, "--device", "cuda", "--quick", "--streams", "1", "--pairs", "1", "-n", "8",
                           "--context", "2048", *flags], capture_output=True, text=True, check=False)
    found = re.search(r"ready after +([\d.]+) s", told.stdout)
    if found is None:
        sys.exit(f"rondo bench: {told.stderr[-500:]}")
    return float(found[1])


def main():
    folder, rondo = sys.argv[1], sys.argv[2]
    if not os.path.exists(f"{folder}/config.json"):
        write_checkpoint(folder, int(sys.argv[3]) if len(sys.argv) > 3 else 8)
    size = sum(os.path.getsize(path) for path in files_of(folder)) / 1e9
    cold = drop_from_memory()
    rows = [("reading the files" + ("" if cold else ", warm"), read_s(folder))]
    cold = drop_from_memory()
    rows.append(("ready, costs not timed" + ("" if cold else ", warm"), ready_s(folder, rondo, "--unpriced")))
    rows.append(("reading the files again, in memory", read_s(folder)))
    rows.append(("ready, the files in memory, costs not timed", ready_s(folder, rondo, "--unpriced")))
    rows.append(("ready, the files in memory, costs timed", ready_s(folder, rondo)))
    print(f"{size:.1f} GB of bfloat16 weights")
    for what, seconds in rows:
        print(f"  {what:<46} {seconds:7.2f} s   {size / seconds:6.2f} GB/s")


main()
