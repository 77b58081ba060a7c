#!/usr/bin/env python3
"""The real program with the bundled model, spoken to by the real openai client.

Usage: test_openai.py PROGRAM MODEL
"""
import hashlib
import json
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

import openai

import served

PROGRAM, MODEL = "", ""
SUM = [{"role": "user", "content": "What is 23 + 45?"}]


def start(*flags):
    return served.start(PROGRAM, MODEL, *flags)


def run_program(*words, text=None):
    return subprocess.run([PROGRAM, *words], input=text, capture_output=True, text=True, timeout=120)


class OpenAiClient(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server, cls.url = start("--alias", "gpt-4o")
        cls.client = openai.OpenAI(base_url=cls.url + "/v1", api_key="none", max_retries=0, timeout=60)

    @classmethod
    def tearDownClass(cls):
        cls.server.send_signal(signal.SIGTERM)
        assert cls.server.wait(timeout=30) == 0
        cls.server.stdout.close()
        cls.server.stderr.close()

    def wait_until_idle(self):
        """Polls; a request that is never stopped runs into the deadline, for it would decode for minutes."""
        deadline = time.monotonic() + 60
        while (health := served.get_json(self.url + "/health"))["running"] + health["queued"] > 0:
            self.assertLess(time.monotonic(), deadline, "a request was not stopped")

    def chat(self, **fields):
        return self.client.chat.completions.create(
            **{"model": "rondo-demo", "messages": SUM, "max_tokens": 24, "temperature": 0} | fields)

    def test_models_carry_the_window(self):
        models = self.client.models.list().data
        self.assertEqual([model.id for model in models], ["rondo-demo", "gpt-4o"])
        self.assertEqual(models[0].max_model_len, 4096)
        self.assertEqual(self.client.models.retrieve("rondo-demo").id, "rondo-demo")

    def test_health(self):
        self.assertEqual(served.get_json(self.url + "/health")["status"], "ok")

    def counted(self, *names):
        with urllib.request.urlopen(self.url + "/metrics", timeout=60) as reply:
            lines = dict(line.rsplit(" ", 1) for line in reply.read().decode().splitlines() if line[0] != "#")
        return [float(lines[f"rondo_{name}_total"]) for name in names]

    def test_metrics_count_what_a_prompt_found_in_the_cache(self):
        names = ("prefix_hits", "prefix_tokens", "prompt_tokens")
        fresh = [{"role": "user", "content": "Name a river that nobody has asked for so far."}]
        before = self.counted(*names)
        usages = [self.chat(messages=fresh).usage for _ in range(3)]
        cached = [usage.prompt_tokens_details.cached_tokens for usage in usages]
        self.assertGreater(cached[2], 0)
        hits, found, computed = (now - then for now, then in zip(self.counted(*names), before))
        self.assertEqual(hits, sum(tokens > 0 for tokens in cached))
        self.assertEqual(found, sum(cached))
        self.assertEqual(found + computed, sum(usage.prompt_tokens for usage in usages))

    def test_a_whole_reply(self):
        reply = self.chat(extra_body={"cache": False})
        self.assertEqual(reply.object, "chat.completion")
        self.assertIn(reply.choices[0].finish_reason, ("stop", "length"))
        self.assertIsInstance(reply.choices[0].message.content, str)
        usage = reply.usage
        self.assertEqual(usage.total_tokens, usage.prompt_tokens + usage.completion_tokens)
        self.assertGreater(usage.prompt_tokens, 0)
        self.assertLessEqual(usage.completion_tokens, 24)
        self.assertEqual(usage.prompt_tokens_details.cached_tokens, 0)
        self.assertEqual(usage.completion_tokens_details.accepted_prediction_tokens, reply.rondo["accepted"])
        self.assertRegex(reply.rondo["token_sha"], "^[0-9a-f]{64}$")
        self.assertRegex(reply.rondo["arithmetic"], "^cpu/")

    def test_a_long_reply_comes_in_pieces(self):
        """Long, as what is ready while a piece is on its way joins the next one: a short reply may be one piece."""
        chunks = self.chat(stream=True, max_tokens=512, extra_body={"draft": False, "ignore_eos": True})
        self.assertGreater(sum(bool(chunk.choices and chunk.choices[0].delta.content) for chunk in chunks), 3)

    def test_a_streamed_reply_says_what_the_whole_one_says(self):
        for fields in ({}, {"temperature": 1.0, "seed": 7}, {"extra_body": {"chat_template_kwargs": {"enable_thinking": True}}}):
            with self.subTest(fields):
                whole = self.chat(**fields)
                # Undrafted, a reply comes in pieces and its counters are the same each time; the text is the drafted one's.
                undrafted = {**fields, "extra_body": {**fields.get("extra_body", {}), "draft": False, "cache": False}}
                chunks = list(self.chat(stream=True, stream_options={"include_usage": True}, **undrafted))
                deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
                self.assertEqual(deltas[0].role, "assistant")
                self.assertEqual("".join(delta.content or "" for delta in deltas), whole.choices[0].message.content)
                thought = "".join(getattr(delta, "reasoning_content", None) or "" for delta in deltas)
                self.assertEqual(thought, getattr(whole.choices[0].message, "reasoning_content", None) or "")
                self.assertEqual(chunks[-2].choices[0].finish_reason, whole.choices[0].finish_reason)
                self.assertEqual(chunks[-1].choices, [])
                self.assertEqual(chunks[-1].usage, self.chat(**undrafted).usage)
                self.assertEqual(chunks[-1].rondo["token_sha"], whole.rondo["token_sha"])

    def test_a_seed_repeats_its_reply_and_another_does_not(self):
        one, again, other = (self.chat(temperature=1.5, seed=seed, max_tokens=40, extra_body={"ignore_eos": True})
                             for seed in (1, 1, 2))
        self.assertEqual(one.rondo["token_sha"], again.rondo["token_sha"])
        self.assertNotEqual(one.rondo["token_sha"], other.rondo["token_sha"])
        self.assertEqual(one.rondo["seed"], 1)

    def test_the_seed_of_a_silent_request_repeats_it(self):
        first = self.chat(temperature=1.5)
        self.assertEqual(self.chat(temperature=1.5, seed=first.rondo["seed"]).rondo["token_sha"],
                         first.rondo["token_sha"])

    def test_thought_cut_by_length_is_reasoning(self):
        reply = self.chat(max_tokens=1, extra_body={"chat_template_kwargs": {"enable_thinking": True}, "ignore_eos": True})
        self.assertEqual(reply.choices[0].finish_reason, "length")
        self.assertEqual(reply.choices[0].message.content, "")
        self.assertEqual(reply.usage.completion_tokens_details.reasoning_tokens, 1)

    def test_a_stop_string_ends_the_text_before_it(self):
        text = self.chat(extra_body={"ignore_eos": True}).choices[0].message.content
        middle = text[len(text) // 2]
        reply = self.chat(stop=[middle], extra_body={"ignore_eos": True})
        self.assertEqual(reply.choices[0].message.content, text[:text.index(middle)])
        self.assertEqual(reply.choices[0].finish_reason, "stop")

    def test_developer_parts_and_tool_messages_are_rendered(self):
        self.chat(messages=[
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "What is "}, {"type": "text", "text": "1 + 1?"}]},
            {"role": "assistant", "content": None, "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{\"a\": 1, \"b\": 1}"}}]},
            {"role": "tool", "tool_call_id": "c1", "content": "2"},
        ])

    def test_parts_are_the_same_prompt_as_their_text(self):
        parts = [{"type": "text", "text": "What is "}, {"type": "text", "text": "23 + 45?"}]
        self.assertEqual(self.chat(messages=[{"role": "user", "content": parts}]).rondo["token_sha"],
                         self.chat().rondo["token_sha"])

    def test_errors_are_the_clients_own_exceptions(self):
        cases = [
            (openai.NotFoundError, {"model": "other"}, "model", "model_not_found"),
            (openai.BadRequestError, {"messages": []}, "messages", None),
            (openai.BadRequestError, {"temperature": 9}, "temperature", None),
            (openai.BadRequestError, {"n": 0}, "n", None),
            (openai.BadRequestError, {"top_logprobs": 2}, "top_logprobs", None),
            (openai.BadRequestError, {"tools": [{"type": "web_search"}]}, "tools[0].type", "unsupported"),
            (openai.BadRequestError, {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {"not": {}}}}},
             "response_format", "unsupported"),
            (openai.BadRequestError, {"max_tokens": 5000}, "max_tokens", "context_length_exceeded"),
            (openai.BadRequestError, {"messages": [{"role": "user", "content": "x" * 40000}]}, "messages",
             "context_length_exceeded"),
            (openai.BadRequestError, {"messages": [*SUM, {"role": "system", "content": "late"}]}, "messages", None),
        ]
        for exception, fields, param, code in cases:
            with self.subTest(fields=str(fields)[:80]), self.assertRaises(exception) as caught:
                self.chat(**fields)
            self.assertEqual((caught.exception.param, caught.exception.code), (param, code))

    def test_a_client_that_goes_away_stops_its_request(self):
        body = json.dumps({"messages": SUM, "max_tokens": 4000, "temperature": 0, "ignore_eos": True, "stream": True}).encode()
        host, port = self.url.removeprefix("http://").split(":")
        head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        gone = []
        for _ in range(3):  # one runs, two wait
            client = socket.create_connection((host, int(port)))
            client.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
            self.assertIn(b"200 OK", client.recv(12345))
            gone.append(client)
        for client in gone:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.close()
        self.wait_until_idle()
        self.chat()

    def test_leaving_a_stream_half_way_is_no_trouble(self):
        for _ in range(5):
            with self.chat(stream=True, max_tokens=2000, extra_body={"ignore_eos": True}) as stream:
                next(iter(stream))
        self.wait_until_idle()
        self.assertTrue(self.chat().choices)


class Program(unittest.TestCase):
    def test_run_prints_one_json_object(self):
        done = run_program("run", MODEL, "-p", "What is 23 + 45?", "-n", "32", "--temperature", "0", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        reply = json.loads(done.stdout)
        for key in ("text", "token_ids", "token_sha", "finish_reason", "usage", "rondo", "timings_ms"):
            self.assertIn(key, reply)
        self.assertEqual(len(reply["token_ids"]), reply["usage"]["completion_tokens"])
        packed = struct.pack("<%di" % len(reply["token_ids"]), *reply["token_ids"])
        self.assertEqual(hashlib.sha256(packed).hexdigest(), reply["token_sha"])

    def test_run_prints_the_same_text_plainly_and_from_standard_input(self):
        words = ("-n", "32", "--temperature", "0")
        text = json.loads(run_program("run", MODEL, "-p", "Hello", *words, "--json").stdout)["text"]
        self.assertEqual(run_program("run", MODEL, "-p", "Hello", *words).stdout, text + "\n")
        self.assertEqual(run_program("run", MODEL, "-p", "-", *words, text="Hello").stdout, text + "\n")

    def test_raw_text_is_continued_as_it_is(self):
        done = run_program("run", MODEL, "--raw", "-p", "def f(", "-n", "5", "--temperature", "0", "--json")
        self.assertLess(json.loads(done.stdout)["usage"]["prompt_tokens"], 8)

    def test_wrong_words_are_one_clear_line(self):
        taken = socket.create_server(("127.0.0.1", 0))
        cases = [
            (2, "there is no command 'sing'", "sing"),
            (2, "--sing", "serve", "--sing"),
            (2, "--port", "serve", "--port", "99999"),
            (2, "--port", "serve", "--port", "many"),
            (2, "cuda", "serve", "--device", "cuda"),
            (2, "--temperature", "run", "-p", "x", "--temperature", "9"),
            (2, "--prompt", "run", MODEL),
            (2, "nowhere.toml", "serve", "--config", "nowhere.toml"),
            (1, "/nowhere", "run", "/nowhere", "-p", "x"),
            (1, "context", "run", MODEL, "-p", "x", "--context", "999999"),
            (1, "4096", "run", MODEL, "-p", "x", "-n", "5000"),
            (1, "cannot listen", "serve", MODEL, "--port", str(taken.getsockname()[1])),
            (1, "cannot listen", "serve", MODEL, "--host", "203.0.113.7"),
        ]
        for status, word, *words in cases:
            with self.subTest(words=words):
                done = run_program(*words)
                self.assertEqual(done.returncode, status, done.stderr)
                last = done.stderr.strip().splitlines()[-1]
                self.assertIn(word, last)
                self.assertTrue(last.startswith("rondo"), last)
        taken.close()

    def test_help_lists_commands_and_flags(self):
        self.assertIn("inspect", run_program("--help").stdout)
        self.assertIn("--alias", run_program("serve", "--help").stdout)

    def test_a_config_file_gives_flags(self):
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write('alias = ["from-file"]\nqueue = 3\n')
            file.flush()
            server, url = start("--config", file.name)
        names = [model["id"] for model in served.get_json(url + "/v1/models")["data"]]
        server.send_signal(signal.SIGINT)
        self.assertEqual(server.wait(timeout=30), 0)
        server.stdout.close()
        server.stderr.close()
        self.assertEqual(names, ["rondo-demo", "from-file"])

    def test_a_stop_lets_a_stream_end_in_words(self):
        server, url = start()
        client = openai.OpenAI(base_url=url + "/v1", api_key="none", max_retries=0)
        stream = client.chat.completions.create(model="rondo-demo", messages=SUM, stream=True, max_tokens=100,
                                                extra_body={"ignore_eos": True})
        chunks = iter(stream)
        next(chunks)
        server.send_signal(signal.SIGTERM)
        try:
            *_, last = chunks
            self.assertEqual(last.choices[0].finish_reason, "length")
        except openai.APIError as error:  # a slow machine: the time for running replies was over
            self.assertEqual(error.message, "the server is stopping")
        self.assertEqual(server.wait(timeout=30), 0)
        server.stdout.close()
        server.stderr.close()


if __name__ == "__main__":
    PROGRAM, MODEL = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1])
