#include "server/api_keys.h"

#include <fmt/format.h>
#include <sodium/utils.h>

#include <algorithm>
#include <cctype>

#include "base/mmap_file.h"
#include "base/sha256.h"

namespace rondo {

namespace {

constexpr std::string_view kHashed = "sha256:";
constexpr std::size_t kHexDigits = 64;

std::string_view trimmed(std::string_view line) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!line.empty() && is_space(line.front())) line.remove_prefix(1);
  while (!line.empty() && is_space(line.back())) line.remove_suffix(1);
  return line;
}

Result<std::string> hash_of(std::string_view line, std::string_view name, int number) {
  if (!line.starts_with(kHashed)) {
    const bool is_printable = std::all_of(line.begin(), line.end(), [](char c) { return c > ' ' && c < '\x7f'; });
    if (is_printable) return sha256_hex(line);
    return failure(ErrorCode::InvalidArgument,
                   fmt::format("{}: line {}: a key is one word of printable ASCII", name, number));
  }
  std::string hex(line.substr(kHashed.size()));
  std::transform(hex.begin(), hex.end(), hex.begin(), [](unsigned char c) { return std::tolower(c); });
  if (hex.size() == kHexDigits && hex.find_first_not_of("0123456789abcdef") == std::string::npos) return hex;
  return failure(ErrorCode::InvalidArgument,
                 fmt::format("{}: line {}: after sha256: come {} hex digits", name, number, kHexDigits));
}

}  // namespace

Result<ApiKeys> ApiKeys::parse(std::string_view text, std::string_view name) {
  ApiKeys keys;
  int number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.empty() || line.starts_with('#')) continue;
    TRY(std::string hash, hash_of(line, name, number));
    keys.hashes_.push_back(std::move(hash));
  }
  if (keys.hashes_.empty()) return failure(ErrorCode::InvalidArgument, fmt::format("{}: there is no key in it", name));
  return keys;
}

Result<ApiKeys> ApiKeys::read(const std::string& path) {
  TRY(const std::string text, read_file(path));
  return parse(text, path);
}

bool ApiKeys::admit(std::string_view key) const {
  const std::string hash = sha256_hex(key);
  unsigned matches = 0;
  for (const std::string& known : hashes_) {
    matches |= static_cast<unsigned>(sodium_memcmp(known.data(), hash.data(), kHexDigits) == 0);
  }
  return matches != 0;
}

}  // namespace rondo
