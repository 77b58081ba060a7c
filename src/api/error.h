// ApiError: why a request is refused, and the one table from ErrorCode to HTTP status and the APIs' error objects.
#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

#include "base/result.h"

namespace rondo {

struct ApiError {
  ErrorCode code = ErrorCode::InvalidArgument;
  std::string message;       // for the client's author: names the field
  std::string param;         // the field; empty = none
  std::string special_code;  // OpenAI's `code` where it says more than the table's; empty = the table's
};

template <class T>
using ApiResult = tl::expected<T, ApiError>;

inline tl::unexpected<ApiError> refusal(ApiError error) { return tl::unexpected<ApiError>(std::move(error)); }
ApiError to_api_error(Error error);

int http_status(ErrorCode code);

// Whose error object a client reads.
//   OpenAi:     {"error":{"message","type","param","code"}}
//   Anthropic:  {"type":"error","error":{"type","message"}}, where the type says no more than the status
enum class ApiForm { OpenAi, Anthropic };
std::string render_error(const ApiError& error, ApiForm form);
std::string render_openai_error(const ApiError& error);

// The same objects for what HTTP itself refuses, before there is a request.
std::string render_http_error(int status, std::string_view message, ApiForm form);

}  // namespace rondo
