// ApiKeys: who may ask. The file has a key a line, as it is or as "sha256:" and the 64 hex digits of its SHA-256;
// empty lines and lines that begin with # are passed over. Only the hashes are kept, and every one of them is compared,
// in a time that does not depend on where they differ.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace rondo {

class ApiKeys {
 public:
  ApiKeys() = default;  // none: everybody may ask
  // Errors name the file and the line.
  static Result<ApiKeys> read(const std::string& path);
  static Result<ApiKeys> parse(std::string_view text, std::string_view name);  // name: for errors

  bool are_needed() const { return !hashes_.empty(); }
  bool admit(std::string_view key) const;

 private:
  std::vector<std::string> hashes_;  // SHA-256 in lower-case hex
};

}  // namespace rondo
