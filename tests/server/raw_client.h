// RawClient: a blocking socket that says exactly the bytes a test wants said, also wrong ones.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace rondo {

struct RawReply {
  int status = 0;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;                            // chunks joined
};

class RawClient {
 public:
  explicit RawClient(int port, int receive_buffer_bytes = 0);  // 0: the system's
  ~RawClient();
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  bool is_connected() const { return socket_ >= 0; }
  int socket() const { return socket_; }
  void send(std::string_view bytes);  // what the server no longer takes is dropped
  void shut_sending_side();
  void leave();  // closes in good order
  void leave_with_reset();

  // nullopt: the connection ended before a whole reply came, or 20 s passed.
  std::optional<RawReply> read_reply(bool has_body = true);
  bool read_until(std::string_view text);  // false: the connection ended first
  bool read_to_end();                      // false: 20 s passed; reset counts as an end
  const std::string& unread() const { return unread_; }

 private:
  bool read_some();  // false: ended
  std::optional<std::string> take_line();
  bool take_bytes(std::size_t num_bytes, std::string& out);
  int socket_ = -1;
  std::string unread_;
  bool timed_out_ = false;
};

std::string post_chat(std::string_view json_body, std::string_view more_headers = "");
std::string get(std::string_view path);

}  // namespace rondo
