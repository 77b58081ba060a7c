#include "text/splitter.h"

#include <fmt/format.h>
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <string>
#include <utility>

#include "base/log.h"
#include "text/family_scanner.h"
#include "text/split_pattern.h"

namespace rondo {

const std::string_view kSplitWithMarks =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
const std::string_view kSplitNoMarks =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
const std::string_view kSplitGpt2 = R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

struct Splitter::Regex {
  struct FreeCode {
    void operator()(pcre2_code* compiled) const { pcre2_code_free(compiled); }
  };
  std::unique_ptr<pcre2_code, FreeCode> code;
};

namespace {

struct FreeContext {
  void operator()(pcre2_compile_context* context) const { pcre2_compile_context_free(context); }
};
struct FreeMatch {
  void operator()(pcre2_match_data* match) const { pcre2_match_data_free(match); }
};

std::string pcre2_message(int code) {
  PCRE2_UCHAR buffer[256] = {};
  pcre2_get_error_message(code, buffer, sizeof buffer);
  return reinterpret_cast<const char*>(buffer);
}

void append_piece(std::string_view text, std::size_t begin, std::size_t end, std::vector<std::string_view>& pieces) {
  if (begin < end) pieces.push_back(text.substr(begin, end - begin));
}

}  // namespace

Splitter::Splitter(Rule rule, std::unique_ptr<const Regex> regex) : rule_(rule), regex_(std::move(regex)) {}
Splitter::Splitter(Splitter&&) noexcept = default;
Splitter& Splitter::operator=(Splitter&&) noexcept = default;
Splitter::~Splitter() = default;

Result<Splitter> Splitter::compile(std::string_view pattern, Engine engine) {
  if (engine == Engine::Fastest && pattern == kSplitWithMarks) return Splitter(Rule::WithMarks, nullptr);
  if (engine == Engine::Fastest && pattern == kSplitNoMarks) return Splitter(Rule::NoMarks, nullptr);
  TRY(const std::string translated, to_pcre2(pattern));
  const std::unique_ptr<pcre2_compile_context, FreeContext> context(pcre2_compile_context_create(nullptr));
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int error = 0;
  std::size_t where = 0;
  auto regex = std::make_unique<Regex>();
  regex->code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                                  PCRE2_UTF | PCRE2_UCP, &error, &where, context.get()));
  if (!regex->code) {
    return failure(ErrorCode::Unsupported, fmt::format("split pattern cannot be compiled: {}", pcre2_message(error)));
  }
  std::uint32_t may_be_empty = 0;
  pcre2_pattern_info(regex->code.get(), PCRE2_INFO_MATCHEMPTY, &may_be_empty);
  if (may_be_empty) return failure(ErrorCode::Unsupported, "split pattern: a match may be empty");
  pcre2_jit_compile(regex->code.get(), PCRE2_JIT_COMPLETE);  // without a JIT pcre2_match interprets, with one result
  return Splitter(Rule::Regex, std::move(regex));
}

void Splitter::split(std::string_view text, std::vector<std::string_view>& pieces) const {
  switch (rule_) {
    case Rule::WithMarks: return split_family(text, Marks::InWords, pieces);
    case Rule::NoMarks: return split_family(text, Marks::AreSymbols, pieces);
    case Rule::Regex: return split_by_regex(text, pieces);
  }
}

void Splitter::split_by_regex(std::string_view text, std::vector<std::string_view>& pieces) const {
  const pcre2_code* code = regex_->code.get();
  const std::unique_ptr<pcre2_match_data, FreeMatch> match(pcre2_match_data_create_from_pattern(code, nullptr));
  const std::size_t* bounds = pcre2_get_ovector_pointer(match.get());
  std::size_t done = 0;
  while (done < text.size()) {
    const int found = pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), done,
                                  PCRE2_NO_UTF_CHECK, match.get(), nullptr);
    if (found < 0) {
      // A pattern that runs past PCRE2's limits on this text: no tokens are lost, only their borders.
      if (found != PCRE2_ERROR_NOMATCH) log_warning("split pattern gave up: {}", pcre2_message(found));
      break;
    }
    append_piece(text, done, bounds[0], pieces);
    append_piece(text, bounds[0], bounds[1], pieces);
    done = bounds[1];
  }
  append_piece(text, done, text.size(), pieces);
}

}  // namespace rondo
