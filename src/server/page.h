// The page at /: a chat, and beside it the rounds as they go. One document that asks for nothing but this server's own
// API: its parts lie in page/ and are built in.
#pragma once

#include "server/http_message.h"

namespace rondo {

// With a Content-Security-Policy that names the page's one style and one script by their hashes: nothing else runs,
// nothing is loaded from anywhere, and nobody frames it.
HttpReply make_page();

}  // namespace rondo
