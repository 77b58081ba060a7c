#include "ckpt/shards.h"

#include <dirent.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <memory>
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
  return file.size() > kSuffix.size() && file.size() <= 255 && file.ends_with(kSuffix) && is_printable_name(file) &&
         file.find_first_of("/\\") == file.npos;
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
    if (!is_printable_name(tensor)) {
      log.add(kIndexFile, Kind::Other, "a tensor's name is empty, too long or holds a control character");
      continue;
    }
    if (!member.value().is_string() || !is_plain_name(text_of(member.value()))) {
      log.add(kIndexFile, Kind::Other,
              fmt::format("tensor {}: its file is not the plain name of a .safetensors file", tensor));
      continue;
    }
    entries.push_back({tensor, std::string(text_of(member.value()))});
  }
  return entries;
}

struct FilesPresent {
  std::vector<std::string> plain, odd;  // odd: no name that we would read or print
};
FilesPresent safetensors_files(const std::string& folder) {
  FilesPresent files;
  // Not by std::filesystem: its iterator ends the program where it gets no memory. A folder that cannot be listed has
  // no files; what is needed from it is missed by name.
  const std::unique_ptr<DIR, int (*)(DIR*)> listed(::opendir(folder.c_str()), ::closedir);
  while (const dirent* entry = listed ? ::readdir(listed.get()) : nullptr) {
    std::string file = entry->d_name;
    if (!file.ends_with(kSuffix)) continue;
    (is_plain_name(file) ? files.plain : files.odd).push_back(std::move(file));
  }
  std::sort(files.plain.begin(), files.plain.end());
  return files;
}

// Without an index a missing shard still shows in the numbers of the others: model-00002-of-00003.safetensors.
std::vector<std::string> missing_siblings(const std::vector<std::string>& files) {
  constexpr std::size_t kDigits = 5;
  constexpr std::string_view kOf = "-of-";
  constexpr std::size_t kTail = kDigits + kOf.size() + kDigits + kSuffix.size();  // "00002-of-00003.safetensors"
  const auto is_number = [](std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  };
  const std::unordered_set<std::string> present(files.begin(), files.end());
  std::unordered_set<std::string> seen_series;
  std::vector<std::string> missing;
  for (const std::string& file : files) {
    if (file.size() < kTail) continue;
    const std::string prefix = file.substr(0, file.size() - kTail);
    const std::string_view tail = std::string_view(file).substr(prefix.size());
    const std::string count(tail.substr(kDigits + kOf.size(), kDigits));
    const bool is_numbered = tail.substr(kDigits, kOf.size()) == kOf && is_number(tail.substr(0, kDigits));
    if (!is_numbered || !is_number(count) || !seen_series.insert(prefix + count).second) continue;
    for (int i = 1, n = std::stoi(count); i <= n; ++i) {
      std::string sibling = fmt::format("{}{:05}{}{}{}", prefix, i, kOf, count, kSuffix);
      if (!present.contains(sibling)) missing.push_back(std::move(sibling));
    }
  }
  return missing;
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
  for (const std::string_view vision : {"model.visual.", "visual.", "vision_tower."}) {
    if (stored_name.starts_with(vision)) return {};
  }
  for (const std::string_view prefix :
       {"model.language_model.", "language_model.model.", "language_model.", "model."}) {
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
  const FilesPresent present = safetensors_files(folder);
  const std::vector<std::string> wanted = index ? files_of(*index) : present.plain;
  if (wanted.empty()) {
    log.add(kSingleFile, Kind::Other, "missing: there is no .safetensors file here", ErrorCode::NotFound);
  }
  set.shards.reserve(wanted.size());  // FoundTensor points to its shard
  for (const std::string& file : wanted) {
    if (auto shard = open_shard(folder, file, log)) set.shards.push_back(*std::move(shard));
  }
  set.list_file = index ? kIndexFile : wanted.size() == 1 ? wanted.front() : kSingleFile;
  list_tensors(set, log);
  set.unread_files = present.odd;
  if (index) {
    check_index(*index, set, log);
    std::set_difference(present.plain.begin(), present.plain.end(), wanted.begin(), wanted.end(),
                        std::back_inserter(set.unread_files));
  } else {
    const std::vector<std::string> missing = missing_siblings(wanted);
    for (const std::string& file : missing) log.add(file, Kind::Other, "missing", ErrorCode::NotFound);
    set.may_hold_more = set.shards.size() < wanted.size() || wanted.empty() || !missing.empty();
  }
  return set;
}

}  // namespace rondo
