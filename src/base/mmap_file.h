// MmapFile: a file's bytes, read-only, mapped for as long as the object lives.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/result.h"

namespace rondo {

class MmapFile {
 public:
  // NotFound or Io, naming the path. An empty file maps to an empty span.
  static Result<MmapFile> open(const std::string& path);
  MmapFile(MmapFile&& other) noexcept;
  MmapFile& operator=(MmapFile&& other) noexcept;
  ~MmapFile();

  std::span<const std::byte> bytes() const { return {data_, size_bytes_}; }

 private:
  MmapFile(const std::byte* data, std::size_t size_bytes) : data_(data), size_bytes_(size_bytes) {}
  const std::byte* data_ = nullptr;
  std::size_t size_bytes_ = 0;
};

Result<std::string> read_file(const std::string& path);  // small text files: config.json, templates

}  // namespace rondo
