#!/usr/bin/env python3
"""Whatever a client gets wrong: a 4xx with the API's error object or a clean close, and the next request works.

Usage: test_bad_requests.py PROGRAM MODEL
"""
import json
import re
import socket
import sys
import time
import unittest

import served

PROGRAM, MODEL = "", ""
GETS = ["/", "/health", "/metrics", "/stats", "/v1/models", "/v1/models/rondo-demo"]
CHAT, COMPLETIONS, MESSAGES = "/v1/chat/completions", "/v1/completions", "/v1/messages"
COUNT, TOKENIZE, DETOKENIZE = "/v1/messages/count_tokens", "/tokenize", "/detokenize"
POSTS = [CHAT, COMPLETIONS, MESSAGES, COUNT, TOKENIZE, DETOKENIZE]
USER = [{"role": "user", "content": "What is 23 + 45?"}]
GOOD = {CHAT: {"messages": USER}, COMPLETIONS: {"prompt": "def f("}, MESSAGES: {"messages": USER, "max_tokens": 8},
        COUNT: {"messages": USER}, TOKENIZE: {"content": "text"}, DETOKENIZE: {"tokens": [1, 2]}}
HOST = b"Host: x\r\n"


def post_bytes(path, body, more=b"Content-Type: application/json\r\n"):
    return b"POST %s HTTP/1.1\r\n%s%sContent-Length: %d\r\n\r\n%s" % (path.encode(), HOST, more, len(body), body)


def bad_bodies():
    """What is no JSON object, whatever the route."""
    return [b"", b" ", b"{", b"}", b"[]", b"null", b"5", b'"x"', b"nonsense", b"{'a':1}", b'{"a":1,}', b'{"a"}', b"{}{}",
            b'{"a":NaN}', b'{"a":"\xff"}', b'{"a":"\\ud800"}', b'{"a":"\n"}', b'{"a":1e99999}',
            b'\xef\xbb\xbf{"a":1}', '{"a":1}'.encode("utf-16"), '{"a":"ä"}'.encode("latin-1"), b'{"a":\x00}',
            b'{"a":' + b"[" * 100_000, b'{"a":' * 5000 + b"1" + b"}" * 5000, b"\x1f\x8b\x08\x00" + b"x" * 50,
            b'{"no_such_field_of_any_api":1}', b'{"' + b"k" * 100_000 + b'":1}']


def bad_fields(path):
    """One field at a time, wrong: in type, in size, in sense."""
    of_draw = {"temperature": ["hot", -1, 99, [1]], "top_p": ["x", -0.1, 1.1], "seed": ["x", 1.5, 2**70, {}],
               "top_k": ["x", -2, 1.5], "max_tokens": ["x", 0, -1, 1.5, 10**12, 2**64, True],
               "stream": ["yes", 1, {}], "model": [5, "no-such-model", {}]}
    fields = {
        CHAT: of_draw | {
            "messages": [None, "x", 5, {}, [], [5], ["x"], [{}], [{"role": "user"}], [{"role": 5, "content": "x"}],
                         [{"role": "emperor", "content": "x"}], [{"role": "user", "content": 5}],
                         [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}],
                         [{"role": "user", "content": [5]}], [{"role": "user", "content": "x", "tool_calls": 5}],
                         [{"role": "tool", "content": "x", "tool_call_id": 5}],
                         [{"role": "user", "content": "x" * 200_000}]],
            "min_p": ["x", 2], "stop": [5, [5], [""], ["x"] * 1000, {}], "n": [0, -1, 1.5, "x", 10**6],
            "logprobs": ["x", 5], "top_logprobs": [-1, 10**6, "x"], "logit_bias": ["x", [1], {"x": 1}, {"5": 1e9}, {"-1": 1}],
            "presence_penalty": [99, "x"], "frequency_penalty": [-99, {}], "stream_options": [5, {"x": 1}],
            "tools": ["x", [5], [{}], [{"type": "function"}]], "tool_choice": [5, "sometimes", {"type": "x"}],
            "response_format": [5, "x", {}, {"type": "x"}, {"type": "json_schema"}, {"type": "json_schema", "json_schema": 5}],
            "chat_template_kwargs": [5, "x", {"messages": []}], "draft_depth": [-1, "x"], "draft": ["x", 1],
            "cache": ["x"], "ignore_eos": ["x"], "thinking_budget": ["x", -1], "user": [5], "metadata": [5],
            "audio": [{}], "unknown": [1]},
        COMPLETIONS: of_draw | {"prompt": [None, 5, {}, [], [[]], ["x", 5], [-1], [10**9], [1.5], "x" * 200_000],
                                "echo": ["x"], "n": [0, "x"], "suffix": ["x", 5], "logprobs": ["x", 99], "best_of": [0, 99],
                                "stop": [5], "unknown": [1]},
        MESSAGES: {"messages": [None, "x", [], [5], [{}], [{"role": "emperor", "content": "x"}], [{"role": "user", "content": 5}]],
                   "max_tokens": [None, "x", 0, -1, 10**12], "system": [5, [5]], "temperature": ["x", 9], "top_p": [7],
                   "stop_sequences": ["x", [5]], "tools": ["x", [5]], "tool_choice": [5, {"type": "x"}],
                   "thinking": [5, {"type": "x"}], "stream": ["x"], "model": [5, "no-such-model"], "unknown": [1]},
        COUNT: {"messages": [None, "x", [5]], "system": [5], "unknown": [1]},
        TOKENIZE: {"content": [None, 5, {}, ["x"]], "unknown": [1]},
        DETOKENIZE: {"tokens": [None, 5, "x", {}, ["x"], [-1], [10**9], [1.5], [2**70]], "unknown": [1]},
    }[path]
    for name, values in fields.items():
        for value in values:
            body = dict(GOOD[path])
            body[name] = value
            if value is None:
                del body[name]
            yield json.dumps(body).encode()


def bad_http():
    """What is no HTTP, or not the HTTP spoken here; for one POST route and one GET route."""
    post = b"POST /v1/chat/completions HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\n"
    return [
        b"\r\n\r\n", b"x", b"hello\r\n\r\n", b"GET\r\n\r\n", b"GET /\r\n\r\n", b"GET / HTTP/9.9\r\n" + HOST + b"\r\n",
        b"GET / HTTP/2.0\r\n" + HOST + b"\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + HOST + HOST + b"\r\n", b"GET / HTTP/1.1\r\nHost x\r\n\r\n", b"GET / HTTP/1.1\r\n: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHo st: x\r\n\r\n", b"GET  / HTTP/1.1\r\n" + HOST + b"\r\n", b"GET / HTTP/1.1\n" + HOST + b"\n",
        b"GET /\x00 HTTP/1.1\r\n" + HOST + b"\r\n", b"GET /\xff HTTP/1.1\r\n" + HOST + b"\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 60,  # TLS
        b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\n" + HOST + b"\r\n", b"GET / HTTP/1.1\r\nX: " + b"a" * 20_000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + HOST + b"A: b\r\n" * 5000 + b"\r\n", b"A" * 100_000, b"GET /nowhere HTTP/1.1\r\n" + HOST + b"\r\n",
        post + b"\r\n", post + b"Content-Length: -1\r\n\r\n", post + b"Content-Length: x\r\n\r\n",
        post + b"Content-Length: 99999999999999999999\r\n\r\n", post + b"Content-Length: 33554433\r\n\r\n",
        post + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", post + b"Content-Length: 50\r\n\r\n{}",
        post + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        post + b"Transfer-Encoding: gzip\r\n\r\n", post + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        post + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", post + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n{}",
        post + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}", post + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}0\r\n\r\n",
        post + b"Transfer-Encoding: chunked\r\n\r\n0\r\n" + b"T: t\r\n" * 50_000,
        post + b"Transfer-Encoding: chunked\r\n\r\n2;" + b"x" * 100_000,
        post + b"Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}", post + b"Expect: miracles\r\nContent-Length: 2\r\n\r\n{}",
    ]


class BadRequests(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server, cls.url = served.start(PROGRAM, MODEL)
        host, port = cls.url.removeprefix("http://").split(":")
        cls.address = (host, int(port))
        cls.posts = [path for path in POSTS if cls.exists(path)]
        cls.gets = [path for path in GETS if cls.exists(path)]
        cls.sent = 0
        cls.first = cls.reply()

    @classmethod
    def tearDownClass(cls):
        served.stop(cls.server)

    @classmethod
    def exists(cls, path):
        return b" 404 " not in cls.talk(b"OPTIONS %s HTTP/1.1\r\n%s\r\n" % (path.encode(), HOST)).split(b"\r\n")[0]

    @classmethod
    def talk(cls, data, timeout=30):
        """All the server says to these bytes; the client sends no more, and waits for the end."""
        with socket.create_connection(cls.address, timeout=timeout) as client:
            try:
                client.sendall(data)
                client.shutdown(socket.SHUT_WR)
            except OSError:
                pass  # refused before all was sent: what it said is there to read
            out = b""
            while piece := client.recv(65536):
                out += piece
            return out

    @classmethod
    def reply(cls):
        """Of the same request each time, so it must be the same."""
        status, body = served.post_json(cls.url + CHAT, {"messages": USER, "max_tokens": 12, "temperature": 0})
        assert status == 200, body
        return body["choices"], body["rondo"]["token_sha"]

    def expect_refusal(self, data):
        said = self.talk(data)
        type(self).sent += 1
        if said:  # else a clean close: recv() would have raised on a reset
            head, _, body = said.partition(b"\r\n\r\n")
            status = int(head.split(b" ")[1])
            self.assertTrue(400 <= status < 500, (status, data[:200], body[:300]))
            error = json.loads(body)["error"]
            self.assertIsInstance(error["message"], str)
            self.assertTrue(error["message"] and error["type"], error)
        self.assertIn(b" 200 ", self.talk(b"GET /v1/models HTTP/1.1\r\n" + HOST + b"\r\n").split(b"\r\n")[0])

    def test_no_json(self):
        for path in self.posts:
            for body in bad_bodies():
                with self.subTest(path=path, body=body[:60]):
                    self.expect_refusal(post_bytes(path, body))

    def test_wrong_fields(self):
        for path in self.posts:
            for body in bad_fields(path):
                with self.subTest(path=path, body=body[:120]):
                    self.expect_refusal(post_bytes(path, body))

    def test_no_http(self):
        for data in bad_http():
            with self.subTest(data=data[:80]):
                self.expect_refusal(data)

    def test_wrong_methods_and_types(self):
        for path in self.gets + self.posts:
            for method in ("DELETE", "PUT", "BREW", "CONNECT", "get", "POST" if path in self.gets else "GET"):
                with self.subTest(path=path, method=method):
                    self.expect_refusal(b"%s %s HTTP/1.1\r\n%sContent-Length: 0\r\n\r\n" % (method.encode(), path.encode(), HOST))
        for path in self.posts:
            for more in (b"", b"Content-Type: text/plain\r\n", b"Content-Type: application/jsonx\r\n"):
                with self.subTest(path=path, more=more):
                    self.expect_refusal(post_bytes(path, json.dumps(GOOD[path]).encode(), more))

    def test_a_body_over_the_limit_in_chunks(self):
        chunk = b"100000\r\n" + b" " * 0x100000 + b"\r\n"
        self.expect_refusal(b"POST /v1/chat/completions HTTP/1.1\r\n" + HOST +
                            b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk * 33)

    def test_slow_and_half_open_sockets(self):
        silent = [socket.create_connection(self.address, timeout=60) for _ in range(20)]
        half = [socket.create_connection(self.address, timeout=60) for _ in range(20)]
        for client in half:
            client.sendall(b"GET /v1/models HTTP/1.1\r\nHos")
        body = [socket.create_connection(self.address, timeout=60) for _ in range(20)]
        for client in body:
            client.sendall(post_bytes(CHAT, b"{" * 100)[:-50])
        drip = socket.create_connection(self.address, timeout=60)
        for byte in post_bytes(CHAT, json.dumps({"messages": USER, "max_tokens": 1}).encode()):
            drip.sendall(bytes([byte]))
        self.assertIn(b"200 OK", drip.recv(65536))
        self.assertEqual(self.reply(), self.first, "with all of them still there")
        for client in half:  # ten seconds for a header
            self.assertIn(b"408", client.recv(65536).split(b"\r\n")[0])
            self.assertEqual(client.recv(65536), b"")
        for client in body:
            client.shutdown(socket.SHUT_WR)
            self.assertEqual(client.recv(65536), b"")
        for client in silent + half + body + [drip]:
            client.close()
        type(self).sent += 60
        self.assertEqual(self.reply(), self.first)

    def test_one_who_does_not_read(self):
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        client.connect(self.address)
        client.sendall(post_bytes(CHAT, json.dumps({"messages": USER, "max_tokens": 3000, "ignore_eos": True, "stream": True}).encode()))
        self.assertEqual(self.reply(), self.first)
        client.close()
        deadline = time.monotonic() + 60
        while served.get_json(self.url + "/health")["running"] > 0:
            self.assertLess(time.monotonic(), deadline)

    def test_zz_nothing_reached_5xx_and_the_first_reply_is_the_same(self):
        """Last, by its name."""
        self.assertGreaterEqual(self.sent, 150)
        print(self.sent, "bad requests to", ", ".join(self.posts + self.gets))
        self.assertEqual(self.reply(), self.first)
        said = self.talk(b"GET /metrics HTTP/1.1\r\n" + HOST + b"\r\n").decode()
        statuses = re.findall(r'rondo_http_requests_total\{route="[^"]*",status="(\d+)"\} (\d+)', said)
        self.assertGreaterEqual(sum(int(n) for status, n in statuses if status.startswith("4")), 150)
        self.assertEqual([status for status, _ in statuses if status.startswith("5")], [])
        self.assertIn("\nrondo_streams_running 0\n", said)
        self.assertIn("\nrondo_http_body_bytes 0\n", said)


if __name__ == "__main__":
    PROGRAM, MODEL = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1])
