#!/usr/bin/env python3
"""What a start asks of the system, refused one by one: it ends with words, or the server answers as always.

Usage: test_startup_failures.py PROGRAM MODEL REFUSER   (REFUSER: failing_memory.so)
"""
import http.client
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

import served

PROGRAM, MODEL, REFUSER = "", "", ""
KINDS = ("memory", "mapping", "thread")
SAMPLES = 40  # of the many thousand times that memory is asked for; mappings and threads are refused each
ASK = {"messages": [{"role": "user", "content": "What is 23 + 45?"}], "max_tokens": 8}
FLAGS = ("--context", "256", "--parallel", "2", "--unpriced", "--port", "0")


def ask(url):
    """A reply. Who asks just when memory is refused may lose the connection or hear of it; who asks next may not."""
    try:
        status, body = served.post_json(url + "/v1/chat/completions", ASK)
        if status == 200:
            return body["choices"]
    except (http.client.HTTPException, OSError, ValueError):
        pass
    return served.post_json(url + "/v1/chat/completions", ASK)[1]["choices"]


class Start:
    """One start with one thing refused: how it ended, what was said, what was asked for, and a reply if it served."""

    def __init__(self, kind=-1, number=-1, asks=True):
        with tempfile.NamedTemporaryFile("r") as counts, tempfile.TemporaryFile("w+") as log:
            environment = os.environ | {"LD_PRELOAD": REFUSER, "RONDO_REFUSE_LOG": counts.name,
                                        "RONDO_REFUSE_KIND": str(kind), "RONDO_REFUSE_AT": str(number)}
            program = subprocess.Popen([PROGRAM, "serve", MODEL, *FLAGS], stdout=subprocess.PIPE, stderr=log, text=True,
                                       env=environment)
            self.reply = None
            patience = threading.Timer(30, program.kill)  # who hangs ends by signal 9
            patience.start()
            try:
                for line in program.stdout:
                    if line.startswith("Serving"):
                        url = line.split(" at ")[1].split()[0]
                    if line.startswith("Ready"):
                        self.reply = ask(url) if asks else None
                        program.send_signal(signal.SIGTERM)
                self.status = program.wait()
            finally:
                patience.cancel()
                program.kill()
                program.stdout.close()
            log.seek(0)
            self.said = log.read()
            *self.asked, self.refused = [int(each) for each in counts.read().split()] or [0, 0, 0, 0]


class StartupFailures(unittest.TestCase):
    def test_whatever_is_refused_the_end_is_clear(self):
        whole = Start()
        self.assertEqual((whole.status, whole.refused), (0, 0), whole.said)
        self.assertIsNotNone(whole.reply)
        ended = 0
        for kind, asked in enumerate(Start(asks=False).asked):
            self.assertGreater(asked, 2, KINDS[kind])
            if asked > SAMPLES:
                asked -= asked // 100  # at the end comes the stop
            numbers = range(1, asked + 1)
            if asked > SAMPLES:
                numbers = sorted(random.Random(7).sample(numbers, SAMPLES))
            for number in numbers:
                with self.subTest(kind=KINDS[kind], number=number, of=asked):
                    start = Start(kind, number)
                    if start.reply is not None:  # it could do without, or it was asked for after the reply
                        self.assertEqual(start.reply, whole.reply)
                        self.assertEqual(start.status, 0, start.said)
                    else:
                        ended += 1
                        self.assertEqual(start.status, 1, start.said)
                        self.assertRegex(start.said.splitlines()[-1], r"^rondo.*(memory|thread|cannot)")
        self.assertGreater(ended, SAMPLES // 2, "nearly nothing was refused: this test sees nothing")


if __name__ == "__main__":
    PROGRAM, MODEL, REFUSER = sys.argv[1:4]
    unittest.main(argv=sys.argv[:1], verbosity=2)
