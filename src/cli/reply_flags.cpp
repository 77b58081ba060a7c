#include "cli/reply_flags.h"

#include <random>

namespace rondo {

namespace {

// 53 bits, so that every reader of JSON keeps it.
std::int64_t fresh_seed() {
  std::random_device device;
  return static_cast<std::int64_t>((static_cast<std::uint64_t>(device()) << 32 | device()) >> 11);
}

}  // namespace

void add_reply_flags(CLI::App& app, ReplyFlags& flags) {
  app.add_option("-n,--max-tokens", flags.max_tokens, "tokens of a reply at most (default: the rest of the window)")
      ->check(CLI::Range(1, std::numeric_limits<int>::max()));
  app.add_option("--temperature", flags.temperature, "0 to 2; 0 takes the likeliest (default: the model's)")
      ->check(CLI::Range(0.0, 2.0));
  app.add_option("--top-k", flags.top_k, "draw from the k likeliest; 0 = all (default: the model's)")
      ->check(CLI::Range(0, std::numeric_limits<int>::max()));
  app.add_option("--top-p", flags.top_p, "draw from the likeliest that make up p (default: the model's)")
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--min-p", flags.min_p, "leave out what is less likely than min-p times the likeliest")
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--seed", flags.seed, "the same seed draws the same text (default: a fresh one)");
}

ReplySettings to_settings(const ReplyFlags& flags, const GenerationDefaults& defaults) {
  ReplySettings settings;
  settings.max_tokens = flags.max_tokens;
  settings.draw.temperature = flags.temperature.value_or(defaults.temperature);
  settings.draw.top_k = flags.top_k.value_or(defaults.top_k);
  settings.draw.top_p = flags.top_p.value_or(defaults.top_p);
  settings.draw.min_p = flags.min_p.value_or(defaults.min_p);
  settings.seed = flags.seed ? *flags.seed : fresh_seed();
  settings.draw.seed = static_cast<std::uint64_t>(settings.seed);
  return settings;
}

void Replies::notify() {
  const std::lock_guard lock(mutex_);
  has_news_ = true;
  came_.notify_one();
}

EventQueue::Taken Replies::wait() {
  std::unique_lock lock(mutex_);
  came_.wait(lock, [&] { return has_news_; });
  has_news_ = false;
  return queue_->take();
}

std::optional<EventQueue::Taken> Replies::wait_for(std::chrono::milliseconds at_most) {
  std::unique_lock lock(mutex_);
  if (!came_.wait_for(lock, at_most, [&] { return has_news_; })) return std::nullopt;
  has_news_ = false;
  return queue_->take();
}

}  // namespace rondo
