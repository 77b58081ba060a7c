// read_weights_in: every page of the mapped weights is read once, so that 'ready' means in memory and no request waits
// for a disk. The n-gram table stays where it is: a token reads a few rows of it.
#pragma once

#include "model/model.h"

namespace rondo {

void read_weights_in(const WeightSource& source, const Progress& progress);

}  // namespace rondo
