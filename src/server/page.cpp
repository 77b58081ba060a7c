#include "server/page.h"

#include <fmt/format.h>

#include "base/check.h"
#include "base/sha256.h"
#include "server/page_sources.h"

namespace rondo {

namespace {

void put_in(std::string& page, std::string_view mark, std::string_view text) {
  const std::size_t at = page.find(mark);
  CHECK(at != std::string::npos);
  page.replace(at, mark.size(), text);
}

}  // namespace

HttpReply make_page() {
  std::string page(kPageHtml);
  put_in(page, "/*page.css*/", kPageStyle);
  put_in(page, "/*page.js*/", kPageScript);
  const std::string policy = fmt::format(
      "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; connect-src 'self'; img-src data:; "
      "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
      sha256_base64(kPageScript), sha256_base64(kPageStyle));
  return HttpReply{200,
                   "text/html; charset=utf-8",
                   std::move(page),
                   {{"Content-Security-Policy", policy},
                    {"X-Content-Type-Options", "nosniff"},
                    {"Referrer-Policy", "no-referrer"},
                    {"Cache-Control", "no-cache"}}};
}

}  // namespace rondo
