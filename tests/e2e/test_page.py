#!/usr/bin/env python3
"""The page, in Debian's chromium without a window, against the real program with the bundled model.

Usage: test_page.py PROGRAM MODEL
Ends with 77 (skipped, and says why) where chromium or its driver is missing.
"""
import json
import shutil
import sys
import tempfile
import unittest

import served

try:
    from playwright.sync_api import expect, sync_playwright
except ImportError:
    print("skipped: the Python package playwright is not in .venv (tools/install.sh test makes it)")
    sys.exit(77)
CHROMIUM = shutil.which("chromium")
if CHROMIUM is None:
    print("skipped: chromium is not installed (tools/install.sh page)")
    sys.exit(77)

PROGRAM, MODEL = "", ""
EDIT = ("Rename value to item in this function and change nothing else.\n\n```python\ndef total(values):\n    result = 0\n"
        "    for value in values:\n        result += value\n    return result\n```")
TABLE = ("Here it is:\n| word | `n` | <b>note</b> |\n|---|--:|:-:|\n| river | 12 | a \\| b |\n"
         "| <img src=x onerror=alert(1)> | **3** |\n\nThat was all. a | b\n")
TOOLS = [{"type": "function", "function": {"name": name, "parameters": {
    "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}} for name in ("get_weather", "get_time")]
WIDTHS = "() => [document.documentElement.scrollWidth, innerWidth]"


def luminance(color):
    return sum(int(part) for part in color[color.index("(") + 1:-1].split(",")[:3]) / 3


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server, cls.url = served.start(PROGRAM, MODEL, "--parallel", "4")
        cls.playwright = sync_playwright().start()
        cls.browser = cls.playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.playwright.stop()
        served.stop(cls.server)

    def setUp(self):
        self.open()

    def open(self, **options):
        context = self.browser.new_context(**{"viewport": {"width": 1280, "height": 800}} | options)
        self.addCleanup(context.close)
        self.page = context.new_page()
        self.page.set_default_timeout(60_000)
        self.requests, self.complaints = [], []
        self.page.on("request", lambda request: self.requests.append(request))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", lambda message: message.type == "error" and self.complaints.append(message.text))
        self.page.goto(self.url)
        expect(self.page.locator("#slots i")).to_have_count(4)

    def tearDown(self):
        for request in self.requests:
            self.assertTrue(request.url.startswith((self.url, "data:")), request.url)
        self.assertEqual(self.complaints, [])

    def set(self, **settings):
        self.page.click("#open-settings")
        for name, value in settings.items():
            field = self.page.locator(f"#settings-form [name={name}]")
            field.set_checked(value) if isinstance(value, bool) else field.fill(str(value))
        self.page.click("#settings-form .primary")

    def say(self, text):
        self.page.fill("#input", text)
        self.page.press("#input", "Enter")

    def say_without_end(self, max_tokens):
        """The small model would end soon: its end tokens are left out of what the page asks for."""
        self.ask_with(ignore_eos=True)
        self.set(temperature=0, max_tokens=max_tokens)
        self.say("Tell me about the harbour")

    def ask_with(self, **fields):
        """The next request has these fields besides what the page asks for."""
        def added(route):
            route.continue_(post_data=json.dumps(json.loads(route.request.post_data) | fields))
        self.page.route("**/v1/chat/completions", added, times=1)

    def answer_with(self, *deltas, finish_reason="stop"):
        """The next request is answered here, with these pieces."""
        choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
        choices.append({"index": 0, "delta": {}, "finish_reason": finish_reason})
        events = [{"choices": [choice]} for choice in choices] + [{"choices": [], "usage": {"completion_tokens": len(deltas)}}]
        said = "".join("data: %s\n\n" % json.dumps(event) for event in events) + "data: [DONE]\n\n"
        self.page.route("**/v1/chat/completions", lambda route: route.fulfill(
            body=said, content_type="text/event-stream"), times=1)

    def replies(self):
        return self.page.locator(".model-said")

    def await_end(self, reply=0):
        expect(self.replies().nth(reply).locator(".after span")).not_to_be_empty(timeout=60_000)
        return self.replies().nth(reply).locator(".after span").inner_text()

    def bodies(self):
        return [json.loads(r.post_data) for r in self.requests if r.url.endswith("/v1/chat/completions")]

    def running(self):
        health = served.get_json(self.url + "/health")
        return health["running"] + health["queued"]

    def test_a_reply_comes_in_pieces_and_ends_in_words(self):
        self.page.evaluate("""() => { window.seen = []; new MutationObserver(() => {
            const said = document.querySelector('.model-said .prose')?.textContent ?? '';
            if (said !== seen.at(-1)) seen.push(said); }).observe(document.getElementById('thread'), {subtree: true, childList: true}); }""")
        self.say_without_end(300)
        self.assertIn("300 tokens", self.await_end())
        seen = self.page.evaluate("() => seen")
        self.assertGreater(len(seen), 5)
        for earlier, later in zip(seen, seen[1:]):
            self.assertTrue(later.startswith(earlier), (earlier, later))

    def test_code_is_shown_as_code_and_can_be_copied(self):
        self.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        self.set(temperature=0)
        self.say(EDIT)
        self.await_end()
        code = self.replies().first.locator(".codeblock pre")
        self.assertIn("for item in values:", code.inner_text())
        self.replies().first.locator(".codeblock button").click()
        self.assertIn("for item in values:", self.page.evaluate("() => navigator.clipboard.readText()"))

    def cells(self, within):
        return within.locator("tr").evaluate_all("rows => rows.map(row => [...row.children].map(cell => cell.innerText))")

    def test_a_table_is_shown_as_a_table_of_text(self):
        self.answer_with(*({"content": TABLE[at:at + 3]} for at in range(0, len(TABLE), 3)))
        self.say(TABLE)
        expect(self.replies().first.locator("td")).to_have_count(6)
        head = ["word", "n", "<b>note</b>"]
        rows = [["river", "12", "a | b"], ["<img src=x onerror=alert(1)>", "3", ""]]
        for said in (self.page.locator(".user"), self.replies().first):
            self.assertEqual(self.cells(said), [head, *rows])
            self.assertEqual(said.locator("p").all_inner_texts(), ["Here it is:", "That was all. a | b"])
            expect(said.locator("img, b")).to_have_count(0)
            expect(said.locator("th[scope=col] code")).to_have_text("n")
            expect(said.locator("td strong")).to_have_text("3")
            self.assertEqual(said.locator("tr:last-child td").evaluate_all("cells => cells.map(cell => getComputedStyle(cell).textAlign)"),
                             ["left", "right", "center"])
        self.answer_with({"content": "a | b\n--|--|--\n1 | 2\n\na | b\n\n--|--\n\na\n---\nb\n\n```\na | b\n--|--\n```"})
        self.say("And what is none?")
        self.await_end(1)
        expect(self.replies().nth(1).locator("p")).to_have_count(4)
        expect(self.replies().nth(1).locator("table")).to_have_count(0)

    def test_tool_calls_are_shown_and_go_back_with_the_next_message(self):
        self.set(temperature=0)
        self.ask_with(tools=TOOLS, tool_choice={"type": "function", "function": {"name": "get_weather"}})
        self.say("What is the weather in Oslo?")
        self.assertIn("ends in a tool call", self.await_end())
        call = self.replies().first.get_by_role("group", name="Tool call get_weather")
        expect(call.locator("header span")).to_have_text("Tool call get_weather")
        self.assertEqual(call.locator("pre").inner_text(), '{\n  "city": "Oslo"\n}')
        expect(self.replies().first.locator(".waiting")).to_have_count(0)
        self.say("What is 23 + 45?")
        self.await_end(1)
        kept = self.bodies()[1]["messages"][1]
        self.assertEqual((kept["role"], kept["content"]), ("assistant", ""))
        self.assertEqual([c["function"] for c in kept["tool_calls"]], [{"name": "get_weather", "arguments": '{"city":"Oslo"}'}])

    def test_a_call_in_pieces_beside_text_and_one_that_is_cut_short(self):
        def piece(index, **function):
            return {"tool_calls": [{"index": index, "id": "c%d" % index, "type": "function", "function": function}]}
        self.answer_with({"content": "Let me look."}, piece(0, name="<i>f</i>", arguments=""), piece(0, arguments='{"a":'),
                         piece(0, arguments=' ["<b>", 1]}'), piece(1, name="g", arguments='{"x": "<u>'), finish_reason="length")
        self.say("Look it up")
        self.assertIn("cut at the token limit", self.await_end())
        reply = self.replies().first
        self.assertEqual(reply.locator(".calls header span").all_inner_texts(), ["Tool call <i>f</i>", "Tool call g"])
        self.assertEqual(reply.locator(".calls pre").all_inner_texts(),
                         ['{\n  "a": [\n    "<b>",\n    1\n  ]\n}', '{"x": "<u>'])
        expect(reply.locator("i, u, pre b")).to_have_count(0)
        self.say("Go on")
        self.await_end(1)
        self.assertEqual([c["function"]["name"] for c in self.bodies()[1]["messages"][1]["tool_calls"]], ["<i>f</i>"])

    def test_turns_go_back_with_the_next_message_and_a_new_chat_forgets_them(self):
        self.set(temperature=0)
        self.say("What is 23 + 45?")
        self.await_end()
        self.say("What is 2 + 3?")
        self.await_end(1)
        self.assertEqual([m["role"] for m in self.bodies()[1]["messages"]], ["user", "assistant", "user"])
        self.assertEqual(self.bodies()[1]["messages"][1]["content"], "23 + 45 = 68")
        self.page.click("#new-chat")
        expect(self.page.locator(".said")).to_have_count(0)
        self.say("Who are you?")
        self.await_end()
        self.assertEqual(len(self.bodies()[2]["messages"]), 1)

    def test_stop_and_escape_end_the_reply_here_and_on_the_server(self):
        for i, stop in enumerate([lambda: self.page.click("#stop"), lambda: self.page.keyboard.press("Escape")]):
            self.say_without_end(3500)
            expect(self.replies().nth(i).locator(".prose")).to_contain_text("a")
            stop()
            self.assertEqual(self.await_end(i), "stopped")
            for _ in range(100):
                if self.running() == 0:
                    break
                self.page.wait_for_timeout(50)
            self.assertEqual(self.running(), 0)
        expect(self.page.locator("#stop")).to_be_hidden()

    def test_a_chat_begun_anew_while_a_reply_comes_stays_empty(self):
        self.say_without_end(3500)
        expect(self.replies().first.locator(".prose")).to_contain_text("a")
        self.page.click("#new-chat")
        self.say("What is 23 + 45?")
        self.await_end()
        self.assertEqual(len(self.bodies()[1]["messages"]), 1)
        expect(self.page.locator(".said")).to_have_count(2)

    def test_settings_reach_the_server_and_wrong_ones_are_said(self):
        self.set(system="Be brief.", temperature=0.5, top_p=0.9, max_tokens=7, seed=5, drafts=False, thinking=True)
        self.say("What is 23 + 45?")
        self.assertIn("cut at the token limit", self.await_end())
        body = self.bodies()[0]
        self.assertEqual(body["messages"][0], {"role": "system", "content": "Be brief."})
        self.assertEqual((body["temperature"], body["top_p"], body["max_tokens"], body["seed"]), (0.5, 0.9, 7, 5))
        self.assertEqual((body["draft"], body["chat_template_kwargs"]), (False, {"enable_thinking": True}))
        self.set(temperature=3, max_tokens="many")
        expect(self.page.locator("#settings-wrong")).to_contain_text("Temperature must be a number, from 0 to 2.")
        expect(self.page.locator("#settings-wrong")).to_contain_text("Max tokens must be a whole number, at least 1.")
        expect(self.page.locator("#settings")).to_be_visible()
        self.page.reload()
        self.page.click("#open-settings")
        self.assertEqual(self.page.input_value("[name=temperature]"), "0.5")
        self.page.click("#settings-reset")
        self.assertEqual(self.page.input_value("[name=temperature]"), "")

    def test_a_thought_is_folded(self):
        self.set(thinking=True, temperature=0)
        self.say("What is 23 + 45?")
        self.await_end()
        thinking = self.replies().first.locator(".thinking")
        expect(thinking.locator("summary")).to_contain_text("Thought for")
        self.assertIsNone(thinking.get_attribute("open"))
        expect(thinking.locator("div")).to_be_hidden()
        thinking.locator("summary").click()
        expect(thinking.locator("div")).to_be_visible()
        self.assertNotEqual(thinking.locator("div").inner_text().strip(), "")

    def test_the_panel_moves(self):
        before = self.page.locator("#facts").inner_text()
        self.say_without_end(3500)
        expect(self.page.locator("#streams-note")).to_contain_text("1 of 4 running", timeout=60_000)
        expect(self.page.locator("#slots .on")).to_have_count(1)
        expect(self.page.locator("#together")).not_to_have_text("–")
        expect(self.page.locator("#memory > div").nth(2)).to_contain_text(" of ")
        self.page.keyboard.press("Escape")
        self.await_end()
        expect(self.page.locator("#facts")).not_to_have_text(before)
        expect(self.page.locator("#streams-note")).to_contain_text("0 of 4 running")
        self.assertRegex(self.page.locator("#spark-line").get_attribute("d"), r"^M0\.0 ")
        self.assertRegex(self.page.locator("#real").inner_text(), r"^[\d.]+ ms$")

    def test_errors_are_said_and_can_be_tried_again(self):
        self.set(max_tokens=100_000)
        self.say("hello")
        expect(self.page.locator(".trouble")).to_contain_text("100000")
        self.set(max_tokens=5)
        self.page.click(".trouble button")
        self.await_end()
        expect(self.page.locator(".trouble")).to_have_count(0)
        self.page.route("**/v1/chat/completions", lambda route: route.abort())
        self.say("again")
        expect(self.page.locator(".trouble")).to_contain_text("The server cannot be reached.")
        self.complaints = [c for c in self.complaints if "Failed to load resource" not in c]  # the browser's own words

    def test_an_api_key_is_asked_for_once_and_kept_in_the_tab(self):
        with tempfile.NamedTemporaryFile("w") as keys:
            keys.write("sesame\n")
            keys.flush()
            server, url = served.start(PROGRAM, MODEL, "--parallel", "4", "--api-key-file", keys.name)
        self.addCleanup(served.stop, server)
        context = self.browser.new_context()
        self.addCleanup(context.close)
        page = context.new_page()
        page.goto(url)
        page.fill("#key-form [name=key]", "wrong")
        page.click("#key-form .primary")
        expect(page.locator("#key-wrong")).to_have_text("That key is not known here.")
        page.fill("#key-form [name=key]", "sesame")
        page.press("#key-form [name=key]", "Enter")
        expect(page.locator("#slots i")).to_have_count(4)
        page.fill("#input", "What is 23 + 45?")
        page.press("#input", "Enter")
        expect(page.locator(".model-said .after span")).to_contain_text("tokens")
        self.assertEqual(page.evaluate("() => [sessionStorage['rondo-key'], localStorage.length]"), ["sesame", 0])

    def test_the_keyboard_is_enough(self):
        page = self.page
        page.keyboard.type("one")
        page.keyboard.press("Shift+Enter")
        page.keyboard.type("two")
        self.assertEqual(page.input_value("#input"), "one\ntwo")
        page.keyboard.press("Enter")
        self.await_end()
        self.assertEqual(self.bodies()[0]["messages"][0]["content"], "one\ntwo")
        reached = set()
        for _ in range(30):
            page.keyboard.press("Tab")
            reached.add(page.evaluate("() => document.activeElement.id || document.activeElement.textContent"))
            outline = page.evaluate("() => { const s = getComputedStyle(document.activeElement);"
                                    " return document.activeElement === document.body || s.outlineStyle !== 'none'"
                                    " || document.activeElement.id === 'input' || document.activeElement.id === 'scroll'; }")
            self.assertTrue(outline, reached)
        self.assertLessEqual({"new-chat", "open-settings", "input", "Copy"}, reached)

    def test_everything_that_can_be_pressed_or_filled_has_a_name(self):
        nameless = self.page.evaluate("""() => [...document.querySelectorAll('button, input, textarea, [role=img], dialog')]
            .filter(e => !(e.ariaLabel || e.getAttribute('aria-labelledby') || e.textContent.trim() || e.labels?.length))
            .map(e => e.outerHTML)""")
        self.assertEqual(nameless, [])
        self.assertEqual(self.page.locator("#thread").get_attribute("aria-live"), "polite")

    def test_nothing_is_wider_than_a_phone(self):
        self.open(viewport={"width": 375, "height": 720}, is_mobile=True, has_touch=True)
        self.assertEqual(self.page.evaluate(WIDTHS), [375, 375])
        self.set(temperature=0)
        self.say(EDIT + "\n" + "a-word-without-an-end" * 20)
        self.await_end()
        self.answer_with({"content": "a | " * 30 + "a\n" + "-|" * 30 + "-\n" + "a_long_cell | " * 30 + "b"}, {"tool_calls": [
            {"index": 0, "id": "c", "type": "function", "function": {"name": "f" * 300, "arguments": '{"a":"%s"}' % ("b" * 300)}}]})
        self.say("go on")
        self.await_end(1)
        self.assertEqual(self.page.evaluate(WIDTHS), [375, 375])
        expect(self.page.locator("#panel")).to_be_hidden()
        self.page.click("#toggle-panel")
        expect(self.page.locator("#together")).to_be_visible()
        self.assertEqual(self.page.evaluate(WIDTHS), [375, 375])
        self.page.click("#open-settings")
        self.assertEqual(self.page.evaluate(WIDTHS), [375, 375])
        # Planted control: the measure must see what is too wide.
        self.page.evaluate("() => { document.documentElement.style.overflow = document.body.style.overflow = 'visible';"
                           " const wide = document.createElement('div'); wide.style.width = '500px';"
                           " wide.textContent = 'wide'; document.body.append(wide); }")
        self.assertGreater(self.page.evaluate(WIDTHS)[0], 375)

    def test_dark_where_dark_is_preferred(self):
        background = "() => getComputedStyle(document.body).backgroundColor"
        ink = "() => getComputedStyle(document.body).color"
        self.assertGreater(luminance(self.page.evaluate(background)), 200)
        self.assertLess(luminance(self.page.evaluate(ink)), 60)
        self.page.emulate_media(color_scheme="dark")
        self.assertLess(luminance(self.page.evaluate(background)), 60)
        self.assertGreater(luminance(self.page.evaluate(ink)), 200)


if __name__ == "__main__":
    PROGRAM, MODEL = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
