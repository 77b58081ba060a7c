// Memory that is reserved once: Buffer owns it, and the plan says what it is for. tensor/arena.h hands it out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace rondo {

constexpr std::size_t kAlignment = 64;  // bytes: a cache line, and the widest vector

// Pages from the operating system, zeroed and touched: reserving them is having them.
class Buffer {
 public:
  static Result<Buffer> reserve(std::size_t size_bytes, const std::string& what);  // Io, naming `what` and the size
  Buffer() = default;
  using Release = void (*)(std::byte* data, std::size_t size_bytes);
  Buffer(std::byte* data, std::size_t size_bytes, Release release)  // adopts: device/cuda has memory of its own kind
      : data_(data), size_bytes_(size_bytes), release_(release) {}
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();

  std::byte* data() const { return data_; }
  std::size_t size_bytes() const { return size_bytes_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_bytes_ = 0;
  Release release_ = nullptr;
};

// What is reserved, line by line, before anything is.
struct MemoryPlan {
  // In use as a whole, or as KV blocks or slots are held. AsUsed: address space alone, in no sum; memory comes to it as
  // it is used.
  enum class Held { Always, ByBlocks, BySlots, AsUsed };
  struct Item {
    std::string what;
    std::uint64_t bytes = 0;
    bool mapped = false;  // stays in the mapped file, not reserved
    Held held = Held::Always;
  };
  std::vector<Item> lines;
  std::uint64_t reserved_bytes() const;
  std::string to_string() const;  // a table, one line an item, total last
};

}  // namespace rondo
