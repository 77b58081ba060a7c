// Matcher: where one reply stands in its grammar, and which tokens may come next.
//
// It keeps a *place* for the text accepted so far and one for each draft after it. A place is a set of readings
// (automaton.h), each a state and a stack; stacks share their lower ends, as nodes that point down. Places are worked
// out byte by byte in a fixed order, so what is allowed is a function of the grammar and the tokens before: it does not
// matter which of them were drafts once.
//
// All memory is reserved by reserve(); nothing grows afterwards. One thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "grammar/automaton.h"
#include "grammar/vocabulary.h"

namespace rondo::grammar {

class Matcher {
 public:
  Matcher(std::shared_ptr<const Automaton> automaton, std::shared_ptr<const Vocabulary> vocabulary);

  enum class Start { Here, AfterThought };  // AfterThought: line ends may come first (automaton.h)
  void reserve(int most_drafts, Start from);

  // The place after what was accepted and then `drafts`, at most most_drafts of them. Good until the next call that is
  // not const.
  struct Place;
  const Place& after(std::span<const std::int32_t> drafts);

  bool is_dead(const Place& place) const;      // a token came that the grammar does not have
  bool is_complete(const Place& place) const;  // the text so far is whole
  // Sets the bit of every token that may come next. mask: at least the vocabulary's words.
  void allow(const Place& place, std::span<std::uint32_t> mask);
  void accept(std::int32_t token);

 private:
  struct Reading {
    std::uint32_t state, node;
    bool operator==(const Reading&) const = default;
  };
  struct Node {  // where to go on when a rule is over
    std::uint32_t state, below;
    std::uint32_t height;  // of the stack with it
  };
  // Readings that belong together, in readings_, and where free nodes begin once they are there.
  struct Set {
    std::uint32_t begin, end, nodes_end;
  };

 public:
  struct Place {
    std::int32_t token;    // that led here
    std::uint32_t region;  // of nodes_ that holds its stacks
    std::uint32_t num_readings;
    Reading readings[kMostReadings];
  };

 private:
  std::uint32_t height_of(std::uint32_t node) const { return node == 0 ? 0 : nodes_[node].height; }
  void add(Set& set, const Reading& reading);
  void open(const Reading& reading);
  bool leads_on(const Reading& reading) const;
  std::uint32_t push(Set& set, std::uint32_t first_new, std::uint32_t state, std::uint32_t below);
  void close(Set& set);
  bool step(const Set& from, std::uint8_t byte, Set& to);
  Set load(const Place& place);
  void advance(const Place& from, std::int32_t token, Place& to);
  void make_mask(const Place& place, std::span<std::uint32_t> mask);
  void keep(const Set& set, Place& place);
  std::uint32_t keep_stack(Place& place, std::uint32_t& nodes_end, std::uint32_t node);
  void walk(std::span<const Vocabulary::Node> trie, std::span<std::uint32_t> mask);

  std::shared_ptr<const Automaton> automaton_;
  std::shared_ptr<const Vocabulary> vocabulary_;
  std::vector<Place> places_;  // [1 + most_drafts]: accepted, then after each draft
  std::size_t num_places_ = 1;
  std::vector<Node> nodes_;  // [1 + regions + scratch]; 0 is the bottom
  std::uint32_t region_nodes_ = 0, scratch_begin_ = 0;
  std::vector<Reading> readings_;     // scratch, of the sets below
  std::vector<Set> sets_;             // [most token bytes + 1], after each byte of a token
  std::vector<Reading> seen_, open_;  // while a set is closed: all that came up, and those to be followed yet
  static constexpr std::size_t kKeptMasks = 4;
  std::uint32_t mask_states_[kKeptMasks];  // of readings without a stack whose masks are kept
  std::vector<std::uint32_t> masks_;       // [kKeptMasks, mask words]
  std::size_t next_mask_ = 0;              // to be made room in
  std::vector<std::uint32_t> kept_;        // hash table: stack nodes already in the place being made
};

}  // namespace rondo::grammar
