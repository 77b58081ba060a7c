#include "tests/server/raw_client.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>

namespace rondo {

RawClient::RawClient(int port, int receive_buffer_bytes) {
  socket_ = ::socket(AF_INET, SOCK_STREAM, 0);
  const timeval patience{20, 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  if (receive_buffer_bytes > 0) {
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer_bytes, sizeof receive_buffer_bytes);
  }
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) leave();
}

RawClient::~RawClient() { leave(); }

void RawClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

void RawClient::shut_sending_side() { ::shutdown(socket_, SHUT_WR); }

void RawClient::leave() {
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
}

void RawClient::leave_with_reset() {
  const linger at_once{1, 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  leave();
}

bool RawClient::read_some() {
  std::array<char, 16384> bytes{};
  const ssize_t got = ::recv(socket_, bytes.data(), bytes.size(), 0);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) timed_out_ = true;
  if (got <= 0) return false;
  unread_.append(bytes.data(), static_cast<std::size_t>(got));
  return true;
}

bool RawClient::read_until(std::string_view text) {
  while (unread_.find(text) == std::string::npos) {
    if (!read_some()) return false;
  }
  return true;
}

bool RawClient::read_to_end() {
  while (read_some()) {
  }
  return !timed_out_;
}

std::optional<std::string> RawClient::take_line() {
  if (!read_until("\r\n")) return std::nullopt;
  const std::size_t end = unread_.find("\r\n");
  std::string line = unread_.substr(0, end);
  unread_.erase(0, end + 2);
  return line;
}

bool RawClient::take_bytes(std::size_t num_bytes, std::string& out) {
  while (unread_.size() < num_bytes) {
    if (!read_some()) return false;
  }
  out += unread_.substr(0, num_bytes);
  unread_.erase(0, num_bytes);
  return true;
}

std::optional<RawReply> RawClient::read_reply(bool has_body) {
  RawReply reply;
  std::optional<std::string> line = take_line();
  if (!line || !line->starts_with("HTTP/1.1 ")) return std::nullopt;
  reply.status = std::stoi(line->substr(9, 3));
  while ((line = take_line()) && !line->empty()) {
    std::string name = line->substr(0, line->find(':'));
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    reply.headers[name] = line->substr(line->find(": ") + 2);
  }
  if (!line) return std::nullopt;
  if (!has_body || reply.status == 204) return reply;
  if (reply.headers.contains("content-length")) {
    if (!take_bytes(std::stoul(reply.headers["content-length"]), reply.body)) return std::nullopt;
  } else if (reply.headers.contains("transfer-encoding")) {
    std::size_t chunk_bytes = 1;
    while (chunk_bytes > 0) {
      if (!(line = take_line())) return std::nullopt;
      chunk_bytes = std::stoul(*line, nullptr, 16);
      if (!take_bytes(chunk_bytes, reply.body) || !take_line()) return std::nullopt;
    }
  } else {
    if (!read_to_end()) return std::nullopt;
    reply.body = std::move(unread_);
  }
  return reply;
}

std::string post_chat(std::string_view json_body, std::string_view more_headers) {
  return fmt::format(
      "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: "
      "{}\r\n{}\r\n{}",
      json_body.size(), more_headers, json_body);
}

std::string get(std::string_view path) { return fmt::format("GET {} HTTP/1.1\r\nHost: x\r\n\r\n", path); }

}  // namespace rondo
