#include "base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <string>

namespace rondo {

namespace {

constexpr const char* kTextPattern = "%H:%M:%S %^%l%$ %v";

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::Debug: return spdlog::level::debug;
    case LogLevel::Info: return spdlog::level::info;
    case LogLevel::Warning: return spdlog::level::warn;
    case LogLevel::Error: return spdlog::level::err;
  }
  return spdlog::level::info;
}

spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> instance = [] {
    auto made = spdlog::stderr_color_mt("rondo");
    made->set_pattern(kTextPattern);
    return made;
  }();
  return *instance;
}

LogFormat& chosen_format() {
  static LogFormat format = LogFormat::Text;
  return format;
}

void log_payload(LogLevel level, std::string_view payload) {
  logger().log(to_spdlog(level), spdlog::string_view_t(payload.data(), payload.size()));
}

}  // namespace

void set_log(LogFormat format, LogLevel level) {
  logger().set_level(to_spdlog(level));
  chosen_format() = format;
  // As JSON, the payload is the object's members from "message" on.
  logger().set_pattern(format == LogFormat::Json ? R"({"time":"%Y-%m-%dT%H:%M:%S.%e%z","level":"%l",%v})"
                                                 : kTextPattern);
}

LogFormat log_format() { return chosen_format(); }

void write_log(LogLevel level, std::string_view line) { write_log(level, line, {}); }

void write_log(LogLevel level, std::string_view line, const json::Object& facts) {
  if (log_format() == LogFormat::Text) return log_payload(level, line);
  std::string members = R"("message":)";
  append_json_string(members, line);
  if (!facts.empty()) {
    const std::string object = to_json(facts);
    members += ',';
    members += std::string_view(object).substr(1, object.size() - 2);
  }
  log_payload(level, members);
}

}  // namespace rondo
