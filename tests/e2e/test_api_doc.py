#!/usr/bin/env python3
"""docs/api.md against the real program with the bundled model: its examples run and print what it says, README's too; its
fields are taken or refused as it says; and every field that the program reads stands in it.

Usage: test_api_doc.py PROGRAM MODEL
"""
import json
import pathlib
import re
import subprocess
import sys
import unittest

import served

PROGRAM, MODEL = "", ""
ROOT = pathlib.Path(__file__).resolve().parents[2]
ADDRESS = "http://127.0.0.1:8080"

MESSAGES = [{"role": "user", "content": "hi"}]
TOOL = {"type": "function", "function": {"name": "f"}}
# The least that a route takes, and what a field needs beside it.
ROUTES = {"Chat": ("/v1/chat/completions", {"messages": MESSAGES, "max_tokens": 8}),
          "Completions": ("/v1/completions", {"prompt": "hi", "max_tokens": 8}),
          "Messages": ("/v1/messages", {"messages": MESSAGES, "max_tokens": 16})}
BESIDE = {"stream_options": {"stream": True}, "top_logprobs": {"logprobs": True}, "max_completion_tokens": {"max_tokens": None},
          ("Chat", "tool_choice"): {"tools": [TOOL]}, ("Chat", "parallel_tool_calls"): {"tools": [TOOL]},
          ("Messages", "tool_choice"): {"tools": [{"name": "f", "input_schema": {}}]}}


def sections(document):
    """Each part of the document by the heading it stands under."""
    parts = re.split(r"^##+ (.*)$", document, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


def rows(text, head):
    """(field, example) of the table whose first column is called so."""
    table = re.search(r"^\| %s \| example \|.*\n\| --- .*\n((?:\|.*\n)+)" % head, text, flags=re.M)
    for line in table[1].splitlines() if table else ():
        name, example = re.match(r"\| `(\w+)` \| `(.*?)` \|", line).groups()
        yield name, json.loads(example)


def examples(document):
    """(language, code, what it prints or None)"""
    fences = list(re.finditer(r"^```(\w+)\n(.*?)^```\n", document, flags=re.M | re.S))
    for i, fence in enumerate(fences):
        if fence[1] == "output":
            continue
        after = fences[i + 1] if i + 1 < len(fences) else None
        follows = after is not None and after[1] == "output" and after.start() == fence.end()
        yield fence[1], fence[2], after[2] if follows else None


def run_example(language, code, url):
    code = code.replace(ADDRESS, url)
    words = {"sh": ["sh", "-euc", code], "python": [sys.executable, "-c", code]}[language]
    return subprocess.run(words, capture_output=True, text=True, timeout=120)


def fields_read(source):
    """The top-level fields that the way in reads, by the names in its code."""
    names = set(re.findall(r"\bfields\.(?:find|boolean|integer|number|text|object|array)\(\"(\w+)\"", source))
    names |= set(re.findall(r"\bnumber\(\"(\w+)\"", source))
    for table in re.findall(r"kRefusedFields\[\] = \{(.*?)\n\};", source, flags=re.S):
        names |= set(re.findall(r"\{\"(\w+)\"", table))
    for table in re.findall(r"kTextLabels\[\] = \{(.*?)\};", source, flags=re.S):
        names |= set(re.findall(r"\"(\w+)\"", table))
    return names


class ApiDocument(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.document = (ROOT / "docs/api.md").read_text(encoding="utf-8")
        cls.readme = (ROOT / "README.md").read_text(encoding="utf-8")
        cls.sections = sections(cls.document)
        cls.server, cls.url = served.start(PROGRAM, MODEL)

    @classmethod
    def tearDownClass(cls):
        served.stop(cls.server)

    def send(self, route, field, value):
        path, least = ROUTES[route]
        body = least | BESIDE.get((route, field), BESIDE.get(field, {})) | {field: value}
        return served.post(self.url + path, body)

    def test_examples_run_and_print_what_it_says(self):
        ran = 0
        for language, code, output in [*examples(self.document), *examples(self.readme)]:
            with self.subTest(code=code):
                done = run_example(language, code, self.url)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertNotEqual(done.stdout, "")
                if output is None:
                    self.assertNotIn('"error"', done.stdout)
                else:
                    self.assertEqual(done.stdout.rstrip("\n"), output.rstrip("\n"))
                ran += 1
        self.assertGreater(ran, 15)

    def test_a_wrong_example_would_be_seen(self):
        self.assertNotEqual(run_example("sh", "curl -sf %s/nowhere" % ADDRESS, self.url).returncode, 0)
        self.assertNotEqual(run_example("python", "import openai; openai.nowhere()", self.url).returncode, 0)
        self.assertEqual(list(examples("```sh\na\n```\n```output\nb\n```\n")), [("sh", "a\n", "b\n")])

    def test_fields_it_says_are_honoured_are_taken(self):
        taken = 0
        for route in ROUTES:
            shared = rows(self.sections["Settings of every reply"], "field")
            for field, value in [*rows(self.sections[route], "field"), *shared]:
                with self.subTest(route=route, field=field):
                    status, reply = self.send(route, field, value)
                    self.assertEqual(status, 200, reply)
                    taken += 1
        self.assertGreater(taken, 60)

    def test_fields_it_says_are_refused_are_refused_by_name(self):
        refused = 0
        for route in ROUTES:
            for field, value in rows(self.sections[route], "refused"):
                with self.subTest(route=route, field=field):
                    status, reply = self.send(route, field, value)
                    self.assertEqual(status, 400, reply)
                    self.assertIn(field, json.loads(reply)["error"]["message"])
                    refused += 1
        self.assertGreater(refused, 15)

    def test_every_field_that_is_read_stands_in_it(self):
        read = set()
        for name in ("openai_chat", "openai_tools", "reply_settings", "completions_request", "anthropic_request",
                     "anthropic_messages", "anthropic_tools", "tokenize"):
            read |= fields_read((ROOT / f"src/api/{name}.cpp").read_text(encoding="utf-8"))
        self.assertGreater(len(read), 50)
        self.assertIn("temperature", read)
        self.assertEqual({name for name in read if f"`{name}`" not in self.document}, set())

    def test_every_route_stands_in_it(self):
        routes = (ROOT / "src/server/routes.cpp").read_text(encoding="utf-8")
        for path, method in re.findall(r"\{\"(/[\w/]*)\", \"(GET|POST)\"", routes):
            self.assertIn(f"{method} {path}", self.document)


if __name__ == "__main__":
    PROGRAM, MODEL = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1])
