#include "server/routes.h"

#include <charconv>

namespace rondo {

namespace {

enum class Key { Needed, NotNeeded };
enum class ModelIs { Needed, NotNeeded };

struct RouteRow {
  std::string_view path;  // ends in "/" and is longer than that: a name follows
  std::string_view name;  // in logs and counters
  std::string_view method;
  Route route;
  ModelIs model = ModelIs::Needed;
  Key key = Key::Needed;
};

constexpr std::string_view kMessages = "/v1/messages";  // it and what stands below it are Anthropic's

// The first page and /health hold nothing that a key should guard, and whoever watches over a server has none.
constexpr RouteRow kRoutes[] = {
    {"/", "/", "GET", Route::Home, ModelIs::NotNeeded, Key::NotNeeded},
    {"/health", "/health", "GET", Route::Health, ModelIs::NotNeeded, Key::NotNeeded},
    {"/metrics", "/metrics", "GET", Route::Metrics, ModelIs::NotNeeded},
    {"/stats", "/stats", "GET", Route::Stats},
    {"/v1/models", "/v1/models", "GET", Route::Models},
    {"/v1/models/", "/v1/models/{name}", "GET", Route::Model},
    {"/v1/chat/completions", "/v1/chat/completions", "POST", Route::Chat},
    {"/v1/completions", "/v1/completions", "POST", Route::Completions},
    {"/v1/messages", "/v1/messages", "POST", Route::Messages},
    {"/v1/messages/count_tokens", "/v1/messages/count_tokens", "POST", Route::CountTokens},
    {"/tokenize", "/tokenize", "POST", Route::Tokenize},
    {"/detokenize", "/detokenize", "POST", Route::Detokenize},
};

std::string_view methods_of(const RouteRow& row) {
  return row.method == "GET" ? "GET, HEAD, OPTIONS" : "POST, OPTIONS";
}

std::string_view path_of(std::string_view target) {
  if (const std::size_t scheme = target.find("://"); !target.starts_with('/') && scheme != std::string_view::npos) {
    const std::size_t slash = target.find('/', scheme + 3);
    target = slash == std::string_view::npos ? "/" : target.substr(slash);
  }
  return target.substr(0, target.find_first_of("?#"));
}

std::string percent_decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned byte = 0;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(text.data() + i + 1, text.data() + i + 3, byte, 16).ptr == text.data() + i + 3) {
      out += static_cast<char>(byte);
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace

RouteMatch find_route(std::string_view method, std::string_view target) {
  const std::string_view path = path_of(target);
  RouteMatch match;
  if (path == kMessages || path.starts_with(std::string(kMessages) + "/")) match.form = ApiForm::Anthropic;
  for (const RouteRow& row : kRoutes) {
    const bool takes_name = row.path.size() > 1 && row.path.ends_with('/');
    if (takes_name ? !path.starts_with(row.path) || path.size() == row.path.size() : path != row.path) continue;
    match.allow = methods_of(row);
    match.name = row.name;
    match.needs_key = row.key == Key::Needed;
    match.needs_model = row.model == ModelIs::Needed;
    match.takes_json = row.method == "POST";
    if (takes_name) match.argument = percent_decoded(path.substr(row.path.size()));
    if (method == row.method || (method == "HEAD" && row.method == "GET")) match.route = row.route;
    return match;
  }
  if (target == "*" && method == "OPTIONS") match.allow = "GET, HEAD, POST, OPTIONS";
  return match;
}

std::string routes_in_words() {
  std::string out;
  for (const RouteRow& row : kRoutes) {
    if (!out.empty()) out += ", ";
    out.append(row.method).append(" ").append(row.path);
    if (row.path.size() > 1 && row.path.ends_with('/')) out += "NAME";
  }
  return out;
}

}  // namespace rondo
