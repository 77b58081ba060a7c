#include "ckpt/checkpoint.h"

#include <fmt/format.h>

#include <filesystem>

#include "ckpt/check.h"
#include "ckpt/json_fields.h"
#include "ckpt/shards.h"

namespace rondo {

namespace {

namespace fs = std::filesystem;
using Kind = ProblemLog::Kind;

constexpr std::uint64_t kMaxSettingsBytes = 16u << 20;
constexpr std::uint64_t kMaxTokenizerBytes = 1u << 30;

std::string_view text_of(const MmapFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

// The file, or nullopt where there is none; one that is there and cannot be read is a problem.
std::optional<MmapFile> open_optional(const std::string& folder, const std::string& file, std::uint64_t max_bytes,
                                      ProblemLog& log) {
  auto opened = open_inside(folder, file, max_bytes);
  if (opened) return *std::move(opened);
  if (opened.error().code != ErrorCode::NotFound) log.add(file, opened.error());
  return std::nullopt;
}

GenerationDefaults read_generation_defaults(const std::string& folder, const ModelConfig& config, ProblemLog& log) {
  constexpr const char* kFile = "generation_config.json";
  GenerationDefaults defaults;
  if (const auto file = open_optional(folder, kFile, kMaxSettingsBytes, log)) {
    auto parsed = parse_generation_config(text_of(*file), kFile);
    if (parsed) {
      defaults = *std::move(parsed);
    } else {
      log.add(kFile, parsed.error());
    }
  }
  if (defaults.end_tokens.empty()) defaults.end_tokens = config.end_tokens;
  return defaults;
}

bool read_has_chat_template(const std::string& folder, ProblemLog& log) {
  if (open_optional(folder, "chat_template.jinja", kMaxSettingsBytes, log)) return true;
  constexpr const char* kFile = "tokenizer_config.json";
  const auto file = open_optional(folder, kFile, kMaxSettingsBytes, log);
  if (!file) return false;
  const auto document = parse_settings(text_of(*file), kFile);
  if (!document) {
    log.add(kFile, document.error());
    return false;
  }
  return document->get_object().contains("chat_template");
}

// Formats that the tensors' names alone would not explain to the reader of a message.
void refuse_quantisation(const ModelConfig& config, ProblemLog& log) {
  for (const std::string_view known : {"", "fp8", "modelopt", kMlx}) {
    if (config.quantization == known) return;
  }
  log.add("config.json", Kind::Other,
          fmt::format("quantization_config: {} is not supported; fp8, modelopt (NVFP4, FP8) and MLX affine are",
                      config.quantization),
          ErrorCode::Unsupported);
}

}  // namespace

struct Checkpoint::Files {
  std::string folder;
  ModelConfig config;
  GenerationDefaults generation_defaults;
  ShardSet shards;
  CheckedTensors checked;
  bool has_tokenizer = false;
  bool has_chat_template = false;
  std::vector<Problem> problems;
};

Result<Checkpoint> Checkpoint::inspect(const std::string& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    const bool exists = fs::exists(folder, error);
    return failure(ErrorCode::NotFound, fmt::format("{}: {}", folder, exists ? "not a folder" : "no such folder"));
  }
  TRY(const MmapFile config_file, open_inside(folder, "config.json", kMaxSettingsBytes));
  auto files = std::make_unique<Files>();
  files->folder = folder;
  TRY(files->config, parse_config(text_of(config_file), "config.json"));
  ProblemLog log;
  refuse_quantisation(files->config, log);
  files->shards = open_shards(folder, log);
  files->checked = check_tensors(files->config, files->shards, log);
  files->generation_defaults = read_generation_defaults(folder, files->config, log);
  files->has_tokenizer = open_optional(folder, "tokenizer.json", kMaxTokenizerBytes, log).has_value();
  files->has_chat_template = read_has_chat_template(folder, log);
  files->problems = std::move(log).take();
  return Checkpoint(std::move(files));
}

Result<Checkpoint> Checkpoint::open(const std::string& folder) {
  TRY(Checkpoint checkpoint, inspect(folder));
  if (checkpoint.problems().empty()) return checkpoint;
  const Problem& first = checkpoint.problems().front();
  return failure(first.code, fmt::format("{}: {}", first.file, first.message));
}

Checkpoint::Checkpoint(std::unique_ptr<Files> files) : files_(std::move(files)) {}
Checkpoint::Checkpoint(Checkpoint&&) noexcept = default;
Checkpoint& Checkpoint::operator=(Checkpoint&&) noexcept = default;
Checkpoint::~Checkpoint() = default;

const ModelConfig& Checkpoint::config() const { return files_->config; }
bool Checkpoint::has_mtp() const { return files_->checked.has_mtp; }

std::optional<Tensor> Checkpoint::find(std::string_view name) const {
  const auto found = files_->checked.tensors.find(name);
  if (found != files_->checked.tensors.end()) return found->second;
  const auto weight = find_weight(name);
  return weight && weight->is_plain() ? std::optional<Tensor>(weight->plain()) : std::nullopt;
}

std::optional<Weight> Checkpoint::find_weight(std::string_view name) const {
  const auto found = files_->checked.weights.find(name);
  if (found == files_->checked.weights.end()) return std::nullopt;
  return found->second;
}

bool Checkpoint::gains_hold_one(bool of_head) const {
  return of_head ? files_->checked.head_gains_hold_one : files_->checked.main_gains_hold_one;
}

const std::vector<Problem>& Checkpoint::problems() const { return files_->problems; }
const GenerationDefaults& Checkpoint::generation_defaults() const { return files_->generation_defaults; }
bool Checkpoint::has_tokenizer() const { return files_->has_tokenizer; }
bool Checkpoint::has_chat_template() const { return files_->has_chat_template; }
const std::string& Checkpoint::folder() const { return files_->folder; }
std::vector<std::string> Checkpoint::unread_files() const { return files_->shards.unread_files; }

std::uint64_t Checkpoint::mapped_bytes() const {
  std::uint64_t bytes = 0;
  for (const Shard& shard : files_->shards.shards) bytes += shard.bytes.bytes().size();
  return bytes;
}

std::vector<Checkpoint::Entry> Checkpoint::entries() const {
  const CheckedTensors& checked = files_->checked;
  std::vector<Entry> entries;
  for (const Shard& shard : files_->shards.shards) {
    for (const StoredTensor& stored : shard.header.tensors) {
      const std::string name(canonical_name(stored.name));
      Entry entry{.name = name.empty() ? stored.name : name,
                  .file = shard.file,
                  .dtype = stored.dtype,
                  .shape = stored.shape,
                  .size_bytes = stored.end >= stored.begin ? stored.end - stored.begin : 0,
                  .used = true,
                  .format = std::string(dtype_name(stored.dtype)),
                  .num_values = 0};
      if (const auto weight = checked.weights.find(name); weight != checked.weights.end()) {
        entry.format = format_name(weight->second.view);
        entry.num_values = static_cast<std::uint64_t>(weight->second.shape.num_elements());
        entry.size_bytes = weight->second.size_bytes();
      } else if (checked.parts.contains(name)) {
        entry.format.clear();
      } else if (checked.tensors.contains(name)) {
        entry.num_values = stored.dtype == DType::I64 ? 0 : static_cast<std::uint64_t>(stored.shape.num_elements());
      } else {
        entry.used = false;
      }
      entries.push_back(std::move(entry));
    }
  }
  return entries;
}

}  // namespace rondo
