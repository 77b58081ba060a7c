// Log lines for whoever runs the server: one line an event, to stderr, as text or JSON. Never a request's text, unless
// the person who runs the server asked for it.
#pragma once

#include <fmt/format.h>
#include <string_view>

#include "base/json.h"

namespace rondo {

enum class LogLevel { Debug, Info, Warning, Error };
enum class LogFormat { Text, Json };

void set_log(LogFormat format, LogLevel level);  // once, at start, from cli/
LogFormat log_format();
void write_log(LogLevel level, std::string_view line);
// With facts beside the line: members of the JSON object; as text they are left out, for `line` says what matters.
void write_log(LogLevel level, std::string_view line, const json::Object& facts);

template <class... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) {
  write_log(LogLevel::Info, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void log_warning(fmt::format_string<Args...> format, Args&&... args) {
  write_log(LogLevel::Warning, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void log_error(fmt::format_string<Args...> format, Args&&... args) {
  write_log(LogLevel::Error, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace rondo
