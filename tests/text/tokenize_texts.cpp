// tokenize_texts TOKENIZER_JSON TEXTS IDS: encodes a file of texts for tools/oracles/tokenizer_oracle.py.
//
// TEXTS is a sequence of (length: u32, bytes). IDS becomes, for each text, (count: u32, ids: i32 each, length: u32, the
// bytes that these ids decode to one at a time). All little-endian.
#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "base/mmap_file.h"
#include "text/tokenizer.h"

namespace {

using Clock = std::chrono::steady_clock;

void append_u32(std::string& out, std::size_t value) {
  const auto word = static_cast<std::uint32_t>(value);
  out.append(reinterpret_cast<const char*>(&word), sizeof word);
}

std::string decode_by_steps(const rondo::Tokenizer& tokenizer, const std::vector<std::int32_t>& ids) {
  rondo::Detokenizer detokenizer(tokenizer, false);
  std::string text;
  for (const std::int32_t id : ids) detokenizer.push(id, text);
  return text + detokenizer.finish();
}

int run(const char* tokenizer_path, const char* texts_path, const char* ids_path) {
  const auto document = rondo::read_file(tokenizer_path);
  const auto texts = rondo::read_file(texts_path);
  if (!document || !texts) return fmt::print(stderr, "cannot read the inputs\n"), 1;
  const auto start = Clock::now();
  const auto tokenizer = rondo::Tokenizer::parse(*document, tokenizer_path);
  if (!tokenizer) return fmt::print(stderr, "{}\n", tokenizer.error().message), 1;
  const std::chrono::duration<double> parse_seconds = Clock::now() - start;
  std::chrono::duration<double> encode_seconds{};
  std::string out;
  for (std::size_t pos = 0; pos + 4 <= texts->size();) {
    std::uint32_t length = 0;
    std::memcpy(&length, texts->data() + pos, sizeof length);
    const std::string_view text = std::string_view(*texts).substr(pos + 4, length);
    pos += 4 + text.size();
    const auto encode_start = Clock::now();
    const std::vector<std::int32_t> ids = tokenizer->encode(text);
    encode_seconds += Clock::now() - encode_start;
    append_u32(out, ids.size());
    out.append(reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(std::int32_t));
    const std::string decoded = decode_by_steps(*tokenizer, ids);
    append_u32(out, decoded.size());
    out += decoded;
  }
  std::ofstream(ids_path, std::ios::binary) << out;
  fmt::print("read in {:.3f} s, encoded {:.1f} MB in {:.3f} s, {:.1f} MB/s\n", parse_seconds.count(),
             static_cast<double>(texts->size()) / 1e6, encode_seconds.count(),
             static_cast<double>(texts->size()) / 1e6 / encode_seconds.count());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return fmt::print(stderr, "usage: tokenize_texts TOKENIZER_JSON TEXTS IDS\n"), 2;
  return run(argv[1], argv[2], argv[3]);
}
