// ThinkingBudget: a bound on the tokens of a thought that the prompt has opened.
//
// When that many have come and the thought is still open, the closing tokens are the only ones allowed, one after
// another; after them, or after a thought that closed by itself, anything goes. So a budget is a rule like any other:
// drafts past it are cut, and the model draws the forced tokens at their own positions.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/request.h"

namespace rondo {

class ThinkingBudget final : public TokenRule {
 public:
  // closing: ends in end_id, the token that closes a thought, which stands nowhere else in it. other: another rule of
  // the same reply, which is told of every token and decides wherever no token is forced; may be null.
  ThinkingBudget(int budget_tokens, std::vector<std::int32_t> closing, std::int32_t end_id,
                 std::shared_ptr<TokenRule> other);

  void reserve(int most_drafts) override;
  void allow_after(std::span<const std::int32_t> drafts, std::span<std::uint32_t> mask) override;
  void accept(std::int32_t token) override;

 private:
  // What the tokens so far decide.
  struct Thought {
    int num_tokens = 0;
    bool is_closed = false;
  };
  void step(Thought& thought, std::int32_t token) const;

  int budget_tokens_;
  std::vector<std::int32_t> closing_;
  std::int32_t end_id_;
  std::shared_ptr<TokenRule> other_;
  Thought thought_;
};

}  // namespace rondo
