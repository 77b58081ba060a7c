// Vocabulary: the tokens a grammar may choose from, sorted so that a mask is made without looking at each of them.
//
// Tokens whose bytes are whole code points are grouped by class of text (automaton.h) and by length; where the grammar
// lets any such text of that length pass, the group's bits are taken at once. The other groups, and the tokens with a
// part of a code point, are walked as tries against the grammar.
//
// Special tokens are never chosen. An added token that is not special (<tool_call>, </think>) is not the text it is
// spelled with: it is a *tag*, which only a grammar that names it can read, as three bytes that UTF-8 never has.
// Immutable and shared by all threads once made.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "grammar/automaton.h"

namespace rondo {
class Tokenizer;
}

namespace rondo::grammar {

constexpr std::size_t kMostTokenBytes = 255;  // a longer token is never chosen

struct VocabularyToken {
  std::int32_t id;
  std::string bytes;
  bool is_tag = false;
};

class Vocabulary {
 public:
  // A trie in the order of a depth-first walk.
  struct Node {
    std::uint32_t skip;        // the node after its subtree
    std::int32_t token;        // that ends here, or -1
    std::uint8_t byte, depth;  // depth of the root's children: 1
  };
  struct Group {
    bool belongs[kNumTextClasses];    // to which classes of text all its tokens belong
    std::uint8_t most_chars;          // of a token in it
    std::vector<std::uint32_t> mask;  // [mask words]
    std::vector<Node> nodes;
  };
  struct Twin {  // a token with the same bytes as one in a trie
    std::int32_t token, same_as;
  };

  // Of the ids below num_ids, the model's. Unsupported when some byte of UTF-8 text is no token by itself: then a
  // grammar could lead to where no token fits.
  static Result<std::shared_ptr<const Vocabulary>> create(const Tokenizer& tokenizer, int num_ids);
  static Result<std::shared_ptr<const Vocabulary>> create(std::vector<VocabularyToken> tokens);

  std::string_view bytes_of(std::int32_t id) const;  // as a grammar reads them; empty for a token never chosen
  std::string tag(std::string_view spelling) const;  // the tag's bytes when there is one, else the spelling itself

  std::span<const Group> groups() const { return groups_; }
  std::span<const Node> broken() const { return broken_; }  // tokens with part of a code point, and tags
  std::span<const Twin> twins() const { return twins_; }
  std::size_t mask_words() const { return mask_words_; }
  std::size_t most_token_bytes() const { return most_token_bytes_; }
  std::size_t num_bytes() const;  // held

 private:
  Vocabulary() = default;
  struct Tag {
    std::string spelling, bytes;
  };
  std::string text_;                       // bytes of all tokens
  std::vector<std::uint32_t> first_byte_;  // [ids + 1] into text_
  std::vector<Tag> tags_;
  std::vector<Group> groups_;
  std::vector<Node> broken_;
  std::vector<Twin> twins_;
  std::size_t mask_words_ = 0, most_token_bytes_ = 0;
};

}  // namespace rondo::grammar
