// The row law, on the model's contract: what a row yields (the token drawn and the log probabilities of the likeliest
// 20, bit by bit; the sum under each has every logit in it) against the same row in a forward of its own.
#pragma once

#include <vector>

#include "cli/selfcheck/subject.h"
#include "cli/selfcheck/tally.h"

namespace rondo {

struct RowYield {
  std::int32_t token;
  RowLogprobs logprobs;
};
bool same_bits(const RowYield& a, const RowYield& b);

// Sequences whose ids are known beforehand, so that their rows can be fed in any grouping.
class RowChecks {
 public:
  explicit RowChecks(const Subject& subject);

  void widths(Tally& tally);  // forwards of 1 .. 64 rows of several sequences
  void slices(Tally& tally);  // prompts cut in slices of 1, 7, 64 and not at all
  void folds(Tally& tally);   // windows with rejected drafts, and what follows them
  void head(Tally& tally);    // the head's drafts and probabilities in company

 private:
  // Rows of one sequence: `certain` ones, then `right` drafts that are its own next ids, then `wrong` ones.
  struct Piece {
    int sequence, begin, certain, right = 0, wrong = 0;
  };
  using Chain = std::vector<Drawn>;

  int slot_of(int sequence) const { return kCheckedStreams - 1 - sequence; }
  std::span<const std::int32_t> blocks(int slot) const;
  std::span<const std::int32_t> ids(int sequence, int begin, int count) const;
  void restart(int sequence) { model_.release(slot_of(sequence)); }
  void prefill(int sequence, int begin, int end, bool feeds_head);
  // One forward; commits what is right. What each piece's rows yield, from its last certain row to its last right
  // draft.
  std::vector<std::vector<RowYield>> run(const std::vector<Piece>& pieces, bool feeds_head = false);
  std::vector<RowYield> decode(int sequence, int begin, int end);  // one row a forward
  const std::vector<std::vector<RowYield>>& alone();
  void compare(const std::vector<Piece>& pieces, const std::vector<std::vector<RowYield>>& yields, Tally& tally);
  std::vector<Piece> pieces_of(int width, std::vector<int>& at);

  DraftStream drafting(int sequence, int next_pos) const;
  std::vector<Chain> chains_alone(int sequence);
  std::vector<Chain> chains_together(int trial);

  const Subject& subject_;
  Model& model_;
  std::vector<std::vector<std::int32_t>> ids_;     // [sequences]
  std::vector<std::vector<std::int32_t>> blocks_;  // [slots]
  std::vector<DrawSettings> draw_;                 // [sequences]
  std::vector<std::vector<RowYield>> alone_;       // [sequences, kRows], once asked for
};

}  // namespace rondo
