#!/usr/bin/env python3
"""Many clients at once, some of which leave at any moment: afterwards nothing is left of them.

Each reply that comes to its end must be the one its request gets alone. At the end no stream runs, no request waits, no KV
block is held, the first reply is repeated, and the server's memory has not grown since it was warm.

Under a sanitizer fewer clients are enough: build-asan/rondo or build-tsan/rondo, --clients 40 --seconds 60 --any-memory.

Usage: soak.py PROGRAM MODEL [--clients 200] [--seconds 180] [--any-memory]
"""
import argparse
import asyncio
import json
import random
import sys
import time

import served

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
QUESTIONS = ["What is 23 + 45?", "Say hello.", "Write a haiku about the sea.", "def add(a, b):", "Name three colours. " * 8]
GROWTH_MIB = 8  # freed memory that the allocator keeps moves about this much


def variants():
    """The requests there are: (path, body without stream)."""
    out = []
    for i, question in enumerate(QUESTIONS):
        for draw in ({"temperature": 0}, {"temperature": 1.0, "seed": i}):
            limit = {"max_tokens": 8 + 17 * i, "ignore_eos": i % 2 == 0}
            out.append((CHAT, {"messages": [{"role": "user", "content": question}]} | draw | limit))
            out.append((COMPLETIONS, {"prompt": question} | draw | limit))
    return out


def resident_mib(pid):
    with open("/proc/%d/status" % pid, encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024


class Storm:
    def __init__(self, url, alone, seconds, seed):
        self.host, self.port = url.removeprefix("http://").split(":")
        self.alone, self.dice = alone, random.Random(seed)
        self.until = time.monotonic() + seconds
        self.counts = {"whole": 0, "left": 0, "refused": 0, "busy": 0}
        self.wrong = []

    def bytes_of(self, path, body):
        body = json.dumps(body).encode()
        return (b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" %
                (path.encode(), len(body))) + body

    async def client(self):
        while time.monotonic() < self.until:
            try:
                await self.visit()
            except (ConnectionError, asyncio.IncompleteReadError) as error:
                self.wrong.append("the server closed on a client: %r" % error)

    async def visit(self):
        reader, writer = await asyncio.open_connection(self.host, int(self.port))
        try:
            for _ in range(self.dice.randint(1, 4)):
                what = self.dice.random()
                if what < 0.05:
                    await self.send_nonsense(reader, writer)
                    return
                path, body = self.dice.choice(self.alone)[:2]
                streams = self.dice.random() < 0.6
                sent = self.bytes_of(path, body | {"stream": streams})
                if what < 0.45:
                    await self.leave_half_way(reader, writer, sent)
                    return
                writer.write(sent)
                await self.read_reply(reader, path, body, streams)
        finally:
            writer.close()

    async def send_nonsense(self, reader, writer):
        writer.write(self.dice.choice([b"nonsense\r\n\r\n", self.bytes_of(CHAT, {"messages": 5}), self.bytes_of(CHAT, [])]))
        line = await reader.readline()
        self.counts["refused"] += 1
        if not line.startswith(b"HTTP/1.1 4"):
            self.wrong.append("nonsense was answered with %r" % line)

    async def leave_half_way(self, reader, writer, sent):
        self.counts["left"] += 1
        cut = self.dice.choice([len(sent), len(sent), self.dice.randrange(len(sent))])
        writer.write(sent[:cut])
        if self.dice.random() < 0.5:
            try:
                await asyncio.wait_for(reader.read(1), self.dice.random() * 0.5)
            except asyncio.TimeoutError:
                pass
        if self.dice.random() < 0.5:
            writer.transport.abort()  # a reset, where anything is unread

    async def read_reply(self, reader, path, body, streams):
        status = int((await reader.readline()).split()[1])
        size = None
        while (line := await reader.readline()) != b"\r\n":
            name, _, value = line.decode().partition(":")
            if name.lower() == "content-length":
                size = int(value)
        if size is None:
            said = b""
            while chunk := int(await reader.readline(), 16):
                said += await reader.readexactly(chunk + 2)
                said = said[:-2]
            await reader.readexactly(2)
        else:
            said = await reader.readexactly(size)
        if status == 429:
            self.counts["busy"] += 1
            await asyncio.sleep(0.2)
            return
        if status != 200:
            self.wrong.append("status %d: %r" % (status, said[:200]))
            return
        self.counts["whole"] += 1
        sha = next(sha for one, other, sha in self.alone if one == path and other == body)
        if sha.encode() not in said:
            self.wrong.append("another reply than alone to %r" % body)


def ask(url, path, body):
    status, reply = served.post_json(url + path, body)
    assert status == 200, reply
    return reply


def wait_until_idle(url):
    deadline = time.monotonic() + 120
    while (health := served.get_json(url + "/health"))["running"] + health["queued"] > 0:
        assert time.monotonic() < deadline, "a request was not stopped: %r" % health


def gauge(url, name):
    with served.urllib.request.urlopen(url + "/metrics", timeout=60) as reply:
        return next(float(line.split()[1]) for line in reply.read().decode().splitlines() if line.startswith(name + " "))


async def run(storm, clients):
    await asyncio.gather(*(storm.client() for _ in range(clients)))


def storm_over(url, alone, clients, seconds, seed):
    storm = Storm(url, alone, seconds, seed)
    asyncio.run(run(storm, clients))
    wait_until_idle(url)
    return storm


def soak(args, server, url):
    alone = [(path, body, ask(url, path, body)["rondo"]["token_sha"]) for path, body in variants()]
    first = ask(url, *variants()[0])["choices"]
    warm = storm_over(url, alone, args.clients, args.seconds / 3, 1)
    before = resident_mib(server.pid)
    storm = storm_over(url, alone, args.clients, args.seconds * 2 / 3, 2)
    after = resident_mib(server.pid)
    wrong = warm.wrong + storm.wrong
    if ask(url, *variants()[0])["choices"] != first:
        wrong.append("the first reply is not repeated")
    for name in ("rondo_streams_running", "rondo_requests_queued", "rondo_http_body_bytes", "rondo_http_connections"):
        most = 1 if name == "rondo_http_connections" else 0  # the one that asks
        if gauge(url, name) > most:
            wrong.append("%s is %g" % (name, gauge(url, name)))
    if after > before + GROWTH_MIB and not args.any_memory:
        wrong.append("memory grew from %.1f to %.1f MiB" % (before, after))
    served.stop(server)
    counts = {name: warm.counts[name] + storm.counts[name] for name in storm.counts}
    print("%d clients, %g s: %s; %.1f MiB resident when warm, %.1f at the end" %
          (args.clients, args.seconds, ", ".join("%d %s" % (n, name) for name, n in counts.items()), before, after))
    for line in sorted(set(wrong))[:20]:
        print("WRONG:", line)
    sys.exit(1 if wrong or counts["whole"] == 0 or counts["left"] == 0 else 0)


def main():
    args = argparse.ArgumentParser()
    args.add_argument("program")
    args.add_argument("model")
    args.add_argument("--clients", type=int, default=200)
    args.add_argument("--seconds", type=float, default=180)
    args.add_argument("--any-memory", action="store_true", help="a sanitizer keeps what is freed: do not judge memory")
    args = args.parse_args()
    server, url = served.start(args.program, args.model, "--context", "512")
    try:
        soak(args, server, url)
    except Exception:
        if server.poll() is not None:
            print("the server ended:", served.last_words(server))
        raise


if __name__ == "__main__":
    main()
