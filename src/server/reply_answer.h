// Every route that makes a reply of a body, over a connection: worker, engine, reply; and at every wait the client may
// go away. What differs between the APIs is in `prepare` and in the writer that it brings.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <string>

#include "api/reply_writer.h"
#include "server/connection.h"
#include "server/routes.h"

namespace rondo {

PrepareReply find_preparation(Route route);  // null for the routes that make no reply of a body

boost::asio::awaitable<void> answer_with_reply(Connection& connection, PrepareReply prepare, ApiForm form,
                                               std::string body);

}  // namespace rondo
