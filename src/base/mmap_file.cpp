#include "base/mmap_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace rondo {

namespace {

tl::unexpected<Error> system_failure(const std::string& path) {
  const int error = errno;
  const ErrorCode code = error == ENOENT || error == ENOTDIR ? ErrorCode::NotFound : ErrorCode::Io;
  return failure(code, fmt::format("{}: {}", path, std::strerror(error)));
}

}  // namespace

Result<MmapFile> MmapFile::open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return system_failure(path);
  struct stat status {};
  if (::fstat(fd, &status) != 0) {
    auto error = system_failure(path);
    ::close(fd);
    return error;
  }
  if (!S_ISREG(status.st_mode)) {
    ::close(fd);
    return failure(ErrorCode::Io, fmt::format("{}: not a regular file", path));
  }
  const auto size_bytes = static_cast<std::size_t>(status.st_size);
  if (size_bytes == 0) {
    ::close(fd);
    return MmapFile(nullptr, 0);
  }
  void* data = ::mmap(nullptr, size_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
  if (data == MAP_FAILED) {
    auto error = system_failure(path);
    ::close(fd);
    return error;
  }
  ::close(fd);
  return MmapFile(static_cast<const std::byte*>(data), size_bytes);
}

MmapFile::MmapFile(MmapFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_bytes_(std::exchange(other.size_bytes_, 0)) {}

MmapFile& MmapFile::operator=(MmapFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_bytes_, other.size_bytes_);
  return *this;
}

MmapFile::~MmapFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_bytes_);
}

Result<std::string> read_file(const std::string& path) {
  TRY(const MmapFile file, MmapFile::open(path));
  const auto bytes = file.bytes();
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

}  // namespace rondo
