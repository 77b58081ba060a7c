// The files of page/, as the build put them into the program.
#pragma once

#include <string_view>

namespace rondo {

extern const std::string_view kPageHtml, kPageStyle, kPageScript;

}  // namespace rondo
