// Stop strings: wherever a text is cut into pieces, the reply ends before the first of them.

#include "engine/stop_matcher.h"

#include <gtest/gtest.h>

#include <random>

namespace rondo {
namespace {

struct Outcome {
  std::string shown;
  std::optional<std::string> found;
  bool operator==(const Outcome&) const = default;
};

// The text up to its first stop string, by looking at all of it: the earliest end decides which is found first, as the
// text comes byte by byte; of those that end together the one that begins first.
Outcome oracle(const std::string& text, const std::vector<std::string>& stops) {
  for (std::size_t end = 0; end <= text.size(); ++end) {
    const std::string* which = nullptr;
    for (const std::string& stop : stops) {
      if (stop.empty() || !std::string_view(text).substr(0, end).ends_with(stop)) continue;
      if (which == nullptr || stop.size() > which->size()) which = &stop;
    }
    if (which != nullptr) return {text.substr(0, end - which->size()), *which};
  }
  return {text, std::nullopt};
}

Outcome run(const std::vector<std::string>& pieces, const std::vector<std::string>& stops) {
  StopMatcher matcher(stops);
  Outcome outcome;
  for (const std::string& piece : pieces) {
    const std::size_t before = outcome.shown.size();
    matcher.push(piece, outcome.shown);
    EXPECT_TRUE(!outcome.found || outcome.shown.size() == before);  // nothing more once it is found
    outcome.found = matcher.found();
  }
  if (!outcome.found) matcher.finish(outcome.shown);
  return outcome;
}

TEST(StopMatcher, EveryCutOfEveryTextEndsAtTheSameByte) {
  const std::vector<std::vector<std::string>> sets = {{"ab"},     {"aab"}, {"abab", "b"},  {"aaa"},
                                                      {"", "ba"}, {},      {"abba", "bab"}};
  for (const auto& stops : sets) {
    for (int length = 0; length <= 7; ++length) {
      for (int bits = 0; bits < 1 << length; ++bits) {
        std::string text;
        for (int i = 0; i < length; ++i) text += (bits >> i & 1) != 0 ? 'b' : 'a';
        // Pieces of one byte: the oracle's own order.
        std::vector<std::string> bytes;
        for (const char c : text) bytes.emplace_back(1, c);
        ASSERT_EQ(run(bytes, stops), oracle(text, stops)) << text;
        if (stops.size() > 1) continue;  // of two in one piece the one that begins first counts: see below
        for (int cuts = 0; cuts < 1 << std::max(0, length - 1); ++cuts) {
          std::vector<std::string> pieces(1);
          for (int i = 0; i < length; ++i) {
            pieces.back() += text[static_cast<std::size_t>(i)];
            if (i + 1 < length && (cuts >> i & 1) != 0) pieces.emplace_back();
          }
          ASSERT_EQ(run(pieces, stops), oracle(text, stops)) << text << " cut " << cuts;
        }
      }
    }
  }
}

TEST(StopMatcher, OfTwoInOnePieceTheOneThatBeginsFirstCounts) {
  EXPECT_EQ(run({"xabcy"}, {"bc", "abc"}), (Outcome{"x", "abc"}));
  EXPECT_EQ(run({"xbcabc"}, {"abc", "bc"}), (Outcome{"x", "bc"}));
}

TEST(StopMatcher, WhatMayStillBecomeAStopIsHeldBackAndNoMore) {
  StopMatcher matcher({"stop!", "top"});
  std::string shown;
  matcher.push("a s", shown);
  EXPECT_EQ(shown, "a ");
  matcher.push("to", shown);
  EXPECT_EQ(shown, "a ");
  matcher.push("w", shown);
  EXPECT_EQ(shown, "a stow");
  matcher.push("st", shown);
  matcher.finish(shown);
  EXPECT_EQ(shown, "a stowst");
  EXPECT_FALSE(matcher.found());
}

}  // namespace
}  // namespace rondo
