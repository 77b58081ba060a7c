// Splitter: cuts text into the pieces that byte-pair encoding works on, by a split pattern of tokenizer.json.
//
// The two patterns of the Qwen family have a scanner of their own. Any other is translated for PCRE2 from the dialect
// of tokenizer.json (Oniguruma's, Unicode 16): what is the same in both is taken over, what differs is rewritten, and
// what cannot be, or what could run for ever, is refused by name. Behaviour Isolated: matches are pieces, and so is
// what lies between matches.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace rondo {

// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|...
extern const std::string_view kSplitWithMarks;  // Qwen3.5 and later
extern const std::string_view kSplitNoMarks;    // Qwen2, Qwen3, Qwen3-Next: the same without \p{M}
extern const std::string_view kSplitGpt2;       // what ByteLevel with use_regex means

class Splitter {
 public:
  enum class Engine { Fastest, Pcre2 };  // Pcre2: never the scanner, so that tests can compare the two

  // Unsupported, quoting what cannot be read; the message names no file.
  static Result<Splitter> compile(std::string_view pattern, Engine engine = Engine::Fastest);
  Splitter(Splitter&&) noexcept;
  Splitter& operator=(Splitter&&) noexcept;
  ~Splitter();

  // Appends the pieces of `text`, which must be valid UTF-8. Together they are the text; none is empty.
  void split(std::string_view text, std::vector<std::string_view>& pieces) const;

 private:
  struct Regex;
  enum class Rule { WithMarks, NoMarks, Regex };
  explicit Splitter(Rule rule, std::unique_ptr<const Regex> regex);
  void split_by_regex(std::string_view text, std::vector<std::string_view>& pieces) const;

  Rule rule_;
  std::unique_ptr<const Regex> regex_;
};

}  // namespace rondo
