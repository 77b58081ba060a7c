#!/usr/bin/env python3
"""rondo serve as a person starts it: a config file, keys, logs, the load that can be watched, and a stop.

Usage: test_serve_flags.py PROGRAM MODEL
"""
import json
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

import served

PROGRAM, MODEL = "", ""
ASK = {"messages": [{"role": "user", "content": "What is 23 + 45?"}], "max_tokens": 8}


def file_of(text):
    file = tempfile.NamedTemporaryFile("w", suffix=".toml")
    file.write(text)
    file.flush()
    return file


def status_of(url, **headers):
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=30) as reply:
            return reply.status
    except urllib.error.HTTPError as error:
        return error.code


class ServeFlags(unittest.TestCase):
    def refused(self, *flags):
        done = subprocess.run([PROGRAM, "serve", *flags], capture_output=True, text=True, timeout=60)
        self.assertNotEqual(done.returncode, 0)
        lines = done.stderr.strip().splitlines()
        self.assertEqual(len(lines), 1, done.stderr)
        return lines[0]

    def test_what_is_wrong_in_a_config_file_is_said_with_file_and_key(self):
        cases = [
            ("colour = 1\n", "colour"), ("port = \"many\"\n", "port"), ("port = 99999\n", "port"), ("parallel = 0\n", "parallel"),
            ("log-format = \"xml\"\n", "log-format"), ("device = \"tpu\"\n", "device"), ("[server]\nport = 8080\n", "server.port"),
            ("no-drafts = \"perhaps\"\n", "no-drafts"), ("port = 1\nport = 2\n", "port"), ("config = \"other.toml\"\n", "config"),
        ]
        for text, key in cases:
            with self.subTest(text), file_of(text) as file:
                line = self.refused("--config", file.name)
                self.assertIn(file.name, line)
                self.assertIn("'%s'" % key, line)
        self.assertIn("nowhere.toml", self.refused("--config", "nowhere.toml"))

    def test_a_flag_goes_before_its_key_and_lists_and_switches_work(self):
        text = 'alias = ["one", "two"]\nparallel = 0\nno-drafts = true\nmodel = "%s"\ncontext = 512\n' % MODEL
        with file_of(text) as file:
            self.assertIn("parallel", self.refused("--config", file.name))
            process = subprocess.Popen([PROGRAM, "serve", "--port", "0", "--parallel", "2", "--config", file.name],
                                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            lines = []
            for line in process.stdout:
                lines.append(line)
                if line.startswith("Ready"):
                    break
        said = "".join(lines)
        url = re.search(r"at (http://\S+)", said)[1]
        self.assertIn("context 512 tokens", said)
        self.assertEqual([model["id"] for model in served.get_json(url + "/v1/models")["data"]][1:], ["one", "two"])
        self.assertEqual(served.get_json(url + "/stats")["streams"]["max"], 2)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=30), 0)
        process.stdout.close()

    def test_what_fits_is_said_at_the_start_as_plan_says_it(self):
        flags = ("--context", "512", "--parallel", "2")
        plan = subprocess.run([PROGRAM, "plan", MODEL, *flags], capture_output=True, text=True, timeout=60)
        self.assertEqual(plan.returncode, 0, plan.stderr)
        table = {int(tokens): fits for tokens, fits in re.findall(r"^ +(\d+) +(none|\d+(?: or more)?)$", plan.stdout, re.M)}
        self.assertEqual(set(table), {512, 4096})
        process = subprocess.Popen([PROGRAM, "serve", MODEL, "--port", "0", "--unpriced", *flags], stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL, text=True)
        said = []
        for line in process.stdout:
            said.append(line.rstrip("\n"))
            if line.startswith("Ready"):
                break
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=30), 0)
        process.stdout.close()
        self.assertIn("Fits: 2 streams of 512 tokens at once; this machine's memory would hold %s, or %s of 4096."
                      % (table[512], table[4096]), said)
        self.assertLess(len(said), 24)  # one short page
        for line in plan.stdout.splitlines():
            if line.endswith(("MiB", "mapped")) and "available" not in line:
                self.assertIn(line, said)

    def test_keys_and_logs(self):
        with file_of("# keys\nsecret\n") as keys:
            server, url = served.start(PROGRAM, MODEL, "--context", "512", "--api-key-file", keys.name, "--log-format", "text")
        self.assertEqual(status_of(url + "/health"), 200)
        self.assertEqual(status_of(url + "/"), 200)
        for path in ("/v1/models", "/metrics", "/stats", "/nowhere"):
            self.assertEqual(status_of(url + path), 401, path)
        self.assertEqual(status_of(url + "/v1/models", Authorization="Bearer secret"), 200)
        self.assertEqual(status_of(url + "/metrics", **{"x-api-key": "secret"}), 200)
        status, _ = served.post_json(url + "/v1/chat/completions", ASK, Authorization="Bearer secret", **{"X-Request-Id": "mine"})
        self.assertEqual(status, 200)
        server.send_signal(signal.SIGTERM)
        self.assertEqual(server.wait(timeout=30), 0)
        server.stderr.seek(0)
        log = server.stderr.read()
        self.assertRegex(log, r"POST /v1/chat/completions 200.*\[mine\]")
        self.assertNotIn("23 + 45", log)
        self.assertNotIn("secret", log)
        server.stdout.close()
        server.stderr.close()

    def test_a_load_can_be_watched_and_its_log_is_json_throughout(self):
        with tempfile.TemporaryFile("w+") as log:
            process = subprocess.Popen([PROGRAM, "serve", MODEL, "--port", "0", "--log-format", "json", "--log-text"],
                                       stdout=log, stderr=log, text=True)
            url = None
            deadline = time.monotonic() + 60
            while url is None or status_of(url + "/health") != 200:
                self.assertLess(time.monotonic(), deadline)
                log.seek(0)
                if found := re.search(r'"url":"(http:[^"]+)"', log.read()):
                    url = found[1]
            self.assertEqual(served.post_json(url + "/v1/chat/completions", ASK)[0], 200)
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(timeout=30), 0)
            log.seek(0)
            lines = [json.loads(line) for line in log.read().splitlines() if line.startswith("{")]
        asked = [line for line in lines if line.get("route") == "/v1/chat/completions"]
        self.assertEqual(len(asked), 1)
        self.assertIn("23 + 45", asked[0]["asked"])
        self.assertIn("choices", asked[0]["said"])


if __name__ == "__main__":
    PROGRAM, MODEL = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1])
