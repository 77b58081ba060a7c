// Tally: how one check of the selfcheck went, comparison by comparison.
#pragma once

#include <functional>
#include <string>

namespace rondo {

class Tally {
 public:
  using Shown = std::function<void(const Tally&)>;  // called after every comparison
  explicit Tally(Shown shown) : shown_(std::move(shown)) {}

  void expect(int total) {
    total_ = total;
    shown_(*this);
  }
  // describe() says what differed, in words; it is asked only for the first that did.
  template <class Describe>
  void see(bool holds, Describe describe) {
    ++seen_;
    if (holds) {
      ++held_;
    } else if (failure_.empty()) {
      failure_ = describe();
    }
    shown_(*this);
  }
  void note(std::string words) { note_ = std::move(words); }
  void skip(std::string why) { skipped_ = std::move(why); }

  int held() const { return held_; }
  int seen() const { return seen_; }
  int total() const { return total_; }  // comparisons there are to make
  // A check that made fewer comparisons than it meant to has not held.
  bool holds() const { return is_skipped() || (held_ == seen_ && seen_ == total_ && total_ > 0); }
  bool is_skipped() const { return !skipped_.empty(); }
  const std::string& skipped() const { return skipped_; }
  const std::string& failure() const { return failure_; }
  const std::string& note() const { return note_; }

 private:
  Shown shown_;
  int held_ = 0, seen_ = 0, total_ = 0;
  std::string failure_, note_, skipped_;
};

}  // namespace rondo
