#include "grammar/matcher.h"

#include <algorithm>
#include <functional>

#include "base/check.h"

namespace rondo::grammar {

namespace {

constexpr std::uint32_t kMostStackNodes = kMostReadings * kMostHeight;  // of one place
constexpr std::uint32_t kKeptSlots = 2 * kMostStackNodes;               // a power of two
constexpr std::size_t kMostSeen = 256;                                  // readings looked at between two bytes
constexpr std::uint32_t kMostPushed = 2 * kMostReadings;                // stack nodes made there

void set_bit(std::span<std::uint32_t> mask, std::int32_t token) {
  mask[static_cast<std::size_t>(token) / 32] |= 1U << (token % 32);
}

bool has_bit(std::span<const std::uint32_t> mask, std::int32_t token) {
  return (mask[static_cast<std::size_t>(token) / 32] >> (token % 32) & 1U) != 0;
}

}  // namespace

Matcher::Matcher(std::shared_ptr<const Automaton> automaton, std::shared_ptr<const Vocabulary> vocabulary)
    : automaton_(std::move(automaton)), vocabulary_(std::move(vocabulary)) {}

void Matcher::reserve(int most_drafts, Start from) {
  const std::size_t steps = vocabulary_->most_token_bytes() + 1;
  places_.resize(2 + static_cast<std::size_t>(most_drafts));
  region_nodes_ = automaton_->pushes ? kMostStackNodes : 0;
  scratch_begin_ = 1 + static_cast<std::uint32_t>(places_.size()) * region_nodes_;
  nodes_.resize(scratch_begin_ + (automaton_->pushes ? steps * kMostPushed : 0));
  readings_.resize((steps + 1) * kMostReadings);
  sets_.resize(steps);
  seen_.reserve(kMostSeen);
  open_.reserve(kMostSeen);
  if (automaton_->pushes) kept_.resize(kKeptSlots);
  masks_.resize(kKeptMasks * vocabulary_->mask_words());
  std::fill(std::begin(mask_states_), std::end(mask_states_), kNoState);
  for (std::size_t i = 0; i < places_.size(); ++i) places_[i].region = static_cast<std::uint32_t>(i);
  Set& start = sets_[0];
  start = {0, 0, scratch_begin_};
  add(start, {from == Start::Here ? automaton_->start : automaton_->start_after_thought, 0});
  close(start);
  keep(start, places_[0]);
}

void Matcher::add(Set& set, const Reading& reading) {
  const auto begin = readings_.begin() + set.begin, end = readings_.begin() + set.end;
  if (set.end - set.begin < kMostReadings && std::find(begin, end, reading) == end) readings_[set.end++] = reading;
}

// The node for `state` on top of `below`: one made in this step when there is one. 0: there is no room for another.
std::uint32_t Matcher::push(Set& set, std::uint32_t first_new, std::uint32_t state, std::uint32_t below) {
  for (std::uint32_t i = first_new; i < set.nodes_end; ++i) {
    if (nodes_[i].state == state && nodes_[i].below == below) return i;
  }
  if (set.nodes_end - first_new == kMostPushed) return 0;
  nodes_[set.nodes_end] = {state, below, height_of(below) + 1};
  return set.nodes_end++;
}

void Matcher::open(const Reading& reading) {
  if (seen_.size() == kMostSeen || height_of(reading.node) + automaton_->height[reading.state] > kMostHeight) return;
  if (std::find(seen_.begin(), seen_.end(), reading) != seen_.end()) return;
  seen_.push_back(reading);
  open_.push_back(reading);
}

// Follows the readings of `set` without a byte, into rules that begin and behind rules that are over, and keeps those
// that can read a byte, or end: they alone count, so that a text is never left with readings that lead nowhere. Each
// way is followed to its end before the next, for the first readings are the ones that are kept when there are many.
void Matcher::close(Set& set) {
  const Automaton& a = *automaton_;
  const std::uint32_t first_new = set.nodes_end;
  seen_.clear();
  open_.clear();
  while (set.end > set.begin) open(readings_[--set.end]);
  while (!open_.empty()) {
    const Reading reading = open_.back();
    open_.pop_back();
    const bool ends = a.accepts[reading.state] != 0;
    if (a.reads(reading.state) || (ends && reading.node == 0)) {
      if (set.end - set.begin == kMostReadings) return;
      readings_[set.end++] = reading;
    }
    const auto calls = a.calls_of(reading.state);
    for (auto call = calls.rbegin(); call != calls.rend(); ++call) {
      if (call->target == kNoState) {
        open({call->rule, reading.node});
        continue;
      }
      const std::uint32_t height = height_of(reading.node);
      if (height + a.height[call->target] > kMostHeight || height + 1 + a.height[call->rule] > kMostHeight) continue;
      if (const std::uint32_t node = push(set, first_new, call->target, reading.node)) open({call->rule, node});
    }
    if (ends && reading.node != 0) open({nodes_[reading.node].state, nodes_[reading.node].below});
  }
}

// Whether there is anything to follow without a byte.
bool Matcher::leads_on(const Reading& reading) const {
  return !automaton_->calls_of(reading.state).empty() || (automaton_->accepts[reading.state] && reading.node != 0);
}

bool Matcher::step(const Set& from, std::uint8_t byte, Set& to) {
  to = {from.end, from.end, from.nodes_end};
  bool is_open = false;
  for (std::uint32_t i = from.begin; i < from.end; ++i) {
    const Reading next{automaton_->next(readings_[i].state, byte), readings_[i].node};
    if (next.state == kNoState) continue;
    add(to, next);
    is_open = is_open || leads_on(next);
  }
  if (is_open) close(to);
  return to.end > to.begin;
}

Matcher::Set Matcher::load(const Place& place) {
  std::copy_n(place.readings, place.num_readings, readings_.begin());
  return {0, place.num_readings, scratch_begin_};
}

// Copies a stack into the place's region, sharing what is there already.
std::uint32_t Matcher::keep_stack(Place& place, std::uint32_t& nodes_end, std::uint32_t node) {
  std::uint32_t chain[kMostHeight];
  std::uint32_t height = 0;
  for (std::uint32_t at = node; at != 0; at = nodes_[at].below) chain[height++] = nodes_[at].state;
  const std::uint32_t region = place.region * region_nodes_;
  std::uint32_t below = 0;
  for (std::uint32_t level = 1; level <= height; ++level) {
    const std::uint32_t state = chain[height - level];
    std::uint32_t slot = (state * 0x9E3779B1U ^ below * 0x85EBCA77U) % kKeptSlots;
    while (kept_[slot] != 0 && !(nodes_[kept_[slot]].state == state && nodes_[kept_[slot]].below == below)) {
      slot = (slot + 1) % kKeptSlots;
    }
    if (kept_[slot] == 0) {
      kept_[slot] = region + nodes_end++;
      nodes_[kept_[slot]] = {state, below, level};
    }
    below = kept_[slot];
  }
  return below;
}

void Matcher::advance(const Place& from, std::int32_t token, Place& to) {
  to.token = token;
  to.num_readings = 0;
  const std::string_view bytes = vocabulary_->bytes_of(token);
  if (bytes.empty()) return;
  sets_[0] = load(from);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (!step(sets_[i], static_cast<std::uint8_t>(bytes[i]), sets_[i + 1])) return;
  }
  keep(sets_[bytes.size()], to);
}

// Copies readings out of the scratch into a place, their stacks into its region.
void Matcher::keep(const Set& set, Place& place) {
  std::uint32_t nodes_end = 1;
  if (automaton_->pushes) std::fill(kept_.begin(), kept_.end(), 0U);
  place.num_readings = 0;
  for (std::uint32_t i = set.begin; i < set.end; ++i) {
    const Reading kept{readings_[i].state, keep_stack(place, nodes_end, readings_[i].node)};
    if (std::find(place.readings, place.readings + place.num_readings, kept) == place.readings + place.num_readings) {
      place.readings[place.num_readings++] = kept;
    }
  }
}

const Matcher::Place& Matcher::after(std::span<const std::int32_t> drafts) {
  CHECK(drafts.size() < places_.size());
  std::size_t same = 0;
  while (same < drafts.size() && same + 1 < num_places_ && places_[same + 1].token == drafts[same]) ++same;
  num_places_ = same + 1;
  for (; same < drafts.size(); ++same, ++num_places_) advance(places_[same], drafts[same], places_[same + 1]);
  return places_[drafts.size()];
}

void Matcher::accept(std::int32_t token) {
  after({&token, 1});
  std::rotate(places_.begin(), places_.begin() + 1, places_.end());  // the place after it is now the first
  num_places_ = 1;
}

bool Matcher::is_dead(const Place& place) const { return place.num_readings == 0; }

bool Matcher::is_complete(const Place& place) const {
  return std::any_of(place.readings, place.readings + place.num_readings,
                     [&](const Reading& reading) { return reading.node == 0 && automaton_->accepts[reading.state]; });
}

void Matcher::allow(const Place& place, std::span<std::uint32_t> mask) {
  CHECK(mask.size() >= vocabulary_->mask_words());
  if (is_dead(place)) return;
  // Without a stack a single state decides, and texts stay in one for long.
  const bool is_known_by_state = place.num_readings == 1 && place.readings[0].node == 0;
  if (!is_known_by_state) return make_mask(place, mask);
  const std::uint32_t state = place.readings[0].state;
  const std::size_t words = vocabulary_->mask_words();
  std::size_t at = 0;
  while (at < kKeptMasks && mask_states_[at] != state) ++at;
  const auto kept = [&] { return std::span(masks_).subspan(at * words, words); };
  if (at == kKeptMasks) {
    at = next_mask_++ % kKeptMasks;
    mask_states_[at] = state;
    std::fill(kept().begin(), kept().end(), 0U);
    make_mask(place, kept());
  }
  std::transform(kept().begin(), kept().end(), mask.begin(), mask.begin(), std::bit_or<>());
}

void Matcher::make_mask(const Place& place, std::span<std::uint32_t> mask) {
  sets_[0] = load(place);
  std::uint8_t free_chars[kNumTextClasses] = {};
  for (std::uint32_t i = 0; i < place.num_readings; ++i) {
    for (int text = 0; text < kNumTextClasses; ++text) {
      free_chars[text] = std::max(free_chars[text], automaton_->free_chars[text][place.readings[i].state]);
    }
  }
  for (const Vocabulary::Group& group : vocabulary_->groups()) {
    bool is_free = false;
    for (int text = 0; text < kNumTextClasses; ++text) {
      is_free = is_free || (group.belongs[text] && free_chars[text] >= group.most_chars);
    }
    if (is_free) {
      for (std::size_t word = 0; word < group.mask.size(); ++word) mask[word] |= group.mask[word];
    } else {
      walk(group.nodes, mask);
    }
  }
  walk(vocabulary_->broken(), mask);
  for (const Vocabulary::Twin& twin : vocabulary_->twins()) {
    if (has_bit(mask, twin.same_as)) set_bit(mask, twin.token);
  }
}

void Matcher::walk(std::span<const Vocabulary::Node> trie, std::span<std::uint32_t> mask) {
  for (std::size_t at = 0; at < trie.size();) {
    const Vocabulary::Node& node = trie[at];
    if (!step(sets_[node.depth - 1U], node.byte, sets_[node.depth])) {
      at = node.skip;
      continue;
    }
    if (node.token >= 0) set_bit(mask, node.token);
    ++at;
  }
}

}  // namespace rondo::grammar
