#include "server/http_message.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace rondo {

namespace {

std::string date_of(std::time_t now) {
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 64> text{};
  const std::size_t size = std::strftime(text.data(), text.size(), "%a, %d %b %Y %H:%M:%S GMT", &parts);
  return std::string(text.data(), size);
}

}  // namespace

std::string_view reason_phrase(int status) {
  switch (status) {
    case 200: return "OK";
    case 204: return "No Content";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 413: return "Content Too Large";
    case 415: return "Unsupported Media Type";
    case 417: return "Expectation Failed";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 500: return "Internal Server Error";
    case 503: return "Service Unavailable";
    default: return "Unknown";
  }
}

std::string render_reply(const HttpReply& reply, Connected connected, BodyBytes body_bytes, std::time_t now) {
  std::string out =
      fmt::format("HTTP/1.1 {} {}\r\nDate: {}\r\nConnection: {}\r\n", reply.status, reason_phrase(reply.status),
                  date_of(now), connected == Connected::KeepAlive ? "keep-alive" : "close");
  for (const auto& [name, value] : reply.headers) out += fmt::format("{}: {}\r\n", name, value);
  if (!reply.content_type.empty()) {
    out += fmt::format("Content-Type: {}\r\nContent-Length: {}\r\n", reply.content_type, reply.body.size());
  }
  out += "\r\n";
  if (body_bytes == BodyBytes::Send) out += reply.body;
  return out;
}

bool is_json_type(std::string_view content_type) {
  std::string_view media = content_type.substr(0, content_type.find(';'));
  while (!media.empty() && (media.back() == ' ' || media.back() == '\t')) media.remove_suffix(1);
  constexpr std::string_view kJson = "application/json";
  return std::equal(media.begin(), media.end(), kJson.begin(), kJson.end(),
                    [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; });
}

}  // namespace rondo
