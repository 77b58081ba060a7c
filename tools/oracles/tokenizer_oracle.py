#!/usr/bin/env python3
"""Compares our tokenizer with the tokenizers package: ids and decoded text, on several MB of mixed text.

  tokenizer_oracle.py --program build/tokenize_texts --model models/rondo-demo/tokenizer.json

The bundled tokenizer reads all of the text; small tokenizers trained here, which differ in split pattern, spelling of
merges, normaliser and added tokens, each read a part. Exit 1 at the first difference, which is printed.
A comparison that cannot fail is worth nothing: at the end one id of an answer is changed, and that must be seen.
"""

import argparse
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import mixed_text  # noqa: E402

WITH_MARKS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
NO_MARKS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
O200K = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
CONTROL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


def trained(texts, pre_tokenizer, normalizer, vocab_size):
    tokenizer = Tokenizer(models.BPE())
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()), show_progress=False
    )
    tokenizer.train_from_iterator([t.decode("utf-8", "replace") for t in texts], trainer)
    return tokenizer


def split_by(pattern):
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )


def variants(texts):
    """Small tokenizers as (name, document)."""
    plain = trained(texts, split_by(NO_MARKS), None, 2000)
    plain.add_special_tokens(CONTROL)
    document = json.loads(plain.to_str())
    yield "no marks, no normalizer, merges as pairs", document

    document = json.loads(plain.to_str())
    document["model"]["merges"] = [m if isinstance(m, str) else " ".join(m) for m in document["model"]["merges"]]
    yield "merges as strings", document

    document = json.loads(plain.to_str())
    size = len(document["model"]["vocab"])
    document["model"]["vocab"] |= {token["content"]: size + i for i, token in enumerate(document["added_tokens"])}
    document["model"]["vocab"] = {token: 7 * i + 3 for token, i in document["model"]["vocab"].items()}
    for token in document["added_tokens"]:
        token["id"] = document["model"]["vocab"][token["content"]]
    yield "ids with holes", document

    document = json.loads(plain.to_str())
    document["model"]["ignore_merges"] = True
    document["model"]["merges"] = document["model"]["merges"][:600]
    yield "ignore_merges, with tokens that no merge makes", document

    tokenizer = trained(texts, split_by(O200K), normalizers.NFC(), 1500)
    tokenizer.add_special_tokens(CONTROL)
    yield "a pattern for PCRE2", json.loads(tokenizer.to_str())

    tokenizer = trained(texts, pre_tokenizers.ByteLevel(add_prefix_space=False), None, 1000)
    yield "ByteLevel with its own pattern", json.loads(tokenizer.to_str())

    tokenizer = trained(texts, split_by(WITH_MARKS), normalizers.NFC(), 1500)
    tokenizer.add_special_tokens(CONTROL + ["<|im_"])
    tokenizer.add_tokens([
        AddedToken("<think>", normalized=False, lstrip=True),
        AddedToken("</think>", normalized=False, rstrip=True),
        AddedToken("re\u0301", normalized=True),
        AddedToken("'s", normalized=True, lstrip=True, rstrip=True),
        AddedToken("<tool", normalized=False),
        AddedToken("<tool_call>", normalized=False, lstrip=True, rstrip=True),
        AddedToken("_call></tool", normalized=False),
        AddedToken("\u4f60\u597d", normalized=True),
        AddedToken("\n\n", normalized=False, rstrip=True),
    ])  # fmt: skip
    yield "added tokens that overlap, strip and wait for NFC", json.loads(tokenizer.to_str())


def ask_ours(program, document, texts, folder):
    (folder / "tokenizer.json").write_text(json.dumps(document, ensure_ascii=False), encoding="utf-8")
    (folder / "texts").write_bytes(b"".join(struct.pack("<I", len(t)) + t for t in texts))
    command = [program, folder / "tokenizer.json", folder / "texts", folder / "ids"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{program} failed ({done.returncode}): {done.stderr.strip()}")
    print("  ours:", done.stdout.strip())
    data, pos, answers = (folder / "ids").read_bytes(), 0, []
    while pos < len(data):
        (count,) = struct.unpack_from("<I", data, pos)
        ids = list(struct.unpack_from(f"<{count}i", data, pos + 4))
        pos += 4 + 4 * count
        (length,) = struct.unpack_from("<I", data, pos)
        answers.append((ids, data[pos + 4 : pos + 4 + length].decode("utf-8")))
        pos += 4 + length
    return answers


def ask_theirs(document, texts):
    tokenizer = Tokenizer.from_str(json.dumps(document))
    strings = [t.decode("utf-8", "replace") for t in texts]
    for encoding in tokenizer.encode_batch_fast(strings, add_special_tokens=False):
        yield encoding.ids, tokenizer.decode(encoding.ids, skip_special_tokens=False)


def first_difference(texts, ours, theirs):
    """What differs, in words, or None."""
    if len(ours) != len(theirs):
        return f"{len(ours)} answers for {len(theirs)} texts"
    for text, (our_ids, our_text), (their_ids, their_text) in zip(texts, ours, theirs):
        if our_ids != their_ids:
            at = next((i for i, (a, b) in enumerate(zip(our_ids, their_ids)) if a != b), min(len(our_ids), len(their_ids)))
            return f"text {text[:300]!r}: from id {at} ours {our_ids[at:at + 8]}, theirs {their_ids[at:at + 8]}"
        if our_text != their_text:
            return f"text {text[:300]!r}: decodes to {our_text[:200]!r}, theirs {their_text[:200]!r}"
    return None


def compare(name, program, document, texts):
    print(f"{name}: {len(texts)} texts, {sum(map(len, texts)) / 1e6:.1f} MB")
    with tempfile.TemporaryDirectory() as folder:
        ours = ask_ours(program, document, texts, pathlib.Path(folder))
    theirs = list(ask_theirs(document, texts))
    difference = first_difference(texts, ours, theirs)
    if difference:
        sys.exit(f"{name}: {difference}")
    return ours, theirs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, help="the built tokenize_texts")
    parser.add_argument("--model", required=True, help="a tokenizer.json to compare on all of the text")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--generated-mb", type=float, default=5.5)
    parser.add_argument("--found-mb", type=float, default=3.0)
    args = parser.parse_args()

    texts = mixed_text.every_code_point() + mixed_text.generated(args.seed, int(args.generated_mb * 1e6))
    texts += mixed_text.found(int(args.found_mb * 1e6))
    document = json.loads(pathlib.Path(args.model).read_text(encoding="utf-8"))
    ours, theirs = compare(args.model, args.program, document, texts)
    sample = texts[:: max(1, len(texts) // 1500)]
    for name, document in variants(sample[::4]):
        compare(name, args.program, document, sample)

    ours[-1][0][0] += 1  # the planted fault
    if first_difference(texts, ours, theirs) is None:
        sys.exit("the comparison did not see a changed id")
    print("all ids and all text are the same")


if __name__ == "__main__":
    main()
