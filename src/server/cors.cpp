#include "server/cors.h"

#include <algorithm>

namespace rondo {

namespace {

bool is_this_machine(std::string_view origin) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!origin.starts_with(scheme)) continue;
    const std::string_view rest = origin.substr(scheme.size());
    for (const std::string_view host : {"localhost", "127.0.0.1", "[::1]"}) {
      if (!rest.starts_with(host)) continue;
      const std::string_view port = rest.substr(host.size());
      if (port.empty()) return true;
      if (port.size() > 1 && port[0] == ':' && port.find_first_not_of("0123456789", 1) == std::string_view::npos) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace

bool is_allowed_origin(const std::vector<std::string>& allowed, std::string_view origin) {
  if (is_this_machine(origin)) return true;
  return std::any_of(allowed.begin(), allowed.end(),
                     [&](const std::string& one) { return one == "*" || one == origin; });
}

HttpHeaders cors_headers(const std::vector<std::string>& allowed, std::string_view origin) {
  if (origin.empty() || !is_allowed_origin(allowed, origin)) return {};
  return {{"Access-Control-Allow-Origin", std::string(origin)},
          {"Access-Control-Expose-Headers", "x-request-id, retry-after"},
          {"Vary", "Origin"}};
}

HttpHeaders preflight_headers(std::string_view methods, std::string_view headers) {
  HttpHeaders out = {{"Access-Control-Allow-Methods", std::string(methods)}, {"Access-Control-Max-Age", "600"}};
  if (!headers.empty()) out.emplace_back("Access-Control-Allow-Headers", std::string(headers));
  return out;
}

}  // namespace rondo
