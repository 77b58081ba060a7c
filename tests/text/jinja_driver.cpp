// Renders what tools/oracles/jinja_oracle.py asks for: one JSON object a line in, one a line out.
//
// In: {"template": source, "variables": {...}, "now": seconds}. Out: {"text": ..., "untrusted": [[begin, end], ...]} or
// {"error": message}.
#include <iostream>
#include <string>

#include "base/json.h"
#include "text/chat_template.h"

namespace {

rondo::json::Object answer(const rondo::json::Object& question) {
  const std::string source(question.at("template").as_string());
  const auto parsed = rondo::ChatTemplate::parse(source, "template");
  if (!parsed) return {{"error", parsed.error().message}};
  const auto rendered =
      parsed->render(question.at("variables").as_object(), question.at("now").to_number<std::time_t>());
  if (!rendered) return {{"error", rendered.error().message}};
  rondo::json::Array ranges;
  for (const rondo::ByteRange& range : rendered->untrusted)
    ranges.push_back(rondo::json::Array{range.begin, range.end});
  return {{"text", rendered->text}, {"untrusted", ranges}};
}

}  // namespace

int main() {
  std::ios::sync_with_stdio(false);
  for (std::string line; std::getline(std::cin, line);) {
    const auto question = rondo::parse_json(line, 1000);
    if (!question) {
      std::cerr << "jinja_driver: " << question.error().message << '\n';
      return 1;
    }
    std::cout << rondo::to_json(answer(question->as_object())) << '\n';
  }
}
