#include "server/request_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <random>

#include "base/log.h"

namespace rondo {

namespace {

constexpr std::size_t kMaxIdBytes = 128;

std::string_view reason_name(FinishReason reason) { return reason == FinishReason::Stop ? "stop" : "length"; }

bool is_usable_id(std::string_view id) {
  return !id.empty() && id.size() <= kMaxIdBytes && std::all_of(id.begin(), id.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.' || c == ':';
  });
}

std::string in_words(const RequestRecord& record) {
  std::string line = fmt::format("{} {} {}, {:.0f} ms", record.method.empty() ? "?" : record.method,
                                 record.path.empty() ? "?" : record.path, record.status, record.total_ms);
  if (record.end) {
    const Timings& took = record.end->timings;
    line += fmt::format(": {} prompt tokens, {} reply tokens, {}; {:.0f} ms queued, {:.0f} ms prompt, {:.0f} ms decode",
                        record.end->usage.prompt_tokens, record.end->usage.completion_tokens,
                        reason_name(record.end->reason), took.queue_ms, took.prompt_ms, took.decode_ms);
  }
  if (record.client_cut_off) line += ": cut off, the client reads too slowly";
  if (record.client_gone) line += ": the client left";
  line += " [" + record.id + "]";
  if (!record.asked.empty()) line += "\n  asked: " + record.asked;
  if (!record.said.empty()) line += "\n  said: " + record.said;
  return line;
}

json::Object as_facts(const RequestRecord& record) {
  json::Object facts;
  facts["request_id"] = record.id;
  facts["method"] = record.method;
  facts["path"] = record.path;
  facts["route"] = record.route;
  facts["status"] = record.status;
  facts["ms"] = record.total_ms;
  if (record.end) {
    facts["prompt_tokens"] = record.end->usage.prompt_tokens;
    facts["completion_tokens"] = record.end->usage.completion_tokens;
    facts["cached_tokens"] = record.end->usage.cached_tokens;
    facts["rounds"] = record.end->usage.rounds;
    facts["drafted"] = record.end->usage.drafted;
    facts["accepted"] = record.end->usage.accepted;
    facts["finish_reason"] = reason_name(record.end->reason);
    facts["queue_ms"] = record.end->timings.queue_ms;
    facts["prompt_ms"] = record.end->timings.prompt_ms;
    facts["decode_ms"] = record.end->timings.decode_ms;
  }
  if (record.client_gone) facts["client_gone"] = true;
  if (record.client_cut_off) facts["client_cut_off"] = true;
  if (!record.asked.empty()) facts["asked"] = record.asked;
  if (!record.said.empty()) facts["said"] = record.said;
  return facts;
}

// What is asked every few seconds by machines is not worth a line unless it went wrong.
bool is_routine(const RequestRecord& record) {
  return record.status < 400 && (record.route == "/health" || record.route == "/metrics" || record.route == "/stats");
}

}  // namespace

void RequestRecord::note_end(const EndEvent& of_a_choice) {
  const Usage before = end ? end->usage : Usage{};
  end = of_a_choice;
  end->text.clear();
  end->usage.completion_tokens += before.completion_tokens;
  end->usage.rounds += before.rounds;
  end->usage.drafted += before.drafted;
  end->usage.accepted += before.accepted;
}

std::string request_id(std::string_view from_client) {
  if (is_usable_id(from_client)) return std::string(from_client);
  static thread_local std::mt19937_64 random{std::random_device{}()};
  return fmt::format("req-{:016x}", random());
}

std::string printable(std::string_view text, std::size_t max_bytes) {
  std::string out(text.substr(0, max_bytes));
  std::replace_if(
      out.begin(), out.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return out;
}

void log_request(const RequestRecord& record) {
  const LogLevel level = is_routine(record)                              ? LogLevel::Debug
                         : record.status >= 500 || record.client_cut_off ? LogLevel::Warning
                                                                         : LogLevel::Info;
  if (log_format() == LogFormat::Text) return write_log(level, in_words(record));
  write_log(level, "request", as_facts(record));
}

}  // namespace rondo
