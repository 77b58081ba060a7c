#include "tests/text/tiny_tokenizer.h"

#include "base/check.h"
#include "text/byte_alphabet.h"
#include "text/splitter.h"

namespace rondo::test {

json::Object added_token(int id, std::string_view content, bool special) {
  return {{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", false}, {"special", special}};
}

json::Object tiny_document() {
  json::Object vocab;
  for (int byte = 0; byte < 256; ++byte) vocab[byte_spelling(static_cast<unsigned char>(byte))] = byte;
  const char* const merged[] = {"lo", "he", "hel", "hello"};
  for (int i = 0; i < 4; ++i) vocab[merged[i]] = 256 + i;
  const json::Object split = {{"type", "Split"},
                              {"pattern", json::Object{{"Regex", kSplitWithMarks}}},
                              {"behavior", "Isolated"},
                              {"invert", false}};
  const json::Object byte_level = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", false}};
  return {
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens", json::Array{added_token(kImStart, "<|im_start|>", true), added_token(kImEnd, "<|im_end|>", true),
                                   added_token(kThink, "<think>", false), added_token(kIm, "<|im", false)}},
      {"normalizer", json::Object{{"type", "NFC"}}},
      {"pre_tokenizer", json::Object{{"type", "Sequence"}, {"pretokenizers", json::Array{split, byte_level}}}},
      {"post_processor", nullptr},
      {"decoder", byte_level},
      {"model", json::Object{{"type", "BPE"},
                             {"ignore_merges", false},
                             {"vocab", vocab},
                             {"merges", json::Array{"l o", "h e", "he l", json::Array{"hel", "lo"}}}}}};
}

Tokenizer tokenizer_of(const json::Object& document) {
  Result<Tokenizer> tokenizer = Tokenizer::parse(to_json(document), "tiny.json");
  CHECK(tokenizer.has_value());
  return *std::move(tokenizer);
}

Tokenizer tiny_tokenizer() { return tokenizer_of(tiny_document()); }

}  // namespace rondo::test
