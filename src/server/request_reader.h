// RequestReader: the bytes of a connection to one HTTP/1.x request. No socket: bytes come in as they arrived, however
// cut.
//
// Bounded: a header past max_header_bytes is refused with 431, a body past max_body_bytes with 413 as soon as its
// length is known. After a refusal nobody knows where the next request would begin, so the connection closes. Refused
// too, with 400 where not said otherwise: HTTP/1.1 without exactly one Host, a version other than 1.0 and 1.1, a
// transfer coding other than chunked, both a length and a coding, a compressed body (415), an expectation other than
// 100-continue (417).
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "server/http_message.h"

namespace rondo {

struct HttpRefusal {
  int status = 400;
  std::string message;
};

class RequestReader {
 public:
  RequestReader(std::size_t max_header_bytes, std::size_t max_body_bytes);
  ~RequestReader();

  enum class Progress { Nothing, InHeader, InBody, Complete, Refused };
  // Eats from the front of `received` what belongs to this request; bytes of the next one stay.
  Progress feed(std::string& received);

  // From the end of the header on, so that a request can be refused before its body comes.
  bool has_head() const { return header_checked_ && refusal_.message.empty(); }
  HttpRequest head() const;        // all but the body
  std::size_t body_bytes() const;  // what the body takes: its length as announced, or as much as has come in chunks
  bool take_expectation();         // true once, when the client waits for "100 Continue" before it sends the body
  HttpRequest take();              // after Complete
  const HttpRefusal& refusal() const { return refusal_; }

 private:
  struct Parser;
  bool refuse(int status, std::string message);  // false, for the three below to return
  bool refuse_long_header();
  bool check_header();
  bool put(std::string& received);
  std::unique_ptr<Parser> parser_;
  const std::size_t max_header_bytes_;
  const std::size_t max_body_bytes_;
  HttpRefusal refusal_;
  std::size_t header_bytes_ = 0;
  bool header_checked_ = false;
  bool has_body_begun_ = false;  // bytes of it are eaten
  bool has_begun_ = false;
  bool awaits_continue_ = false;
};

}  // namespace rondo
