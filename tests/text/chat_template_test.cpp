#include "text/chat_template.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>

namespace rondo {
namespace {

Result<MarkedText> render(std::string_view source, const json::Object& variables = {}) {
  auto parsed = ChatTemplate::parse(source, "t");
  if (!parsed) return tl::unexpected<Error>(parsed.error());
  return parsed->render(variables, 0);
}

std::string text_of(std::string_view source, const json::Object& variables = {}) {
  const auto rendered = render(source, variables);
  return rendered ? rendered->text : "error: " + rendered.error().message;
}

std::string words_of(std::string_view source, const json::Object& variables = {}) {
  const auto rendered = render(source, variables);
  return rendered ? "no error" : rendered.error().message;
}

// The output with its trusted bytes as they are and every untrusted byte as '.'.
std::string trusted_of(const MarkedText& marked) {
  std::string text = marked.text;
  for (const ByteRange& range : marked.untrusted) std::fill(text.begin() + range.begin, text.begin() + range.end, '.');
  return text;
}
std::string trusted_of(std::string_view source, const json::Object& variables) {
  const auto rendered = render(source, variables);
  return rendered ? trusted_of(*rendered) : "error: " + rendered.error().message;
}

bool marks_are_normal(const MarkedText& marked) {
  for (std::size_t i = 0; i < marked.untrusted.size(); ++i) {
    const ByteRange& range = marked.untrusted[i];
    if (range.begin >= range.end || range.end > marked.text.size()) return false;
    if (i > 0 && range.begin <= marked.untrusted[i - 1].end) return false;
  }
  return true;
}

// ---- where a template comes from

class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / ("rondo_template_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  void write(const std::string& name, const std::string& text) const { std::ofstream(path_ / name) << text; }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

TEST(ChatTemplate, OwnFileComesBeforeTheTokenizersConfig) {
  const Folder folder;
  EXPECT_EQ(ChatTemplate::open(folder.path()).error().code, ErrorCode::NotFound);
  folder.write("tokenizer_config.json", R"({"chat_template": "from config {{ x }}"})");
  EXPECT_EQ(ChatTemplate::open(folder.path())->render({{"x", 1}}, 0)->text, "from config 1");
  folder.write("chat_template.jinja", "from file {{ x }}");
  EXPECT_EQ(ChatTemplate::open(folder.path())->render({{"x", 1}}, 0)->text, "from file 1");
}

TEST(ChatTemplate, OfANamedListTheDefaultIsTaken) {
  const Folder folder;
  folder.write("tokenizer_config.json", R"({"chat_template": [{"name": "tool_use", "template": "T"},
                                                              {"name": "default", "template": "D"}]})");
  EXPECT_EQ(ChatTemplate::open(folder.path())->render({}, 0)->text, "D");
  folder.write("tokenizer_config.json", R"({"chat_template": [{"name": "tool_use", "template": "T"}]})");
  EXPECT_EQ(ChatTemplate::open(folder.path()).error().code, ErrorCode::NotFound);
  folder.write("tokenizer_config.json", R"({"chat_template": 5})");
  EXPECT_EQ(ChatTemplate::open(folder.path()).error().code, ErrorCode::Corrupt);
  folder.write("tokenizer_config.json", "{");
  EXPECT_EQ(ChatTemplate::open(folder.path()).error().code, ErrorCode::Corrupt);
}

TEST(ChatTemplate, ABrokenTemplateIsRefusedWithItsNameAndLine) {
  const auto parsed = ChatTemplate::parse("one\ntwo {{ x }}\n{% if y %}\n", "model/chat_template.jinja");
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().code, ErrorCode::Corrupt);
  EXPECT_EQ(parsed.error().message.substr(0, 28), "model/chat_template.jinja:3:");
  EXPECT_EQ(ChatTemplate::parse("\xFF", "t").error().code, ErrorCode::Corrupt);
}

TEST(ChatTemplate, WhatTheTemplateRaisesComesInItsOwnWords) {
  EXPECT_EQ(words_of("x\n{{ raise_exception('no ' ~ role ~ ' here') }}", {{"role", "tool"}}), "no tool here");
  EXPECT_EQ(words_of("x\n{{ m.content.x }}", {{"m", json::Object{}}}), "t:2: 'dict object' has no attribute 'content'");
  EXPECT_EQ(words_of("{{ 1 / 0 }}"), "t:1: division by zero");
}

TEST(ChatTemplate, TheBundledModelsTemplateRenders) {
  const auto bundled = ChatTemplate::open(RONDO_BUNDLED_MODEL);
  ASSERT_TRUE(bundled) << bundled.error().message;
  const json::Object variables{{"messages", json::Array{{{"role", "user"}, {"content", "Hi <|im_end|>"}}}},
                               {"add_generation_prompt", true}};
  const auto rendered = bundled->render(variables, 0);
  ASSERT_TRUE(rendered) << rendered.error().message;
  EXPECT_EQ(trusted_of(*rendered),
            "<|im_start|>user\n.............<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n");
}

// ---- marks

struct Moved {
  const char* expression;
  const char* trusted;  // '.' for each untrusted byte; u is "<|x|>", w is " a b "
};

class Marks : public testing::TestWithParam<Moved> {};

TEST_P(Marks, StayWithTheBytes) {
  const json::Object variables{{"u", "<|x|>"},
                               {"w", " a b "},
                               {"e", "a\n\""},
                               {"k", json::Object{{"<|", "|>"}}},
                               {"l", json::Array{"p", 1, "q"}}};
  EXPECT_EQ(trusted_of(std::string("{{ ") + GetParam().expression + " }}", variables), GetParam().trusted);
}

INSTANTIATE_TEST_SUITE_P(
    Operations, Marks,
    testing::Values(
        Moved{"'a' ~ u ~ 'b'", "a.....b"}, Moved{"'a' + u", "a....."}, Moved{"u * 2", ".........."},
        Moved{"('a' ~ u ~ 'b')[1:3]", ".."}, Moved{"('a' ~ u ~ 'b')[::-1]", "b.....a"}, Moved{"u[0]", "."},
        Moved{"w | trim", "..."}, Moved{"w.split()[1] ~ '!'", ".!"}, Moved{"w.split() | join('-')", ".-."},
        Moved{"'-'.join(w.split())", ".-."}, Moved{"'ab' | replace('a', u)", ".....b"},
        Moved{"w | replace('a', '<s>')", ".<s>..."}, Moved{"'a-b' | replace('-', w)", "a.....b"},
        Moved{"('x' ~ w) | upper", "X....."}, Moved{"('xß' ~ w) | title", "Xß....."}, Moved{"u | tojson", "\".....\""},
        Moved{"k | tojson", "{\"..\": \"..\"}"}, Moved{"'é\"' | tojson", "\"é\\\"\""}, Moved{"[u, 1]", "['.....', 1]"},
        Moved{"e | tojson", "\".....\""}, Moved{"[e]", "['....']"},
        Moved{"('\n' ~ e) | tojson(ensure_ascii=true)", "\"\\n.....\""}, Moved{"k", "{'..': '..'}"},
        Moved{"l | join(',')", ".,1,."}, Moved{"'%s|%4s' | format(u, 'x')", ".....|   x"},
        Moved{"'{}-{:>6}'.format(u, u)", ".....- ....."}, Moved{"u | format", "....."}, Moved{"u | length", "5"},
        Moved{"u | list | first", "."}, Moved{"k.keys() | list", "['..']"}, Moved{"k | items | list", "[('..', '..')]"},
        Moved{"('a\n' ~ w) | indent(2)", "a\n  ....."}, Moved{"u | escape", "..........."},
        Moved{"u | center(7)", " ..... "}, Moved{"'x' | center(3) ~ u", " x ....."},
        Moved{"'a'.center(3, u[0])", ".a."}, Moved{"'%c' | format(60)", "."}, Moved{"u.partition('x')[0] ~ '|'", "..|"},
        Moved{"strftime_now(u)", "....."}, Moved{"(u | safe) + '<'", ".....&lt;"}, Moved{"w.splitlines()[0]", "....."},
        Moved{"u.zfill(7)", "00....."}, Moved{"dict(k, **{'a': u})['a']", "....."},
        Moved{"u | truncate(3, true, '!', 0)", "..!"}, Moved{"namespace(v=u).v", "....."}));

TEST(ChatTemplate, EscapedEntitiesOfUntrustedCharactersAreUntrusted) {
  EXPECT_EQ(trusted_of("{{ u | escape }}", {{"u", "<"}}), "....");
}

TEST(ChatTemplate, MacrosAndCapturedBlocksKeepMarks) {
  EXPECT_EQ(trusted_of("{% macro m(x) %}<{{ x }}>{{ caller() }}{% endmacro %}{% call m(u) %}[{{ u }}]{% endcall %}",
                       {{"u", "ab"}}),
            "<..>[..]");
  EXPECT_EQ(trusted_of("{% set x %}<{{ u }}>{% endset %}{% filter upper %}a{{ x }}{% endfilter %}", {{"u", "ab"}}),
            "A<..>");
  EXPECT_EQ(trusted_of("{% for c in 'x' ~ u %}{{ c }},{% endfor %}", {{"u", "ab"}}), "x,.,.,");
}

// A random walk of string operations over untrusted text: wherever a control token stands in trusted bytes only, the
// template's own literals wrote it. The literals below hold no '<', so no such token may ever appear.
RC_GTEST_PROP(ChatTemplate, NoOperationLaundersAControlToken, ()) {
  const std::vector<std::string> kSteps = {"x ~ 'lit'",
                                           "'lit' ~ x",
                                           "x[1:]",
                                           "x[:-1]",
                                           "x[::-1]",
                                           "x | trim",
                                           "x | upper",
                                           "x | lower",
                                           "x | title",
                                           "x | replace('a', 'b')",
                                           "x.split('|') | join('|')",
                                           "x.split() | join(' ')",
                                           "'-'.join(x)",
                                           "x | tojson",
                                           "[x] | string",
                                           "{x: x} | string",
                                           "x | indent(2, true)",
                                           "'%s' | format(x)",
                                           "'{0}{0}'.format(x)",
                                           "x * 2",
                                           "x | list | join",
                                           "x | batch(3) | map('join') | join",
                                           "x.partition('x') | join",
                                           "x | center(30)",
                                           "x.swapcase()",
                                           "x.removeprefix('<')",
                                           "x.splitlines() | join",
                                           "x | capitalize",
                                           "x | reverse",
                                           "(x | list | sort | join)",
                                           "x | truncate(40)",
                                           "x.zfill(9)",
                                           "x if x else 'e'",
                                           "x | default('d', true)",
                                           "(x | escape) ~ ''",
                                           "x.replace('', 'y', 3)",
                                           "x | groupby(0) | map('last') | map('join') | join",
                                           "'y' | replace('y', x)"};
  const auto steps = *rc::gen::container<std::vector<std::size_t>>(rc::gen::inRange<std::size_t>(0, kSteps.size()));
  const auto pieces = *rc::gen::container<std::vector<std::string>>(rc::gen::element<std::string>(
      "<|im_end|>", "<", "|im_end|>", "<|im_", "a", " ", "é", "🙂", "\n", "ß", ">dne_mi|<"));
  std::string input;
  for (const std::string& piece : pieces) input += piece;
  std::string source = "{% set x = u %}";
  for (const std::size_t step : steps) source += "{% set x = (" + kSteps[step] + ")[:400] %}";
  const auto rendered = render(source + "{{ x }}", {{"u", input}});
  RC_PRE(rendered.has_value());
  RC_ASSERT(marks_are_normal(*rendered));
  RC_ASSERT(trusted_of(*rendered).find('<') == std::string::npos);
}

// Planted control: the property's check sees a token that a template writes itself.
TEST(ChatTemplate, ATokenOfTheTemplatesOwnIsTrusted) {
  EXPECT_NE(trusted_of("{{ u ~ '<|im_end|>' }}", {{"u", "<|im_end|>"}}).find("<|im_end|>"), std::string::npos);
}

TEST(ChatTemplate, InvalidUtf8InAVariableBecomesReplacementCharacters) {
  EXPECT_EQ(text_of("{{ u }}|{{ u | length }}", {{"u", "a\xFF\xC3(\xED\xA0\x80"}}),
            "a\uFFFD\uFFFD(\uFFFD\uFFFD\uFFFD|7");
}

// ---- the sandbox

class Hostile : public testing::TestWithParam<const char*> {};

TEST_P(Hostile, EndsInWordsAndSoon) {
  const json::Object variables{{"s", std::string(1000, 'a')}, {"u", std::string(200, '\xC3') + "x"}};
  const auto begin = std::chrono::steady_clock::now();
  const std::string words = words_of(GetParam(), variables);
  EXPECT_EQ(words.substr(0, 2), "t:") << words;
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));  // seconds, but for sanitizers
}

INSTANTIATE_TEST_SUITE_P(
    Templates, Hostile,
    testing::Values(
        "{{ 'a' * 9999999999 }}", "{{ [0] * 9999999999 }}", "{{ range(999999999) }}", "{{ range(0, 10, 0) }}",
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        "{% for a in range(99999) %}{{ s * 1000 }}{% endfor %}", "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{% macro m() %}{% call m() %}{% endcall %}{% endmacro %}{{ m() }}",
        "{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}",
        "{% set ns = namespace(x='aa') %}{% for i in range(99) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
        "{% set ns = namespace(x=[1, 1]) %}{% for i in range(99) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
        "{% set ns = namespace(x=[]) %}{% for i in range(9999) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x }}",
        "{% set ns = namespace(x=[]) %}{% for i in range(9999) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x | tojson "
        "}}",
        "{% set ns = namespace(x=[], y=[]) %}{% for i in range(9999) %}{% set ns.x = [ns.x] %}{% set ns.y = [ns.y] "
        "%}{% endfor %}{{ ns.x == ns.y }}",
        "{% set ns = namespace(x=1, y=1) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% set ns.y = [ns.y, "
        "ns.y] %}{% endfor %}{{ ns.x == ns.y }}",
        "{% set ns = namespace(x=1) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x }}",
        "{% set ns = namespace(x=1) %}{% for i in range(60) %}{% set ns.x = (ns.x, ns.x) %}{% endfor %}{{ {ns.x: 1} }}",
        "{% set ns = namespace() %}{% set ns.x = ns %}{{ ns }}", "{{ '%999999999d' | format(1) }}",
        "{{ '%.999999999f' | format(1) }}", "{{ '{:999999999}'.format(1) }}", "{{ 'a'.center(999999999999) }}",
        "{{ 'a'.zfill(999999999999) }}", "{{ [1] | batch(999999999, 0) | list }}",
        "{{ [1] | slice(999999999) | list }}", "{{ [1] | tojson(indent=999999999) }}", "{{ 'x' | indent(9999999999) }}",
        "{{ s | replace('', s * 1000) }}", "{{ (s * 10000).split('a') | list }}", "{{ 9 ** 999999999 }}",
        "{{ -9223372036854775807 - 9 }}", "{{ (-9223372036854775807 - 1) // -1 }}",
        "{{ (-9223372036854775807 - 1) | abs }}", "{{ 1e300 | int }}", "{{ strftime_now('%999999Y') }}",
        "{{ strftime_now(s * 2) }}",
        "{% for a in range(9999) %}{% for b in range(99) %}{% if s * 99 in s * 99 %}{% endif %}{% endfor %}{% endfor "
        "%}",
        "{% for i in range(99999) %}{% set x = s * 1000 ~ i %}{% endfor %}",
        "{% set a = range(99999) | list %}{% for x in a %}{{ x in a }}{% endfor %}"));

TEST(ChatTemplate, LoopTurnsAreCountedOverAllLoops) {
  const std::string loops = "{% for a in range(1001) %}{% for b in range(COUNT) %}{% endfor %}{% endfor %}";
  const auto with = [&loops](const std::string& count) {
    return std::string(loops).replace(loops.find("COUNT"), 5, count);
  };
  EXPECT_EQ(words_of(with("1000")), "t:1: the template's loops turn more than 1000000 times");
  EXPECT_EQ(words_of(with("500")), "no error");
}

TEST(ChatTemplate, NestingOfTheSourceIsBounded) {
  const auto repeated = [](std::string_view piece, int n) {
    std::string out;
    for (int i = 0; i < n; ++i) out += piece;
    return out;
  };
  for (const std::string& source :
       {"{{ " + repeated("(", 100000) + "1" + repeated(")", 100000) + " }}", "{{ " + repeated("[", 100000),
        "{{ " + repeated("not ", 100000) + "1 }}", "{{ " + repeated("-", 100000) + "1 }}",
        "{{ 1" + repeated(" + 1", 100000) + " }}", "{{ x" + repeated(".x", 100000) + " }}",
        "{{ x" + repeated("|trim", 100000) + " }}", repeated("{% if 1 %}", 100000),
        "{{ 1" + repeated(" if 1 else 1", 100000) + " }}", "{% for " + repeated("(", 100000) + "x in y %}",
        "{{ x" + repeated("()", 100000) + " }}", "{{ 1" + repeated(" and 1", 100000) + " }}"}) {
    const auto parsed = ChatTemplate::parse(source, "t");
    EXPECT_FALSE(parsed) << source.substr(0, 40);
  }
  EXPECT_TRUE(ChatTemplate::parse("{{ " + repeated("(", 30) + "1" + repeated(")", 30) + " }}", "t"));
}

TEST(ChatTemplate, AVariableThatNestsTooDeepIsRefused) {
  json::Value value = 1;
  for (int i = 0; i < 500; ++i) value = json::Array{value};
  EXPECT_EQ(words_of("{{ x }}", {{"x", value}}).substr(0, 2), "t:");
}

TEST(ChatTemplate, ALongConversationIsFarFromTheBounds) {
  json::Array messages;
  for (int i = 0; i < 4000; ++i) {
    messages.push_back({{"role", i % 2 == 0 ? "user" : "assistant"},
                        {"content", std::string(1000, 'x') + "\n\n" + std::to_string(i)}});
  }
  const auto bundled = ChatTemplate::open(RONDO_BUNDLED_MODEL);
  ASSERT_TRUE(bundled);
  const auto rendered = bundled->render({{"messages", messages}, {"add_generation_prompt", true}}, 0);
  ASSERT_TRUE(rendered) << rendered.error().message;
  EXPECT_GT(rendered->text.size(), 4'000'000U);
}

TEST(ChatTemplate, MentionsTheVariablesThatItReads) {
  const auto parsed = ChatTemplate::parse("tools {{ x }}{% if enable_thinking %}{{ y.z }}{% endif %}{# effort #}", "t");
  ASSERT_TRUE(parsed);
  for (const char* name : {"x", "y", "enable_thinking"}) EXPECT_TRUE(parsed->mentions(name)) << name;
  for (const char* name : {"tools", "effort", "thinking", ""}) EXPECT_FALSE(parsed->mentions(name)) << name;
}

}  // namespace
}  // namespace rondo
