#include "text/tokenizer_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <unordered_set>
#include <utility>

#include "base/json.h"
#include "text/byte_alphabet.h"
#include "text/nfc.h"

namespace rondo {

namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{256} << 20;

class TokenizerReader {
 public:
  explicit TokenizerReader(const std::string& name) : name_(name) {}

  Result<TokenizerParts> read(const json::Value& document) {
    const json::Object* root = document.if_object();
    if (!root) return corrupt("the document", "is not an object");
    TRY_VOID(check_keys(*root, "",
                        {"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer",
                         "post_processor", "decoder", "model"}));
    TRY_VOID(read_normalizer(*root));
    TRY_VOID(read_pre_tokenizer(*root));
    TRY_VOID(check_post_processor(*root));
    TRY_VOID(check_decoder(*root));
    TRY_VOID(read_model(*root));
    TRY_VOID(read_added_tokens(*root));
    return std::move(parts_);
  }

 private:
  tl::unexpected<Error> corrupt(std::string_view key, std::string_view what) const {
    return failure(ErrorCode::Corrupt, fmt::format("{}: {} {}", name_, key, what));
  }
  tl::unexpected<Error> unsupported(std::string_view key, std::string_view what) const {
    return failure(ErrorCode::Unsupported, fmt::format("{}: {} {}", name_, key, what));
  }

  // Keys we do not know may change what the tokenizer does, so they are refused.
  Result<void> check_keys(const json::Object& object, std::string_view path,
                          std::initializer_list<std::string_view> known) const {
    for (const auto& member : object) {
      if (std::find(known.begin(), known.end(), std::string_view(member.key())) == known.end()) {
        return unsupported(fmt::format("{}{}{}", path, path.empty() ? "" : ".", std::string_view(member.key())),
                           "is a key that is not known");
      }
    }
    return {};
  }

  Result<const json::Object*> object_in(const json::Object& parent, std::string_view key, std::string_view path) const {
    const json::Value* value = parent.if_contains(key);
    if (!value || !value->if_object()) return corrupt(path, "is not an object");
    return value->if_object();
  }

  Result<const json::Array*> array_in(const json::Object& parent, std::string_view key, std::string_view path) const {
    const json::Value* value = parent.if_contains(key);
    if (!value || !value->if_array()) return corrupt(path, "is not an array");
    return value->if_array();
  }

  Result<std::string_view> string_in(const json::Object& parent, std::string_view key, std::string_view path) const {
    const json::Value* value = parent.if_contains(key);
    if (!value || !value->if_string()) return corrupt(fmt::format("{}.{}", path, key), "is not a string");
    return std::string_view(*value->if_string());
  }

  Result<bool> bool_in(const json::Object& parent, std::string_view key, std::string_view path,
                       std::optional<bool> when_missing) const {
    const json::Value* value = parent.if_contains(key);
    if (!value && when_missing) return *when_missing;
    if (!value || !value->if_bool()) return corrupt(fmt::format("{}.{}", path, key), "is not true or false");
    return *value->if_bool();
  }

  static bool is_null(const json::Object& parent, std::string_view key) {
    const json::Value* value = parent.if_contains(key);
    return !value || value->is_null();
  }

  Result<void> read_normalizer(const json::Object& root) {
    if (is_null(root, "normalizer")) return {};
    TRY(const json::Object* normalizer, object_in(root, "normalizer", "normalizer"));
    TRY(const std::string_view type, string_in(*normalizer, "type", "normalizer"));
    if (type != "NFC") return unsupported("normalizer.type", fmt::format("is {}, only NFC is supported", type));
    TRY_VOID(check_keys(*normalizer, "normalizer", {"type"}));
    parts_.nfc = true;
    return {};
  }

  Result<void> read_pre_tokenizer(const json::Object& root) {
    TRY(const json::Object* pre_tokenizer, object_in(root, "pre_tokenizer", "pre_tokenizer"));
    TRY(const std::string_view type, string_in(*pre_tokenizer, "type", "pre_tokenizer"));
    if (type != "Sequence") return read_byte_level(*pre_tokenizer, "pre_tokenizer");
    TRY_VOID(check_keys(*pre_tokenizer, "pre_tokenizer", {"type", "pretokenizers"}));
    TRY(const json::Array* steps, array_in(*pre_tokenizer, "pretokenizers", "pre_tokenizer.pretokenizers"));
    if (steps->empty() || steps->size() > 16) {
      return unsupported("pre_tokenizer.pretokenizers", fmt::format("has {} steps", steps->size()));
    }
    for (std::size_t i = 0; i < steps->size(); ++i) {
      const std::string path = fmt::format("pre_tokenizer.pretokenizers[{}]", i);
      const json::Object* step = (*steps)[i].if_object();
      if (!step) return corrupt(path, "is not an object");
      TRY_VOID(i + 1 == steps->size() ? read_byte_level(*step, path) : read_split(*step, path));
    }
    return {};
  }

  Result<void> read_byte_level(const json::Object& step, const std::string& path) {
    TRY(const std::string_view type, string_in(step, "type", path));
    if (type != "ByteLevel") {
      return unsupported(path + ".type", fmt::format("is {}, where only ByteLevel is supported", type));
    }
    TRY_VOID(check_keys(step, path, {"type", "add_prefix_space", "trim_offsets", "use_regex"}));
    TRY(const bool add_prefix_space, bool_in(step, "add_prefix_space", path, std::nullopt));
    if (add_prefix_space) return unsupported(path + ".add_prefix_space", "is true, which is not supported");
    TRY(const bool use_regex, bool_in(step, "use_regex", path, true));
    return use_regex ? add_splitter(kSplitGpt2, path + ".use_regex") : Result<void>();
  }

  Result<void> read_split(const json::Object& step, const std::string& path) {
    TRY(const std::string_view type, string_in(step, "type", path));
    if (type != "Split") return unsupported(path + ".type", fmt::format("is {}, where only Split is supported", type));
    TRY_VOID(check_keys(step, path, {"type", "pattern", "behavior", "invert"}));
    TRY(const std::string_view behavior, string_in(step, "behavior", path));
    if (behavior != "Isolated") {
      return unsupported(path + ".behavior", fmt::format("is {}, only Isolated is supported", behavior));
    }
    TRY(const bool invert, bool_in(step, "invert", path, false));
    if (invert) return unsupported(path + ".invert", "is true, which is not supported");
    TRY(const json::Object* pattern, object_in(step, "pattern", path + ".pattern"));
    TRY_VOID(check_keys(*pattern, path + ".pattern", {"Regex"}));
    TRY(const std::string_view regex, string_in(*pattern, "Regex", path + ".pattern"));
    return add_splitter(regex, path + ".pattern.Regex");
  }

  Result<void> add_splitter(std::string_view pattern, const std::string& path) {
    Result<Splitter> splitter = Splitter::compile(pattern);
    if (!splitter) return unsupported(path, splitter.error().message);
    parts_.splitters.push_back(*std::move(splitter));
    return {};
  }

  Result<void> check_post_processor(const json::Object& root) const {
    if (is_null(root, "post_processor")) return {};
    TRY(const json::Object* post_processor, object_in(root, "post_processor", "post_processor"));
    TRY(const std::string_view type, string_in(*post_processor, "type", "post_processor"));
    if (type == "ByteLevel") return {};
    return unsupported("post_processor.type", fmt::format("is {}, where only ByteLevel is supported", type));
  }

  Result<void> check_decoder(const json::Object& root) const {
    TRY(const json::Object* decoder, object_in(root, "decoder", "decoder"));
    TRY(const std::string_view type, string_in(*decoder, "type", "decoder"));
    if (type == "ByteLevel") return {};
    return unsupported("decoder.type", fmt::format("is {}, where only ByteLevel is supported", type));
  }

  Result<void> read_model(const json::Object& root) {
    TRY(const json::Object* model, object_in(root, "model", "model"));
    if (!is_null(*model, "type")) {  // older files leave it out for BPE
      TRY(const std::string_view type, string_in(*model, "type", "model"));
      if (type != "BPE") return unsupported("model.type", fmt::format("is {}, only BPE is supported", type));
    }
    // unk_token, fuse_unk and byte_fallback speak of characters that have no token; here every byte has one.
    TRY_VOID(check_keys(*model, "model",
                        {"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk",
                         "byte_fallback", "ignore_merges", "vocab", "merges"}));
    if (!is_null(*model, "dropout") && model->at("dropout") != json::Value(0.0)) {
      return unsupported("model.dropout", "is set, which is not supported");
    }
    for (const std::string_view key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      if (!is_null(*model, key) && model->at(key) != json::Value("")) {
        return unsupported(fmt::format("model.{}", key), "is set, which is not supported");
      }
    }
    TRY(parts_.ignore_merges, bool_in(*model, "ignore_merges", "model", false));
    TRY(const json::Object* vocab, object_in(*model, "vocab", "model.vocab"));
    TRY_VOID(read_vocab(*vocab));
    TRY(const json::Array* merges, array_in(*model, "merges", "model.merges"));
    return read_merges(*merges, *vocab);
  }

  Result<std::int32_t> token_id(const json::Value& value, const std::string& path) const {
    const std::int64_t* id = value.if_int64();
    if (!id) return corrupt(path, "is not a token id");
    if (*id < 0 || *id > kMaxTokenId) {
      return corrupt(path, fmt::format("is {}, but token ids are 0 to {}", *id, kMaxTokenId));
    }
    return static_cast<std::int32_t>(*id);
  }

  Result<void> read_vocab(const json::Object& vocab) {
    parts_.vocab.reserve(vocab.size());
    for (const auto& member : vocab) {
      const std::string_view spelling = member.key();
      TRY(const std::int32_t id, token_id(member.value(), fmt::format("model.vocab[{}]", quoted(spelling))));
      if (spelling.empty()) return corrupt("model.vocab", "has a token that is empty");
      std::optional<std::string> bytes = bytes_of_spelling(spelling);
      const bool is_byte_level = bytes.has_value();
      parts_.vocab.push_back({id, is_byte_level ? *std::move(bytes) : std::string(spelling), is_byte_level});
    }
    std::vector<std::int32_t> ids;
    ids.reserve(parts_.vocab.size());
    for (const VocabToken& token : parts_.vocab) ids.push_back(token.id);
    std::sort(ids.begin(), ids.end());
    const auto twice = std::adjacent_find(ids.begin(), ids.end());
    if (twice != ids.end()) return corrupt("model.vocab", fmt::format("gives the id {} twice", *twice));
    vocab_ids_ = std::move(ids);
    for (int byte = 0; byte < 256; ++byte) {
      const json::Value* id = vocab.if_contains(byte_spelling(static_cast<unsigned char>(byte)));
      if (!id) return unsupported("model.vocab", fmt::format("has no token for the byte 0x{:02X}", byte));
      parts_.byte_ids[static_cast<std::size_t>(byte)] = static_cast<std::int32_t>(id->get_int64());
    }
    vocab_ = &vocab;
    return {};
  }

  Result<void> read_merges(const json::Array& merges, const json::Object& vocab) {
    parts_.merges.reserve(merges.size());
    for (std::size_t i = 0; i < merges.size(); ++i) {
      const boost::json::string* line = merges[i].if_string();
      if (line && line->starts_with("#version")) continue;
      const auto pair = line ? halves_of(*line) : halves_of(merges[i].if_array());
      if (!pair) return corrupt(fmt::format("model.merges[{}]", i), "is not a pair of tokens");
      const json::Value* left = vocab.if_contains(pair->first);
      const json::Value* right = vocab.if_contains(pair->second);
      const json::Value* merged = vocab.if_contains(std::string(pair->first).append(pair->second));
      if (!left || !right || !merged) {
        return corrupt(fmt::format("model.merges[{}]", i), "needs a token that model.vocab lacks");
      }
      const auto id = [](const json::Value* value) { return static_cast<std::int32_t>(value->get_int64()); };
      parts_.merges.push_back({id(left), id(right), static_cast<std::int32_t>(i), id(merged)});
    }
    return {};
  }

  using Halves = std::optional<std::pair<std::string_view, std::string_view>>;

  static Halves halves_of(std::string_view line) {
    const std::size_t space = line.find(' ');
    if (space == std::string_view::npos || line.find(' ', space + 1) != std::string_view::npos) return std::nullopt;
    return std::pair(line.substr(0, space), line.substr(space + 1));
  }
  static Halves halves_of(const json::Array* pair) {
    if (!pair || pair->size() != 2 || !(*pair)[0].if_string() || !(*pair)[1].if_string()) return std::nullopt;
    return std::pair(std::string_view(*(*pair)[0].if_string()), std::string_view(*(*pair)[1].if_string()));
  }

  Result<void> read_added_tokens(const json::Object& root) {
    if (is_null(root, "added_tokens")) return {};
    TRY(const json::Array* tokens, array_in(root, "added_tokens", "added_tokens"));
    for (std::size_t i = 0; i < tokens->size(); ++i) {
      const std::string path = fmt::format("added_tokens[{}]", i);
      const json::Object* object = (*tokens)[i].if_object();
      if (!object) return corrupt(path, "is not an object");
      TRY(AddedToken token, added_token(*object, path));
      TRY_VOID(check_added_token(token, path));
      parts_.added_tokens.push_back(std::move(token));
    }
    return {};
  }

  Result<AddedToken> added_token(const json::Object& object, const std::string& path) const {
    TRY_VOID(check_keys(object, path, {"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"}));
    AddedToken token;
    if (!object.if_contains("id")) return corrupt(path + ".id", "is missing");
    TRY(token.id, token_id(object.at("id"), path + ".id"));
    TRY(token.spelling, string_in(object, "content", path));
    TRY(token.special, bool_in(object, "special", path, std::nullopt));
    TRY(token.lstrip, bool_in(object, "lstrip", path, std::nullopt));
    TRY(token.rstrip, bool_in(object, "rstrip", path, std::nullopt));
    TRY(token.normalized, bool_in(object, "normalized", path, std::nullopt));
    TRY(const bool single_word, bool_in(object, "single_word", path, std::nullopt));
    if (single_word) return unsupported(path + ".single_word", "is true, which is not supported");
    if (token.normalized && parts_.nfc) token.spelling = to_nfc({token.spelling, {}}).text;
    return token;
  }

  Result<void> check_added_token(const AddedToken& token, const std::string& path) {
    if (token.spelling.empty()) return corrupt(path + ".content", "is empty");
    if (token.spelling.size() > AddedTokens::kMaxSpellingBytes) {
      return unsupported(path + ".content", fmt::format("has {} bytes, at most {} are supported", token.spelling.size(),
                                                        AddedTokens::kMaxSpellingBytes));
    }
    if (!added_ids_.insert(token.id).second) return corrupt(path + ".id", fmt::format("gives {} again", token.id));
    if (!added_spellings_.insert(token.spelling).second) return corrupt(path + ".content", "is there twice");
    const json::Value* in_vocab = vocab_->if_contains(token.spelling);
    if (in_vocab && in_vocab->get_int64() != token.id) {
      return corrupt(path + ".id", fmt::format("is {}, but model.vocab says {}", token.id, in_vocab->get_int64()));
    }
    if (!in_vocab && std::binary_search(vocab_ids_.begin(), vocab_ids_.end(), token.id)) {
      return corrupt(path + ".id", fmt::format("is {}, which model.vocab gives to another token", token.id));
    }
    return {};
  }

  static std::string quoted(std::string_view text) {
    std::string out;
    append_json_string(out, text.substr(0, 64));
    return out;
  }

  const std::string& name_;
  TokenizerParts parts_;
  const json::Object* vocab_ = nullptr;
  std::vector<std::int32_t> vocab_ids_;  // ascending
  std::unordered_set<std::int32_t> added_ids_;
  std::unordered_set<std::string> added_spellings_;
};

}  // namespace

Result<TokenizerParts> read_tokenizer_json(std::string_view text, const std::string& name) {
  if (text.size() > kMaxFileBytes) {
    return failure(ErrorCode::Unsupported,
                   fmt::format("{}: has {} bytes, at most {} are read", name, text.size(), kMaxFileBytes));
  }
  const Result<json::Value> document = parse_json(text);
  if (!document) return failure(ErrorCode::Corrupt, fmt::format("{}: {}", name, document.error().message));
  return TokenizerReader(name).read(*document);
}

}  // namespace rondo
