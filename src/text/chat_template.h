// ChatTemplate: a checkpoint's own Jinja template, run in a sandbox: bounded output, loop turns and recursion.
//
// The environment is the one transformers sets up: ImmutableSandboxedEnvironment, trim_blocks, lstrip_blocks, loop
// controls, tojson = json.dumps with ensure_ascii off, raise_exception, strftime_now. Thread-safe after open.
//
// Refused by name, when parsed or when reached: other templates (include, import, extends, block), autoescape, the
// filters random, pprint, urlize, urlencode, filesizeformat, striptags, wordwrap and xmlattr, lipsum, and integers past
// 64 bits. The bounds of the sandbox are the constants of text/jinja/heap.h.
#pragma once

#include <ctime>
#include <memory>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"
#include "text/marked_text.h"

namespace rondo {

class ChatTemplate {
 public:
  // chat_template.jinja, else chat_template in tokenizer_config.json: a string, or of a list of {name, template} the
  // one named default (never tool_use: the default one of this family renders tools itself). NotFound when there is
  // neither; Corrupt, with line and the reason, when it does not parse.
  static Result<ChatTemplate> open(const std::string& folder);
  static Result<ChatTemplate> parse(std::string_view source, const std::string& name);
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;
  ~ChatTemplate();

  // The prompt. `variables` are the template's globals: messages, tools, add_generation_prompt, enable_thinking, ...
  // Every string in them came from the request and is untrusted (text/marked_text.h): only the template's own literals
  // can spell a control token. `now` feeds strftime_now. InvalidArgument, in the template's own words, when it raises
  // or fails.
  Result<MarkedText> render(const json::Object& variables, std::time_t now) const;

  bool mentions(std::string_view name) const;  // of a variable: one that it does not mention changes no prompt

 private:
  struct Program;
  explicit ChatTemplate(std::unique_ptr<const Program> program);
  std::unique_ptr<const Program> program_;
};

}  // namespace rondo
