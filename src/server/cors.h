// Cross-origin requests: which web pages may talk to this server from a browser. Pages of this machine (localhost,
// 127.0.0.1, [::1], any port) always; others only when --allow-origin names them, '*' for all. A page that may not
// gets no header of ours, and its browser keeps the reply from it; a JSON body it cannot even send, for browsers ask
// before that.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rondo {

bool is_allowed_origin(const std::vector<std::string>& allowed, std::string_view origin);

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;
// For any reply to `origin` (empty: no browser asks across origins).
HttpHeaders cors_headers(const std::vector<std::string>& allowed, std::string_view origin);
// For the answer to a preflight, beside the above. methods: the path's; headers: as the browser asks for them.
HttpHeaders preflight_headers(std::string_view methods, std::string_view headers);

}  // namespace rondo
