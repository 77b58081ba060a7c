// FakePrompts: a text layer without a tokenizer. A text's ids are its bytes; a conversation has as many ids as its last
// message's content has bytes. "RAISE" fails as a template does, "THROW" as a machine without memory does.
#pragma once

#include <new>
#include <string>
#include <vector>

#include "api/prompt_builder.h"

namespace rondo {

class FakePrompts final : public PromptBuilder {
 public:
  Result<BuiltPrompt> build(const json::Object& variables, std::string_view begun_reply) const override {
    const std::string content(variables.at("messages").as_array().back().at("content").as_string());
    if (content == "RAISE") return failure(ErrorCode::InvalidArgument, "the template says no");
    if (content == "THROW") throw std::bad_alloc();
    return BuiltPrompt{std::vector<std::int32_t>(content.size() + begun_reply.size(), 1), thinking};
  }

  std::vector<std::int32_t> encode(std::string_view text) const override {
    std::vector<std::int32_t> ids;
    for (const char byte : text) ids.push_back(static_cast<unsigned char>(byte));
    return ids;
  }

  std::string decode(std::span<const std::int32_t> ids) const override {
    std::string bytes;
    for (const std::int32_t id : ids) bytes += static_cast<char>(id);
    return bytes;
  }

  bool is_special(std::int32_t id) const override { return id == kSpecial; }

  static constexpr std::int32_t kSpecial = 2;
  bool thinking = false;
};

}  // namespace rondo
