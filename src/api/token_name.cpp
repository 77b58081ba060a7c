#include "api/token_name.h"

#include <fmt/format.h>

#include "text/utf8.h"

namespace rondo {

std::string token_name(std::string_view bytes) {
  if (is_utf8(bytes)) return std::string(bytes);
  std::string name = "bytes:";
  for (const char byte : bytes) name += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
  return name;
}

}  // namespace rondo
