#!/usr/bin/env python3
"""Replies held to a form, through the real server with the bundled model and the real openai client.

Usage: test_structured.py PROGRAM MODEL
"""
import concurrent.futures
import json
import re
import signal
import sys
import unittest

import jsonschema
import openai

import served

PROGRAM, MODEL = "", ""
WORD = {"type": "object", "additionalProperties": False, "required": ["word", "kind", "senses"], "properties": {
    "word": {"type": "string", "minLength": 1, "maxLength": 20}, "kind": {"enum": ["noun", "verb"]},
    "senses": {"type": "array", "items": {"type": "string", "maxLength": 30}, "minItems": 1, "maxItems": 3},
    "rank": {"type": "integer", "minimum": 1, "maximum": 9}}}
TOOL = {"type": "function", "function": {"name": "add", "strict": True, "parameters": {
    "type": "object", "properties": {"a": {"type": "integer", "maximum": 99}, "b": {"type": "integer", "maximum": 99},
                                     "note": {"type": "string", "maxLength": 12}}, "required": ["a", "b"]}}}
OTHER = {"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {}}}}
THINK = {"chat_template_kwargs": {"enable_thinking": True}, "thinking_budget": 12}


def json_schema(schema):
    return {"type": "json_schema", "json_schema": {"name": "it", "strict": True, "schema": schema}}


# Forms, and whether a whole reply has it.
def is_word(message):
    jsonschema.validate(json.loads(message.content), WORD)
    return True


def calls(message, names):
    return [call.function.name for call in message.tool_calls or []] == names and all(
        call.function.name != "add" or jsonschema.validate(json.loads(call.function.arguments),
                                                           TOOL["function"]["parameters"]) is None
        for call in message.tool_calls)


FORMS = {
    "schema": ({"response_format": json_schema(WORD)}, is_word),
    "object": ({"response_format": {"type": "json_object"}}, lambda m: isinstance(json.loads(m.content), dict)),
    "regex": ({"extra_body": {"structured_outputs": {"regex": r"[A-Z][a-z]{1,9}( [a-z]{1,9}){3,5}\."}}},
              lambda m: re.fullmatch(r"[A-Z][a-z]{1,9}( [a-z]{1,9}){3,5}\.", m.content)),
    "choice": ({"extra_body": {"structured_outputs": {"choice": ["certainly", "no idea"]}}},
               lambda m: m.content in ("certainly", "no idea")),
    "grammar": ({"extra_body": {"structured_outputs": {"grammar": 'root ::= "(" root ")" | [0-9]{2,4}'}}},
                lambda m: re.fullmatch(r"(\(*)\d{2,4}(\)*)", m.content) and m.content.count("(") == m.content.count(")")),
    "json": ({"extra_body": {"structured_outputs": {"json": WORD}}}, is_word),
    "thought": ({"response_format": json_schema(WORD), "extra_body": THINK}, is_word),
    "named": ({"tools": [TOOL, OTHER], "tool_choice": {"type": "function", "function": {"name": "add"}}},
              lambda m: calls(m, ["add"])),
    "required": ({"tools": [TOOL, OTHER], "tool_choice": "required", "parallel_tool_calls": False},
                 lambda m: calls(m, ["add"]) or calls(m, ["now"])),
    "thought and tool": ({"tools": [TOOL], "tool_choice": "required", "parallel_tool_calls": False, "extra_body": THINK},
                         lambda m: calls(m, ["add"])),
}


class Structured(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server, cls.url = served.start(PROGRAM, MODEL, "--unpriced")  # drafts whatever they cost
        cls.client = openai.OpenAI(base_url=cls.url + "/v1", api_key="none", max_retries=0, timeout=120)

    @classmethod
    def tearDownClass(cls):
        cls.server.send_signal(signal.SIGTERM)
        assert cls.server.wait(timeout=30) == 0
        cls.server.stdout.close()
        cls.server.stderr.close()

    def chat(self, form, draft=True, temperature=0, **fields):
        given = dict(FORMS[form][0]) if form else {}
        extra = given.pop("extra_body", {}) | {"draft": draft} | fields.pop("extra_body", {})
        return self.client.chat.completions.create(
            model="rondo-demo", messages=[{"role": "user", "content": "Define the word river. What is 23 + 45?"}],
            temperature=temperature, seed=11, extra_body=extra, **({"max_tokens": 400} | given | fields))

    def test_every_form_holds_drafted_or_not_alone_or_together(self):
        alone = {}
        drafted = 0
        for form, (_, holds) in FORMS.items():
            for temperature in (0, 1):
                with self.subTest(form=form, temperature=temperature):
                    plain = self.chat(form, draft=False, temperature=temperature)
                    with_drafts = self.chat(form, temperature=temperature)
                    self.assertEqual(plain.rondo["drafted"], 0)
                    drafted += with_drafts.rondo["drafted"]
                    self.assertEqual(plain.rondo["token_sha"], with_drafts.rondo["token_sha"])
                    alone[form, temperature] = plain.rondo["token_sha"]
                    if plain.choices[0].finish_reason != "length":
                        self.assertTrue(holds(with_drafts.choices[0].message), with_drafts.choices[0].message)
                    # Free text at temperature 1 may be long; the others end.
                    self.assertIn(plain.choices[0].finish_reason,
                                  ("stop", "tool_calls", "length") if form == "object" else ("stop", "tool_calls"))
        self.assertGreater(drafted, 40)
        with concurrent.futures.ThreadPoolExecutor(len(alone)) as pool:
            together = list(pool.map(lambda key: self.chat(key[0], temperature=key[1]).rondo["token_sha"], alone))
        self.assertEqual(together, list(alone.values()))

    def test_a_streamed_reply_is_the_whole_one(self):
        for form in ("schema", "thought", "required"):
            with self.subTest(form=form):
                whole = self.chat(form).choices[0].message
                content, arguments = "", ""
                for event in self.chat(form, stream=True):
                    for choice in event.choices:
                        content += choice.delta.content or ""
                        for call in choice.delta.tool_calls or []:
                            arguments += call.function.arguments or ""
                self.assertEqual(content, whole.content or "")
                if whole.tool_calls:
                    self.assertEqual(arguments, whole.tool_calls[0].function.arguments)

    def test_a_reply_cut_by_its_length_is_a_beginning_of_the_whole_one(self):
        whole = self.chat("schema").choices[0].message.content
        for most in (1, 2, 3, 5, 8, 13, 21):
            cut = self.chat("schema", max_tokens=most).choices[0]
            self.assertTrue(whole.startswith(cut.message.content), (whole, cut.message.content))

    def test_the_thought_is_free_and_the_form_begins_after_it(self):
        message = self.chat("thought").choices[0].message
        self.assertTrue(is_word(message))
        self.assertNotIn("{\"word", message.reasoning_content)
        self.assertGreater(len(message.reasoning_content), 0)

    def test_several_choices_each_have_the_form(self):
        reply = self.chat("schema", temperature=1, n=3)
        self.assertTrue(all(is_word(choice.message) for choice in reply.choices))
        self.assertEqual(len({choice.message.content for choice in reply.choices}), 3)

    def test_the_clients_own_parsing_of_schemas(self):
        import pydantic

        class Word(pydantic.BaseModel):
            model_config = pydantic.ConfigDict(extra="forbid")
            word: str
            rank: int

        reply = self.client.chat.completions.parse(
            model="rondo-demo", messages=[{"role": "user", "content": "Name a word."}], response_format=Word,
            max_tokens=400, temperature=0, extra_body={"chat_template_kwargs": {"enable_thinking": False}})
        self.assertIsInstance(reply.choices[0].message.parsed, Word)

    def test_completions_take_forms_too(self):
        reply = self.client.completions.create(model="rondo-demo", prompt="The year was ", max_tokens=20, temperature=0,
                                               extra_body={"structured_outputs": {"regex": "[12][0-9]{3}"}})
        self.assertRegex(reply.choices[0].text, "^[12][0-9]{3}$")

    def test_what_cannot_be_kept_to_is_refused_by_its_place(self):
        cases = [
            ({"response_format": json_schema({"type": "object", "properties": {"a": {"multipleOf": 2}}})},
             "response_format: schema, at #/properties/a/multipleOf: 'multipleOf' is not supported"),
            ({"response_format": {"type": "xml"}}, "response_format.type must be text, json_object or json_schema, not 'xml'"),
            ({"response_format": {"type": "json_schema"}}, "response_format.json_schema is missing"),
            ({"response_format": {"type": "json_schema", "json_schema": {"name": "a"}}},
             "response_format.json_schema.schema is missing"),
            ({"extra_body": {"structured_outputs": {"regex": "a(?=b)"}}},
             "structured_outputs: pattern, at byte 3: lookahead is not supported"),
            ({"extra_body": {"structured_outputs": {"regex": "a", "choice": ["b"]}}},
             "structured_outputs takes exactly one of json, regex, choice, grammar and json_object"),
            ({"extra_body": {"structured_outputs": {"grammar": "root ::= root"}}},
             "structured_outputs: rule 'root' refers to itself before anything is read (left recursion)"),
            ({"extra_body": {"structured_outputs": {"regex": "(a|b)*a(a|b){25}"}}}, "structured_outputs: the grammar is too large"),
            ({"response_format": {"type": "json_object"}, "extra_body": {"structured_outputs": {"regex": "a"}}},
             "response_format and structured_outputs both ask for a form"),
            ({"response_format": {"type": "json_object"}, "extra_body": {"ignore_eos": True}},
             "response_format: a form has an end, so ignore_eos"),
        ]
        for fields, message in cases:
            with self.subTest(fields=fields), self.assertRaises(openai.BadRequestError) as refused:
                self.chat(None, **fields)
            self.assertIn(message, refused.exception.message)
        self.assertEqual(self.chat(None, response_format={"type": "text"}, max_tokens=4).choices[0].finish_reason, "length")


if __name__ == "__main__":
    PROGRAM, MODEL = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1], verbosity=2)
