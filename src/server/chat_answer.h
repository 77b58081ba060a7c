// POST /v1/chat/completions over a connection: worker, engine, reply; and at every wait the client may go away.
#pragma once

#include <boost/asio/awaitable.hpp>

#include "server/connection.h"

namespace rondo {

boost::asio::awaitable<void> answer_chat(Connection& connection, std::string body);

}  // namespace rondo
