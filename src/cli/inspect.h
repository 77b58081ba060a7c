// `rondo inspect MODEL`: what a checkpoint folder holds, and what is wrong with it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ckpt/checkpoint.h"

namespace rondo {

// The report, ready for a terminal: architecture, parameters by part, formats, draft head, context, tokenizer,
// template, generation defaults, ignored tensors, and `problems` by file.
std::string describe(const Checkpoint& checkpoint, const std::vector<Problem>& problems);

// Checks of files that ckpt does not read for itself (tokenizer.json, the chat template), by really parsing them.
using FurtherChecks = std::function<std::vector<Problem>(const Checkpoint&)>;

// Prints the report to standard output. 0, or 1 when there is any problem.
int run_inspect(const std::string& folder, const FurtherChecks& further_checks = {});

}  // namespace rondo
