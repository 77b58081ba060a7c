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

}  // namespace

ApiError to_api_error(Error error) { return ApiError{error.code, std::move(error.message), "", ""}; }

int http_status(ErrorCode code) { return row_of(code).status; }

std::string render_openai_error(const ApiError& error) {
  const ErrorRow& row = row_of(error.code);
  return render(error.message, row.openai_type, error.param,
                error.special_code.empty() ? row.openai_code : std::string_view(error.special_code));
}

std::string render_http_error(int status, std::string_view message) {
  return render(message, status >= 500 ? "server_error" : "invalid_request_error", "",
                status == 401 ? "invalid_api_key" : "");
}

}  // namespace rondo
