#!/usr/bin/env python3
"""What a chat asks for beyond text, through the real client and over plain HTTP: tools, logprobs, choices, stops, thinking.

Usage: test_chat.py PROGRAM MODEL [TEST ...]
"""
import concurrent.futures
import copy
import http.client
import json
import sys
import unittest
import urllib.parse

import openai

import served

PROGRAM, MODEL = "", ""
SUM = [{"role": "user", "content": "What is 23 + 45?"}]
EDIT = [{"role": "user", "content": "Rename value to item in this function and change nothing else.\n\n"
         "def total(values):\n    result = 0\n    for value in values:\n        result += value\n    return result\n"}]
WEATHER = [{"role": "user", "content": "What is the weather in Paris?"}]
TOOLS = [{"type": "function", "function": {
    "name": "get_weather", "description": "Get the weather of a city",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}, "unit": {"type": "string"}},
                   "required": ["city"]}}}]
NAMED = {"type": "function", "function": {"name": "get_weather"}}
THINK = {"chat_template_kwargs": {"enable_thinking": True}}


class Server(unittest.TestCase):
    """Drafts whatever it costs: the planner would rather not with so small a model."""
    @classmethod
    def setUpClass(cls):
        cls.server, cls.url = served.start(PROGRAM, MODEL, "--unpriced")
        cls.client = openai.OpenAI(base_url=cls.url + "/v1", api_key="none", max_retries=0, timeout=120)
        cls.netloc = urllib.parse.urlsplit(cls.url).netloc
        cls.connection = http.client.HTTPConnection(cls.netloc, timeout=120)

    @classmethod
    def tearDownClass(cls):
        cls.connection.close()
        served.stop(cls.server)

    @staticmethod
    def body(**fields):
        return {"model": "rondo-demo", "messages": SUM, "max_tokens": 24, "temperature": 0} | fields

    @classmethod
    def post(cls, connection=None, **fields):
        """The bytes of a 200."""
        connection = connection or cls.connection
        connection.request("POST", "/v1/chat/completions", json.dumps(cls.body(**fields)),
                           {"Content-Type": "application/json"})
        reply = connection.getresponse()
        data = reply.read()
        assert reply.status == 200, data
        return data

    @classmethod
    def whole(cls, connection=None, **fields):
        return json.loads(cls.post(connection, **fields))

    @classmethod
    def streamed(cls, connection=None, **fields):
        """A stream put together as the whole reply it should be; each event is checked to be UTF-8."""
        events = served.events(cls.post(connection, stream=True, stream_options={"include_usage": True}, **fields))
        assert events[-1] == (None, "[DONE]"), events[-1]
        chunks = [json.loads(data) for _, data in events[:-1]]
        choices = {}
        for chunk in chunks:
            for part in chunk["choices"]:
                choice = choices.setdefault(part["index"], {"index": part["index"], "message": {}, "logprobs": None,
                                                            "finish_reason": None})
                join(choice, part)
        return {"choices": [choices[i] for i in sorted(choices)], "usage": chunks[-1]["usage"], "rondo": chunks[-1]["rondo"]}


def join(choice, part):
    message, delta = choice["message"], part["delta"]
    assert choice["finish_reason"] is None, "nothing comes after the end"
    choice["finish_reason"] = part["finish_reason"]
    for key in ("content", "reasoning_content"):
        if key in delta:
            message[key] = message.get(key, "") + delta[key]
    for call in delta.get("tool_calls", []):
        calls = message.setdefault("tool_calls", [])
        if call["index"] == len(calls):
            calls.append({"id": call["id"], "type": call["type"], "function": dict(call["function"])})
        else:
            calls[call["index"]]["function"]["arguments"] += call["function"]["arguments"]
    if part["logprobs"]:
        if choice["logprobs"] is None:
            choice["logprobs"] = {"content": [], "refusal": None}
        choice["logprobs"]["content"] += part["logprobs"]["content"]


def what_was_said(reply):
    """All of a reply but what may differ: ids, how it was drafted, null and "" for no content."""
    said = copy.deepcopy(reply)
    out = []
    for choice in said["choices"]:
        message = choice["message"]
        out.append((choice["index"], message.get("content") or "", message.get("reasoning_content"),
                    [call["function"] for call in message.get("tool_calls", [])], choice["logprobs"], choice["finish_reason"]))
    usage = said["usage"]
    details = usage["completion_tokens_details"]
    return out, usage["prompt_tokens"], usage["completion_tokens"], details["reasoning_tokens"], [
        said["rondo"].get(key) for key in ("token_sha", "token_shas", "seed")]


# Requests of every kind; each must say the same whole and streamed, drafted and not, alone and beside the others.
KINDS = {
    "greedy": {"messages": EDIT, "max_tokens": 60},
    "seeded": {"temperature": 1.2, "seed": 11, "ignore_eos": True, "max_tokens": 40},
    "filtered": {"temperature": 0.9, "seed": 5, "top_p": 0.8, "top_k": 30, "min_p": 0.01, "ignore_eos": True},
    "penalised": {"presence_penalty": 0.8, "frequency_penalty": 0.6, "ignore_eos": True, "max_tokens": 40},
    "biased": {"logit_bias": {"300": 5, "301": -100}, "ignore_eos": True},
    "logprobs": {"messages": EDIT, "logprobs": True, "top_logprobs": 5, "max_tokens": 40},
    "choices": {"n": 3, "temperature": 1.1, "seed": 3, "logprobs": True},
    "stop": {"messages": EDIT, "stop": ["item in", "zzz"], "max_tokens": 80},
    "tool call": {"messages": WEATHER, "tools": TOOLS, "max_tokens": 80},
    "no tool": {"messages": WEATHER, "tools": TOOLS, "tool_choice": "none"},
    "cut call": {"messages": WEATHER, "tools": TOOLS, "max_tokens": 14},
    "required": {"tools": TOOLS, "tool_choice": "required", "max_tokens": 80},
    "by name, seeded": {"tools": TOOLS, "tool_choice": NAMED, "max_tokens": 80, "temperature": 1, "seed": 8, "n": 2},
    "required after a thought": {"tools": TOOLS, "tool_choice": "required", "max_tokens": 120, "thinking_budget": 12, **THINK},
    "one at a time": {"messages": WEATHER, "tools": TOOLS, "parallel_tool_calls": False, "max_tokens": 80},
    "thought": {"max_tokens": 60, **THINK},
    "cut thought": {"max_tokens": 6, **THINK},
    "bounded thought": {"max_tokens": 40, "thinking_budget": 5, **THINK},
    "bounded seeded thought": {"max_tokens": 40, "thinking_budget": 3, "temperature": 1, "seed": 2, "n": 2, **THINK},
}


class SaysTheSame(Server):
    def test_whole_streamed_drafted_and_undrafted(self):
        accepted = 0
        for name, fields in KINDS.items():
            with self.subTest(name):
                alone = what_was_said(self.whole(draft=False, **fields if "seed" in fields else fields | {"seed": 1}))
                fields = fields if "seed" in fields else fields | {"seed": 1}
                drafted = self.whole(**fields)
                accepted += drafted["rondo"]["accepted"]
                self.assertEqual(what_was_said(drafted), alone)
                self.assertEqual(what_was_said(self.streamed(**fields)), alone)
                self.assertEqual(what_was_said(self.streamed(draft=False, **fields)), alone)
        self.assertGreater(accepted, 20, "drafts were kept")

    def test_together_as_alone(self):
        fields = {name: fields | {"seed": fields.get("seed", 1)} for name, fields in KINDS.items()}
        alone = {name: what_was_said(self.whole(draft=False, **each)) for name, each in fields.items()}

        def ask(name, streams):
            connection = http.client.HTTPConnection(self.netloc, timeout=120)
            reply = self.streamed(connection, **fields[name]) if streams else self.whole(connection, **fields[name])
            connection.close()
            return what_was_said(reply)

        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            asked = [(name, pool.submit(ask, name, streams)) for streams in (False, True) for name in fields]
            for name, future in asked:
                with self.subTest(name):
                    self.assertEqual(future.result(), alone[name])


class Tools(Server):
    def test_a_call_through_the_client(self):
        reply = self.client.chat.completions.create(model="rondo-demo", messages=WEATHER, tools=TOOLS, temperature=0)
        choice = reply.choices[0]
        self.assertEqual(choice.finish_reason, "tool_calls")
        self.assertIsNone(choice.message.content)
        call = choice.message.tool_calls[0]
        self.assertEqual((call.type, call.function.name), ("function", "get_weather"))
        self.assertEqual(json.loads(call.function.arguments), {"city": "Paris"})

    def test_a_streamed_call_through_the_clients_own_joining(self):
        with self.client.chat.completions.stream(model="rondo-demo", messages=WEATHER, tools=TOOLS, temperature=0) as stream:
            kinds = {event.type for event in stream}
            final = stream.get_final_completion()
        self.assertIn("tool_calls.function.arguments.delta", kinds)
        self.assertIn("tool_calls.function.arguments.done", kinds)
        call = final.choices[0].message.tool_calls[0]
        self.assertEqual(json.loads(call.function.arguments), {"city": "Paris"})

    def test_the_result_of_a_call_goes_back_as_it_came(self):
        first = self.client.chat.completions.create(model="rondo-demo", messages=WEATHER, tools=TOOLS, temperature=0)
        message = first.choices[0].message
        self.client.chat.completions.create(
            model="rondo-demo", tools=TOOLS, temperature=0, max_tokens=20, messages=[
                *WEATHER, message,
                {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "{\"temperature\": 21}"}])

    def test_a_required_call_comes_though_nobody_would_call(self):
        for fields in ({"tool_choice": "required"}, {"tool_choice": NAMED},
                       {"tool_choice": "required", "thinking_budget": 8, "max_tokens": 160, **THINK},
                       {"tool_choice": NAMED, "temperature": 1.5, "seed": 6}):
            with self.subTest(fields):
                choice = self.streamed(**{"tools": TOOLS, "max_tokens": 120} | fields)["choices"][0]
                self.assertEqual(choice["finish_reason"], "tool_calls", choice)
                self.assertFalse(choice["message"].get("content"))
                for call in choice["message"]["tool_calls"]:
                    self.assertEqual(call["function"]["name"], "get_weather")
                    arguments = json.loads(call["function"]["arguments"])
                    self.assertIn("city", arguments)
                    self.assertLessEqual(arguments.keys(), {"city", "unit"})
                if fields["tool_choice"] == NAMED:
                    self.assertEqual(len(choice["message"]["tool_calls"]), 1)

    def test_strict_arguments_keep_to_their_schema(self):
        tools = copy.deepcopy(TOOLS)
        tools[0]["function"]["strict"] = True
        tools[0]["function"]["parameters"]["properties"]["city"] = {"type": "string", "enum": ["Rome", "Oslo"]}
        tools[0]["function"]["parameters"]["additionalProperties"] = False
        choice = self.whole(messages=WEATHER, tools=tools, tool_choice="required", max_tokens=80)["choices"][0]
        self.assertIn(json.loads(choice["message"]["tool_calls"][0]["function"]["arguments"])["city"], ("Rome", "Oslo"))

    def test_arguments_are_typed_by_the_schema(self):
        for kind, expected in (("string", "Paris"), ("integer", "Paris")):
            tools = copy.deepcopy(TOOLS)
            tools[0]["function"]["parameters"]["properties"]["city"]["type"] = kind
            reply = self.whole(messages=WEATHER, tools=tools, max_tokens=80)
            calls = reply["choices"][0]["message"].get("tool_calls")
            if calls:
                self.assertEqual(json.loads(calls[0]["function"]["arguments"])["city"], expected)

    def test_a_function_that_was_not_declared_is_text(self):
        other = copy.deepcopy(TOOLS)
        other[0]["function"]["name"] = "get_weather_of"
        shown = self.whole(messages=WEATHER, tools=TOOLS, max_tokens=80, temperature=0)
        self.assertTrue(shown["choices"][0]["message"]["tool_calls"])
        choice = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [
            {"type": "function", "function": {"name": "get_weather_of"}}]}}
        text = self.whole(messages=WEATHER, tools=TOOLS + other, tool_choice=choice, max_tokens=80)["choices"][0]["message"]
        if "<function=get_weather>" in text["content"]:
            self.assertNotIn("tool_calls", text)

    def test_a_call_cut_at_any_length_is_text_or_open_json(self):
        whole = self.whole(messages=WEATHER, tools=TOOLS, max_tokens=80)
        for most in range(1, whole["usage"]["completion_tokens"]):
            for ask in (self.whole, self.streamed):
                choice = ask(messages=WEATHER, tools=TOOLS, max_tokens=most)["choices"][0]
                self.assertEqual(choice["finish_reason"], "length")
                for call in choice["message"].get("tool_calls", []):
                    arguments = call["function"]["arguments"]
                    try:
                        self.assertEqual(json.loads(arguments), {"city": "Paris"})
                    except json.JSONDecodeError:
                        self.assertTrue('{"city":"Paris"}'.startswith(arguments.split("\\n")[0]), arguments)


class Logprobs(Server):
    def test_every_token_has_one_and_greedy_takes_the_first(self):
        reply = self.client.chat.completions.create(model="rondo-demo", messages=EDIT, temperature=0, logprobs=True,
                                                    top_logprobs=3, max_tokens=50)
        tokens = reply.choices[0].logprobs.content
        self.assertEqual(len(tokens), reply.usage.completion_tokens)
        for token in tokens:
            self.assertEqual(token.token, token.top_logprobs[0].token)
            self.assertEqual(token.logprob, token.top_logprobs[0].logprob)
            self.assertLess(token.logprob, 0)
            self.assertGreaterEqual(token.logprob, -9999)
            self.assertEqual(bytes(token.bytes).decode(), token.token)
            self.assertEqual(len(token.top_logprobs), 3)
        text = b"".join(bytes(token.bytes) for token in tokens).decode()
        self.assertTrue(text.startswith(reply.choices[0].message.content))

    def test_they_are_of_the_raw_logits_whatever_the_sampling(self):
        plain = self.whole(logprobs=True, max_tokens=1)
        cold = self.whole(logprobs=True, max_tokens=1, temperature=0.1, seed=1, top_k=1, presence_penalty=1)
        self.assertEqual(plain["choices"][0]["logprobs"], cold["choices"][0]["logprobs"])


class Choices(Server):
    def test_the_first_is_what_a_lone_choice_is_and_the_others_differ(self):
        fields = {"temperature": 1.3, "seed": 4, "ignore_eos": True, "max_tokens": 30}
        many = self.client.chat.completions.create(model="rondo-demo", messages=SUM, n=4, temperature=1.3, seed=4,
                                                   max_tokens=30, extra_body={"ignore_eos": True})
        self.assertEqual([choice.index for choice in many.choices], [0, 1, 2, 3])
        lone = self.whole(**fields)
        self.assertEqual(many.choices[0].message.content, lone["choices"][0]["message"]["content"])
        self.assertEqual(len({choice.message.content for choice in many.choices}), 4)
        self.assertEqual(many.usage.prompt_tokens, lone["usage"]["prompt_tokens"])
        self.assertEqual(many.usage.completion_tokens, 4 * 30)
        self.assertEqual(len(set(many.rondo["token_shas"])), 4)


class Stops(Server):
    """A stop string at every offset around a token boundary, at every length around it, drafted and not, against the
    reply put together token by token here."""

    def tokens(self):
        reply = self.whole(messages=EDIT, max_tokens=30, logprobs=True, ignore_eos=True, draft=False)
        return [bytes(token["bytes"]) for token in reply["choices"][0]["logprobs"]["content"]]

    @staticmethod
    def expected(tokens, stop, most):
        text = b""
        for count, token in enumerate(tokens[:most], 1):
            text += token
            if stop in text:
                return text[:text.index(stop)].decode(), "stop", count
        return text.decode(), "length", most

    def test_around_every_token_boundary(self):
        tokens = self.tokens()
        text = b"".join(tokens)
        boundaries, at = [], 0
        for index, token in enumerate(tokens[:-4]):
            at += len(token)
            boundaries.append((index + 1, at))
        seen = accepted = 0
        for index, boundary in boundaries[2:14]:
            for before, after in ((0, 1), (1, 0), (1, 1), (2, 1), (1, 3), (4, 4)):
                stop = text[boundary - before:boundary + after]
                for most in range(max(1, index - 1), index + 3):
                    content, reason, count = self.expected(tokens, stop, most)
                    fields = {"messages": EDIT, "max_tokens": most, "stop": stop.decode(), "ignore_eos": True}
                    for draft in (True, False):
                        ask = self.streamed if seen % 3 == 0 else self.whole
                        reply = ask(draft=draft, **fields)
                        choice = reply["choices"][0]
                        got = choice["message"].get("content", ""), choice["finish_reason"], reply["usage"]["completion_tokens"]
                        self.assertEqual(got, (content, reason, count), (stop, most, draft))
                        accepted += reply["rondo"]["accepted"]
                        seen += 1
        self.assertGreater(seen, 400)
        self.assertGreater(accepted, seen, "drafts were kept, so stops fell inside accepted runs")


class Thinking(Server):
    def test_cut_at_every_length_stays_reasoning(self):
        whole = self.whole(max_tokens=80, **THINK)
        thought = whole["choices"][0]["message"]["reasoning_content"]
        tokens = whole["usage"]["completion_tokens_details"]["reasoning_tokens"]
        self.assertGreater(tokens, 5)
        for most in range(1, tokens):
            for ask in (self.whole, self.streamed):
                reply = ask(max_tokens=most, **THINK)
                message = reply["choices"][0]["message"]
                self.assertEqual(message.get("content") or "", "")
                self.assertTrue(thought.startswith(message.get("reasoning_content", "").rstrip("\n")))
                self.assertEqual(reply["usage"]["completion_tokens_details"]["reasoning_tokens"], most)

    def test_a_budget_closes_the_thought_where_it_is_spent(self):
        whole = self.whole(max_tokens=80, **THINK)
        thought = whole["choices"][0]["message"]["reasoning_content"]
        for budget in range(0, 8):
            reply = self.whole(max_tokens=80, thinking_budget=budget, **THINK)
            message = reply["choices"][0]["message"]
            self.assertTrue(thought.startswith(message.get("reasoning_content", "")))
            self.assertLessEqual(reply["usage"]["completion_tokens_details"]["reasoning_tokens"], budget + 2)
            self.assertTrue(message["content"])

    def test_effort_turns_it_on_and_off(self):
        on = self.client.chat.completions.create(model="rondo-demo", messages=SUM, temperature=0, reasoning_effort="medium")
        off = self.client.chat.completions.create(model="rondo-demo", messages=SUM, temperature=0, reasoning_effort="none")
        self.assertTrue(on.choices[0].message.reasoning_content)
        self.assertFalse(hasattr(off.choices[0].message, "reasoning_content"))


class Characters(Server):
    def test_every_event_is_utf8_though_tokens_are_not(self):
        _, ids = served.post_json(self.url + "/tokenize", {"content": "é日本語\U0001F600ß"})
        fields = {"logit_bias": {str(token): 100 for token in ids["tokens"]}, "temperature": 2, "ignore_eos": True,
                  "max_tokens": 60}
        odd = 0
        for seed in range(6):
            whole = self.whole(seed=seed, **fields)
            self.assertEqual(what_was_said(self.streamed(seed=seed, **fields)), what_was_said(whole))
            odd += sum(character > "\x7f" for character in whole["choices"][0]["message"]["content"])
        self.assertGreater(odd, 60, "the text was not ASCII")


if __name__ == "__main__":
    PROGRAM, MODEL = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
