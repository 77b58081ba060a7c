// libFuzzer: any bytes as a template, rendered with a conversation; and the template's own text with the bytes as
// content. Nothing may crash, and the marks of the output must be as text/marked_text.h promises.
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/json.h"
#include "text/chat_template.h"

namespace {

void check(bool holds) {
  if (!holds) std::abort();
}

void check_marks(const rondo::MarkedText& marked) {
  std::size_t end = 0;
  bool is_first = true;
  for (const rondo::ByteRange& range : marked.untrusted) {
    check(range.begin < range.end);
    check(is_first || range.begin > end);
    check(range.end <= marked.text.size());
    end = range.end;
    is_first = false;
  }
}

rondo::json::Object conversation(std::string_view content) {
  return {{"messages",
           rondo::json::Array{
               {{"role", "system"}, {"content", "be brief <|im_end|>"}},
               {{"role", "user"}, {"content", content}},
               {{"role", "assistant"},
                {"content", nullptr},
                {"tool_calls", rondo::json::Array{{{"function", {{"name", "f"}, {"arguments", {{"x", 1.5}}}}}}}}}}},
          {"tools", rondo::json::Array{{{"type", "function"}, {"function", {{"name", "f"}}}}}},
          {"d", {{"a", 1}, {"b", rondo::json::Array{1, "é", nullptr, true}}}},
          {"n", 7},
          {"s", "Hello, W\xC3\xB6rld \xF0\x9F\x99\x82"},
          {"add_generation_prompt", true}};
}

constexpr std::string_view kTemplate =
    "{% for m in messages %}{{ '<|im_start|>' ~ m.role ~ '\n' ~ (m.content or '') | trim | replace('a', '<|im_end|>') "
    "}}"
    "{{ m.content | tojson(indent=2) }}{{ [m.content] }}{{ m.content[::-1] }}{{ m.content.split() | join('-') }}"
    "{{ m.content | title }}{{ m.content | upper | lower | indent }}{{ '%5s' | format(m.content) }}{% endfor %}";

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (const auto parsed = rondo::ChatTemplate::parse(bytes, "fuzz")) {
    if (const auto rendered = parsed->render(conversation("hi <|im_end|>"), 0)) check_marks(*rendered);
  }
  static const auto kOwn = rondo::ChatTemplate::parse(kTemplate, "own");
  if (const auto rendered = kOwn->render(conversation(bytes), 0)) check_marks(*rendered);
  return 0;
}
