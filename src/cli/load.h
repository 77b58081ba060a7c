// Loading, as serve and run share it: from a checkpoint folder to an engine that is ready to run.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "api/served_model.h"
#include "base/clock.h"
#include "base/result.h"
#include "base/thread_pool.h"
#include "ckpt/checkpoint.h"
#include "engine/engine.h"
#include "model/model.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace rondo {

inline constexpr int kDefaultContextTokens = 8192;
inline constexpr int kDefaultStreams = 16;
inline constexpr int kDefaultDepth = 8;
inline constexpr int kCacheStatesPerStream = 4;  // and as many bytes in KV blocks
inline constexpr double kTimingBudgetMs = 5000;

struct LoadOptions {
  std::string model_folder;  // empty: the bundled model
  std::string device = "auto";
  std::optional<int> num_threads;     // nullopt: one a core
  std::optional<int> context_tokens;  // nullopt: the model's own, at most kDefaultContextTokens
  int num_streams = kDefaultStreams;
  int max_queued = 256;
  double stall_ms = 100;
  std::optional<int> prompt_cache_mib;  // nullopt: kCacheStatesPerStream, at most an eighth of the machine's memory
  bool drafts = true;
  int max_depth = kDefaultDepth;
  bool priced = true;  // false: costs are not timed, drafts go by the unpriced rule
  enum class Template { Needed, NotNeeded } chat_template = Template::Needed;
};

// In the order in which each stands on the ones before it.
struct Loaded {
  std::unique_ptr<Checkpoint> checkpoint;
  std::unique_ptr<Tokenizer> tokenizer;
  std::unique_ptr<ChatTemplate> chat_template;  // null when not needed
  std::unique_ptr<ThreadPool> pool;
  ModelOptions shape;  // as the model was loaded
  std::unique_ptr<Model> model;
  CostTables costs;
  std::unique_ptr<SteadyClock> clock = std::make_unique<SteadyClock>();
  std::unique_ptr<Engine> engine;
  double load_ms = 0, timing_ms = 0;

  ServedModel served() const;  // name: the folder's; no aliases; max_tokens: the whole window
};

// Progress goes to stderr (cli/progress.h). Errors name the file or the flag.
Result<Loaded> load(const LoadOptions& options);

Isa isa_on(const std::string& device);                         // what --device means on this machine
Result<std::string> model_folder(const LoadOptions& options);  // the one named, else the bundled one
// Sets the prefix cache's part of `out` as the options say; InvalidArgument, naming the flag, when it is too small.
Result<void> fit_prompt_cache(const LoadOptions& options, const WeightSource& source, ThreadPool& pool,
                              ModelOptions& out);
ModelOptions model_options(const LoadOptions& options, const WeightSource& source, const Tokenizer* tokenizer);
// Ids of a small built-in text (seeded ids without a tokenizer), as many as asked for: what costs are timed on.
std::vector<std::int32_t> timing_text(const Tokenizer* tokenizer, int vocab_size, int num_ids);

// The model that comes with the program: beside it in the source tree or where it was installed. NotFound in words.
Result<std::string> find_bundled_model();

}  // namespace rondo
