// Workers: the threads that tokenise and fill in templates, so that the io thread need not. Its own, because Asio's
// pool waits for ever for the threads it has when the system gives no further one.
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <thread>
#include <vector>

namespace rondo {

// Runs what is posted until the queue ends. A handler that throws, for want of memory say, is logged; the others go on.
void run_queue(boost::asio::io_context& queue);

class Workers {
 public:
  explicit Workers(int num_threads);  // throws std::system_error where the system gives no thread
  ~Workers();                         // what has not begun is dropped
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  boost::asio::io_context& queue() { return queue_; }  // post to it
  void join();                                         // returns when all that was posted is done

 private:
  boost::asio::io_context queue_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> stays_open_;
  std::vector<std::jthread> threads_;
};

}  // namespace rondo
