#include "device/memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace rondo {

namespace {

std::string human_bytes(std::uint64_t bytes) {
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / 1048576.0);
}

}  // namespace

Result<Buffer> Buffer::reserve(std::size_t size_bytes, const std::string& what) {
  if (size_bytes == 0) return Buffer();
  void* data = ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    return failure(ErrorCode::Io,
                   fmt::format("cannot reserve {} for {}: {}", human_bytes(size_bytes), what, std::strerror(errno)));
  }
  ::madvise(data, size_bytes, MADV_HUGEPAGE);
  std::memset(data, 0, size_bytes);  // touch every page now, not under a request
  return Buffer(static_cast<std::byte*>(data), size_bytes, [](std::byte* at, std::size_t size) { ::munmap(at, size); });
}

Buffer::Buffer(Buffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_bytes_(std::exchange(other.size_bytes_, 0)),
      release_(other.release_) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_bytes_, other.size_bytes_);
  std::swap(release_, other.release_);
  return *this;
}

Buffer::~Buffer() {
  if (data_ != nullptr) release_(data_, size_bytes_);
}

std::uint64_t MemoryPlan::reserved_bytes() const {
  std::uint64_t total = 0;
  for (const Item& line : lines) {
    if (!line.mapped && line.held != Held::AsUsed) total += line.bytes;
  }
  return total;
}

std::string MemoryPlan::to_string() const {
  std::string out;
  for (const Item& line : lines) {
    const char* note = line.mapped ? "  mapped" : line.held == Held::AsUsed ? "  of address space" : "";
    out += fmt::format("  {:<44} {:>12}{}\n", line.what, human_bytes(line.bytes), note);
  }
  return out + fmt::format("  {:<44} {:>12}\n", "reserved in all", human_bytes(reserved_bytes()));
}

}  // namespace rondo
