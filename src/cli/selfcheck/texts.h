// The draft law, through the engine: what a request is answered with, whoever shares its rounds and however much is
// drafted for it. Each text is held to the one the same request got alone and without drafts: ids, log probabilities
// bit by bit, token_sha.
#pragma once

#include <string>
#include <vector>

#include "cli/selfcheck/subject.h"
#include "cli/selfcheck/tally.h"
#include "engine/request.h"

namespace rondo {

struct Text {
  std::vector<std::int32_t> ids;
  std::vector<RowLogprobs> logprobs;
  std::string token_sha;
  Usage usage;
  std::string failure;  // why it did not end
};

class TextChecks {
 public:
  explicit TextChecks(const Subject& subject);

  // Every request once on slots that nobody has used, for again() to hold its texts to: before any other check.
  void begin_fresh();

  void together(Tally& tally);  // 1 .. 16 streams at once, joining, ending and being cancelled; no drafts
  void drafted(Tally& tally);   // depths 1 .. 8, all streams at once and one by itself
  void again(Tally& tally);     // texts on slots that many have used, against those on fresh ones
  void resumed(Tally& tally);  // texts that go on from kept states: a prompt met before, and a conversation's next turn
  void memory(Tally& tally);   // rounds after which no more memory is held than before

 private:
  struct Stream {
    int request;
    int joins;        // after that many turns of the engine
    int leaves = -1;  // cancelled after that many turns; -1 = never
    int draft_depth = 0;
  };
  Request request(int i, int draft_depth) const;
  std::vector<Text> run(const std::vector<Stream>& streams) const;
  const std::vector<Text>& alone();
  Request next_turn(int i, int draft_depth) const;
  void compare(const Stream& stream, const Text& got, const std::string& where, Tally& tally);

  const Subject& subject_;
  std::vector<std::int32_t> end_id_;  // [requests] the id that ends a reply, -1 = none
  std::vector<Text> fresh_, alone_;   // [requests]; alone_ once asked for
};

}  // namespace rondo
