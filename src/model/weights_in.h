// read_weights_in: every page of the mapped weights is read once, so that 'ready' means in memory and no request waits
// for a disk. The n-gram table stays where it is: a token reads a few rows of it.
#pragma once

#include <vector>

#include "model/model.h"

namespace rondo {

// Every matrix that stays in its file, experts one by one.
enum class Tables { With, Without };  // the n-gram tables
std::vector<Weight> mapped_weights(const WeightSource& source, Tables tables);

void read_weights_in(const WeightSource& source, const Progress& progress);

}  // namespace rondo
