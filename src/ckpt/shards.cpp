#include "ckpt/shards.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <optional>

#include "base/json.h"

namespace rondo {

namespace {

namespace fs = std::filesystem;
using Kind = ProblemLog::Kind;

constexpr const char* kIndexFile = "model.safetensors.index.json";
constexpr const char* kSingleFile = "model.safetensors";
constexpr std::string_view kSuffix = ".safetensors";
constexpr std::uint64_t kMaxIndexBytes = 256u << 20;  // ten times that of the largest published checkpoint

struct IndexEntry {
  std::string tensor;  // as stored
  std::string file;
};

// A file of this folder and no other: an index comes from strangers.
bool is_plain_name(std::string_view file) {
  const auto is_odd = [](char c) { return c == '/' || c == '\\' || static_cast<unsigned char>(c) < 0x20 || c == 0x7F; };
  return file.size() > kSuffix.size() && file.size() <= 255 && file.ends_with(kSuffix) &&
         std::none_of(file.begin(), file.end(), is_odd);
}

std::string_view text_of(const json::Value& value) { return value.get_string(); }

// The index's entries in its order; nullopt when there is none or it is unusable (then its problem is logged).
std::optional<std::vector<IndexEntry>> read_index(const std::string& folder, ProblemLog& log) {
  std::error_code ignored;
  if (!fs::exists(fs::symlink_status(fs::path(folder) / kIndexFile, ignored))) return std::nullopt;
  const auto file = open_inside(folder, kIndexFile, kMaxIndexBytes);
  if (!file) {
    log.add(kIndexFile, file.error());
    return std::nullopt;
  }
  const auto bytes = file->bytes();
  const auto document = parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (!document) {
    log.add(kIndexFile, Error{ErrorCode::Corrupt, document.error().message});
    return std::nullopt;
  }
  const json::Value* map = document->is_object() ? document->get_object().if_contains("weight_map") : nullptr;
  if (map == nullptr || !map->is_object()) {
    log.add(kIndexFile, Kind::Other, "weight_map is missing or not an object");
    return std::nullopt;
  }
  std::vector<IndexEntry> entries;
  for (const auto& member : map->get_object()) {
    const std::string tensor(member.key());
    if (!member.value().is_string() || !is_plain_name(text_of(member.value()))) {
      log.add(kIndexFile, Kind::Other,
              fmt::format("tensor {}: its file is not the plain name of a .safetensors file", tensor.substr(0, 200)));
      continue;
    }
    entries.push_back({tensor, std::string(text_of(member.value()))});
  }
  return entries;
}

std::vector<std::string> safetensors_files(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::string file = it->path().filename().string();
    if (file.ends_with(kSuffix)) files.push_back(std::move(file));
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::optional<Shard> open_shard(const std::string& folder, const std::string& file, ProblemLog& log) {
  auto bytes = open_inside(folder, file, std::numeric_limits<std::uint64_t>::max());
  if (!bytes) {
    log.add(file, bytes.error());
    return std::nullopt;
  }
  auto header = parse_safetensors(bytes->bytes());
  if (!header) {
    log.add(file, header.error());
    return std::nullopt;
  }
  for (const std::string& fault : header->faults) log.add(file, Kind::Fault, fault);
  return Shard{file, *std::move(bytes), *std::move(header)};
}

// Every tensor of every shard under its canonical name; a name met twice keeps its first place and is a problem.
void list_tensors(ShardSet& set, ProblemLog& log) {
  for (const Shard& shard : set.shards) {
    for (const StoredTensor& stored : shard.header.tensors) {
      const std::string_view name = canonical_name(stored.name);
      if (name.empty()) continue;
      if (!stored.sound) {
        set.accounted.emplace(name);
        continue;
      }
      const auto [place, is_new] = set.tensors.try_emplace(std::string(name), FoundTensor{&shard, &stored});
      if (is_new) continue;
      const FoundTensor& first = place->second;
      log.add(shard.file, Kind::Twice,
              fmt::format("tensor {} is also in {} (as {})", stored.name, first.shard->file, first.stored->name));
    }
  }
}

// Every tensor that the index names must be in the file it names.
void check_index(const std::vector<IndexEntry>& index, ShardSet& set, ProblemLog& log) {
  ByName<ByName<const StoredTensor*>> by_file;
  for (const Shard& shard : set.shards) {
    auto& names = by_file[shard.file];
    for (const StoredTensor& stored : shard.header.tensors) names.emplace(stored.name, &stored);
  }
  for (const auto& [tensor, file] : index) {
    const auto names = by_file.find(file);
    const bool shard_is_read = names != by_file.end();
    if (shard_is_read && names->second.contains(tensor)) continue;
    set.accounted.emplace(canonical_name(tensor));
    if (!shard_is_read) continue;  // the file's own problem says why
    const auto elsewhere = set.tensors.find(canonical_name(tensor));
    const std::string where = elsewhere == set.tensors.end() ? "" : ", it is in " + elsewhere->second.shard->file;
    log.add(file, Kind::NotInShard,
            fmt::format("tensor {}: {} says it is in this file, but it is not{}", tensor, kIndexFile, where));
  }
}

std::vector<std::string> files_of(const std::vector<IndexEntry>& index) {
  std::vector<std::string> files;
  std::unordered_set<std::string> seen;
  for (const IndexEntry& entry : index) {
    if (seen.insert(entry.file).second) files.push_back(entry.file);
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

std::string_view canonical_name(std::string_view stored_name) {
  for (const std::string_view vision : {"model.visual.", "visual."}) {
    if (stored_name.starts_with(vision)) return {};
  }
  for (const std::string_view prefix : {"model.language_model.", "model."}) {
    if (stored_name.starts_with(prefix)) return stored_name.substr(prefix.size());
  }
  return stored_name;
}

Result<MmapFile> open_inside(const std::string& folder, const std::string& file, std::uint64_t max_bytes) {
  const fs::path path = fs::path(folder) / file;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) return failure(ErrorCode::NotFound, file + ": missing");
  if (error) return failure(ErrorCode::Io, fmt::format("{}: {}", file, error.message()));
  if (!fs::is_regular_file(status)) return failure(ErrorCode::Corrupt, file + ": not a regular file");
  auto opened = MmapFile::open(path.string());
  if (!opened) {
    std::string message = opened.error().message;
    if (message.starts_with(path.string())) message = file + message.substr(path.string().size());
    return failure(opened.error().code, message);
  }
  if (opened->bytes().size() > max_bytes) {
    const auto why = fmt::format("{}: {} bytes, more than the limit of {}", file, opened->bytes().size(), max_bytes);
    return failure(ErrorCode::Corrupt, why);
  }
  return opened;
}

ShardSet open_shards(const std::string& folder, ProblemLog& log) {
  ShardSet set;
  const auto index = read_index(folder, log);
  const std::vector<std::string> present = safetensors_files(folder);
  const std::vector<std::string> wanted = index ? files_of(*index) : present;
  if (wanted.empty())
    log.add(kSingleFile, Kind::File, "missing: there is no .safetensors file here", ErrorCode::NotFound);
  set.shards.reserve(wanted.size());  // FoundTensor points to its shard
  for (const std::string& file : wanted) {
    auto shard = open_shard(folder, file, log);
    if (shard) {
      set.shards.push_back(*std::move(shard));
    } else if (!index) {
      set.may_hold_more = true;
    }
  }
  if (wanted.empty()) set.may_hold_more = true;
  set.list_file = index ? kIndexFile : wanted.size() == 1 ? wanted.front() : kSingleFile;
  list_tensors(set, log);
  if (index) {
    check_index(*index, set, log);
    std::set_difference(present.begin(), present.end(), wanted.begin(), wanted.end(),
                        std::back_inserter(set.unread_files));
  }
  return set;
}

}  // namespace rondo
