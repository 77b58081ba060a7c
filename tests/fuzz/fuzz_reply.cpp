// libFuzzer: any bytes as a reply. Nothing may crash; cut anywhere the parts are the same; calls begin and end in
// order, and the arguments of a whole one are a JSON object.
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>

#include "api/reply_parser.h"
#include "base/json.h"
#include "text/utf8.h"

namespace {

void check(bool holds) {
  if (!holds) std::abort();
}

std::shared_ptr<const std::vector<rondo::Tool>> tools() {
  static const auto kTools = std::make_shared<const std::vector<rondo::Tool>>(std::vector<rondo::Tool>{
      {"f", rondo::parse_json(R"({"properties":{"s":{"type":"string"},"n":{"type":"number"},"u":{"type":
                              ["string","null"]}},"additionalProperties":false})")
                ->as_object()},
      {"g", {}}});
  return kTools;
}

// The whole reply: its texts, and by call its arguments and whether it is whole.
struct Reply {
  std::string reasoning, content, order;
  std::map<int, std::string> arguments;
  bool operator==(const Reply&) const = default;
};

class Reader {
 public:
  void add(const rondo::ReplyParts& parts) {
    using Kind = rondo::ReplyPart::Kind;
    for (const rondo::ReplyPart& part : parts) {
      switch (part.kind) {
        case Kind::Reasoning: reply.reasoning += part.text; break;
        case Kind::Content: reply.content += part.text; break;
        case Kind::CallBegin:
          check(!is_open_ && part.call == num_calls_++);
          is_open_ = true;
          reply.order += "begin " + part.text + "\n";
          break;
        case Kind::CallArguments:
          check(is_open_ && part.call == num_calls_ - 1);
          reply.arguments[part.call] += part.text;
          break;
        case Kind::CallEnd: {
          check(is_open_);
          is_open_ = false;
          reply.order += "end\n";
          const auto object = rondo::parse_json(reply.arguments[part.call], 70);
          check(object && object->is_object());
          break;
        }
        case Kind::CallCut:
          check(is_open_);
          is_open_ = false;
          reply.order += "cut\n";
      }
    }
  }
  Reply reply;

 private:
  int num_calls_ = 0;
  bool is_open_ = false;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const bool thinking = (data[0] & 1) != 0;
  const std::size_t step = 1 + data[1] % 16;
  // A detokeniser's text is UTF-8; the cuts need not be.
  const std::string whole_text = rondo::replace_invalid_utf8({reinterpret_cast<const char*>(data) + 2, size - 2});
  const std::string_view text = whole_text;
  Reader whole, cut;
  rondo::ReplyParser one({thinking, tools(), "c"}), many({thinking, tools(), "c"});
  whole.add(one.push(text));
  whole.add(one.finish());
  for (std::size_t at = 0; at < text.size(); at += step) cut.add(many.push(text.substr(at, step)));
  cut.add(many.finish());
  check(whole.reply == cut.reply);
  return 0;
}
