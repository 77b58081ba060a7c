#include "grammar/dfa_product.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/check.h"

namespace rondo::grammar {

namespace {

constexpr std::uint32_t kDead = 0xFFFFFFFF;  // of b: nothing it matches can come any more

// The edge of `edges` that holds `byte`, or the one after it; for a byte that only rises.
const ByteEdge* skip_to(const ByteEdge* at, const ByteEdge* end, int byte) {
  while (at != end && at->high < byte) ++at;
  return at;
}

class Pairing {
 public:
  Pairing(const Dfa& a, const Dfa& b, Product kind, Budget& budget) : a_(a), b_(b), kind_(kind), budget_(budget) {}

  Dfa run() {
    number_of(0, 0);
    for (std::size_t i = 0; i < pairs_.size() && !budget_.is_spent(); ++i) {
      const auto [a, b] = pairs_[i];
      product_.first_edge.push_back(static_cast<std::uint32_t>(product_.edges.size()));
      product_.first_call.push_back(0);
      const bool b_accepts = b != kDead && b_.accepts[b];
      product_.accepts.push_back(a_.accepts[a] && b_accepts == (kind_ == Product::Both));
      add_edges(a, b);
    }
    product_.first_edge.push_back(static_cast<std::uint32_t>(product_.edges.size()));
    product_.first_call.push_back(0);
    return std::move(product_);
  }

 private:
  std::uint32_t number_of(std::uint32_t a, std::uint32_t b) {
    const auto [found, is_new] =
        numbers_.try_emplace(std::uint64_t{a} << 32 | b, static_cast<std::uint32_t>(pairs_.size()));
    if (is_new && budget_.take_states(1)) pairs_.emplace_back(a, b);
    return found->second;
  }

  void add_edges(std::uint32_t a, std::uint32_t b) {
    const auto b_edges = b == kDead ? std::span<const ByteEdge>() : b_.edges_of(b);
    const ByteEdge* other = b_edges.data();
    const ByteEdge* const end = other + b_edges.size();
    for (const ByteEdge& edge : a_.edges_of(a)) {
      for (int low = edge.low; low <= edge.high;) {
        if (!budget_.take_work(4)) return;
        other = skip_to(other, end, low);
        const bool inside = other != end && other->low <= low;
        int high = edge.high;
        if (inside) high = std::min<int>(high, other->high);
        if (!inside && other != end) high = std::min<int>(high, other->low - 1);
        if (inside || kind_ == Product::Without) {
          const std::uint32_t target = number_of(edge.target, inside ? other->target : kDead);
          product_.edges.push_back({static_cast<std::uint8_t>(low), static_cast<std::uint8_t>(high), target});
        }
        low = high + 1;
      }
    }
  }

  const Dfa& a_;
  const Dfa& b_;
  const Product kind_;
  Budget& budget_;
  Dfa product_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs_;
  std::unordered_map<std::uint64_t, std::uint32_t> numbers_;
};

}  // namespace

Dfa make_product(const Dfa& a, const Dfa& b, Product kind, Budget& budget) {
  CHECK(a.calls.empty() && b.calls.empty());
  return Pairing(a, b, kind, budget).run();
}

}  // namespace rondo::grammar
