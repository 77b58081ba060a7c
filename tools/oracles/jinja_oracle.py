#!/usr/bin/env python3
"""Holds Rondo's templates against Python's jinja2, set up as transformers sets it up.

Renders seeded conversations through every template, and a list of small expressions, with both; the texts must be
identical, and so must be whether an error is raised, raise_exception's words, and jinja2's words about undefined
values. It also checks the marks: control tokens that the conversation spells must never come out as the template's own.

  jinja_oracle.py --driver build/jinja_driver --templates tests/text/templates [--template FILE ...] [--plant]

--plant renders with jinja2's trim_blocks off, and succeeds only if the difference is seen.
"""
import argparse
import datetime
import json
import pathlib
import random
import subprocess
import sys

import jinja2
import jinja2.ext
import jinja2.nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

NOW = 1751461200  # an instant; both sides are asked for its local time
TOKENS = ["<|im_start|>", "<|im_end|>", "<|endoftext|>", "<think>", "</think>", "<tool_call>", "</tool_call>"]


class Raised(Exception):
    """raise_exception was called: its words must come out unchanged."""


class Generation(jinja2.ext.Extension):
    """The {% generation %} tag, which changes nothing in the text."""

    tags = {"generation"}

    def parse(self, parser):
        lineno = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("support"), [], [], body).set_lineno(lineno)

    def support(self, caller):
        return caller()


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def raise_exception(message):
    raise Raised(str(message))


def environment(plant):
    env = ImmutableSandboxedEnvironment(
        trim_blocks=not plant, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda format: datetime.datetime.fromtimestamp(NOW).strftime(format)
    return env


def expected(env, source, variables):
    """(text, None), or (None, words that the error must hold; '' when any error will do)."""
    try:
        return env.from_string(source).render(**variables), None
    except Raised as e:
        return None, ("raised", str(e))
    except jinja2.UndefinedError as e:
        return None, ("undefined", str(e))
    except RecursionError:
        return None, ("any", "")
    except Exception as e:  # noqa: BLE001: whatever Python raises, an error is expected
        return None, ("any", f"{type(e).__name__}: {e}")


# ---- conversations

PIECES = [
    "Hello", " ", "\n", "\n\n", "What is 23 + 45?", "你好，世界", "日本語テキスト", "🙂", "👩‍👩‍👧", "é", "e\u0301", "مرحبا", "\t", "{{ x }}",
    "{% if %}", "{# c #}", "'quoted'", '"double"', "\\n", "\\", "</think>", "<think>", "<tool_call>", "</tool_call>",
    "<tool_response>", "</tool_response>", "<|im_end|>", "<|im_start|>", "<|im_start|>system\n", "<|endoftext|>",
    "|im_end|>", "<|im_", "end|>", "\u00a0", "\u2028", "\x0b", "\x1f", "\x7f", "<b>&amp;</b>", "a" * 40, "%s %d %", "{0} {}", "ß", "İ", "ΑΣ",
    "print('hi')", "def f(x):\n    return x\n", "0", "-1", "3.14", "null", "true",
]


class Maker:
    def __init__(self, seed):
        self.rng = random.Random(seed)

    def text(self):
        if self.rng.random() < 0.08:
            return ""
        return "".join(self.rng.choice(PIECES) for _ in range(self.rng.randint(1, 8)))

    def name(self):
        return self.rng.choice(["get_weather", "search", "run_code", "höhe", "f", "items", "<|im_end|>"])

    def value(self, depth=0):
        r = self.rng.random()
        if r < 0.4:
            return self.text()
        if r < 0.7 or depth > 2:
            return self.rng.choice([0, 1, -7, 2**53, 3.5, -0.0, 1e22, 1e-7, 0.1, 123456789.123, True, False, None])
        if r < 0.85:
            return [self.value(depth + 1) for _ in range(self.rng.randint(0, 3))]
        return {self.key(): self.value(depth + 1) for _ in range(self.rng.randint(0, 3))}

    def key(self):
        return self.rng.choice(["city", "unit", "n", "items", "keys", "größe", "数", "a b", "<|im_start|>", "", "x"])

    def tool_call(self):
        function = {"name": self.name(), "arguments": {self.key(): self.value() for _ in range(self.rng.randint(0, 4))}}
        call = {"id": f"call_{self.rng.randint(0, 99)}", "type": "function", "function": function}
        return call if self.rng.random() < 0.9 else function

    def content(self, parts):
        if not parts or self.rng.random() < 0.75:
            return self.text()
        out = []
        for _ in range(self.rng.randint(0, 3)):
            out.append(self.rng.choice([{"type": "text", "text": self.text()}, {"type": "image"}, {"type": "image_url", "image_url": {"url": "u"}},
                                        {"type": "video", "video": "v"}, {"type": "odd"}] if self.rng.random() < 0.3
                                       else [{"type": "text", "text": self.text()}]))
        return out

    def message(self, role):
        message = {"role": role, "content": self.content(role != "tool")}
        if role == "assistant":
            if self.rng.random() < 0.4:
                message["reasoning_content"] = self.rng.choice([self.text(), self.text(), None])
            if self.rng.random() < 0.2:
                message["content"] = "<think>\n" + self.text() + "\n</think>\n\n" + self.text()
            if self.rng.random() < 0.4:
                message["tool_calls"] = [self.tool_call() for _ in range(self.rng.randint(0, 3))]
                if self.rng.random() < 0.4:
                    message["content"] = self.rng.choice([None, ""])
        if self.rng.random() < 0.02:
            message.pop("content")
        return message

    def messages(self):
        roles = []
        if self.rng.random() < 0.5:
            roles.append("system")
        if self.rng.random() < 0.15:
            roles.append("developer")
        for _ in range(self.rng.randint(1, 4)):
            roles.append("user")
            if self.rng.random() < 0.8:
                roles.append("assistant")
            if self.rng.random() < 0.4:
                roles += ["tool"] * self.rng.randint(1, 3)
                roles.append("assistant")
        if self.rng.random() < 0.05:
            self.rng.shuffle(roles)
        if self.rng.random() < 0.03:
            roles.append("narrator")
        return [self.message(role) for role in roles] if self.rng.random() > 0.01 else []

    def schema(self, depth=0):
        kind = self.rng.choice(["string", "integer", "number", "boolean", "array", "object", ["string", "null"]])
        out = {"type": kind}
        if self.rng.random() < 0.6:
            out["description"] = self.text()
        if self.rng.random() < 0.2:
            out["enum"] = [self.value(3) for _ in range(3)]
        if kind == "array" and self.rng.random() < 0.8:
            out["items"] = self.schema(depth + 1) if depth < 2 else {"type": "string"}
        if kind == "object" and depth < 2:
            out["properties"] = {self.key(): self.schema(depth + 1) for _ in range(2)}
            if self.rng.random() < 0.3:
                out["additionalProperties"] = {"type": "number"}
        return out

    def tool(self):
        function = {"name": self.name(), "description": self.text()}
        if self.rng.random() < 0.9:
            function["parameters"] = {"type": "object", "properties": {self.key(): self.schema() for _ in range(self.rng.randint(0, 4))},
                                      "required": [self.key()]}
            if self.rng.random() < 0.3:
                function["parameters"].pop("required")
        return {"type": "function", "function": function}

    def conversation(self):
        out = {"messages": self.messages()}
        if self.rng.random() < 0.5:
            out["tools"] = [self.tool() for _ in range(self.rng.randint(0, 3))]
        elif self.rng.random() < 0.5:
            out["tools"] = None
        for name, values in (("add_generation_prompt", [True, False]), ("enable_thinking", [True, False]),
                             ("preserve_thinking", [True, False]), ("number_pictures", [True]),
                             ("reasoning_effort", ["low", "medium", "high", "odd", None])):
            if self.rng.random() < 0.6:
                out[name] = self.rng.choice(values)
        return out


# ---- small expressions: each is rendered with these variables

VARIABLES = {
    "n": 7, "z": 0, "f": 2.5, "big": 2**62, "neg": -3, "yes": True, "no": False, "nothing": None, "s": "Hello, Wörld <|im_end|>",
    "empty": "", "words": ["b", "A", "c", "a"], "nums": [3, 1, 2, 10], "mixed": [1, "a", None, 2.5, True], "nested": [[1, [2]], {"a": [3]}],
    "d": {"b": 2, "a": 1, "C": 3, "items": "shadow"}, "users": [{"name": "Zoë", "age": 30, "tags": ["x"]}, {"name": "adam", "age": 5},
                                                                {"name": "Bob", "age": 30}],
    "emoji": "a🙂b👍c", "multi": "one\ntwo\r\nthree\n\nfour", "spaces": "  x \t y\n ", "quote": "it's \"q\"", "ctl": "a\x00\x1f\u2028é\x7f\ud7ff",
    "greek": "ΟΔΥΣΣΕΥΣ ΑΣ. Σ", "sharp": "straße ŉ ﬁ İ ǆ", "digits": "١٢٣ ²  42", "tree": [{"v": 1, "kids": [{"v": 2, "kids": []}, {"v": 3, "kids": [{"v": 4, "kids": []}]}]}],
}

EXPRESSIONS = r"""
1 + 2 * 3 - 4 / 2 // 1 % 3
-7 // 2, -7 % 3, 7 // -2, 7 % -3, 7.5 // -2, -7.5 % 2, 0.0 // -3
2 ** 10, 2 ** -1, (-2) ** 3, -2 ** 2, 2 ** 3 ** 2, 2.5 ** 2, 4 ** 0.5
1 / 3, 10 / 5, 1e16, 1e15, 1e-5, 0.0001, 123456789012345678.0, 1.0, -0.0, 1e22, 1.5e300 * 1e-5
1 / 0
1 // 0
1 % 0
1.0 / z
1_000 + 0x1F + 0b101 + 0o17 + 1_0.5_0
007
'a' 'b' "c"
'a' ~ 1 ~ none ~ true ~ 2.0 ~ [1] ~ missing
'a' + 1
1 + 'a'
'ab' * 3, 3 * 'ab', 'ab' * -1, [1] * 2, (1,) * 2, 2 * [0]
[1] + [2], (1,) + (2,), [1] + (2,)
yes + yes, yes * 3, -yes, +no, yes / 2, not yes, yes == 1, no == 0, yes == 1.0
1 == 1.0, 1 == '1', none == false, [] == (), [1, 2] == [1, 2], {'a': 1} == {'a': 1.0}, {'a': 1, 'b': 2} == {'b': 2, 'a': 1}
1 < 2 < 3, 1 < 3 < 2, 'a' < 'b', 'Z' < 'a', [1, 2] < [1, 3], (1,) < (1, 0), 'é' > 'z', 1 <= 1 >= 1 != 2
1 < 'a'
none < 1
[1] < (1,)
1 in nums, 5 not in nums, 'a' in d, 'ell' in s, '' in '', 'x' in [], 1 in (1, 2), 2 in range(3), 1.0 in nums
1 in 'abc'
1 in 5
[] in d
none and 1, 0 or 'x', '' or none, 1 and 2, not none, not not 1, missing or 'd', missing and 1
'yes' if n > 5 else 'no', 'x' if no, ('x' if no) is defined, 1 if no else 2 if no else 3
missing, missing | default('d'), missing.x is defined
missing.x
missing['x']
missing()
missing + 1
missing == missing2, missing == none, missing != 1, not missing, missing | length, missing | list, missing ~ 'x'
missing < 1
-missing
nothing.x
nothing.x.y
d.missing.more
d['missing']['more']
users[0].nope.nope
users[99]
users[99].name
n.foo, n.foo is undefined
n.foo.bar
s.foo.bar
[1,2].foo.bar
(1,2)['x'].bar
users[5]['x']
d.items() | list, d.keys() | list, d.values() | list, d.get('a'), d.get('q'), d.get('q', 5), d['items'], d.a, d['C']
d.keys(), d.values(), d.items()
d.pop('a')
d.update({'x': 1})
d.clear is defined, d.setdefault is undefined
nums.append(4)
nums.sort is defined, nums.index(2), nums.count(3), (1, 1).count(1)
nums.index(77)
s.__class__
d.__class__.__name__
s.__class__ is defined, d['__init__'] is defined, {'_x': 1}._x, {'__y': 1}.__y
nums[0], nums[-1], nums[1:], nums[:2], nums[::-1], nums[::2], nums[-2:], nums[5:], nums[:-1], nums[3:0:-1], nums[-100:100]
nums[::0]
nums['a':]
d[1:2]
s[0], s[-1], s[1:4], s[::-1], s[:5], emoji[1], emoji[::-1], emoji[1:4], emoji[-1], s[100] is defined, s[3:1], emoji[::2]
nested[0][1][0], nested[1].a[0], nested[1]['a'], users.0.name, users.0['name'], nested.0.1.0
mixed, nested, d, (1,), (), [], {}, (1, 2), [none, true], {'a': none}, [1.0, 'x', "it's", 'q"', quote]
[ctl], ['\\', '\n\t\r', 'é🙂', '\x7f\x80\xa0\xad']
'\x41\u00e9\U0001F642\101\a\b\f\v\q\é\🙂\
z'
"it's" ~ 'say "hi"', '\'', "\""
range(5) | list, range(2, 5) | list, range(10, 0, -3) | list, range(3), range(1, 10, 2), range(5)[1], range(5)[-1], range(10)[2:5] | list, range(10)[::-2] | list
range(0)| list, range(3) | length, range(3) == range(3), range(100000) | length
range(100001)
range('a')
range()
dict(a=1, b=2), dict([('x', 1), ('y', 2)]), dict({'a': 1}, b=3), dict()
dict(1)
namespace(a=1).a, namespace(), namespace(x=[1]), namespace(a=1).b is defined
namespace(a=1)['a'] is defined
joiner() is callable, range is callable, n is callable, missing is callable, d is callable
cycler(1, 2).next(), cycler(1, 2).current
cycler()
lipsum is callable
s | upper, s | lower, s | title, s | capitalize, 'foo-bar (baz) x{y' | title, "it's mcDonald" | title, 5 | upper, none | lower
greek | lower, greek | upper, greek | title, greek | capitalize, sharp | upper, sharp | title, sharp | lower, sharp | capitalize, greek.title(), sharp.title(), sharp.swapcase()
spaces | trim, 'xxaxx' | trim('x'), 'abcba' | trim('ab'), 5 | trim, '\u00a0x\u3000' | trim
s | length, emoji | length, nums | count, d | length, 5 | string | length
n | length
none | length
words | join, words | join('-'), nums | join(', '), users | join(',', attribute='name'), 'abc' | join('.'), mixed | join('/'), d | join
5 | join
words | first, words | last, [] | first, [] | last, 'abc' | first, 'abc' | last, d | first, d | last, '' | first
[] | first | upper, ([] | first) is undefined
([] | first).x
5 | first
missing | default, missing | d('x'), '' | default('x'), '' | default('x', true), 0 | default(5, boolean=true), none | default(1), d.q | default('z')
'aXbXc' | replace('X', '-'), 'aaa' | replace('a', 'b', 2), 'abc' | replace('', '-'), 5 | replace('5', '6'), 'abc' | replace('b', '')
s.replace('l', 'L'), s.replace('l', 'L', 1), 'abc'.replace('', '.', 2), 'x'.replace('x', '🙂')
s.replace(1, 2)
'abc' | list, d | list, 5 | string, 2.0 | string, [1] | string, none | string, true | string
5 | list
'42' | int, '42.7' | int, 'x' | int, 'x' | int(7), '0x1f' | int(0, 16), 'ff' | int(base=16), 3.9 | int, -3.9 | int, true | int, none | int, ' 12 ' | int, '1_000' | int, '-5' | int, '1e3' | int, '' | int, [] | int(3)
missing | int
'3.5' | float, 'x' | float, 'x' | float(1.5), 2 | float, true | float, '1e5' | float, ' 1 ' | float, 'inf' | float, none | float, '1_0.5' | float, '-2.50' | float
2.5 | round, 3.5 | round, 2.567 | round(2), 2.5 | round(0, 'ceil'), 2.567 | round(1, 'floor'), 5 | round, 1234 | round(-2), 2.675 | round(2), -2.5 | round, 0.5 | round, 1250 | round(-2), 2.34 | round(method='ceil'), 7 | round(1, 'ceil'), 1e300 | round(3)
'x' | round
2.5 | round(1, 'odd')
-5 | abs, 5.5 | abs, true | abs, -2.5 | abs
'x' | abs
nums | reverse | list, 'abc' | reverse, emoji | reverse, d | reverse | list, (1, 2) | reverse | list, range(3) | reverse | list, nums | map('string') | reverse
5 | reverse
words | sort, nums | sort, nums | sort(reverse=true), words | sort(case_sensitive=true), users | sort(attribute='age') | map(attribute='name') | list, users | sort(attribute='age,name') | map(attribute='name') | join(','), users | sort(attribute='name', reverse=true) | map(attribute='name') | list, 'cab' | sort, d | sort
mixed | sort
[1, 1.0, true, 'a', 'A', 'b'] | unique | list, words | unique | list, ['x', 'X'] | unique(case_sensitive=true) | list, users | unique(attribute='age') | map(attribute='name') | list
[[1], [1]] | unique | list
nums | map('string') | list, words | map('upper') | list, users | map(attribute='name') | list, users | map(attribute='zip', default='?') | list, users | map(attribute='tags.0') | list, [' a ', 'b'] | map('trim') | join('|'), [1.234, 5] | map('round', 1) | list, missing | map('upper') | list, words | map('replace', 'a', 'z') | list, [[3, 1], [2]] | map('sort') | list, nested | map('first') | list
words | map('nofilter') | list
words | map | list
nums | select('odd') | list, nums | reject('odd') | list, mixed | select | list, mixed | reject | list, nums | select('gt', 2) | list, nums | select('divisibleby', 3) | list, nums | select('in', [1, 2]) | list, mixed | select('string') | list, nums | select('==', 3) | list
nums | select('notest') | list
users | selectattr('age', 'gt', 10) | map(attribute='name') | list, users | selectattr('tags') | list | length, users | rejectattr('age', 'equalto', 30) | map(attribute='name') | list, users | selectattr('tags', 'defined') | list | length, users | rejectattr('tags', 'undefined') | list | length, users | selectattr('name', 'eq', 'Bob') | first, users | selectattr('nope.deep') | list
nums | selectattr | list
d | items | list, missing | items | list, d | dictsort, d | dictsort(true), d | dictsort(by='value'), {'b': 1, 'a': 2} | dictsort(reverse=true), {'x': 'B', 'y': 'a'} | dictsort(false, 'value')
5 | items | list
d | dictsort(by='x')
5 | dictsort
nums | batch(3) | list, nums | batch(3, 0) | list, nums | slice(3) | list, nums | slice(3, 'x') | list, [] | batch(2) | list, range(7) | slice(3) | list, [] | slice(2) | list
nums | slice(0) | list
nums | sum, nums | sum(start=10), users | sum(attribute='age'), [1.5, 2] | sum, [] | sum, [[1], [2]] | sum(start=[]), nums | sum(none, 5)
words | sum
nums | min, nums | max, words | min, words | max, words | max(case_sensitive=true), users | min(attribute='age'), users | max(attribute='age'), [] | min, d | max
mixed | min
users | groupby('age'), users | groupby('age') | map('first') | list, users | groupby('age') | map(attribute='grouper') | list, users | groupby('name') | map(attribute='list') | list, users | groupby('tags', default='-') | list | length if false else 1, words | groupby(0)
multi | indent, multi | indent(2, true), multi | indent(2, blank=true), multi | indent('> '), 'x' | indent, '' | indent(first=true), multi | indent(width=0)
5 | indent
'foo bar baz qux' | truncate(9), 'foo bar baz qux' | truncate(9, true), 'foo bar baz qux' | truncate(11), 'foo bar baz qux' | truncate(11, false, '...', 0), 'abc' | truncate, 'foo bar' | truncate(5, false, '', 0)
'foo' | truncate(2)
'foo bar-baz a_b 1 é' | wordcount, '' | wordcount, emoji | wordcount, 'x' | center(5), 'ab' | center(5), 'é' | center(4), 'abc' | center(2), '' | center(3)
'<a href="x">&\'</a>' | escape, '<b>' | e, '<b>' | safe, s | safe, 5 | escape, '<' | escape | escape, '<' | forceescape
'%s-%s' | format(1, 'x'), '%(a)s' | format(a=2), '%d %05d %5.2f %-5s| %+d %x %X %o %e %g %c %% %r' | format(5, 42, 3.14159, 'ab', 7, 255, 255, 8, 12345.678, 0.0001, 'z', 'q'), '%5s|%-5s|%.2s' | format('a', 'b', 'cde'), '%s' | format([1, 'a']), '%*d' | format(5, 3), '%i' | format(3.99), '%#x %#o' | format(255, 8), '% d' | format(5), '%s' | format(none), '%c' | format(65), '%G' | format(1e-10), '%.3g' | format(1234567), '%05.1f|%-8.3e|' | format(-2.34, 12345.6789), '%06x' | format(-255), '%s %s' | format(true, 1.0)
'%d' | format('x')
'%s %s' | format(1)
'%s' | format(1, 2)
'%q' | format(1)
'%' | format(1)
'%(a)s' | format(1)
'%s' % 5, '%s %s' % (1, 2), '%(x)s' % {'x': 1}, '%s' % [1], 'x' % [1], 'x' % {}, '%s' % missing, '%%' % ()
'x' % 1
'{} {}'.format(1, 'a'), '{0}{1}{0}'.format(1, 2), '{a} {b!r}'.format(a=1, b='x'), '{:>5}|{:<5}|{:^5}|{:*^7}'.format('a', 'b', 'c', 'd'), '{:05d} {:+d} {:x} {:#X} {:b} {:,} {:_}'.format(42, 7, 255, 255, 5, 1234567, 1234567), '{:.2f} {:8.3f} {:e} {:g} {:.1%} {:,.2f}'.format(3.14159, 2.5, 12345.0, 0.5, 0.256, 1234567.891), '{{}} {0[a]} {1[0]}'.format({'a': 1}, [2]), '{:{}}'.format('x', 5), '{!s:>4}'.format(5), '{:.2}'.format('abc'), '{}'.format(none), '{:>6}'.format(2.5), '{:d}'.format(true), '{:=+6d}'.format(5), '{:0>4}'.format(7), '{0.real}'.format if false else 1
'{} {}'.format(1)
'{0} {}'.format(1, 2)
'{a}'.format(1)
'{:d}'.format('x')
'{:5}'.format(none)
'{'.format(1)
'}'.format(1)
'{0.__class__}'.format(1) == ''
'a,b,,c'.split(','), 'a b  c '.split(), 'a,b,c'.split(',', 1), 'a b c'.split(none, 1), ' a b '.split(' '), ''.split(), ''.split(','), 'abc'.split('bc'), 'a\u3000b\x85c'.split(), 'aXXbXX'.split('XX'), 'a b c '.split(maxsplit=1), 'x'.split(sep='y')
'a'.split('')
'a'.split(1)
'a,b,c'.rsplit(',', 1), ' a b  c '.rsplit(), ' a b  c '.rsplit(none, 1), 'a,b,c'.rsplit(','), 'aaa'.rsplit('aa'), 'x'.rsplit(',')
multi.splitlines(), multi.splitlines(true), ''.splitlines(), 'a\u2028b\x0bc\x1cd\x85e'.splitlines(), 'a\n'.splitlines(), '\r\n\n'.splitlines()
'abc'.partition('b'), 'abc'.partition('x'), 'abcb'.rpartition('b'), 'abc'.rpartition('x')
' x '.strip(), 'xax'.strip('x'), 'xax'.lstrip('x'), 'xax'.rstrip('x'), '\n\nx\n'.strip('\n'), '🙂a🙂'.strip('🙂'), 'abcab'.strip('ba'), 'x'.strip(none), ''.strip()
' x'.strip(1)
s.startswith('Hel'), s.startswith(('x', 'H')), s.endswith('>'), s.endswith(('a', 'b')), s.startswith('ello', 1), 'abc'.endswith('b', 0, 2), ''.startswith(''), 'a'.startswith('', 5), s.startswith('')
s.startswith(1)
s.startswith(['a'])
s.find('l'), s.rfind('l'), s.find('x'), s.find('l', 4), emoji.find('b'), emoji.rfind('c'), s.index('o'), s.count('l'), 'aaa'.count('aa'), 'abc'.count(''), emoji.find('👍', 2), 'abc'.find('', 3), 'abc'.find('', 4), 'abc'.find('c', -1), s.rindex('o')
s.index('zzz')
'-'.join(['a', 'b']), ''.join([]), ', '.join(words), '-'.join('abc'), '.'.join(d)
'-'.join([1])
'-'.join(5)
s.upper(), s.lower(), s.title(), s.capitalize(), s.swapcase(), "it's a dog's".title(), 'ǆ'.title()
'abc'.isalpha(), ''.isalpha(), 'a1'.isalnum(), '12'.isdigit(), '²'.isdigit(), '²'.isdecimal(), '½'.isnumeric(), '五'.isnumeric(), ' '.isspace(), ''.isspace(), 'é'.isalpha(), '你'.isalpha(), '_'.isalnum(), digits.isdigit(), 'a'.isascii(), 'é'.isascii()
'abc'.islower(), 'Abc'.islower(), 'ABC'.isupper(), 'A1'.isupper(), '1'.islower(), ''.isupper(), 'Abc Def'.istitle(), 'abc'.istitle(), 'é'.islower(), 'a\n'.isprintable(), 'ab'.isprintable(), 'ª'.islower(), 'ǅ'.isupper()
'abc'.removeprefix('a'), 'abc'.removesuffix('bc'), 'abc'.removeprefix('x'), 'abc'.removesuffix(''), '5'.zfill(3), '-5'.zfill(4), '+'.zfill(3), 'abc'.zfill(2), 'a'.center(4), 'a'.center(5, '*'), 'a'.ljust(3, '.'), 'a'.rjust(3), 'ab'.center(5, 'é')
'a'.center(5, 'xx')
'a'.nope()
'a'.upper(1)
'a'.split(foo=1)
'a'()
5()
d | tojson, mixed | tojson, s | tojson, nested | tojson, quote | tojson, ctl | tojson, emoji | tojson, 1.0 | tojson, 1e22 | tojson, true | tojson, none | tojson, [] | tojson, {} | tojson, (1, 2) | tojson, 'inf' | float | tojson, '</script>' | tojson
d | tojson(indent=2), nested | tojson(indent=4), [] | tojson(indent=2), {'a': {}} | tojson(indent=1), [1, [2]] | tojson(indent=0), [1] | tojson(indent='--'), d | tojson(sort_keys=true), d | tojson(separators=(',', ':')), emoji | tojson(ensure_ascii=true), ctl | tojson(ensure_ascii=true), d | tojson(indent=2, separators=(' ,', ' :'))
{1: 'a', 2.5: 'b', true: 'c', none: 'd'} | tojson, {1: 1, 'x': 2} | tojson(indent=2), {2: 1, 1: 2} | tojson(sort_keys=true)
{(1, 2): 3} | tojson
{1: 1, 'x': 2} | tojson(sort_keys=true)
missing | tojson
range(3) | tojson
[missing] | tojson
[missing], {'a': missing}
{[1]: 2}
{1: 'a', 1.0: 'b', true: 'c'}, {'a': 1, 'a': 2}, {none: 1}, {(1, 2): 3}[(1, 2)], {1: 'x'}[true], {1: 'x'}[1.0]
n is defined, missing is defined, missing is undefined, none is none, n is none, s is string, n is string, n is number, yes is number, f is number, n is integer, yes is integer, f is float, n is float, yes is boolean, n is boolean, yes is true, no is false, 1 is true
d is mapping, [] is mapping, s is sequence, d is sequence, n is sequence, nums is iterable, n is iterable, s is iterable, none is iterable, missing is iterable, missing is sequence, (d | items) is sequence, (d | items) is iterable, range(2) is sequence, d.keys() is sequence
3 is odd, 4 is even, 9 is divisibleby 3, 9 is divisibleby(2), 'abc' is lower, 'ABC' is upper, 'Ab' is lower, 5 is lower, 2 is eq 2, 2 is equalto 2, 2 is ne 3, 2 is lt 3, 2 is gt 3, 2 is le 2, 2 is ge(3), 2 is greaterthan 1, 2 is lessthan 1, 2 is sameas 2, none is sameas none, yes is sameas true, 1 is sameas true, 'a' is in 'abc', 2 is in [1, 2], 2 is not in [1], nums is sameas nums
'x' is odd
'upper' is filter, 'nope' is filter, 'odd' is test, 'nope' is test, '<' | safe is escaped, 'x' is escaped
n is not defined, not n is defined, n is defined and n > 3, n is divisibleby 7 and yes, 3 is odd is true
n is nosuchtest
n | nosuchfilter
'ok' if yes else (n | nosuchfilter)
n if n is nosuchtest else 2
s | attr('upper') is callable, d | attr('a') is defined, s | attr('__class__') is defined, namespace(q=1) | attr('q')
(1, 2)[0], (1, (2, 3))[1][1], 1, 2
(1,), (), ((1, 2),), (n), [(1)], 1 if yes else 2, 3
'a' if missing is defined and missing.x else 'b'
{'a': 1}.a, {'a': {'b': 2}}.a.b, {'a': 1}['b'] is defined, {'x': 1,}, [1,], (1,)
[x for x in nums]
{% set x = 1 %}
1 +
(1
[1, 2
{'a' 1}
1 2
'abc
n..x
n.5
n[]
f(a=1, 2)
f(**d, *nums)
n is
n |
a = 1
{{ 1 }}
1 if
x.y.
@
-n, +n, --n, - n ** 2, -'1' | int, -1 | abs, (-1) | abs, 1 - -1, +f
-s
not 1 == 2, not (1 in nums), 1 + 1 ~ 1 + 1, 2 * 3 ~ 4, 1 ~ 2 * 3, '5' * 2 | int, 5 | string * 2
'a' in 'abc' and 'b' not in 'xyz', 1 in [1] == true, not 'a' in 'b'
big * 2.0, big + 0.5, 10 ** 18, 9223372036854775807, -9223372036854775807 - 1
1e308 * 10, -1e308 * 10, 2.0 ** 1000
2.0 ** 10000
0 ** 0, 0.0 ** 0
0 ** -1
strftime_now('%Y-%m-%d'), strftime_now('%d %b %Y %H:%M:%S %j %p %f %%'), strftime_now(''), strftime_now('x')
strftime_now(5)
raise_exception('my words: ' ~ n)
raise_exception(s)
raise_exception()
loop
loop.index
caller()
self is defined if false else 1
varargs, kwargs
none | tojson ~ 'x', 'x' ~ d | length, 1 + nums | length
words | map('upper') | map('lower') | select('in', ['a', 'b']) | list | length
(nums | map('string')) | first, (nums | select) | list | last
nums | map('string') | length
nums | map('string') | last
(nums | map('string'))[0] is defined
1 in (nums | map('int')), 'x' in (nums | map('string'))
users | map(attribute='name') | map('length') | sum
"a" "b" | upper, ("a" "b") | upper, "x" ~ "y" | upper
[1, 2, 3][1:][0], 'abc'[1:][0], users[0]['name'][0], users[-1].name[-1], d['a':'b'] if false else 0
yes is true and no is false, True, False, None, true == True
1.5 | int + 1, '5' | int * '2' | int, (1, 2) | length, [[], [1]] | map('length') | list
{'k': [1, {'z': 'é'}]} | string, [0.1, 1e100, -0.0], [true, none], {'a': {'b': []}} ~ ''
'abc' | batch(2) | list, 'abc' | slice(2) | list, 'hello' | map('upper') | join, 'ab' | sum(start=[]) if false else 0
'x' | default('y', boolean=1), '' | d('y', 1), missing | default(missing2) is undefined
""".strip("\n").replace("\\\nz", "\\\x00z").split("\n")
EXPRESSIONS = [e.replace("\x00", "\n") for e in EXPRESSIONS]

STATEMENTS = [
    "{% set x = 1 %}{% for i in nums %}{% set x = x + i %}{{ x }},{% endfor %}{{ x }}",
    "{% set ns = namespace(x=0) %}{% for i in nums %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}",
    "{% set d.x = 1 %}", "{% set missing.x = 1 %}", "{% set a, b = 1, 2 %}{{ a }}{{ b }}", "{% set a, (b, c) = 1, (2, 3) %}{{ a + b + c }}",
    "{% set a, b = [1] %}", "{% set a, b = 5 %}", "{% set a, b = 'xy' %}{{ b }}", "{% set a, b = [1, 2, 3] %}", "{% set a = 1, 2 %}{{ a }}",
    "{% set x %}a{{ n }}b{% endset %}{{ x | upper }}", "{% set x | upper | replace('A', 'z') %}a{{ n }}b{% endset %}{{ x }}",
    "{% if yes %}{% set y = 5 %}{% endif %}{{ y }}", "{% if no %}{% set y = 5 %}{% endif %}{{ y }}|{{ y is defined }}",
    "{% for x in nums %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }};{% endfor %}",
    "{% for x in nums %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }} {{ loop.changed(x > 2) }} {{ loop.cycle('a', 'b', 'c') }}{% endfor %}",
    "{% for x in nums %}{{ loop.previtem.y }}{% endfor %}", "{% for x in nums %}{{ loop.nope }}{% endfor %}", "{% for x in nums %}{{ loop.nope.x }}{% endfor %}",
    "{% for x in [] %}a{% else %}b{% endfor %}", "{% for x in missing %}a{% else %}b{% endfor %}", "{% for x in 5 %}a{% endfor %}", "{% for x in none %}a{% endfor %}",
    "{% for k in d %}{{ k }}{% endfor %}{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}{% for k, v in d | items %}{{ k }}{% endfor %}", "{% for a, b in nums %}{% endfor %}",
    "{% for x in nums if x > 1 %}{{ x }}/{{ loop.length }}{% else %}none{% endfor %}", "{% for x in nums if x > 100 %}{{ x }}{% else %}none{% endfor %}",
    "{% for x in nums %}{% if x == 2 %}{% break %}{% endif %}{{ x }}{% endfor %}", "{% for x in nums %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfor %}",
    "{% for x in nums %}{% break %}{% else %}E{% endfor %}", "{% for x in nums %}{% continue %}{% else %}E{% endfor %}", "{% for x in nums %}{% if x < 3 %}{% break %}{% endif %}{% else %}E{% endfor %}",
    "{% break %}", "{% if yes %}{% continue %}{% endif %}", "{% for x in nums %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}",
    "{% for x in nums %}{% for y in nums %}{% if y > x %}{% break %}{% endif %}{{ y }}{% endfor %};{% endfor %}", "{% for x in nums %}{% set t %}{% break %}{% endset %}{% endfor %}done",
    "{% for i in tree recursive %}{{ i.v }}{{ loop.depth }}{% if i.kids %}({{ loop(i.kids) }}){% endif %}{% endfor %}", "{% for i in nums %}{{ loop(nums) }}{% endfor %}",
    "{% for x in nums %}{% for y in words %}{{ loop.index }}{% endfor %}{{ loop.index }}{% endfor %}", "{% for x in 'ab' %}{{ x }}-{% endfor %}", "{% for x in emoji %}{{ x }}-{% endfor %}",
    "{% for loop in nums %}{% endfor %}", "{% for x in nums %}{{ x }}{% endfor %}{{ x is defined }}{{ loop is defined }}", "{% for n in nums %}{{ n }}{% endfor %}{{ n }}",
    "{% macro m(a, b=2, c='x') %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(1) }}{{ m(1, 3) }}{{ m(1, c=5) }}{{ m(a=9, b=8) }}{{ m() }}",
    "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(b=1) }}", "{% macro m(a) %}{{ a }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, 3, x=4) }}",
    "{% macro m(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}{{ m(1, 2) }}", "{% macro m(a) %}{{ a is defined }}{{ a }}{% endmacro %}{{ m() }}", "{% macro m(a) %}{{ a.x }}{% endmacro %}{{ m() }}",
    "{% macro m(a, b) %}{% endmacro %}{{ m(1, a=2) }}", "{% macro m(a=1, b) %}{% endmacro %}", "{% macro f(k) %}{% if k > 0 %}{{ k }}{{ f(k - 1) }}{% endif %}{% endmacro %}{{ f(5) }}",
    "{% macro f(k) %}{{ f(k + 1) }}{% endmacro %}{{ f(0) }}", "{% macro m() %}{{ x }}{% endmacro %}{% set x = 5 %}{{ m() }}", "{% macro m() %}{% set x = 9 %}{{ x }}{% endmacro %}{% set x = 5 %}{{ m() }}{{ x }}",
    "{% macro m() %}[{{ caller() }}]{% endmacro %}{% call m() %}hi {{ n }}{% endcall %}", "{% macro m() %}[{{ caller(1, 2) }}]{% endmacro %}{% call(a, b=5) m() %}{{ a }}{{ b }}{% endcall %}",
    "{% macro m() %}{{ caller is defined }}{% endmacro %}{{ m() }}", "{% macro m() %}{{ caller() }}{% endmacro %}{{ m() }}", "{% macro m() %}x{% endmacro %}{% call m() %}y{% endcall %}", "{% call n %}{% endcall %}",
    "{% call range(3) %}{% endcall %}", "{% macro m(x) %}{{ m.name }}{{ x }}{% endmacro %}{{ m(1) }}{{ m }}", "{% macro m(x) %}{{ x }}{% endmacro %}{{ m(*[1]) }}{{ m(**{'x': 2}) }}{{ m(*nums) }}",
    "{% for i in nums %}{% macro m() %}{{ i }}{{ loop.index }}{% endmacro %}{{ m() }}{% endfor %}", "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}B{% endmacro %}{{ a() }}",
    "{% set fs = [] %}{% for i in nums %}{% macro m() %}{{ i }}{% endmacro %}{% set fs = fs + [m] %}{{ fs[0]() }}{% endfor %}",
    "{% filter upper %}abc {{ s }}{% endfilter %}", "{% filter replace('a', 'b') | upper %}aaa{% endfilter %}", "{% filter trim %}  x  {% endfilter %}|", "{% filter indent(2, true) %}a\nb{% endfilter %}",
    "{% with %}{% set x = 1 %}{{ x }}{% endwith %}{{ x }}", "{% with a = 1, b = n %}{{ a }}{{ b }}{% endwith %}{{ a }}", "{% with n = 1, m = n %}{{ n }}{{ m }}{% endwith %}",
    "{% generation %}a{% set q = 1 %}{{ q }}{% endgeneration %}{{ q }}", "{% print n, s %}", "{% if n > 5 %}a{% elif n > 3 %}b{% else %}c{% endif %}", "{% if no %}a{% elif yes %}b{% elif crash.x %}c{% endif %}",
    "{% if missing %}a{% else %}b{% endif %}", "{% if 1, 2 %}t{% endif %}", "{% if %}{% endif %}", "{% if yes %}", "{% endif %}", "{% for x in nums %}{% endif %}{% endfor %}", "{% nosuch %}", "{% do 1 %}", "{% %}", "{% raw %}",
    "{# open", "{{ open", "{% open", "{% set = 1 %}", "{% set 1 = 1 %}", "{% set none = 1 %}", "{% set x.y.z = 1 %}", "{% set x[0] = 1 %}", "{% for in nums %}{% endfor %}", "{% for 1 in nums %}{% endfor %}", "{% for x nums %}{% endfor %}",
    "{% set x = %}", "{% set x %}", "{% macro %}{% endmacro %}", "{% macro m( %}{% endmacro %}", "{% macro m(a, a) %}{{ a }}{% endmacro %}", "{% set ns = namespace() %}{% set ns.a = 1 %}{% set ns.b = ns.a + 1 %}{{ ns }}",
    "{% set j = joiner('; ') %}{% for x in nums %}{{ j() }}{{ x }}{% endfor %}", "{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }}{{ c.reset() }}{{ c.next() }}",
    "{% raw %}{{ x }}{% endraw %}", "a{%- raw -%} {{ x }} {%- endraw -%} b", "  {% raw %}\n x\n  {% endraw %}\n y", "{% raw %}{% raw %}{% endraw %}", "{%+ raw %} x {%+ endraw +%}\n y",
    "a\n  {% if yes %}\n  b\n  {% endif %}\nc", "a\n  {%+ if yes %}\n  b\n  {%+ endif %}\nc", "a  {%- if yes -%}  b  {%- endif -%}  c", "a\n {{ n }}\n b", "a\n {{- n -}}\n b", "  {# c #}\nx\n  {#- c -#}\n y {#+ z +#}\n w",
    "{% if yes +%}\nx{% endif %}\n\n\n{{ n }}\n", "x\r\ny\rz\n", "\n\n", "x\n", "x\n\n", "\n{% if yes %}\n{% endif %}\n", "{{ '\n' }}x", "{% set x = 'a\nb' %}{{ x }}", "{{\n n\n }}", "{%\nif yes\n%}x{%\nendif\n%}", "{{ {'a': {'b': 1}} }}", "{{ {'a': {'b': 1}}}}",
    "{{ '}}' }}{{ \"%}\" }}", "{{ (1, [2, {3: 4}]) }}", "}} %} #}", "{ { n } }", "{{ n }}{{ n }}", "{%if yes%}x{%endif%}", "{{n}}{{-n-}}{{+n}}", "{{- -n }}", "{{ n -}}\n\n x", "\t {%- set x = 1 %}\t\ny",
    "{% for x in nums -%}\n  {{ x }}\n{%- endfor %}", "{% for x in nums %}\n  {{ x }}\n{% endfor %}", "x{% set y = 1 %}\n\nz", "x {# c #} y", "x\n\t{# c #} y", "{% if yes %} {% endif %}|{% if yes %}\n{% endif %}|",
    "{% if no %}{{ n | nosuchfilter }}{% endif %}ok", "{% if yes %}{{ n | nosuchfilter }}{% endif %}", "{% for x in [] %}{{ n | nosuchfilter }}{% endfor %}ok", "{% if no %}{% for x in [] %}{{ x | nosuchfilter }}{% endfor %}{% endif %}", "{{ 1 if no else 2 }}{{ (n | nosuchfilter) if no }}",
    "{{ loop }}", "{% for x in nums %}{{ loop }}{% endfor %}", "{% set loop = 5 %}{{ loop }}", "{% for x in nums %}{% set loop2 = loop %}{{ loop2.index }}{% endfor %}", "{% set messages = nums[1:] %}{{ messages }}", "{% set n = n + 1 %}{{ n }}",
    "{% for x in nums %}{% if loop.index is divisibleby 2 %}{{ x }}{% endif %}{% endfor %}", "{% for a in [[1, [2, 3]]] %}{% for b, (c, d) in [a] %}{{ b }}{{ c }}{{ d }}{% endfor %}{% endfor %}", "{% for k, g in users | groupby('age') %}{{ k }}:{% for u in g %}{{ u.name }}{% endfor %};{% endfor %}",
    "{% for g in users | groupby('age') %}{{ g.grouper }}{{ g.list | length }}{% endfor %}", "{% set x = nums | map('string') %}{{ x | list }}{{ x | list }}", "{% set x = nums | map('string') %}{{ x | first }}{{ x | first }}{{ x | list }}", "{% for x in nums | map('string') %}{{ loop.length }}{{ loop.revindex }}{{ loop.last }}{% endfor %}",
    "{{ range(3) | list }}{% set range = 5 %}{{ range }}", "{% set items = d.items() %}{% for k, v in items %}{{ k }}{% endfor %}{% for k, v in items %}{{ v }}{% endfor %}", "{% for m in users[::-1] %}{{ m.name }}{{ loop.index0 }}{% endfor %}", "{% include 'x' %}",
    "{% set ns = namespace(found=false) %}{% for u in users %}{% if not ns.found and u.age == 5 %}{% set ns.found = true %}{{ loop.index }}{% endif %}{% endfor %}{{ ns.found }}", "{% set x = [] %}{% if x %}a{% else %}b{% endif %}{% if not x %}c{% endif %}",
    "{{ 'a' if yes }}{{ 'b' if no }}|", "{% set x = ('a' if no) %}{{ x is defined }}{{ x }}", "{{ ('a' if no).x }}", "{{ ([] | first).x }}", "{{ ([] | min).x }}", "{{ d.pop.x }}", "{{ d.pop('a') }}", "{{ s.__class__.x }}", "{{ nums.append }}", "x{#", "x{% raw %}", "x{%", "x{{", "x{{ n", "{#}", "{##}x", "{#-#}x", "{%- if yes -%} {%- endif -%}",
]

# What we refuse in words though Python would do it: integers past 64 bits, complex numbers, addresses in memory,
# other templates, chance, HTML.
REFUSED = ["{{ " + e + " }}" for e in """
big + big
big * 4
9223372036854775807 + 1
9223372036854775808
-9223372036854775807 - 2
10 ** 19
(-8) ** 0.5
d.items
nums | map('upper')
range
lipsum()
nums | random
nums | pprint
s | urlize
s | urlencode
s.encode()
n.real
(s | safe) + s
(s | escape).upper()
""".strip().split("\n")] + ["{% include 'x' ignore missing %}", "{% block b %}{% endblock %}", "{% autoescape true %}{% endautoescape %}"]

UNICODE_METHODS = ["upper()", "lower()", "title()", "capitalize()", "swapcase()", "isalpha()", "isdigit()", "isnumeric()", "isspace()", "islower()", "isupper()", "isprintable()"]


def unicode_sweep():
    """Every assigned code point of the first planes, through the mappings and classes that templates can ask for."""
    import unicodedata

    chars = [chr(c) for c in range(1, 0x20000) if not 0xD800 <= c < 0xE000 and unicodedata.category(chr(c)) not in ("Cn", "Co")]
    for begin in range(0, len(chars), 2000):
        for method in UNICODE_METHODS:
            yield "{% for c in chars %}{{ c." + method + " }},{% endfor %}", {"chars": chars[begin : begin + 2000]}
        yield "{{ chars }}{{ chars | tojson }}", {"chars": chars[begin : begin + 2000]}


def questions(args):
    for path in sorted(pathlib.Path(args.templates).glob("*.jinja")) + [pathlib.Path(t) for t in args.template]:
        source = path.read_text(encoding="utf-8")
        maker = Maker(args.seed)
        for i in range(args.conversations):
            yield f"{path.name}, conversation {i}", source, maker.conversation()
    for expression in EXPRESSIONS:
        yield f"{{{{ {expression} }}}}", "{{ " + expression + " }}", VARIABLES
    for source in STATEMENTS:
        yield source, source, VARIABLES
    for source in REFUSED:
        yield source + " (refused)", source, VARIABLES
    if args.unicode:
        for source, variables in unicode_sweep():
            yield source + f" from U+{ord(variables['chars'][0]):04X}", source, variables


def trusted_tokens(answer):
    """The control tokens that lie wholly in trusted bytes, as (position, token)."""
    text = answer["text"].encode()
    untrusted = bytearray(len(text))
    for begin, end in answer["untrusted"]:
        untrusted[begin:end] = b"\1" * (end - begin)
    found = []
    for token in TOKENS:
        at = text.find(token.encode())
        while at >= 0:
            if not any(untrusted[at : at + len(token)]):
                found.append((at, token))
            at = text.find(token.encode(), at + 1)
    return sorted(found)


def defused(value):
    """The same conversation, its control tokens spelled with as many bytes but no longer control tokens."""
    if isinstance(value, str):
        return value.replace("<|", "<!").replace("|>", "!>").replace("think>", "thunk>").replace("tool_call>", "tool_cell>")
    if isinstance(value, list):
        return [defused(v) for v in value]
    if isinstance(value, dict):
        return {defused(k): defused(v) for k, v in value.items()}
    return value


def render_all(driver, asked):
    lines = [json.dumps({"template": s, "variables": v, "now": NOW}, ensure_ascii=True) for _, s, v in asked]
    run = subprocess.run([driver], input="\n".join(lines) + "\n", capture_output=True, text=True, encoding="utf-8", check=False)
    if run.returncode != 0:
        sys.exit(f"jinja_oracle: {driver} ended with {run.returncode}: {run.stderr}")
    # Not splitlines(): a text may hold U+2028.
    return [json.loads(line) for line in run.stdout.split("\n") if line]


def difference(answer, want_text, want_error):
    if want_error is None:
        if "error" in answer:
            return f"ours fails: {answer['error']}"
        return None if answer["text"] == want_text else f"ours:   {answer['text']!r}\njinja2: {want_text!r}"
    kind, words = want_error
    if "error" not in answer:
        return f"ours renders {answer['text']!r}, jinja2 fails: {words}"
    if kind == "raised" and answer["error"] != words:
        return f"ours raises {answer['error']!r}, jinja2 {words!r}"
    if kind == "undefined" and not answer["error"].endswith(words):
        return f"ours says {answer['error']!r}, jinja2 {words!r}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--driver", required=True)
    parser.add_argument("--templates", required=True)
    parser.add_argument("--template", action="append", default=[])
    parser.add_argument("--conversations", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--unicode", action="store_true")
    parser.add_argument("--plant", action="store_true")
    args = parser.parse_args()

    asked = list(questions(args))
    answers = render_all(args.driver, asked)
    if len(answers) != len(asked):
        sys.exit(f"jinja_oracle: {len(asked)} questions, {len(answers)} answers")
    env = environment(args.plant)
    num_different = num_errors = 0
    for (name, source, variables), answer in zip(asked, answers):
        text, error = (None, ("any", "we refuse it")) if name.endswith(" (refused)") else expected(env, source, variables)
        num_errors += error is not None
        found = difference(answer, text, error)
        if found is not None:
            num_different += 1
            if num_different <= 40:
                print(f"-- {name}\n{found}")

    # A token the conversation spells may not become the template's own: as many are there as without it.
    conversations = [q for q in asked if ", conversation " in q[0]]
    with_tokens = {q[0]: a for q, a in zip(asked, answers)}
    without = render_all(args.driver, [(n, s, defused(v)) for n, s, v in conversations])
    num_leaks = num_tokens = 0
    for (name, _, _), quiet in zip(conversations, without):
        loud = with_tokens[name]
        if "error" in loud or "error" in quiet:
            continue
        ours, theirs = trusted_tokens(loud), trusted_tokens(quiet)
        num_tokens += len(ours)
        # Templates branch on what a text holds (</think>), so only a surplus is a leak.
        if len([t for t in ours if "im_" in t[1]]) > len([t for t in theirs if "im_" in t[1]]):
            num_leaks += 1
            print(f"-- {name}: a control token of the conversation came out as the template's own")

    print(f"{len(asked)} renders ({num_errors} of them errors in jinja2 {jinja2.__version__}), {num_different} differ; "
          f"{num_tokens} control tokens of templates, {num_leaks} leaks")
    if args.plant:
        sys.exit(0 if num_different > 0 else "the planted difference was not seen")
    sys.exit(1 if num_different or num_leaks else 0)


if __name__ == "__main__":
    main()
