// Any bytes as a tokenizer.json, and any bytes as text for it.
//
// The input is a document, a byte 0xFF (which no document holds), one byte that says where trust ends, and the text.
// Without the 0xFF the text is the document itself.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

namespace {

using rondo::Tokenizer;

void check_reply(const Tokenizer& tokenizer, const std::vector<std::int32_t>& ids) {
  std::string text;
  rondo::Detokenizer detokenizer(tokenizer, false);
  for (const std::int32_t id : ids) {
    CHECK(id >= 0 && id < tokenizer.vocab_size());
    detokenizer.push(id, text);
  }
  text += detokenizer.finish();
  CHECK(text == rondo::replace_invalid_utf8(tokenizer.decode(ids, false)));
}

void encode_and_check(const Tokenizer& tokenizer, std::string_view text, std::size_t trusted_bytes) {
  check_reply(tokenizer, tokenizer.encode(text));
  rondo::MarkedText marked{std::string(text), {}};
  if (trusted_bytes < text.size()) marked.untrusted.push_back({trusted_bytes, text.size()});
  check_reply(tokenizer, tokenizer.encode(marked));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t border = input.find('\xFF');
  const auto tokenizer = Tokenizer::parse(input.substr(0, border), "tokenizer.json");
  if (!tokenizer) {
    CHECK(tokenizer.error().message.starts_with("tokenizer.json: "));
    return 0;
  }
  if (border == std::string_view::npos || border + 1 == size) {
    encode_and_check(*tokenizer, input.substr(0, border), size / 2);
  } else {
    encode_and_check(*tokenizer, input.substr(border + 2), data[border + 1]);
  }
  return 0;
}
