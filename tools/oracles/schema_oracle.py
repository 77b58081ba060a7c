#!/usr/bin/env python3
"""Grammars of random JSON schemas held against Python's jsonschema, both ways.

  * Every walk through the masks ends in a text that the schema's validator accepts.
  * Every instance that a generator of valid instances makes is taken by the grammar.

Usage: schema_oracle.py --driver PROGRAM [--schemas N] [--seed N] [--plant text|instance]
A plant spoils one side, and must be seen: then the exit status is 1.
"""
import argparse
import json
import random
import subprocess
import sys

import jsonschema

NAMES = ["a", "b", "ab", "name", "Größe", "x y", 'q"q', "back\\slash", "id"]
PATTERNS = {  # and how to make a string that matches
    "^[a-z]{2,5}$": lambda r: "".join(r.choice("abcxyz") for _ in range(r.randint(2, 5))),
    "^(red|green)-[0-9]+$": lambda r: r.choice(["red", "green"]) + "-" + str(r.randint(0, 999)),
    "b+": lambda r: r.choice(["b", "xbby", "\"b\\", "éb"]),
    "^[^a-c]*$": lambda r: r.choice(["", "xyz", "d\n", "ü"]),
}
FORMATS = {"date": "2024-02-29", "uuid": "123e4567-e89b-12d3-a456-426614174000", "ipv4": "10.0.0.1",
           "date-time": "2026-11-30T17:46:07Z", "email": "a.b@c-d.org"}


def random_schema(r, depth, refs):
    kinds = ["null", "boolean", "integer", "number", "string", "enum", "const", "pattern", "format"]
    kinds += ["object", "object", "array", "anyOf", "tuple", "allOf", "map", "types", "oneOf"] if depth > 0 else []
    kinds += ["ref"] if refs and depth > 0 else []
    kind = r.choice(kinds)
    inner = lambda: random_schema(r, depth - 1, refs)
    if kind in ("null", "boolean"):
        return {"type": kind}
    if kind in ("integer", "number"):
        schema = {"type": kind}
        low, high = sorted((r.randint(-150, 150), r.randint(-150, 1500)))
        if r.random() < 0.5:
            schema[r.choice(["minimum", "exclusiveMinimum"])] = low
        if r.random() < 0.5:
            schema[r.choice(["maximum", "exclusiveMaximum"])] = high + 2
        return schema
    if kind == "string":
        schema = {"type": "string"}
        low = r.randint(0, 3)
        if r.random() < 0.5:
            schema["minLength"] = low
        if r.random() < 0.5:
            schema["maxLength"] = low + r.randint(0, 4)
        return schema
    if kind == "enum":
        return {"enum": r.sample(["x", 1, 2.5, None, True, [1, {"a": "b"}], {"k": []}, "é\n\"", -3], r.randint(1, 4))}
    if kind == "const":
        return {"const": r.choice(["fixed", 7, {"p": [1, 2]}, False])}
    if kind == "pattern":
        return {"type": "string", "pattern": r.choice(list(PATTERNS))}
    if kind == "format":
        return {"type": "string", "format": r.choice(list(FORMATS))}
    if kind == "object":
        names = r.sample(NAMES, r.randint(1, 5))
        schema = {"type": "object", "properties": {name: inner() for name in names},
                  "required": [name for name in names if r.random() < 0.5]}
        if r.random() < 0.3:
            schema["additionalProperties"] = r.choice([False, True, inner()])
        return schema
    if kind == "map":
        return {"type": "object", "additionalProperties": inner()}
    if kind == "array":
        schema = {"type": "array", "items": inner()}
        low = r.randint(0, 2)
        if r.random() < 0.5:
            schema["minItems"] = low
        if r.random() < 0.5:
            schema["maxItems"] = low + r.randint(0, 3)
        return schema
    if kind == "tuple":
        schema = {"type": "array", "prefixItems": [inner() for _ in range(r.randint(1, 3))]}
        if r.random() < 0.5:
            schema["items"] = r.choice([False, inner()])
        if r.random() < 0.5:
            schema["minItems"] = r.randint(0, len(schema["prefixItems"]))
        return schema
    if kind == "allOf":
        return {"allOf": [{"type": "object", "properties": {"l": inner()}, "required": ["l"]}, {"properties": {"m": inner()}}]}
    if kind == "types":
        return {"type": ["string", "null", "integer"], "maxLength": 3, "minimum": 0}
    if kind == "oneOf":
        return {"oneOf": [{"type": "object", "properties": {"kind": {"const": k}, "v": inner()}, "required": ["kind"]}
                          for k in ("p", "q")]}
    if kind == "ref":
        return {"$ref": r.choice(refs)}
    return {"anyOf": [inner() for _ in range(r.randint(1, 3))]}


def random_string(r, low, high):
    return "".join(r.choice('abc é🙂\n\t"\\/\x01') for _ in range(r.randint(low, high)))


class TooDeep(Exception):
    pass


def instance(r, schema, root, depth=0):
    """A value that fits, as the subset writes it: properties in the schema's order."""
    if depth > 12:
        raise TooDeep
    more = lambda s: instance(r, s, root, depth + 1)
    if schema is True:
        return r.choice([1, "s", [None], {"z": 0.5}])
    if "$ref" in schema:
        return more(root["$defs"][schema["$ref"].rsplit("/", 1)[1]])
    if "allOf" in schema:
        l, m = schema["allOf"][0]["properties"]["l"], schema["allOf"][1]["properties"]["m"]
        return {"l": more(l)} | ({"m": more(m)} if r.random() < 0.5 else {})
    for keyword in ("anyOf", "oneOf"):
        if keyword in schema:
            return more(r.choice(schema[keyword]))
    if "enum" in schema:
        return r.choice(schema["enum"])
    if "const" in schema:
        return schema["const"]
    kind = schema["type"]
    if isinstance(kind, list):
        kind = r.choice(kind)
    if kind == "null":
        return None
    if kind == "boolean":
        return r.random() < 0.5
    if kind in ("integer", "number"):
        low = max(schema.get("minimum", -300), schema.get("exclusiveMinimum", -301) + 1)
        high = min(schema.get("maximum", 3000), schema.get("exclusiveMaximum", 3001) - 1)
        value = r.randint(low, high)
        return value + r.choice([0.5, 0.25]) if kind == "number" and value < high and r.random() < 0.5 else value
    if kind == "string":
        if "pattern" in schema:
            return PATTERNS[schema["pattern"]](r)
        if "format" in schema:
            return FORMATS[schema["format"]]
        low = schema.get("minLength", 0)
        return random_string(r, low, schema.get("maxLength", low + 5))
    if kind == "array":
        first = schema.get("prefixItems", [])
        items = schema.get("items", False if first else True)
        low, high = schema.get("minItems", 0), schema.get("maxItems", len(first) + 2)
        high = min(high, len(first)) if items is False else high
        return [more(first[i] if i < len(first) else items) for i in range(r.randint(low, max(low, high)))]
    value = {name: more(s) for name, s in schema.get("properties", {}).items()
             if name in schema.get("required", []) or r.random() < 0.5}
    additional = schema.get("additionalProperties", False)
    if additional is not False:
        for name in r.sample(["other", "z\n", "ab c", ""], r.randint(0, 2)):
            if name not in schema.get("properties", {}):
                value[name] = more(additional)
    return value


def spell(r, value):
    if r.random() < 0.3:
        return json.dumps(value, ensure_ascii=False, indent=r.choice([1, 2]))
    return json.dumps(value, ensure_ascii=False, separators=r.choice([(",", ":"), (", ", ": ")]))


def make_question(r, seed):
    refs = ["#/$defs/one", "#/$defs/two"] if r.random() < 0.3 else []
    schema = random_schema(r, 3, refs)
    if refs:
        # Each can end: one way through it has no reference.
        schema["$defs"] = {name: {"anyOf": [{"type": "null"}, random_schema(r, 2, refs)]} for name in ("one", "two")}
    texts, values = [], []
    for _ in range(8):
        try:
            value = instance(r, schema, schema)
        except TooDeep:
            continue
        if jsonschema.Draft202012Validator(schema).is_valid(value):
            values.append(value)
            texts.append(spell(r, value))
    return {"schema": schema, "texts": texts, "walks": 4, "seed": seed}


def differences(question, answer, plant):
    """Lines that say what is wrong."""
    schema = question["schema"]
    if "error" in answer:
        return [f"refused: {answer['error']}: {json.dumps(schema)}"]
    wrong = [f"not taken: {text!r} by {json.dumps(schema)}"
             for text, taken in zip(question["texts"], answer["taken"]) if not taken]
    for text in answer["walks"]:
        if plant == "text":
            text += "]"
        try:
            jsonschema.Draft202012Validator(schema).validate(json.loads(text))
        except (json.JSONDecodeError, jsonschema.ValidationError) as error:
            wrong.append(f"walked to {text!r} by {json.dumps(schema)}: {str(error).splitlines()[0]}")
    return wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--driver", required=True)
    parser.add_argument("--schemas", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plant", choices=["text", "instance"])
    options = parser.parse_args()
    driver = subprocess.Popen([options.driver], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8")
    wrong, texts, walks = [], 0, 0
    for i in range(options.schemas):
        question = make_question(random.Random(options.seed * 1_000_000 + i), i)
        if options.plant == "instance":
            question["texts"] = [text + " " for text in question["texts"]]
        driver.stdin.write(json.dumps(question) + "\n")
        driver.stdin.flush()
        answer = json.loads(driver.stdout.readline())
        wrong += differences(question, answer, options.plant)
        texts += len(question["texts"])
        walks += len(answer.get("walks", ()))
    driver.stdin.close()
    driver.wait()
    for line in wrong[:20]:
        print(line)
    print(f"{options.schemas} schemas, {texts} instances, {walks} walks: {len(wrong)} wrong")
    sys.exit(1 if wrong or texts == 0 or walks == 0 else 0)


if __name__ == "__main__":
    main()
