// The row law for ops without state: a row's bits in any launch are those it has alone.
#pragma once

#include <functional>

#include "tests/ops/arrays.h"
#include "tests/ops/compare.h"
#include "tests/ops/machine.h"

namespace rondo {

constexpr int kPopulation = 64;  // rows a test's input has

std::vector<int> launch_widths(Isa isa);  // 1 .. kPopulation; some of them for the slow reference

// run(machine, rows): the op's output for those rows of a population of kPopulation, one row each in that order.
using RunRows = std::function<Array(Machine&, const std::vector<int>& rows)>;

// Launches of every width, in ascending, descending and random order (there with repeats), on 1, 2 and 3 threads,
// against each row alone.
testing::AssertionResult rows_keep_their_bits(Isa isa, const RunRows& run);

}  // namespace rondo
