// Heap: where one render's values live, and the account that keeps a hostile template or request bounded.
//
// Values are never freed one by one: everything is dropped at once when the render ends. So objects are trivially
// destructible, may point at each other in cycles, and the bytes ever made bound the bytes alive.
//
// Inside this folder, and only here, an error is a Fault thrown: an interpreter's errors unwind through every operator,
// and chat_template.cpp, the one catcher, turns them into Result. Nothing thrown leaves the folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace rondo::jinja {

// The sandbox. A conversation of a million tokens stays far below each; past them a render ends in words.
constexpr std::size_t kMaxOutputBytes = std::size_t{64} << 20;      // of one render, or of one captured block
constexpr std::size_t kMaxHeapBytes = std::size_t{256} << 20;       // of all values a render makes
constexpr std::size_t kMaxTemplateBytes = std::size_t{4} << 20;     // of a template's source
constexpr std::uint64_t kMaxSteps = 20'000'000;                     // expressions evaluated, elements visited
constexpr std::uint64_t kMaxTouchedBytes = std::uint64_t{1} << 30;  // of text read or copied
constexpr std::uint64_t kMaxLoopTurns = 1'000'000;                  // of all loops together
constexpr std::int64_t kMaxRange = 100'000;                         // as jinja2's sandbox
constexpr int kMaxDepth = 800;                                      // nested evaluations: macros, recursive loops
constexpr int kMaxValueDepth = 200;                                 // lists in lists, when printed or compared
constexpr int kMaxNesting = 150;  // of a template's blocks and expressions, when parsed

struct Fault {
  std::string message;
  bool verbatim = false;  // raise_exception's own words: no name and line before them
  int line = 0;           // 0: wherever the interpreter stood
};
[[noreturn]] void fault(std::string message);
[[noreturn]] void fault_at(int line, std::string message);

class Heap {
 public:
  Heap() = default;
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  template <class T, class... Args>
  T* make(Args&&... args) {
    static_assert(std::is_trivially_destructible_v<T>);
    return ::new (take(sizeof(T))) T{std::forward<Args>(args)...};
  }
  template <class T>
  T* array(std::size_t n) {  // n value-initialised elements
    static_assert(std::is_trivially_destructible_v<T>);
    if (n > kMaxHeapBytes / sizeof(T)) out_of_memory();
    return ::new (take(n * sizeof(T))) T[n]();
  }
  char* bytes(std::size_t n) { return static_cast<char*>(take(n)); }

  void step(std::uint64_t n = 1) {
    steps_ += n;
    if (steps_ > kMaxSteps) out_of_steps();
  }
  void touch(std::size_t n) {  // text of n bytes is about to be read or copied
    touched_bytes_ += n;
    if (touched_bytes_ > kMaxTouchedBytes) out_of_steps();
  }

 private:
  friend class Nested;
  void* take(std::size_t n);
  [[noreturn]] static void out_of_memory();
  [[noreturn]] static void out_of_steps();

  std::vector<std::unique_ptr<std::byte[]>> chunks_;
  std::byte* free_ = nullptr;
  std::size_t free_bytes_ = 0;
  std::size_t used_bytes_ = 0;
  std::uint64_t steps_ = 0;
  std::uint64_t touched_bytes_ = 0;
  int value_depth_ = 0;
};

// One level deeper into a value that is printed, compared or hashed, for as long as it lives.
class Nested {
 public:
  explicit Nested(Heap& heap) : heap_(heap) {
    if (++heap_.value_depth_ > kMaxValueDepth) too_deep();
  }
  ~Nested() { --heap_.value_depth_; }
  Nested(const Nested&) = delete;
  Nested& operator=(const Nested&) = delete;

 private:
  void too_deep() {
    --heap_.value_depth_;  // the destructor does not run when the constructor throws
    fault("a value nests deeper than " + std::to_string(kMaxValueDepth));
  }
  Heap& heap_;
};

}  // namespace rondo::jinja
