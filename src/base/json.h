// JSON: Boost.JSON's value for reading, and our own writer (Boost 1.81 writes 0.1 as 1E-1 and overflow as Infinity).
//
// Objects keep their key order. Reading is bounded in depth, so hostile input cannot exhaust the stack.
#pragma once

#include <boost/json.hpp>
#include <string>
#include <string_view>

#include "base/result.h"

namespace rondo {

namespace json {
using Value = boost::json::value;
using Object = boost::json::object;
using Array = boost::json::array;
}  // namespace json

// The document in `text`. InvalidArgument with the byte offset and reason when it is not JSON, is not UTF-8,
// or nests deeper than max_depth.
Result<json::Value> parse_json(std::string_view text, int max_depth = 64);

// Compact form: no spaces, keys in order, shortest numbers that read back equal, non-ASCII as UTF-8,
// control characters escaped. Infinities and NaN, which JSON lacks, become null.
std::string to_json(const json::Value& value);

void append_json_string(std::string& out, std::string_view text);  // quoted and escaped
void append_json_number(std::string& out, double number);

}  // namespace rondo
