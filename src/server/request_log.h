// RequestRecord: what is said of one request when it is over, in the log and in the counters. Never its text, but with
// --log-text.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "engine/request.h"

namespace rondo {

struct RequestRecord {
  std::string id;          // x-request-id: the client's own, where it sent a usable one
  std::string method;      // empty: it was no HTTP request
  std::string path;        // printable, without the query
  std::string_view route;  // RouteMatch::name
  int status = 0;          // 0: the client left before there was one
  double total_ms = 0;
  std::optional<EndEvent> end;  // of a reply that came to its end; of several choices the last, with all their tokens
  bool client_gone = false;
  bool client_cut_off = false;
  void note_end(const EndEvent& of_a_choice);
  std::string asked, said;  // with --log-text: the bodies, as far as kMaxLoggedText
};

constexpr std::size_t kMaxLoggedText = 64 << 10;

// The client's id when it is 1 to 128 letters, digits, '-', '_', '.' or ':', else one drawn afresh.
std::string request_id(std::string_view from_client);
std::string printable(std::string_view text, std::size_t max_bytes);  // other bytes as '?'
void log_request(const RequestRecord& record);

}  // namespace rondo
