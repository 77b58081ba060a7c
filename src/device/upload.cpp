#include "device/upload.h"

#include <algorithm>
#include <cstring>

namespace rondo {

namespace {
constexpr std::size_t kPinnedBytes = std::size_t{32} << 20;
constexpr int kPieceBytes = 1 << 18;  // of a copy, handed to a thread at a time
}  // namespace

Result<Upload> Upload::make(Stream& stream, ThreadPool& pool, Report report) {
  Upload made(stream, pool, std::move(report));
  for (Buffer& each : made.pinned_) {
    TRY(each, reserve_host_for(stream.isa(), kPinnedBytes, "uploading weights"));
  }
  return made;
}

void Upload::put(void* to, const void* from, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += kPinnedBytes) {
    const std::size_t size = std::min(kPinnedBytes, bytes - at);
    std::byte* room = pinned_[next_].data();
    const auto* source = static_cast<const std::byte*>(from) + at;
    const auto pieces = static_cast<int>((size + kPieceBytes - 1) / kPieceBytes);
    pool_->split(pieces, 1, [&](int begin, int end) {
      const std::size_t first = static_cast<std::size_t>(begin) * kPieceBytes;
      std::memcpy(room + first, source + first, std::min(size, static_cast<std::size_t>(end) * kPieceBytes) - first);
    });
    stream_->wait_for_mark();  // the other buffer has left
    stream_->upload(static_cast<std::byte*>(to) + at, room, size);
    stream_->mark();
    next_ = 1 - next_;
    done_bytes_ += size;
    if (report_) report_(done_bytes_);
  }
}

void Upload::finish() { stream_->wait(); }

}  // namespace rondo
