#include "cli/inspect.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <string_view>

namespace rondo {

namespace {

// Names and values come from strangers' files: nothing of them may steer a terminal.
std::string printable(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool starts_c1 = byte == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0;
    if (starts_c1) ++i;
    out += byte < 0x20 || byte == 0x7F || starts_c1 ? '?' : text[i];
  }
  return out;
}

std::string grouped(std::uint64_t number) {  // 1,572,864
  const std::string digits = std::to_string(number);
  std::string out;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) out += ',';
    out += digits[i];
  }
  return out;
}

std::string in_bytes(std::uint64_t bytes) {
  constexpr std::array<const char*, 5> kUnits = {"bytes", "kB", "MB", "GB", "TB"};
  auto shown = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (shown >= 1000 && unit + 1 < kUnits.size()) {
    shown /= 1000;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} bytes", bytes) : fmt::format("{:.1f} {}", shown, kUnits[unit]);
}

// The parts of a model, in the order they are listed.
enum class Part {
  Embedding,
  LmHead,
  Attention,
  DeltaNet,
  Mlp,
  RoutedExperts,
  SharedExperts,
  Router,
  HyperConnections,
  NgramTable,
  NgramLayer,
  Norms,
  DraftHead
};
constexpr std::array<std::string_view, 13> kPartNames = {
    "embedding", "lm_head",           "attention",    "Gated DeltaNet", "MLP",   "routed experts",  "shared experts",
    "router",    "hyper-connections", "n-gram table", "n-gram layers",  "norms", "draft head (MTP)"};

struct PartRule {
  std::string_view fragment;  // of the canonical name; the first rule that matches decides
  Part part;
};
constexpr std::array<PartRule, 13> kPartRules = {{{"mtp.", Part::DraftHead},
                                                  {"embed_tokens.", Part::Embedding},
                                                  {"lm_head.", Part::LmHead},
                                                  {".self_attn.", Part::Attention},
                                                  {".linear_attn.", Part::DeltaNet},
                                                  {".mlp.experts.", Part::RoutedExperts},
                                                  {".mlp.switch_mlp.", Part::RoutedExperts},
                                                  {".mlp.shared_expert", Part::SharedExperts},
                                                  {".mlp.gate.", Part::Router},
                                                  {".mlp.", Part::Mlp},
                                                  {"hyper_connection", Part::HyperConnections},
                                                  {".ngram_embedding.", Part::NgramTable},
                                                  {".ple.", Part::NgramLayer}}};

Part part_of(std::string_view name) {
  for (const PartRule& rule : kPartRules) {
    if (name.find(rule.fragment) != name.npos) return rule.part;
  }
  return Part::Norms;
}

using PartSizes = std::array<std::uint64_t, kPartNames.size()>;

PartSizes sum_parts(const std::vector<Checkpoint::Entry>& entries) {
  PartSizes sizes{};
  for (const auto& entry : entries) {
    if (entry.used) sizes[static_cast<std::size_t>(part_of(entry.name))] += entry.num_values;
  }
  return sizes;
}

// What one decoded token multiplies with, undrafted: the chosen experts, the rows of the table that its n-grams
// read, and the output matrix, but neither the rest of the embedding nor the draft head.
std::uint64_t active_parameters(const PartSizes& sizes, const ModelConfig& config) {
  std::uint64_t active = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    switch (static_cast<Part>(i)) {
      case Part::DraftHead: break;
      case Part::Embedding: active += config.tied_embeddings ? sizes[i] : 0; break;
      case Part::NgramTable:
        active += config.ngram.layers.size() * static_cast<unsigned>(config.ngram.embed_dim);
        break;
      case Part::RoutedExperts: {
        if (config.moe.num_experts == 0) break;
        const std::uint64_t one = sizes[i] / static_cast<unsigned>(config.moe.num_experts);
        active += one * static_cast<unsigned>(config.moe.experts_per_token);
        break;
      }
      default: active += sizes[i];
    }
  }
  return active;
}

void line(std::string& out, std::string_view label, std::string_view text) {
  out += fmt::format("{:<15}{}\n", label, text);
}

std::string architecture_text(const ModelConfig& config) {
  const auto num_attention = std::count(config.layers.begin(), config.layers.end(), LayerKind::Attention);
  return fmt::format("{}: {} layers ({} Gated DeltaNet, {} attention), hidden {}, vocabulary {}",
                     architecture_name(config.architecture), config.num_layers(), config.num_layers() - num_attention,
                     num_attention, config.hidden_size, config.vocab_size);
}

std::string attention_text(const ModelConfig& config) {
  std::string text = fmt::format("{} q heads, {} kv heads of {}, rope {} dimensions, theta {}", config.q_heads,
                                 config.kv_heads, config.head_dim, config.rope.rotary_dim, config.rope.theta);
  if (config.rope.yarn_factor > 1) text += fmt::format(", YaRN factor {}", config.rope.yarn_factor);
  const IndexerConfig& indexer = config.indexer;
  if (indexer.num_heads == 0) return text;
  return text + fmt::format("; sparse beyond {} tokens in blocks of {}", indexer.budget_tokens, indexer.block_tokens);
}

std::string feed_forward_text(const ModelConfig& config) {
  const MoeConfig& moe = config.moe;
  if (moe.num_experts == 0) return fmt::format("dense MLP of {}", config.mlp_size);
  return fmt::format("{} experts of {}, {} a token, and a shared one of {}", moe.num_experts, moe.expert_size,
                     moe.experts_per_token, moe.shared_expert_size);
}

std::string quantisation_text(const ModelConfig& config) {
  if (config.num_excluded_modules == 0) return printable(config.quantization);
  return fmt::format("{}, {} {} of modules left out", printable(config.quantization), config.num_excluded_modules,
                     config.num_excluded_modules == 1 ? "name or pattern" : "names or patterns");
}

std::string generation_text(const GenerationDefaults& defaults) {
  std::string ends;
  for (const int token : defaults.end_tokens) ends += (ends.empty() ? "" : ", ") + std::to_string(token);
  const std::string min_p = defaults.min_p == 0 ? "off" : fmt::format("{:g}", defaults.min_p);
  return fmt::format("temperature {:g}, top-p {:g}, top-k {}, min-p {}; ends at {}", defaults.temperature,
                     defaults.top_p, defaults.top_k == 0 ? "off" : std::to_string(defaults.top_k), min_p,
                     ends.empty() ? "no token" : ends);
}

void add_summary(std::string& out, const Checkpoint& checkpoint) {
  const ModelConfig& config = checkpoint.config();
  line(out, "model", printable(checkpoint.folder()));
  line(out, "architecture", architecture_text(config));
  line(out, "attention", attention_text(config));
  line(out, "DeltaNet",
       fmt::format("{} k heads of {}, {} v heads of {}, convolution of {}", config.linear_k_heads, config.linear_k_dim,
                   config.linear_v_heads, config.linear_v_dim, config.conv_kernel));
  line(out, "feed-forward", feed_forward_text(config));
  if (config.hyper.num_streams > 1) {
    line(out, "residual",
         fmt::format("{} streams, hyper-connections of rank {}", config.hyper.num_streams, config.hyper.rank));
  }
  line(out, "lm_head", config.tied_embeddings ? "tied to the embedding" : "its own matrix");
  line(out, "draft head", checkpoint.has_mtp() ? "MTP, one layer" : "none: served without drafts");
  if (!config.quantization.empty()) line(out, "quantised", quantisation_text(config));
  line(out, "context", fmt::format("{} tokens", grouped(static_cast<std::uint64_t>(config.context_tokens))));
  line(out, "tokenizer", checkpoint.has_tokenizer() ? "present" : "none: run and serve need one");
  line(out, "chat template", checkpoint.has_chat_template() ? "present" : "none");
  line(out, "generation", generation_text(checkpoint.generation_defaults()));
}

void add_parameters(std::string& out, const Checkpoint& checkpoint, const std::vector<Checkpoint::Entry>& entries) {
  const PartSizes sizes = sum_parts(entries);
  std::uint64_t total = 0;
  for (const std::uint64_t size : sizes) total += size;
  out += "\nparameters\n";
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) continue;
    const double share = 100.0 * static_cast<double>(sizes[i]) / static_cast<double>(total);
    out += fmt::format("  {:<20}{:>20}{:>8.1f} %\n", kPartNames[i], grouped(sizes[i]), share);
  }
  out += fmt::format("  {:<20}{:>20}\n", "total", grouped(total));
  out += fmt::format("  {:<20}{:>20}\n", "active per token", grouped(active_parameters(sizes, checkpoint.config())));
}

void add_formats(std::string& out, const Checkpoint& checkpoint, const std::vector<Checkpoint::Entry>& entries) {
  struct Sum {
    std::uint64_t tensors = 0, bytes = 0;
  };
  std::map<std::string, Sum> sums;  // a matrix counts with its scales
  std::map<std::string_view, int> files;
  for (const auto& entry : entries) {
    ++files[entry.file];
    if (!entry.used || entry.format.empty()) continue;
    Sum& sum = sums[entry.format];
    ++sum.tensors;
    sum.bytes += entry.size_bytes;
  }
  std::size_t width = 8;
  for (const auto& [format, sum] : sums) width = std::max(width, format.size() + 1);
  out += "\nformats\n";
  for (const auto& [format, sum] : sums) {
    out += fmt::format("  {:<{}}{:>9} {:<7}{:>12}\n", format, width, grouped(sum.tensors),
                       sum.tensors == 1 ? "tensor" : "tensors", in_bytes(sum.bytes));
  }
  out += fmt::format("  {:<{}}{:>9} {:<7}{:>12}\n", "mapped", width, files.size(), files.size() == 1 ? "file" : "files",
                     in_bytes(checkpoint.mapped_bytes()));
}

void add_ignored(std::string& out, const Checkpoint& checkpoint, const std::vector<Checkpoint::Entry>& entries) {
  constexpr int kNamed = 12;
  std::uint64_t num_vision = 0, vision_bytes = 0;
  std::string others;
  int num_others = 0;
  for (const auto& entry : entries) {
    if (entry.used) continue;
    if (entry.name.starts_with("model.visual.") || entry.name.starts_with("visual.")) {
      ++num_vision;
      vision_bytes += entry.size_bytes;
    } else if (num_others++ < kNamed) {
      others += fmt::format("  {} {} {}, in {}\n", printable(entry.name), dtype_name(entry.dtype),
                            entry.shape.to_string(), printable(entry.file));
    }
  }
  if (num_others > kNamed) others += fmt::format("  and {} more\n", num_others - kNamed);
  for (const std::string& file : checkpoint.unread_files()) {
    others += fmt::format("  {}: not named by the index, not read\n", printable(file));
  }
  if (num_vision == 0 && others.empty()) return;
  out += "\nnot used\n";
  if (num_vision > 0) out += fmt::format("  vision tower: {} tensors, {}\n", num_vision, in_bytes(vision_bytes));
  out += others;
}

// Grouped by file, files in the order of their first problem.
void add_problems(std::string& out, const std::vector<Problem>& problems) {
  if (problems.empty()) {
    out += "\nno problems\n";
    return;
  }
  std::vector<std::string> files;
  for (const Problem& problem : problems) {
    if (std::find(files.begin(), files.end(), problem.file) == files.end()) files.push_back(problem.file);
  }
  out += "\nproblems\n";
  for (const std::string& file : files) {
    out += fmt::format("  {}\n", printable(file));
    for (const Problem& problem : problems) {
      if (problem.file == file) out += fmt::format("    {}\n", printable(problem.message));
    }
  }
}

}  // namespace

std::string describe(const Checkpoint& checkpoint, const std::vector<Problem>& problems) {
  const std::vector<Checkpoint::Entry> entries = checkpoint.entries();
  std::string out;
  add_summary(out, checkpoint);
  add_parameters(out, checkpoint, entries);
  add_formats(out, checkpoint, entries);
  add_ignored(out, checkpoint, entries);
  add_problems(out, problems);
  return out;
}

int run_inspect(const std::string& folder, const FurtherChecks& further_checks) {
  const auto checkpoint = Checkpoint::inspect(folder);
  if (!checkpoint) {
    const std::string out = fmt::format("{}\n  {}\n", printable(folder), printable(checkpoint.error().message));
    std::fwrite(out.data(), 1, out.size(), stdout);
    return 1;
  }
  std::vector<Problem> problems = checkpoint->problems();
  if (further_checks) {
    const std::vector<Problem> more = further_checks(*checkpoint);
    problems.insert(problems.end(), more.begin(), more.end());
  }
  const std::string out = describe(*checkpoint, problems);
  std::fwrite(out.data(), 1, out.size(), stdout);
  return problems.empty() ? 0 : 1;
}

}  // namespace rondo
