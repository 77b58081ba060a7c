#!/usr/bin/env python3
"""/v1/messages of the real program with the bundled model, by the anthropic client and by hand.

Usage: test_anthropic.py PROGRAM MODEL
"""
import concurrent.futures
import json
import sys
import unittest

import anthropic

import served

PROGRAM, MODEL = "", ""
SUM = [{"role": "user", "content": "What is 23 + 45?"}]
WEATHER = {"name": "get_weather", "description": "Current weather in a city",
           "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}
WORD = {"name": "define_word", "description": "Look a word up in the dictionary",
        "input_schema": {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}}
ASK_WEATHER = [{"role": "user", "content": "What is the weather in Paris?"}]
THINK = {"type": "enabled", "budget_tokens": 100}
# What the client has no argument for: sampling, which it dropped, and Rondo's own.
OWN = {"temperature", "top_k", "top_p", "draft", "draft_depth", "ignore_eos", "min_p", "seed", "cache", "chat_template_kwargs"}


def request(**fields):
    return {"model": "rondo-demo", "messages": SUM, "max_tokens": 120, "temperature": 0} | fields


def block_texts(message):
    """What a message says, without ids, which no two replies share."""
    out = []
    for block in message["content"]:
        out.append({name: value for name, value in block.items() if name != "id"})
    return out, message["stop_reason"], message["stop_sequence"]


def join(events):
    """The message that a stream's events make, checked for their order on the way."""
    message, block, pieces = None, None, ""
    for name, data in events:
        event = json.loads(data)
        assert event["type"] == name, (event, name)
        if name == "message_start":
            assert message is None
            message = event["message"]
            assert message["content"] == [] and message["stop_reason"] is None
        elif name == "content_block_start":
            assert block is None and event["index"] == len(message["content"])
            block, pieces = event["content_block"], ""
        elif name == "content_block_delta":
            assert event["index"] == len(message["content"])
            delta = event["delta"]
            if delta["type"] == "input_json_delta":
                pieces += delta["partial_json"]
            else:
                field = delta["type"].removesuffix("_delta")
                block[field] += delta[field]
        elif name == "content_block_stop":
            assert event["index"] == len(message["content"])
            if block["type"] == "tool_use" and pieces:
                block["cut"] = pieces
                try:
                    block["input"] = json.loads(pieces)
                    del block["cut"]
                except json.JSONDecodeError:
                    pass
            message["content"].append(block)
            block = None
        elif name == "message_delta":
            assert block is None
            message |= event["delta"]
            message["usage"] |= event["usage"]
            message["rondo"] = event["rondo"]
        else:
            assert name in ("ping", "message_stop"), name
    assert events[0][0] == "message_start" and events[-1][0] == "message_stop"
    return message


class Messages(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.server, cls.url = served.start(PROGRAM, MODEL)
        cls.client = anthropic.Anthropic(base_url=cls.url, api_key="none", max_retries=0, timeout=60)

    @classmethod
    def tearDownClass(cls):
        served.stop(cls.server)

    def arguments(self, **fields):
        fields = request(**fields)
        own = {name: fields.pop(name) for name in OWN & set(fields)}
        return fields | {"extra_body": own}

    def create(self, **fields):
        return self.client.messages.create(**self.arguments(**fields))

    def post(self, **fields):
        status, reply = served.post_json(self.url + "/v1/messages", request(**fields))
        self.assertEqual(status, 200, reply)
        return reply

    def stream(self, **fields):
        status, bytes_ = served.post(self.url + "/v1/messages", request(**fields, stream=True))
        self.assertEqual(status, 200, bytes_)
        return served.events(bytes_)

    def test_a_whole_message(self):
        message = self.create()
        self.assertEqual((message.type, message.role, message.model), ("message", "assistant", "rondo-demo"))
        self.assertTrue(message.id.startswith("msg_"))
        self.assertEqual(message.stop_reason, "end_turn")
        self.assertEqual([block.type for block in message.content], ["text"])
        self.assertIn("23 + 45 = ", message.content[0].text)
        self.assertGreater(message.usage.input_tokens, 0)
        self.assertGreater(message.usage.output_tokens, 0)
        self.assertRegex(message.rondo["token_sha"], "^[0-9a-f]{64}$")
        self.assertTrue(message._request_id)

    def test_it_says_what_the_chat_says(self):
        client = {"messages": [{"role": "system", "content": "Be brief."}, *SUM], "max_tokens": 60, "temperature": 1.1, "seed": 8}
        status, chat = served.post_json(self.url + "/v1/chat/completions", client)
        self.assertEqual(status, 200, chat)
        message = self.post(system="Be brief.", max_tokens=60, temperature=1.1, seed=8)
        self.assertEqual(message["rondo"]["token_sha"], chat["rondo"]["token_sha"])
        self.assertEqual(message["usage"]["input_tokens"], chat["usage"]["prompt_tokens"])
        self.assertEqual(message["usage"]["output_tokens"], chat["usage"]["completion_tokens"])

    def test_a_tool_is_called_and_its_result_is_read(self):
        message = self.create(messages=ASK_WEATHER, tools=[WEATHER, WORD])
        self.assertEqual(message.stop_reason, "tool_use")
        call = message.content[-1]
        self.assertEqual((call.type, call.name, call.input), ("tool_use", "get_weather", {"city": "Paris"}))
        self.assertTrue(call.id.startswith("toolu_"))
        result = {"type": "tool_result", "tool_use_id": call.id, "content": "{\"temperature\": 21, \"sky\": \"sunny\"}"}
        answer = self.create(messages=[*ASK_WEATHER, {"role": "assistant", "content": message.content},
                                       {"role": "user", "content": [result]}], tools=[WEATHER, WORD])
        self.assertEqual(answer.stop_reason, "end_turn")
        self.assertIn("21 degrees", answer.content[0].text)

    def test_tool_choice_is_kept_to(self):
        tools = [WEATHER, WORD]
        for choice, names in (({"type": "any"}, {"get_weather", "define_word"}), ({"type": "tool", "name": "define_word"}, {"define_word"}),
                              ({"type": "any", "disable_parallel_tool_use": True}, {"get_weather", "define_word"})):
            for thinking in ({"type": "disabled"}, THINK):
                with self.subTest(choice=choice, thinking=thinking):
                    message = self.create(tools=tools, tool_choice=choice, thinking=thinking, temperature=1.3, seed=4)
                    self.assertEqual(message.stop_reason, "tool_use")
                    calls = [block for block in message.content if block.type == "tool_use"]
                    self.assertEqual({call.name for call in calls} - names, set())
                    self.assertEqual([block.type for block in message.content if block.type == "text"], [])
                    if "disable_parallel_tool_use" in choice or choice["type"] == "tool":
                        self.assertEqual(len(calls), 1)
                    for call in calls:
                        self.assertEqual(list(call.input), ["city" if call.name == "get_weather" else "word"])
        none = self.create(messages=ASK_WEATHER, tools=tools, tool_choice={"type": "none"})
        self.assertNotIn("tool_use", [block.type for block in none.content])

    def test_an_output_format_is_kept_to(self):
        schema = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"], "additionalProperties": False}
        form = {"format": {"type": "json_schema", "schema": schema}}
        for thinking in ({"type": "disabled"}, THINK):
            message = self.create(output_config=form, thinking=thinking, temperature=1.2, seed=2, max_tokens=200)
            self.assertEqual(message.stop_reason, "end_turn")
            self.assertIsInstance(json.loads(message.content[-1].text)["sum"], int)

    def test_the_clients_own_stream_makes_the_whole_message(self):
        for fields in ({}, {"messages": ASK_WEATHER, "tools": [WEATHER]}, {"thinking": THINK},
                       {"messages": ASK_WEATHER, "tools": [WORD, WEATHER], "thinking": THINK}):
            with self.subTest(fields=fields):
                whole = self.create(**fields)
                with self.client.messages.stream(**self.arguments(**fields)) as stream:
                    kinds = [event.type for event in stream]
                    final = stream.get_final_message()
                self.assertEqual(kinds[0], "message_start")
                self.assertEqual(kinds[-2:], ["message_delta", "message_stop"])
                self.assertEqual(block_texts(final.to_dict()), block_texts(whole.to_dict()))
                self.assertEqual(final.usage, whole.usage)

    def test_thinking_is_a_block_of_its_own(self):
        message = self.create(thinking=THINK)
        self.assertEqual([block.type for block in message.content], ["thinking", "text"])
        self.assertGreater(len(message.content[0].thinking), 0)
        self.assertTrue(message.content[0].signature)
        self.assertGreater(message.usage.output_tokens_details.thinking_tokens, 0)
        again = [*SUM, {"role": "assistant", "content": message.content}, {"role": "user", "content": "What is 2 + 2?"}]
        self.assertEqual(self.create(messages=again, thinking={"type": "disabled"}).content[0].type, "text")
        for off in ({}, {"thinking": {"type": "disabled"}}):
            self.assertEqual([block.type for block in self.create(**off).content], ["text"])
        self.assertEqual(self.create(thinking={"type": "adaptive"}).content[0].type, "thinking")

    def test_a_thought_ends_at_its_budget_or_is_cut_by_max_tokens_and_stays_a_thought(self):
        whole = self.create(thinking=THINK).usage.output_tokens_details.thinking_tokens
        self.assertGreater(whole, 3)
        short = self.create(thinking={"type": "enabled", "budget_tokens": 2})
        self.assertLess(short.usage.output_tokens_details.thinking_tokens, whole)
        self.assertEqual(short.content[-1].type, "text")
        cut = self.create(thinking={"type": "enabled", "budget_tokens": 2}, max_tokens=3)
        self.assertEqual(cut.stop_reason, "max_tokens")
        cut = self.create(thinking={"type": "adaptive"}, max_tokens=3)
        self.assertEqual(([block.type for block in cut.content], cut.stop_reason), (["thinking"], "max_tokens"))

    def test_stop_sequences_are_named(self):
        text = self.create(ignore_eos=True, max_tokens=20).content[0].text
        for begin in range(1, len(text) - 2):
            stop = text[begin:begin + 2]
            for most in (5, 20):
                full = self.create(ignore_eos=True, max_tokens=most).content[0].text
                message = self.create(stop_sequences=[stop, "never"], ignore_eos=True, max_tokens=most)
                said = message.content[0].text if message.content else ""
                if stop in full:
                    self.assertEqual((message.stop_reason, message.stop_sequence), ("stop_sequence", stop))
                    self.assertEqual(said, full[:full.index(stop)])
                else:
                    self.assertEqual((message.stop_reason, message.stop_sequence, said), ("max_tokens", None, full))

    def test_blocks_are_the_same_prompt_as_their_text(self):
        plain = self.create(system="Be brief.").rondo["token_sha"]
        blocks = [{"type": "text", "text": "What is ", "cache_control": {"type": "ephemeral"}},
                  {"type": "text", "text": "23 + 45?"}]
        message = self.create(system=[{"type": "text", "text": "Be "}, {"type": "text", "text": "brief."}],
                              messages=[{"role": "user", "content": blocks}])
        self.assertEqual(message.rondo["token_sha"], plain)

    def test_a_begun_reply_is_continued(self):
        whole = self.create().content[0].text
        for length in range(1, len(whole)):
            begun = whole[:length]
            if begun.strip() != begun:
                continue
            message = self.create(messages=[*SUM, {"role": "assistant", "content": begun}])
            said = message.content[0].text if message.content else ""
            if len(begun) in (2, 8, len(whole) - 1):  # where a token of the reply ends: the same tokens follow
                self.assertEqual(begun + said, whole)
            self.assertFalse(said.startswith(begun))

    def test_count_tokens_is_what_a_message_uses(self):
        cases = (
            {}, {"system": "Be brief."}, {"tools": [WEATHER, WORD]}, {"thinking": THINK},
            {"tools": [WEATHER], "tool_choice": {"type": "none"}, "thinking": {"type": "disabled"}},
            {"messages": [*SUM, {"role": "assistant", "content": "23"}]},
            {"system": [{"type": "text", "text": "Be brief."}],
             "messages": [{"role": "user", "content": [{"type": "text", "text": "é 𝕏"}]},
                          {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": "x"},
                                                            {"type": "text", "text": "Look:"},
                                                            {"type": "tool_use", "id": "t1", "name": "get_weather", "input": {"city": "Oslo"}}]},
                          {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "is_error": True,
                                                        "content": [{"type": "text", "text": "no such city"}]},
                                                       {"type": "text", "text": "Again."}]}]},
        )
        for case in cases:
            with self.subTest(case=case):
                counted = self.client.messages.count_tokens(model="rondo-demo", **{"messages": SUM} | case).input_tokens
                self.assertEqual(counted, self.create(**case, max_tokens=101).usage.input_tokens)
                start = json.loads(self.stream(**case, max_tokens=101)[0][1])
                self.assertEqual(counted, start["message"]["usage"]["input_tokens"])

    CASES = (
        {},
        {"temperature": 1.2, "seed": 3, "top_k": 40, "top_p": 0.9, "max_tokens": 60},
        {"messages": ASK_WEATHER, "tools": [WEATHER, WORD]},
        {"messages": ASK_WEATHER, "tools": [WEATHER, WORD], "thinking": THINK, "temperature": 0.9, "seed": 5},
        {"thinking": {"type": "enabled", "budget_tokens": 3}},
        {"thinking": {"type": "adaptive"}, "max_tokens": 4},
        {"stop_sequences": ["= 6", "zzz"], "system": "Be brief."},
        {"tools": [WEATHER, WORD], "tool_choice": {"type": "any"}, "temperature": 1.3, "seed": 4},
        {"output_config": {"format": {"type": "json_schema", "schema": {"enum": ["yes", "no", 5]}}}, "thinking": THINK},
    )

    def outcome(self, **fields):
        message = self.post(**fields)
        return block_texts(message), message["rondo"]["token_sha"]

    def test_drafts_on_off_and_company_change_nothing(self):
        alone = [self.outcome(**case) for case in self.CASES]
        for draft in ({"draft": False}, {"draft_depth": 1}, {"draft_depth": 8}):
            self.assertEqual([self.outcome(**case, **draft) for case in self.CASES], alone, draft)
        with concurrent.futures.ThreadPoolExecutor(18) as pool:
            together = [pool.submit(self.outcome, **case) for _ in range(2) for case in self.CASES]
            for i, reply in enumerate(together):
                self.assertEqual(reply.result(), alone[i % len(alone)])

    def test_streamed_pieces_join_to_the_whole_message(self):
        for case in self.CASES:
            for draft in (True, False):
                with self.subTest(case=case, draft=draft):
                    whole, streamed = self.post(**case, draft=draft), join(self.stream(**case, draft=draft))
                    self.assertEqual(block_texts(streamed), block_texts(whole))
                    self.assertEqual(streamed["usage"], whole["usage"])
                    self.assertEqual(streamed["rondo"]["token_sha"], whole["rondo"]["token_sha"])

    def test_a_call_cut_anywhere_is_the_same_streamed_and_whole(self):
        case = {"messages": ASK_WEATHER, "tools": [WEATHER]}
        for most in range(1, self.post(**case)["usage"]["output_tokens"] + 1):
            whole, streamed = self.post(**case, max_tokens=most), join(self.stream(**case, max_tokens=most))
            for block in streamed["content"]:
                cut = block.pop("cut", None)
                if cut is not None:
                    self.assertEqual(streamed["stop_reason"], "max_tokens")
                    self.assertRaises(json.JSONDecodeError, json.loads, cut)
            self.assertEqual(block_texts(streamed), block_texts(whole))

    def test_pieces_are_utf8_whatever_the_model_says(self):
        for seed in range(8):
            fields = {"temperature": 2, "seed": seed, "max_tokens": 100, "ignore_eos": True}
            self.assertEqual(block_texts(join(self.stream(**fields))), block_texts(self.post(**fields)))

    def test_errors_are_anthropics_object(self):
        image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": ""}}
        cases = (
            ({"messages": []}, 400, "messages"), ({"messages": "hi"}, 400, "messages"), ({"messages": None}, 400, "messages"),
            ({"messages": [{"role": "king", "content": "x"}]}, 400, "messages[0].role"),
            ({"messages": [{"role": "user"}]}, 400, "messages[0].content"),
            ({"messages": [{"role": "user", "content": [image]}]}, 400, "image"),
            ({"messages": [{"role": "user", "content": [{"type": "tool_use", "id": "x", "name": "f", "input": {}}]}]}, 400, "tool_use"),
            ({"max_tokens": None}, 400, "max_tokens"), ({"max_tokens": 0}, 400, "max_tokens"), ({"max_tokens": 99999}, 400, "4096"),
            ({"temperature": 7}, 400, "temperature"), ({"top_k": "x"}, 400, "top_k"), ({"stop_sequences": [""]}, 400, "stop_sequences"),
            ({"system": 5}, 400, "system"), ({"system": [image]}, 400, "system[0].type"),
            ({"thinking": {"type": "enabled"}}, 400, "budget_tokens"), ({"thinking": {"type": "sometimes"}}, 400, "thinking.type"),
            ({"thinking": {"type": "enabled", "budget_tokens": 500}}, 400, "max_tokens"),
            ({"thinking": {"type": "adaptive", "display": "omitted"}}, 400, "display"),
            ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, 400, "web_search_20250305"),
            ({"tools": [{"name": "f"}]}, 400, "input_schema"), ({"tools": [WEATHER, WEATHER]}, 400, "get_weather"),
            ({"tool_choice": {"type": "any"}}, 400, "tool_choice"), ({"tool_choice": {"type": "tool", "name": "f"}}, 400, "f"),
            ({"tool_choice": {"type": "some"}}, 400, "tool_choice.type"), ({"stream": "yes"}, 400, "stream"),
            ({"mcp_servers": [{"url": "x"}]}, 400, "mcp_servers"), ({"container": "c"}, 400, "container"),
            ({"colour": "red"}, 400, "colour"), ({"model": "other"}, 404, "rondo-demo"),
            ({"messages": [{"role": "user", "content": "x" * 40000}]}, 400, "4096"),
        )
        for fields, status, word in cases:
            with self.subTest(fields=str(fields)[:70]):
                got, reply = served.post_json(self.url + "/v1/messages", request(**fields))
                self.check_error(got, reply, status, word)
                if not {"max_tokens", "temperature", "top_k", "stop_sequences", "stream"} & set(fields) and "4096" not in word:
                    body = {"messages": SUM, "model": "rondo-demo"} | fields
                    got, reply = served.post_json(self.url + "/v1/messages/count_tokens", body)
                    if word != "max_tokens":
                        self.check_error(got, reply, status, word)
        for body in (b"", b"{", b"[]", b"5", b'{"messages":"\xff"}', b"[" * 10000):
            for path in ("/v1/messages", "/v1/messages/count_tokens"):
                self.check_error(*served.post_json(self.url + path, body), 400, "")
        self.check_error(*served.post_json(self.url + "/v1/messages/batches", {}), 404, "path")
        self.check_error(*served.post_json(self.url + "/v1/messages", b"{}", **{"Content-Type": "text/plain"}), 415, "json")
        self.check_error(*served.post_json(self.url + "/v1/messages", request(), **{"anthropic-version": "1999-01-01"}), 400, "2023-06-01")
        self.create()

    def check_error(self, got, reply, status, word):
        self.assertEqual(got, status, reply)
        self.assertEqual((set(reply), reply["type"]), ({"type", "error"}, "error"))
        self.assertEqual(set(reply["error"]), {"type", "message"})
        self.assertEqual(reply["error"]["type"], "not_found_error" if status == 404 else "invalid_request_error")
        self.assertIn(word, reply["error"]["message"])

    def test_errors_are_the_clients_own_exceptions(self):
        for exception, fields in ((anthropic.NotFoundError, {"model": "other"}), (anthropic.BadRequestError, {"max_tokens": 99999}),
                                  (anthropic.BadRequestError, {"top_k": -7})):
            with self.subTest(fields=fields), self.assertRaises(exception) as caught:
                self.create(**fields)
            self.assertIn(caught.exception.type, ("not_found_error", "invalid_request_error"))

    def test_the_client_lists_the_model(self):
        models = self.client.models.list()
        self.assertEqual([(model.id, model.type) for model in models], [("rondo-demo", "model")])
        self.assertEqual(self.client.models.retrieve("rondo-demo").display_name, "rondo-demo")


if __name__ == "__main__":
    PROGRAM, MODEL = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1])
