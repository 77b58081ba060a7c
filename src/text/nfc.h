// NFC, Unicode's composed normal form, with the code points of the tokenizers package (code_points.h).
#pragma once

#include "text/marked_text.h"

namespace rondo {

// `text` must be valid UTF-8. A changed stretch is untrusted when any byte of what it was made from was. Takes time
// n log n on any text, also on one that is all combining marks.
MarkedText to_nfc(MarkedText text);

}  // namespace rondo
