// HttpRequest and HttpReply: what a handler sees of HTTP.
#pragma once

#include <ctime>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rondo {

struct HttpRequest {
  std::string method;
  std::string target;  // as sent: path and query, or a whole address
  // Headers as sent, empty when absent.
  std::string content_type;
  std::string authorization;
  std::string x_api_key;
  std::string x_request_id;
  std::string anthropic_version;
  std::string origin;
  std::string asked_headers;  // Access-Control-Request-Headers, of a preflight
  std::string body;
  bool keep_alive = true;  // the client wants another request on this connection
  bool is_http_1_0 = false;
};

struct HttpReply {
  int status = 200;
  std::string content_type;  // empty: no body, as 204 has none
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;  // beside Content-Type, Content-Length, Date, Connection
};

enum class Connected { KeepAlive, Close };
enum class BodyBytes { Send, LeaveOut };  // a HEAD reply describes its body and leaves it out

std::string_view reason_phrase(int status);
std::string render_reply(const HttpReply& reply, Connected connected, BodyBytes body_bytes, std::time_t now);

// Whether the Content-Type names JSON, whatever its parameters. Browsers ask before they send it across origins, so a
// foreign page cannot post to a server on the reader's own machine.
bool is_json_type(std::string_view content_type);

}  // namespace rondo
