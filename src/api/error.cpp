#include "api/error.h"

#include "base/check.h"
#include "base/json.h"

namespace rondo {

namespace {

struct ErrorRow {
  ErrorCode code;
  int status;
  std::string_view openai_type;
  std::string_view openai_code;  // empty = null
};

constexpr ErrorRow kErrorTable[] = {
    {ErrorCode::InvalidArgument, 400, "invalid_request_error", ""},
    {ErrorCode::NotFound, 404, "invalid_request_error", "not_found"},
    {ErrorCode::Unsupported, 400, "invalid_request_error", "unsupported"},
    {ErrorCode::Corrupt, 500, "server_error", "corrupt"},
    {ErrorCode::Io, 500, "server_error", "io"},
    {ErrorCode::TooLong, 400, "invalid_request_error", "context_length_exceeded"},
    {ErrorCode::QueueFull, 429, "rate_limit_error", "queue_full"},
    {ErrorCode::OutOfBlocks, 503, "server_error", "out_of_blocks"},
    {ErrorCode::Cancelled, 503, "server_error", "cancelled"},
    {ErrorCode::Unavailable, 503, "server_error", "unavailable"},
    {ErrorCode::Internal, 500, "server_error", "internal"},
};

const ErrorRow& row_of(ErrorCode code) {
  for (const ErrorRow& row : kErrorTable) {
    if (row.code == code) return row;
  }
  CHECK(!"every ErrorCode has a row");
  return kErrorTable[0];
}

json::Value text_or_null(std::string_view text) { return text.empty() ? json::Value(nullptr) : json::Value(text); }

std::string render(std::string_view message, std::string_view type, std::string_view param, std::string_view code) {
  json::Object error;
  error["message"] = message;
  error["type"] = type;
  error["param"] = text_or_null(param);
  error["code"] = text_or_null(code);
  json::Object document;
  document["error"] = std::move(error);
  return to_json(document);
}

std::string_view anthropic_type(int status) {
  switch (status) {
    case 401: return "authentication_error";
    case 403: return "permission_error";
    case 404: return "not_found_error";
    case 408: return "timeout_error";
    case 413: return "request_too_large";
    case 429: return "rate_limit_error";
    case 503: return "overloaded_error";
    default: return status >= 500 ? "api_error" : "invalid_request_error";
  }
}

std::string render_anthropic(int status, std::string_view message) {
  json::Object error;
  error["type"] = anthropic_type(status);
  error["message"] = message;
  json::Object document;
  document["type"] = "error";
  document["error"] = std::move(error);
  return to_json(document);
}

}  // namespace

ApiError to_api_error(Error error) { return ApiError{error.code, std::move(error.message), "", ""}; }

int http_status(ErrorCode code) { return row_of(code).status; }

std::string render_openai_error(const ApiError& error) {
  const ErrorRow& row = row_of(error.code);
  return render(error.message, row.openai_type, error.param,
                error.special_code.empty() ? row.openai_code : std::string_view(error.special_code));
}

std::string render_error(const ApiError& error, ApiForm form) {
  if (form == ApiForm::Anthropic) return render_anthropic(http_status(error.code), error.message);
  return render_openai_error(error);
}

std::string render_http_error(int status, std::string_view message, ApiForm form) {
  if (form == ApiForm::Anthropic) return render_anthropic(status, message);
  return render(message, status >= 500 ? "server_error" : "invalid_request_error", "",
                status == 401 ? "invalid_api_key" : "");
}

}  // namespace rondo
