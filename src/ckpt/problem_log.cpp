#include "ckpt/problem_log.h"

#include <fmt/format.h>

namespace rondo {

namespace {

std::string_view words(ProblemLog::Kind kind) {
  switch (kind) {
    case ProblemLog::Kind::Other: return "problems";
    case ProblemLog::Kind::Missing: return "tensors are missing";
    case ProblemLog::Kind::NotInShard: return "tensors are not in this file";
    case ProblemLog::Kind::Twice: return "tensors stand twice";
    case ProblemLog::Kind::Fault: return "faults in the header";
    case ProblemLog::Kind::DType: return "tensors have a dtype that is not accepted";
    case ProblemLog::Kind::Shape: return "tensors have the wrong shape";
    case ProblemLog::Kind::Alignment: return "tensors are misaligned";
  }
  return "problems";
}

}  // namespace

void ProblemLog::add(const std::string& file, Kind kind, std::string message, ErrorCode code) {
  if (counts_[{file, kind}]++ < kSpelledOut) problems_.push_back({file, std::move(message), code});
}

void ProblemLog::add(const std::string& file, const Error& error) {
  const std::string prefix = file + ": ";
  const bool named = error.message.starts_with(prefix);
  add(file, Kind::Other, named ? error.message.substr(prefix.size()) : error.message, error.code);
}

std::vector<Problem> ProblemLog::take() && {
  for (const auto& [key, count] : counts_) {
    const auto& [file, kind] = key;
    if (count <= kSpelledOut) continue;
    problems_.push_back({file, fmt::format("and {} more {}", count - kSpelledOut, words(kind))});
  }
  return std::move(problems_);
}

}  // namespace rondo
