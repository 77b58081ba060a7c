// ProblemLog: the problems of one checkpoint, in the order found. Alike ones in one file are spelled out up to a few
// and then counted, so that a shard that is wrong throughout still makes a page one can read.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ckpt/checkpoint.h"

namespace rondo {

class ProblemLog {
 public:
  enum class Kind { Other, Missing, NotInShard, Twice, Fault, DType, Shape, Alignment };

  void add(const std::string& file, Kind kind, std::string message, ErrorCode code = ErrorCode::Corrupt);
  // An error whose message begins with the file's name, as parse_config gives it.
  void add(const std::string& file, const Error& error);
  std::vector<Problem> take() &&;

 private:
  static constexpr int kSpelledOut = 10;
  std::vector<Problem> problems_;
  std::map<std::pair<std::string, Kind>, int> counts_;
};

}  // namespace rondo
