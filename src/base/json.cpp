#include "base/json.h"

#include <fmt/format.h>
#include <charconv>
#include <cmath>

namespace rondo {

namespace {

void append_json(std::string& out, const json::Value& value);

void append_object(std::string& out, const json::Object& object) {
  out += '{';
  bool first = true;
  for (const auto& member : object) {
    if (!first) out += ',';
    first = false;
    append_json_string(out, member.key());
    out += ':';
    append_json(out, member.value());
  }
  out += '}';
}

void append_array(std::string& out, const json::Array& array) {
  out += '[';
  bool first = true;
  for (const auto& element : array) {
    if (!first) out += ',';
    first = false;
    append_json(out, element);
  }
  out += ']';
}

void append_json(std::string& out, const json::Value& value) {
  switch (value.kind()) {
    case boost::json::kind::null: out += "null"; return;
    case boost::json::kind::bool_: out += value.get_bool() ? "true" : "false"; return;
    case boost::json::kind::int64: out += std::to_string(value.get_int64()); return;
    case boost::json::kind::uint64: out += std::to_string(value.get_uint64()); return;
    case boost::json::kind::double_: append_json_number(out, value.get_double()); return;
    case boost::json::kind::string: append_json_string(out, value.get_string()); return;
    case boost::json::kind::array: append_array(out, value.get_array()); return;
    case boost::json::kind::object: append_object(out, value.get_object()); return;
  }
}

}  // namespace

Result<json::Value> parse_json(std::string_view text, int max_depth) {
  boost::json::parse_options options;
  options.max_depth = static_cast<std::size_t>(max_depth);
  boost::json::stream_parser parser({}, options);
  boost::json::error_code error;
  const std::size_t read = parser.write_some(text.data(), text.size(), error);
  if (!error && read < text.size()) {
    return failure(ErrorCode::InvalidArgument, fmt::format("invalid JSON at byte {}: text after the document", read));
  }
  if (!error) parser.finish(error);
  if (error) {
    return failure(ErrorCode::InvalidArgument, fmt::format("invalid JSON at byte {}: {}", read, error.message()));
  }
  return parser.release();
}

std::string to_json(const json::Value& value) {
  std::string out;
  append_json(out, value);
  return out;
}

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\b': out += "\\b"; break;
      case '\f': out += "\\f"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          out += fmt::format("\\u{:04x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
        } else {
          out += c;
        }
    }
  }
  out += '"';
}

void append_json_number(std::string& out, double number) {
  if (!std::isfinite(number)) {
    out += "null";
    return;
  }
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, number).ptr;
  const std::string_view written(buffer, static_cast<std::size_t>(end - buffer));
  out += written;
  // A double stays recognisable as one, as in Python's json.
  if (written.find_first_of(".en") == std::string_view::npos) out += ".0";
}

}  // namespace rondo
