#include "server/workers.h"

#include <exception>

#include "base/log.h"

namespace rondo {

void run_queue(boost::asio::io_context& queue) {
  while (true) {
    try {
      queue.run();
      return;
    } catch (const std::exception& error) {
      log_error("something a connection waits for was dropped: {}", error.what());
    }
  }
}

Workers::Workers(int num_threads) : queue_(num_threads), stays_open_(queue_.get_executor()) {
  try {
    for (int i = 0; i < num_threads; ++i) threads_.emplace_back([this] { run_queue(queue_); });
  } catch (...) {
    queue_.stop();
    throw;
  }
}

Workers::~Workers() { queue_.stop(); }

void Workers::join() {
  stays_open_.reset();
  for (std::jthread& thread : threads_) thread.join();
}

}  // namespace rondo
