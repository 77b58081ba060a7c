// Tool: a function that a reply may call, as every protocol declares it.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace rondo {

struct Tool {
  std::string name;
  json::Object parameters;  // the JSON schema of its arguments; {} = any
  bool strict = false;      // refuse what of the schema cannot be kept to, instead of leaving it to the model
};

}  // namespace rondo
