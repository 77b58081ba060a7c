#!/usr/bin/env python3
"""Rondo beside llama.cpp on the CPU: random bf16 weights in the shape of Qwen3.5 0.8B, tokens a second of all streams, undrafted.

  pip install numpy gguf
  bench/beside_llama_cpp.py --make qwen3.5-0.8b.gguf
  bench/beside_llama_cpp.py --gguf qwen3.5-0.8b.gguf --llama plain=llama.cpp/build/bin --llama other=llama.cpp/other/bin

Each --llama NAME=FOLDER holds a llama-batched-bench; every round runs each of them and Rondo in turn, the next round in reverse.
llama.cpp gets its weights in memory of huge pages, as Rondo's are. Both get the same number of threads.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

HUGE_PAGES = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
PROMPT, REPLY, LONG_PROMPT = 32, 32, 1024


# ---- The model: names and layout of llama.cpp's architecture qwen35. Values do not change the time; the shape does.

HIDDEN, VOCABULARY, LAYERS, FEED_FORWARD = 1024, 248320, 24, 3584
HEAD, QUERY_HEADS, KV_HEADS = 256, 8, 2
DELTA_HEADS, DELTA_HEAD, TAPS = 16, 128, 4


def make(path):
    import gguf
    import numpy

    random = numpy.random.default_rng(1)
    writer = gguf.GGUFWriter(path, "qwen35")

    def matrix(name, rows, columns):
        """bf16, of the size that keeps a row's output near its input's."""
        values = random.standard_normal((rows, columns), dtype=numpy.float32) / numpy.sqrt(numpy.float32(columns))
        codes = (values.view(numpy.uint32) >> 16).astype(numpy.uint16)
        writer.add_tensor(name, codes.view(numpy.uint8), raw_dtype=gguf.GGMLQuantizationType.BF16)

    def vector(name, values):
        writer.add_tensor(name, numpy.ascontiguousarray(values, numpy.float32))

    def near(mean, *shape):
        return mean + 0.1 * random.standard_normal(shape, dtype=numpy.float32)

    def attention(block):
        matrix(block + "attn_q.weight", 2 * QUERY_HEADS * HEAD, HIDDEN)  # queries and their gates
        matrix(block + "attn_k.weight", KV_HEADS * HEAD, HIDDEN)
        matrix(block + "attn_v.weight", KV_HEADS * HEAD, HIDDEN)
        matrix(block + "attn_output.weight", HIDDEN, QUERY_HEADS * HEAD)
        vector(block + "attn_q_norm.weight", near(1, HEAD))
        vector(block + "attn_k_norm.weight", near(1, HEAD))

    def delta(block):
        inner = DELTA_HEADS * DELTA_HEAD
        matrix(block + "attn_qkv.weight", 3 * inner, HIDDEN)
        matrix(block + "attn_gate.weight", inner, HIDDEN)
        matrix(block + "ssm_alpha.weight", DELTA_HEADS, HIDDEN)
        matrix(block + "ssm_beta.weight", DELTA_HEADS, HIDDEN)
        vector(block + "ssm_conv1d.weight", near(0, 3 * inner, TAPS))
        vector(block + "ssm_a", near(-1, DELTA_HEADS))
        vector(block + "ssm_dt.bias", near(0, DELTA_HEADS))
        vector(block + "ssm_norm.weight", near(1, DELTA_HEAD))
        matrix(block + "ssm_out.weight", HIDDEN, inner)

    writer.add_block_count(LAYERS)
    writer.add_context_length(262144)
    writer.add_embedding_length(HIDDEN)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(QUERY_HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_key_length(HEAD)
    writer.add_value_length(HEAD)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(1e7)
    writer.add_rope_dimension_count(64)
    writer.add_rope_dimension_sections([11, 11, 10, 0])
    writer.add_ssm_conv_kernel(TAPS)
    writer.add_ssm_state_size(DELTA_HEAD)
    writer.add_ssm_group_count(DELTA_HEADS)
    writer.add_ssm_time_step_rank(DELTA_HEADS)
    writer.add_ssm_inner_size(DELTA_HEADS * DELTA_HEAD)
    writer.add_full_attention_interval(4)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen35")
    # The bench's prompts are ids; all that the tokenizer must have is a name for each, and one for the line's end.
    writer.add_token_list(["\u010a", *(f"[{token}]" for token in range(1, VOCABULARY - 1)), "<|im_end|>"])
    writer.add_token_types([1] * (VOCABULARY - 1) + [3])
    writer.add_token_merges(["a b"])
    writer.add_eos_token_id(VOCABULARY - 1)
    writer.add_add_bos_token(False)

    matrix("token_embd.weight", VOCABULARY, HIDDEN)
    vector("output_norm.weight", near(1, HIDDEN))
    for layer in range(LAYERS):
        block = f"blk.{layer}."
        vector(block + "attn_norm.weight", near(1, HIDDEN))
        vector(block + "post_attention_norm.weight", near(1, HIDDEN))
        (attention if layer % 4 == 3 else delta)(block)
        matrix(block + "ffn_gate.weight", FEED_FORWARD, HIDDEN)
        matrix(block + "ffn_up.weight", FEED_FORWARD, HIDDEN)
        matrix(block + "ffn_down.weight", HIDDEN, FEED_FORWARD)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


# ---- The runs: each gives {what: tokens a second}, where what is a number of streams, or "prompt".


def run_llama(folder, options):
    def lines(prompt, reply, streams):
        command = [os.path.join(folder, "llama-batched-bench"), "-m", options.gguf, "-t", str(options.threads), "-tb", str(options.threads),
                   "-c", str(max(streams) * (prompt + reply)), "-b", "2048", "-npp", str(prompt), "-ntg", str(reply),
                   "-npl", ",".join(map(str, streams)), "-lm", "none", "--output-format", "jsonl"]
        done = subprocess.run(command, env=os.environ | HUGE_PAGES, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
        return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]

    rates = {line["pl"]: line["speed_tg"] for line in lines(PROMPT, REPLY, options.streams)}
    return rates | {"prompt": lines(LONG_PROMPT, 1, [1])[0]["speed_pp"]}


def run_rondo(options):
    command = [options.rondo, "bench", "--synthetic", "qwen3.5-0.8b", "--device", "cpu", "--threads", str(options.threads), "--no-drafts",
               "--pairs", "1", "--tokens", str(REPLY), "--streams", ",".join(map(str, options.streams)), "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
    told = json.loads(done.stdout)
    greedy = {row["streams"]: row["plain_tok_s"] for row in told["rows"] if row["temperature"] == 0}
    return greedy | {"prompt": told["prompt_tok_s"]["median"]}


def spread(values):
    return f"{statistics.median(values):.1f} ({min(values):.1f}..{max(values):.1f})"


def compare(options):
    systems = {"Rondo": lambda: run_rondo(options)}
    for named in options.llama:
        name, _, folder = named.partition("=")
        systems[name] = lambda folder=folder: run_llama(folder, options)
    rates = {name: [] for name in systems}
    for number in range(options.rounds):
        for name in sorted(systems, key=list(systems).index, reverse=number % 2 == 1):
            begin = time.time()
            rates[name].append(systems[name]())
            print(f"round {number + 1}, {name}: {time.time() - begin:.0f} s", file=sys.stderr)
    print(f"tokens/s of all streams, median (range) of {options.rounds}; ratio: Rondo over the fastest other of the same round\n")
    print("| | " + " | ".join(systems) + " | ratio |\n| --- |" + " ---: |" * (len(systems) + 1))
    for what in [*options.streams, "prompt"]:
        of = {name: [run[what] for run in runs] for name, runs in rates.items()}
        ratios = [own / max(others) for own, *others in zip(*of.values())]
        label = f"prompt of {LONG_PROMPT}" if what == "prompt" else f"{what} stream{'s' * (what > 1)}"
        print(f"| {label} | " + " | ".join(map(spread, of.values())) +
              f" | {statistics.median(ratios):.2f} ({min(ratios):.2f}..{max(ratios):.2f}) |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--make", metavar="FILE", help="write the model, 1.5 GB, and end")
    parser.add_argument("--gguf", metavar="FILE")
    parser.add_argument("--llama", metavar="NAME=FOLDER", action="append", default=[])
    parser.add_argument("--rondo", metavar="PROGRAM", default="build/rondo")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--streams", type=lambda text: [int(each) for each in text.split(",")], default=[1, 2, 4, 8, 16])
    options = parser.parse_args()
    if options.make:
        return make(options.make)
    if not options.gguf or not options.llama:
        parser.error("--gguf and at least one --llama are needed, or --make")
    compare(options)


if __name__ == "__main__":
    main()
