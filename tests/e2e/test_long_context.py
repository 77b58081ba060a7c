#!/usr/bin/env python3
"""Long contexts of the real program with the bundled model, several times past what its sparse attention selects (256
tokens): the same bytes whoever is beside, drafted or not, from the prefix cache or afresh; and what happens at the
context's end, on every route.

Usage: test_long_context.py PROGRAM MODEL
"""
import concurrent.futures
import json
import os
import random
import re
import sys
import unittest

import served

PROGRAM, MODEL = "", ""
CONTEXT = 2048
SUBJECTS = ("The harbour", "An old clock", "The third ship", "A letter", "The gardener", "Every road", "The town")
VERBS = ("lies by", "keeps", "remembers", "was sold for", "came back to", "looks over", "waits for")
OBJECTS = ("the river", "seven stones", "a slow tide", "the market", "two brass keys", "the northern gate", "its own name")


def story(seed, sentences):
    """Text that repeats itself in part, so that of the drafts some are kept and some are not."""
    dice = random.Random(seed)
    return "".join("%s %s %s.\n" % (dice.choice(SUBJECTS), dice.choice(VERBS), dice.choice(OBJECTS)) for _ in range(sentences))


class LongContext(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with open(os.path.join(MODEL, "config.json")) as file:
            cls.budget = json.load(file)["indexer_budget"]
        # Unpriced: drafts are made also where this machine's costs say that they do not pay.
        cls.server, cls.url = served.start(PROGRAM, MODEL, "--context", str(CONTEXT), "--parallel", "6", "--unpriced")
        cls.ids = cls.tokens(content=story(1, 400))[:CONTEXT]
        assert len(cls.ids) == CONTEXT and CONTEXT > 6 * cls.budget

    @classmethod
    def tearDownClass(cls):
        served.stop(cls.server)

    @classmethod
    def tokens(cls, **body):
        status, reply = served.post_json(cls.url + "/tokenize", body)
        assert status == 200 and reply["count"] == len(reply["tokens"]), reply
        return reply["tokens"]

    def ask(self, route, body, status=200):
        got, reply = served.post_json(self.url + route, body)
        self.assertEqual(got, status, reply)
        return reply

    def complete(self, prompt, **fields):
        return self.ask("/v1/completions", {"prompt": prompt, "max_tokens": 40, "temperature": 0, "ignore_eos": True} | fields)

    def said(self, prompt, **fields):
        """All of a reply that must be the same."""
        reply = self.complete(prompt, **fields)
        return reply["choices"], reply["rondo"]["token_sha"], reply["usage"]["completion_tokens"]

    # A prompt of nearly the whole context, one whose reply leaves the budget, two between; greedy and sampled.
    CASES = (
        (1900, {}), (248, {"max_tokens": 60}), (700, {"temperature": 0.8, "seed": 5, "logprobs": 2}),
        (1300, {"temperature": 1.1, "seed": 6, "top_k": 20, "presence_penalty": 0.5, "logprobs": 1}),
    )

    def test_drafts_company_and_the_cache_change_nothing(self):
        cold = {"cache": False}
        expected = [self.said(self.ids[:n], draft=False, **cold, **fields) for n, fields in self.CASES]
        drafted, accepted = 0, 0
        for i, (n, fields) in enumerate(self.CASES):
            with self.subTest(prompt_tokens=n):
                rondo = self.complete(self.ids[:n], **cold, **fields)["rondo"]
                drafted, accepted = drafted + rondo["drafted"], accepted + rondo["accepted"]
                for how in (cold, {}, {}, {"draft_depth": 2}):
                    self.assertEqual(self.said(self.ids[:n], **fields, **how), expected[i], how)
                reply = self.complete(self.ids[:n], **fields)
                self.assertGreaterEqual(reply["usage"]["prompt_tokens_details"]["cached_tokens"], n - 64)
        self.assertGreater(accepted, 20)
        self.assertGreater(drafted, accepted)
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            together = [pool.submit(self.said, self.ids[:n], **fields, cache=i % 2 == 0)
                        for i in range(4) for n, fields in self.CASES]
            for i, reply in enumerate(together):
                self.assertEqual(reply.result(), expected[i % len(expected)])

    def test_prompts_of_every_length_around_the_budget_say_the_same_drafted_and_not(self):
        for n in range(self.budget - 8, self.budget + 9):
            prompt = self.ids[100:100 + n]
            fields = {"max_tokens": 12, "logprobs": 3}
            self.assertEqual(self.said(prompt, **fields), self.said(prompt, draft=False, cache=False, **fields), n)

    def test_the_next_turn_of_a_long_conversation_is_what_it_is_afresh(self):
        turns = [{"role": "user", "content": story(2, 130) + "What is 23 + 45?"}]
        settings = {"max_tokens": 60, "temperature": 0}
        for turn in range(3):
            body = settings | {"messages": turns}
            warm = self.ask("/v1/chat/completions", body)
            cold = self.ask("/v1/chat/completions", body | {"cache": False, "draft": False})
            self.assertEqual(warm["choices"], cold["choices"])
            self.assertEqual(warm["rondo"]["token_sha"], cold["rondo"]["token_sha"])
            self.assertEqual(cold["usage"]["prompt_tokens_details"]["cached_tokens"], 0)
            self.assertGreater(warm["usage"]["prompt_tokens"], 4 * self.budget)
            if turn > 0:
                self.assertGreater(warm["usage"]["prompt_tokens_details"]["cached_tokens"], 4 * self.budget)
            message = warm["choices"][0]["message"]
            turns = turns + [{"role": "assistant", "content": message["content"] or ""},
                             {"role": "user", "content": "What is %d + 4?" % turn}]

    def test_a_streamed_long_reply_says_what_the_whole_one_says(self):
        body = {"prompt": self.ids[:1200], "max_tokens": 64, "temperature": 0, "ignore_eos": True}
        whole = self.ask("/v1/completions", body)
        status, stream = served.post(self.url + "/v1/completions", body | {"stream": True})
        self.assertEqual(status, 200)
        chunks = [json.loads(data) for _, data in served.events(stream) if data != "[DONE]"]
        self.assertEqual("".join(choice["text"] for chunk in chunks for choice in chunk["choices"]), whole["choices"][0]["text"])
        self.assertEqual(chunks[-1]["rondo"]["token_sha"], whole["rondo"]["token_sha"])

    def message_of(self, prompt_tokens):
        """The messages of a chat whose prompt has exactly so many tokens."""
        def messages(words):
            return [{"role": "user", "content": story(3, 80) + "a" + " a" * words}]
        words = prompt_tokens - len(self.tokens(messages=messages(0)))
        self.assertGreater(words, 0)
        self.assertEqual(len(self.tokens(messages=messages(words))), prompt_tokens)
        return messages(words)

    # Route, the body that holds a prompt of so many tokens, and whether it answers as OpenAI does.
    def routes(self):
        return (
            ("/v1/chat/completions", lambda n: {"messages": self.message_of(n)}, True),
            ("/v1/completions", lambda n: {"prompt": self.text_of(n)}, True),
            ("/v1/completions", lambda n: {"prompt": self.ids[:n]}, True),
            ("/v1/messages", lambda n: {"messages": self.message_of(n)}, False),
        )

    def text_of(self, prompt_tokens):
        text = story(4, 80)
        words = prompt_tokens - len(self.tokens(content=text + "a"))
        text += "a" + " a" * words
        self.assertEqual(len(self.tokens(content=text)), prompt_tokens)
        return text

    def test_a_request_that_fills_the_context_exactly_is_served_to_its_last_token(self):
        for most in (1, 30):
            for route, body, openai in self.routes():
                with self.subTest(route=route, max_tokens=most):
                    reply = self.ask(route, body(CONTEXT - most) | {"max_tokens": most, "temperature": 0, "ignore_eos": True})
                    if openai:
                        self.assertEqual(reply["choices"][0]["finish_reason"], "length")
                        self.assertEqual(reply["usage"]["total_tokens"], CONTEXT)
                        self.assertEqual(reply["usage"]["completion_tokens"], most)
                    else:
                        self.assertEqual(reply["stop_reason"], "max_tokens")
                        self.assertEqual((reply["usage"]["input_tokens"], reply["usage"]["output_tokens"]), (CONTEXT - most, most))

    def refused(self, route, body, openai, numbers, param):
        error = self.ask(route, body, 400)
        if openai:
            self.assertEqual(set(error), {"error"})
            self.assertEqual((error["error"]["type"], error["error"]["code"], error["error"]["param"]),
                             ("invalid_request_error", "context_length_exceeded", param))
        else:
            self.assertEqual((error["type"], error["error"]["type"]), ("error", "invalid_request_error"))
        said = [int(number) for number in re.findall(r"\d+", error["error"]["message"])]
        for number in numbers:
            self.assertIn(number, said, error)

    def test_one_token_more_is_refused_with_both_numbers(self):
        for route, body, openai in self.routes():
            with self.subTest(route=route):
                self.refused(route, body(CONTEXT - 29) | {"max_tokens": 30}, openai, (CONTEXT + 1, CONTEXT), "max_tokens")
                prompt = "messages" if "messages" in body(CONTEXT // 2) else "prompt"
                self.refused(route, body(CONTEXT) | {"max_tokens": 1}, openai, (CONTEXT, CONTEXT), prompt)
                # A stream is refused before it begins.
                self.refused(route, body(CONTEXT - 29) | {"max_tokens": 30, "stream": True}, openai, (CONTEXT + 1, CONTEXT),
                             "max_tokens")

    def test_a_request_without_max_tokens_gets_what_is_left(self):
        for route, body, openai in self.routes():
            if not openai:
                continue  # max_tokens must be there
            with self.subTest(route=route):
                reply = self.ask(route, body(CONTEXT - 25) | {"temperature": 0, "ignore_eos": True})
                self.assertEqual(reply["choices"][0]["finish_reason"], "length")
                self.assertEqual(reply["usage"]["completion_tokens"], 25)
                self.refused(route, body(CONTEXT), True, (CONTEXT, CONTEXT), next(iter(body(CONTEXT))))

    def test_counting_takes_texts_longer_than_the_context(self):
        for n in (1500, CONTEXT, CONTEXT + 300):
            messages = self.message_of(n)
            self.assertEqual(self.ask("/v1/messages/count_tokens", {"messages": messages}), {"input_tokens": n})
        text = story(5, 2000)
        ids = self.tokens(content=text)
        self.assertGreater(len(ids), 4 * CONTEXT)
        self.assertEqual(self.ask("/detokenize", {"tokens": ids}), {"content": text})


if __name__ == "__main__":
    PROGRAM, MODEL = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1])
