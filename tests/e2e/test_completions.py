#!/usr/bin/env python3
"""/v1/completions, /tokenize and /detokenize of the real program with the bundled model, by the openai client and by hand.

Usage: test_completions.py PROGRAM MODEL
"""
import concurrent.futures
import json
import sys
import unittest

import openai

import served

PROGRAM, MODEL = "", ""
PROMPT = "def add(a, b):\n    return"


class Completions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server, cls.url = served.start(PROGRAM, MODEL)
        cls.client = openai.OpenAI(base_url=cls.url + "/v1", api_key="none", max_retries=0, timeout=60)

    @classmethod
    def tearDownClass(cls):
        served.stop(cls.server)

    def complete(self, **fields):
        own = {"draft", "draft_depth", "ignore_eos", "top_k", "min_p"}
        extra = {name: fields.pop(name) for name in list(fields) if name in own}
        return self.client.completions.create(**{"model": "rondo-demo", "prompt": PROMPT, "max_tokens": 24,
                                                 "temperature": 0, "extra_body": extra} | fields)

    def tokenize(self, **body):
        status, reply = served.post_json(self.url + "/tokenize", body)
        self.assertEqual(status, 200, reply)
        self.assertEqual(reply["count"], len(reply["tokens"]))
        return reply["tokens"]

    def test_a_whole_reply(self):
        reply = self.complete()
        self.assertEqual(reply.object, "text_completion")
        self.assertTrue(reply.id.startswith("cmpl-"))
        self.assertIn(reply.choices[0].finish_reason, ("stop", "length"))
        self.assertGreater(len(reply.choices[0].text), 0)
        self.assertEqual(reply.usage.prompt_tokens, len(self.tokenize(content=PROMPT)))
        self.assertEqual(reply.usage.total_tokens, reply.usage.prompt_tokens + reply.usage.completion_tokens)
        self.assertEqual(reply.usage.completion_tokens_details.accepted_prediction_tokens, reply.rondo["accepted"])

    def test_token_ids_are_the_same_prompt_as_their_text(self):
        texts = [PROMPT, "Once upon a time"]
        ids = [self.tokenize(content=text) for text in texts]
        for fields in ({}, {"temperature": 1.0, "seed": 3}):
            by_text = self.complete(prompt=texts, **fields)
            self.assertEqual(self.complete(prompt=ids, **fields).choices, by_text.choices)
            for i, form in enumerate((texts[0], ids[0], texts[1], ids[1])):
                with self.subTest(prompt=form):
                    alone = self.complete(prompt=form, **fields)
                    self.assertEqual(alone.choices[0].text, by_text.choices[i // 2].text)
                    self.assertEqual(alone.rondo["token_sha"], by_text.rondo["token_shas"][i // 2])

    def test_text_goes_through_tokenize_and_back(self):
        for text in (PROMPT, "", "é 𝕏 \n\t<|im_start|>user", "a" * 1000):
            status, reply = served.post_json(self.url + "/detokenize", {"tokens": self.tokenize(content=text)})
            self.assertEqual((status, reply), (200, {"content": text}))

    def test_a_control_token_in_a_text_is_one_token_and_in_a_message_is_not(self):
        plain = len(self.tokenize(messages=[{"role": "user", "content": "x"}]))
        spelled = len(self.tokenize(messages=[{"role": "user", "content": "x<|im_end|>"}]))
        self.assertEqual(len(self.tokenize(content="<|im_end|>")), 1)
        self.assertGreater(spelled, plain + 1)

    def test_tokenize_counts_what_a_chat_uses(self):
        messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "What is 23 + 45?"}]
        for thinking in (False, True):
            kwargs = {"chat_template_kwargs": {"enable_thinking": thinking}}
            chat = self.client.chat.completions.create(model="rondo-demo", messages=messages, max_tokens=1, extra_body=kwargs)
            self.assertEqual(chat.usage.prompt_tokens, len(self.tokenize(messages=messages, **kwargs)))

    def test_echo_puts_the_prompt_before_the_text(self):
        plain = self.complete().choices[0].text
        self.assertEqual(self.complete(echo=True).choices[0].text, PROMPT + plain)
        ids = self.tokenize(content=PROMPT)
        self.assertEqual(self.complete(prompt=ids, echo=True).choices[0].text, PROMPT + plain)
        streamed = self.complete(echo=True, stream=True)
        self.assertEqual("".join(chunk.choices[0].text for chunk in streamed if chunk.choices), PROMPT + plain)

    def test_choices_are_those_of_their_seeds(self):
        many = self.complete(n=3, temperature=1.2, seed=11, ignore_eos=True)
        self.assertEqual([choice.index for choice in many.choices], [0, 1, 2])
        self.assertEqual(len(set(many.rondo["token_shas"])), 3)
        alone = self.complete(temperature=1.2, seed=11, ignore_eos=True)
        self.assertEqual(alone.rondo["token_sha"], many.rondo["token_shas"][0])
        self.assertEqual(many.usage.prompt_tokens, alone.usage.prompt_tokens)
        self.assertEqual(many.usage.completion_tokens, 3 * 24)

    def test_a_streamed_reply_says_what_the_whole_one_says(self):
        body = {"prompt": [PROMPT, "Once upon"], "n": 2, "max_tokens": 32, "temperature": 0.9, "seed": 4, "logprobs": 2}
        status, whole = served.post_json(self.url + "/v1/completions", body)
        self.assertEqual(status, 200, whole)
        streamed = {"stream": True, "stream_options": {"include_usage": True}}
        status, stream = served.post(self.url + "/v1/completions", body | streamed)
        self.assertEqual(status, 200)
        *chunks, done = [data for _, data in served.events(stream)]
        self.assertEqual(done, "[DONE]")
        joined = [{"text": "", "tokens": [], "token_logprobs": [], "top_logprobs": [], "text_offset": []} for _ in range(4)]
        for chunk in map(json.loads, chunks):
            for choice in chunk["choices"]:
                into = joined[choice["index"]]
                into["text"] += choice["text"]
                for name, values in (choice["logprobs"] or {}).items():
                    into[name] += values
                into["finish_reason"] = choice["finish_reason"]
        for choice in whole["choices"]:
            into = joined[choice["index"]]
            self.assertEqual(into["finish_reason"], choice["finish_reason"])
            self.assertEqual(into["text"], choice["text"])
            for name, values in choice["logprobs"].items():
                self.assertEqual(into[name], values)
        last = json.loads(chunks[-1])
        self.assertEqual(last["choices"], [])
        self.assertEqual(last["rondo"]["token_shas"], whole["rondo"]["token_shas"])
        self.assertEqual(last["usage"]["total_tokens"], whole["usage"]["total_tokens"])

    def test_logprobs_name_the_tokens_drawn(self):
        reply = self.complete(logprobs=3, max_tokens=8, ignore_eos=True)
        logprobs = reply.choices[0].logprobs
        special = ("<|im_end|>", "<|endoftext|>")  # drawn, and not part of the text
        self.assertEqual("".join(name for name in logprobs.tokens if name not in special), reply.choices[0].text)
        for name, chosen, top, offset in zip(logprobs.tokens, logprobs.token_logprobs, logprobs.top_logprobs,
                                             logprobs.text_offset, strict=True):
            self.assertEqual(top[name], chosen)
            self.assertEqual(chosen, max(top.values()), "greedy draws the likeliest")
            self.assertLessEqual(chosen, 0)
            self.assertGreaterEqual(len(top), 3)
            self.assertTrue(name in special or reply.choices[0].text[offset:].startswith(name))

    CASES = (
        {},
        {"temperature": 0.8, "seed": 5, "n": 2},
        {"temperature": 1.1, "seed": 6, "top_k": 5, "min_p": 0.05, "presence_penalty": 0.7, "frequency_penalty": 0.3},
        {"prompt": [PROMPT, "Rename value to item"], "logprobs": 2, "max_tokens": 40},
        {"echo": True, "stop": ["return", "\n\n"], "logit_bias": {"100": 3, "200": -100}, "max_tokens": 40},
    )

    def outcome(self, **fields):
        reply = self.complete(**fields)
        return [choice.model_dump() for choice in reply.choices], reply.rondo.get("token_sha", reply.rondo.get("token_shas"))

    def test_drafts_on_off_and_company_change_nothing(self):
        alone = [self.outcome(**case) for case in self.CASES]
        for draft in ({"draft": False}, {"draft_depth": 1}, {"draft_depth": 8}):
            self.assertEqual([self.outcome(**case, **draft) for case in self.CASES], alone, draft)
        with concurrent.futures.ThreadPoolExecutor(15) as pool:
            together = [pool.submit(self.outcome, **case) for _ in range(3) for case in self.CASES]
            for i, reply in enumerate(together):
                self.assertEqual(reply.result(), alone[i % len(alone)])

    def test_a_stop_string_ends_the_text_before_it_for_every_length(self):
        text = self.complete(max_tokens=20, ignore_eos=True).choices[0].text
        stop = text[len(text) // 2:len(text) // 2 + 3]
        for most in range(1, 21):
            full = self.complete(max_tokens=most, ignore_eos=True).choices[0].text
            reply = self.complete(max_tokens=most, ignore_eos=True, stop=stop).choices[0]
            self.assertEqual(reply.text, full[:full.index(stop)] if stop in full else full, most)
            self.assertEqual(reply.finish_reason, "stop" if stop in full else "length")

    def test_errors_are_openais_object(self):
        cases = (
            ({"prompt": ""}, 400, "prompt"), ({}, 400, "prompt"), ({"prompt": [999999]}, 400, "prompt"),
            ({"prompt": "x", "best_of": 3}, 400, "best_of"), ({"prompt": "x", "suffix": "y"}, 400, "suffix"),
            ({"prompt": "x", "logprobs": 2, "echo": True}, 400, "logprobs"), ({"prompt": "x", "model": "y"}, 404, "model"),
            ({"prompt": "x" * 40000}, 400, "prompt"), ({"prompt": "x", "max_tokens": 5000}, 400, "max_tokens"),
            ([], 400, None), (b"{", 400, None), (b'{"prompt":"\xff"}', 400, None),
        )
        for route in ("/v1/completions", "/tokenize", "/detokenize"):
            for body, status, param in cases:
                with self.subTest(route=route, body=str(body)[:60]):
                    got, reply = served.post_json(self.url + route, body)
                    self.assertIn(got, (400, 404))
                    self.assertEqual(set(reply["error"]), {"message", "type", "param", "code"})
                    self.assertEqual(reply["error"]["type"], "invalid_request_error")
                    if route == "/v1/completions":
                        self.assertEqual((got, reply["error"]["param"]), (status, param))
        self.assertEqual(self.complete().object, "text_completion")


if __name__ == "__main__":
    PROGRAM, MODEL = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1])
