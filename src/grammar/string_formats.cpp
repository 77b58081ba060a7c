#include "grammar/string_formats.h"

#include <utility>

namespace rondo::grammar {

namespace {

// Days fit their months; the 29th of February its year (RFC 3339, without leap seconds).
#define RONDO_DATE                                                                       \
  "(\\d{4}-((0[13578]|1[02])-(0[1-9]|[12]\\d|3[01])|(0[469]|11)-(0[1-9]|[12]\\d|30)|02-" \
  "(0[1-9]|1\\d|2[0-8]))|(\\d\\d(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29)"
#define RONDO_TIME "([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,9})?(Z|[+-]([01]\\d|2[0-3]):[0-5]\\d)"
#define RONDO_LABEL "[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
#define RONDO_BYTE "(25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)"
#define RONDO_IPV4 RONDO_BYTE "(\\." RONDO_BYTE "){3}"
#define RONDO_ATOM "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]{1,32}"
#define RONDO_H "[0-9A-Fa-f]{1,4}"

constexpr std::pair<std::string_view, std::string_view> kFormats[] = {
    {"date-time", RONDO_DATE "T" RONDO_TIME},
    {"date", RONDO_DATE},
    {"time", RONDO_TIME},
    {"duration",
     "P((\\d{1,9}Y(\\d{1,9}M(\\d{1,9}D)?)?|\\d{1,9}M(\\d{1,9}D)?|\\d{1,9}D)"
     "(T(\\d{1,9}H(\\d{1,9}M(\\d{1,9}S)?)?|\\d{1,9}M(\\d{1,9}S)?|\\d{1,9}S))?|"
     "T(\\d{1,9}H(\\d{1,9}M(\\d{1,9}S)?)?|\\d{1,9}M(\\d{1,9}S)?|\\d{1,9}S)|\\d{1,9}W)"},
    {"email", RONDO_ATOM "(\\." RONDO_ATOM "){0,4}@" RONDO_LABEL "(\\." RONDO_LABEL "){1,4}"},
    {"hostname", RONDO_LABEL "(\\." RONDO_LABEL "){0,4}"},
    {"ipv4", RONDO_IPV4},
    {"ipv6", "(" RONDO_H ":){7}" RONDO_H "|(" RONDO_H ":){1,7}:|(" RONDO_H ":){1,6}:" RONDO_H "|(" RONDO_H
             ":){1,5}(:" RONDO_H "){1,2}|(" RONDO_H ":){1,4}(:" RONDO_H "){1,3}|(" RONDO_H ":){1,3}(:" RONDO_H
             "){1,4}|(" RONDO_H ":){1,2}(:" RONDO_H "){1,5}|" RONDO_H ":(:" RONDO_H "){1,6}|:((:" RONDO_H "){1,7}|:)"},
    {"uri", "[A-Za-z][A-Za-z0-9+.-]{0,31}:([A-Za-z0-9._~:/?#@!$&'()*+,;=-]|%[0-9A-Fa-f]{2}){1,2000}"},
    {"uuid", "[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"},
};

}  // namespace

std::optional<std::string_view> pattern_of_format(std::string_view format) {
  for (const auto& [name, pattern] : kFormats) {
    if (name == format) return pattern;
  }
  return std::nullopt;
}

std::string known_formats() {
  std::string names;
  for (const auto& [name, pattern] : kFormats) names += (names.empty() ? "" : ", ") + std::string(name);
  return names;
}

}  // namespace rondo::grammar
