// GrammarRule: keeps a reply to a grammar, from its first token on or once a thought the prompt opened has ended.
//
// While the thought lasts every token is allowed but those that would end the reply. After it, and line ends that
// follow it, the grammar decides; an end token is allowed exactly when the text is whole. Should a token come that the
// grammar does not have (nothing but logits that are no numbers can bring one), only end tokens are allowed from there
// on.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/request.h"
#include "grammar/grammar.h"
#include "grammar/matcher.h"

namespace rondo {

class GrammarRule final : public TokenRule {
 public:
  // end_ids: at least one, none of them a token of the vocabulary's texts. thought_end_id: the token that closes the
  // thought; none: no thought is open.
  GrammarRule(std::shared_ptr<const grammar::Grammar> grammar, std::shared_ptr<const grammar::Vocabulary> vocabulary,
              std::vector<std::int32_t> end_ids, std::optional<std::int32_t> thought_end_id);

  void reserve(int most_drafts) override;
  void allow_after(std::span<const std::int32_t> drafts, std::span<std::uint32_t> mask) override;
  void accept(std::int32_t token) override;

 private:
  bool ends(std::int32_t token) const;
  void allow_ends(std::span<std::uint32_t> mask) const;

  grammar::Matcher matcher_;
  std::vector<std::int32_t> end_ids_;
  std::optional<std::int32_t> thought_end_id_;
  bool is_thinking_;
  bool is_over_ = false;  // an end token came
};

}  // namespace rondo
