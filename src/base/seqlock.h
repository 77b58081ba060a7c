// Seqlock: the value one thread published last, for any number of threads to read without ever making it wait.
//
// A reader copies the value and copies again when a store went on meanwhile, which its count tells: odd while one is
// under way. Words are stored with release and read with acquire, so that a reader that saw any word of a store also
// sees that store's count; no fences, which ThreadSanitizer does not follow.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace rondo {

template <class T>
class Seqlock {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  explicit Seqlock(const T& value = T{}) { store(value); }

  // One thread at a time. No lock, no allocation.
  void store(const T& value) {
    Words words{};
    std::memcpy(words.data(), static_cast<const void*>(&value), sizeof(T));
    const std::uint64_t count = count_.load(std::memory_order_relaxed);
    count_.store(count + 1, std::memory_order_relaxed);
    for (std::size_t i = 0; i < kWords; ++i) words_[i].store(words[i], std::memory_order_release);
    count_.store(count + 2, std::memory_order_release);
  }

  // Any thread: a value that was stored, whole.
  T load() const {
    while (true) {
      const std::uint64_t before = count_.load(std::memory_order_acquire);
      Words words;
      for (std::size_t i = 0; i < kWords; ++i) words[i] = words_[i].load(std::memory_order_acquire);
      if (before % 2 != 0 || count_.load(std::memory_order_relaxed) != before) continue;
      T value;
      std::memcpy(static_cast<void*>(&value), words.data(), sizeof(T));
      return value;
    }
  }

 private:
  static constexpr std::size_t kWords = (sizeof(T) + 7) / 8;
  using Words = std::array<std::uint64_t, kWords>;
  std::atomic<std::uint64_t> count_{0};
  std::array<std::atomic<std::uint64_t>, kWords> words_{};
};

}  // namespace rondo
