// Log lines for whoever runs the server: one line an event, to stderr, as text or JSON. Never a request's text.
#pragma once

#include <fmt/format.h>
#include <string_view>

namespace rondo {

enum class LogLevel { Debug, Info, Warning, Error };
enum class LogFormat { Text, Json };

void set_log(LogFormat format, LogLevel level);  // once, at start, from cli/
void write_log(LogLevel level, std::string_view line);

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
