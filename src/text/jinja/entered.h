// One evaluation deeper, for as long as it lives: what bounds recursion of macros and loops, and so the stack.
#pragma once

#include "text/jinja/runtime.h"

namespace rondo::jinja {

class Interpreter::Entered {
 public:
  explicit Entered(Interpreter& interpreter) : depth_(interpreter.depth_) {
    if (depth_ >= kMaxDepth) fault("maximum recursion depth exceeded");
    ++depth_;
  }
  ~Entered() { --depth_; }
  Entered(const Entered&) = delete;
  Entered& operator=(const Entered&) = delete;

 private:
  int& depth_;
};

}  // namespace rondo::jinja
