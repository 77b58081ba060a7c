"""Mixed text from a seed, to compare tokenizers on: what people write, and what breaks scanners."""

import os
import pathlib
import random
import sysconfig

SCRIPTS = {
    "latin": [(0x20, 0x7E), (0xA0, 0x17F), (0x1E00, 0x1EFF)],
    "cjk": [(0x4E00, 0x9FFF), (0x3040, 0x30FF), (0x3000, 0x303F), (0xAC00, 0xD7A3), (0x20000, 0x20100), (0x2EBF0, 0x2EC00)],
    "jamo": [(0x1100, 0x11FF), (0xAC00, 0xD7A3)],
    "arabic": [(0x600, 0x6FF), (0x750, 0x77F), (0x8A0, 0x8FF), (0x660, 0x669)],
    "indic": [(0x900, 0xD7F), (0xE00, 0xFFF)],
    "emoji": [(0x1F300, 0x1FAFF), (0x2600, 0x27BF), (0x200D, 0x200D), (0xFE0F, 0xFE0F), (0x1F3FB, 0x1F3FF), (0x1F1E6, 0x1F1FF)],
    "marks": [(0x61, 0x7A), (0x300, 0x36F), (0x1AB0, 0x1ACE), (0x1DC0, 0x1DFF), (0x20D0, 0x20F0), (0x591, 0x5C7)],
    "control": [(0, 0x1F), (0x7F, 0x9F), (0x200B, 0x200F), (0x2028, 0x202F), (0xFEFF, 0xFEFF), (0x180E, 0x180E)],
    "spaces": [(0x20, 0x20), (0x9, 0xD), (0x85, 0x85), (0xA0, 0xA0), (0x2000, 0x200A), (0x3000, 0x3000), (0x1680, 0x1680)],
    "digits": [(0x30, 0x39), (0x660, 0x669), (0x2150, 0x2189), (0xBC, 0xBE), (0x1D7CE, 0x1D7FF), (0x966, 0x96F)],
    "composed": [(0x340, 0x345), (0x958, 0x95F), (0xF43, 0xFB9), (0x1F71, 0x1FFD), (0xFB1D, 0xFB4E), (0x1D15E, 0x1D1C0), (0x2F800, 0x2FA1D), (0x212A, 0x212B)],
    "any": [(0, 0xD7FF), (0xE000, 0x10FFFF)],
}

FRAGMENTS = [
    "don't", "I'M", "we'LL", "'re", "'VE've", "'\u017f", "'d'D", "x''s", "isn't", "\r\n", "\n\n\n", "  \n", " \r ", "\t\t",
    "    return x", "if (a != b) {\n        c[i] += 1;  // note\n    }", "def f(x):\n\treturn x ** 2\n", "http://a.b/c?d=e&f#g",
    "3.14159", "1,234,567", "0xDEADBEEF", "\u00a0", "\u3000", "e\u0301", "r\u00e9", "re\u0301", "re\u0323\u0301", "\u1100\u1161\u11a8", "a\u0323\u0307", "a\u0307\u0323",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f44d\U0001f3fd", "\u0645\u0631\u062d\u0628\u0627", "\u4f60\u597d\uff0c\u4e16\u754c",
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>", "<tool_call>", "</tool_call>", "<|im_", "end|>",
    "<|im_end|", "<|im_start|><|im_end|>", "< think >", "<tool_response>\n", "\n</tool_response>",
]


def run_of(rng, name):
    ranges = SCRIPTS[name]
    weight = "any" if name == "any" else None
    out = []
    for _ in range(rng.choice([1, 2, 5, 20, 80])):
        low, high = rng.choice(ranges)
        out.append(chr(rng.randint(low, high)))
        if weight is None and rng.random() < 0.1:
            out.append(" ")
    return "".join(out)


def long_run(rng):
    unit = rng.choice([" ", "\n", " \n", "a", "ab", "\u0301", "\u0323\u0301", "!", "7", "'s", "\t", "\u4e2d", "<|im_end|>", "<", "\r"])
    return unit * rng.choice([10, 100, 1000])


def with_invalid_bytes(rng, data):
    data = bytearray(data)
    for _ in range(rng.randint(1, 8)):
        where = rng.randint(0, len(data))
        data[where:where] = bytes(rng.choice([0x80, 0xBF, 0xC0, 0xC2, 0xE0, 0xE2, 0xED, 0xF0, 0xF4, 0xF8, 0xFF, 0xA0, 0x90])
                                  for _ in range(rng.randint(1, 4)))
    if data and rng.random() < 0.5:
        del data[rng.randrange(len(data))]
    return bytes(data)


def generated_text(rng, words):
    parts = []
    for _ in range(rng.choice([1, 3, 10, 40])):
        kind = rng.random()
        if kind < 0.35:
            parts.append(run_of(rng, rng.choice(list(SCRIPTS))))
        elif kind < 0.6:
            parts.append(rng.choice(FRAGMENTS))
        elif kind < 0.95:
            parts.append(" ".join(rng.choice(words) for _ in range(rng.randint(1, 20))))
        else:
            parts.append(long_run(rng))
    data = "".join(parts).encode("utf-8")
    return with_invalid_bytes(rng, data) if rng.random() < 0.1 else data


def generated(seed, total_bytes):
    """Texts that depend on nothing but the seed."""
    rng = random.Random(seed)
    words = ["".join(rng.choice("etaoinshrdlucmfwypvbgkqjxz_ETAOIN") for _ in range(rng.randint(1, 12))) for _ in range(3000)]
    texts, size = [], 0
    while size < total_bytes:
        texts.append(generated_text(rng, words))
        size += len(texts[-1])
    return texts


def every_code_point():
    """Every code point of the planes in use, before a letter and before marks that may join or pass it."""
    points = [c for c in (*range(0x40000), *range(0xE0000, 0xE0200)) if not 0xD800 <= c < 0xE000]
    texts = []
    for after in ("a", "\u0334\u0301 ", "\n"):
        for i in range(0, len(points), 1024):
            texts.append("".join(chr(c) + after for c in points[i : i + 1024]).encode("utf-8"))
    return texts


def found(total_bytes):
    """Files of this machine, as many as there are: Python's library and /usr/share; nothing depends on their being there."""
    texts, size = [], 0
    for root in (sysconfig.get_paths()["stdlib"], "/usr/share/doc", "/usr/share/perl", "/usr/share/i18n/locales"):
        taken = 0
        for folder, folders, names in os.walk(root):
            folders[:] = sorted(f for f in folders if f not in ("__pycache__", "site-packages"))
            for name in sorted(names):
                path = pathlib.Path(folder, name)
                try:
                    data = path.read_bytes()[:200_000] if path.is_file() else b""
                except OSError:
                    continue
                if taken < total_bytes // 4 and data:
                    texts.append(data)
                    taken += len(data)
        size += taken
    return texts
