// Result<T>: a value or an Error, for what may fail though nobody made a mistake (files, requests, full queues).
//
// A broken promise between programmers is a CHECK (base/check.h) instead. An error is logged or returned, never both.
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace rondo {

// A closed set: api/ has one table from each of these to an HTTP status and the error types of the two public APIs.
enum class ErrorCode {
  InvalidArgument,  // a field, flag or value the caller can mend
  NotFound,         // no such file, model or route
  Unsupported,      // understood, and refused by name
  Corrupt,          // a file that is not what it says it is
  Io,               // the operating system said no
  TooLong,          // the prompt and its reply can never fit
  QueueFull,        // try again later
  OutOfBlocks,      // every KV block is held
  Cancelled,        // the caller went away
  Unavailable,      // the engine has stopped
  Internal,         // ours
};

struct Error {
  ErrorCode code;
  std::string message;  // for the person who can act: names the file, field or flag
};

template <class T>
using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> failure(ErrorCode code, std::string message) {
  return tl::unexpected<Error>(Error{code, std::move(message)});
}

}  // namespace rondo

#define RONDO_CONCAT_(a, b) a##b
#define RONDO_CONCAT(a, b) RONDO_CONCAT_(a, b)
#define RONDO_TRY_(result, decl, ...)                                            \
  auto result = (__VA_ARGS__);                                                   \
  if (!result) return tl::unexpected<::rondo::Error>(std::move(result).error()); \
  decl = *std::move(result)

// TRY(File file, File::open(path)): the value, or return the error from the enclosing function.
#define TRY(decl, ...) RONDO_TRY_(RONDO_CONCAT(try_result_, __LINE__), decl, __VA_ARGS__)

// TRY_VOID(check(x)): the same for Result<void>.
#define TRY_VOID(...)                                                                                  \
  do {                                                                                                 \
    auto try_void_result_ = (__VA_ARGS__);                                                             \
    if (!try_void_result_) return tl::unexpected<::rondo::Error>(std::move(try_void_result_).error()); \
  } while (false)
