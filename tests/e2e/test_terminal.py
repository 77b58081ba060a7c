#!/usr/bin/env python3
"""rondo chat in a terminal (a pty) and from a pipe, with the bundled model.

Usage: test_terminal.py PROGRAM MODEL
"""
import os
import pathlib
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM, MODEL = "", ""
PROMPT = "> "
ENDLESS = ("--temperature", "2", "--top-k", "0", "--top-p", "1", "--seed", "2")  # a ramble of thousands of tokens
CTRL_C, CTRL_D, UP = b"\x03", b"\x04", b"\x1b[A"


class Terminal:
    """The program on a pty; what it shows is read as it comes."""

    def __init__(self, state, *flags):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update({"TERM": "xterm", "XDG_STATE_HOME": str(state)})
            os.execv(PROGRAM, [PROGRAM, "chat", MODEL, *(flags or ("--temperature", "0"))])
        self.shown = ""
        self.read_at = 0

    def pump(self, seconds):
        if select.select([self.fd], [], [], seconds)[0]:
            try:
                self.shown += os.read(self.fd, 65536).decode(errors="replace")
            except OSError:  # how a pty says that its other end is closed
                return False
        return True

    def wait_for(self, pattern, seconds=60):
        """What was shown since the last wait, up to and with the pattern."""
        deadline = time.monotonic() + seconds
        while not (found := re.compile(pattern).search(self.shown, self.read_at)):
            if time.monotonic() > deadline or not self.pump(0.2):
                raise AssertionError(f"{pattern!r} did not come after {self.shown[self.read_at:]!r}")
        text = self.shown[self.read_at:found.end()]
        self.read_at = found.end()
        return text

    def type(self, keys):
        os.write(self.fd, keys if isinstance(keys, bytes) else keys.encode() + b"\r")

    def status(self, seconds=60):
        deadline = time.monotonic() + seconds
        while self.pump(0.2):
            if time.monotonic() > deadline:
                raise AssertionError(f"the program did not end after {self.shown[self.read_at:]!r}")
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def close(self):
        try:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass
        os.close(self.fd)


class Chat(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def open(self, *flags, state=None):
        terminal = Terminal(state or self.folder, *flags)
        self.addCleanup(terminal.close)
        terminal.wait_for(r"/help lists the commands")
        terminal.wait_for(PROMPT)
        return terminal

    def test_a_reply_its_speed_and_the_way_out(self):
        terminal = self.open()
        terminal.type("What is 23 + 45?")
        self.assertIn("23 + 45 = 68", terminal.wait_for(r"\d+ tokens, \d+ a second"))
        terminal.wait_for(PROMPT)
        terminal.type(CTRL_D)
        self.assertEqual(terminal.status(), 0)

    def test_ctrl_c_stops_the_reply_and_not_the_program(self):
        terminal = self.open(*ENDLESS)
        terminal.type("Tell me")
        terminal.wait_for(r"\n.{20}")
        terminal.type(CTRL_C)
        terminal.wait_for("stopped")
        terminal.wait_for(PROMPT)
        terminal.type("/new")
        terminal.wait_for("An empty conversation")
        terminal.type("/set max_tokens 5")
        terminal.wait_for("max_tokens 5")
        terminal.type("What is 23 + 45?")
        terminal.wait_for("5 tokens")
        terminal.type("/quit")
        self.assertEqual(terminal.status(), 0)

    def test_ctrl_c_drops_the_line_that_is_typed(self):
        terminal = self.open()
        for _ in range(5):
            terminal.type("Wie viel ist 1 + 1, größer?".encode())
            terminal.wait_for("1 \\+ 1, größ")
            terminal.type(CTRL_C)
            terminal.wait_for(PROMPT)
        terminal.type("/save " + str(self.folder / "said"))
        terminal.wait_for("0 turns in")

    def test_a_message_of_several_lines(self):
        terminal = self.open()
        terminal.type("first\\")
        terminal.wait_for(r"\. ")
        terminal.type("second")
        terminal.wait_for("a second|1 token")
        terminal.wait_for(PROMPT)
        terminal.type('"""third')
        terminal.type("")
        terminal.type('/fourth"""')
        terminal.wait_for("a second|1 token")
        terminal.wait_for(PROMPT)
        terminal.type(f"/save {self.folder / 'said'}")
        terminal.wait_for("4 turns in")
        said = (self.folder / "said").read_text()
        self.assertIn("## user\n\nfirst\nsecond\n\n## assistant\n\n", said)
        self.assertIn("## user\n\nthird\n\n/fourth\n\n## assistant\n\n", said)
        terminal.type(f"/save {self.folder / 'said'}")
        terminal.wait_for("is there already; nothing was written")

    def test_commands_and_what_they_say(self):
        terminal = self.open()
        terminal.type("/help")
        terminal.wait_for("/save FILE")
        terminal.type("/set max_tokens 5")
        terminal.wait_for("max_tokens 5")
        terminal.type("What does the command grep do?")
        terminal.wait_for("5 tokens.*cut at the token limit")
        terminal.type("/set temperature 7")
        terminal.wait_for("'7' is no value for temperature")
        terminal.type("/set colour red")
        terminal.wait_for("There is nothing called 'colour'")
        terminal.type("/set max_tokens 100000")
        terminal.wait_for("max_tokens 100000")
        terminal.type("hello")
        terminal.wait_for("100000.*/new begins")
        terminal.type("/system Be brief.")
        terminal.wait_for("System prompt: Be brief.")
        terminal.type("/nonsense")
        terminal.wait_for("There is no command /nonsense")

    def test_a_thought_is_dim(self):
        terminal = self.open()
        terminal.type("/set thinking on")
        terminal.wait_for("thinking on")
        terminal.type("What is 23 + 45?")
        self.assertRegex(terminal.wait_for(r"\d+ tokens"), r"(?s)\x1b\[2m.+\x1b\[0m\s+23 \+ 45 = 68")

    def test_the_history_comes_back_and_a_folder_that_cannot_be_written_is_said(self):
        terminal = self.open()
        terminal.type("/system from another time")
        terminal.wait_for("System prompt: from another time")
        terminal.wait_for(PROMPT)  # before it, the end of the input would be one of a line that nobody reads
        terminal.type(CTRL_D)
        self.assertEqual(terminal.status(), 0)
        self.assertEqual((self.folder / "rondo" / "chat_history").stat().st_mode & 0o777, 0o600)
        terminal = self.open()
        terminal.type(UP + b"\r")
        terminal.wait_for("System prompt: from another time")
        blocked = self.folder / "file"
        blocked.write_text("")
        terminal = Terminal(blocked)
        self.addCleanup(terminal.close)
        terminal.wait_for("is not kept for the next time")
        terminal.wait_for(PROMPT)

    def test_from_a_pipe_each_line_is_a_message(self):
        done = subprocess.run([PROGRAM, "chat", MODEL, "--temperature", "0", "--seed", "1"], capture_output=True, text=True,
                              env=os.environ | {"XDG_STATE_HOME": str(self.folder)},
                              input="What is 23 + 45?\n/new\nWhat is \\\n23 + 45?\n/set thinking on\nWhat is 23 + 45?", timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stdout.startswith("23 + 45 = 68\n"), done.stdout)
        self.assertRegex(done.stdout, r"(?s)<think>\n.+\n</think>\n\n23 \+ 45 = \d+\n$")
        self.assertNotIn("\x1b", done.stdout + done.stderr)
        self.assertIn("tokens", done.stderr)
        self.assertFalse((self.folder / "rondo").exists())


if __name__ == "__main__":
    PROGRAM, MODEL = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
