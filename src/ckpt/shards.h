// ShardSet: the safetensors files of a folder, mapped and their headers read, with every tensor under its canonical
// name. Knows the index and the files, not the model: what a tensor should look like is for check.h.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/mmap_file.h"
#include "ckpt/problem_log.h"
#include "ckpt/safetensors.h"

namespace rondo {

struct Shard {
  std::string file;
  MmapFile bytes;
  SafetensorsHeader header;
};

struct FoundTensor {
  const Shard* shard;
  const StoredTensor* stored;
  const void* data() const { return shard->bytes.bytes().data() + stored->begin; }
};

struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};
template <class T>
using ByName = std::unordered_map<std::string, T, TextHash, std::equal_to<>>;

struct ShardSet {
  std::vector<Shard> shards;
  ByName<FoundTensor> tensors;                // by canonical name; sound ones only
  std::unordered_set<std::string> accounted;  // canonical names whose absence a problem already explains
  bool may_hold_more = false;                 // a file could not be read and no index says what was in it
  std::string list_file;                      // where a missing tensor would be listed: the index or the only file
  std::vector<std::string> unread_files;
};

// Without `model.`, `model.language_model.`, `language_model.model.` and `language_model.`; empty for the vision tower.
std::string_view canonical_name(std::string_view stored_name);

// Opens a file of the folder; the message does not repeat the path. Only regular files are opened (a pipe would wait).
Result<MmapFile> open_inside(const std::string& folder, const std::string& file, std::uint64_t max_bytes);

ShardSet open_shards(const std::string& folder, ProblemLog& log);

}  // namespace rondo
