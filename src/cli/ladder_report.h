// The ladder as a person and as a program read it. Pure.
#pragma once

#include <string>

#include "base/json.h"
#include "cli/ladder.h"

namespace rondo {

// What was not measured is null. Beside the medians: ranges as [lowest, highest]. ratio: drafted over plain, of each
// pair, not of the medians. tokens_per_round: what one stream gets from a round. accept_by_depth: of the drafts
// verified at depth 1, 2, .., the share kept. rounds, verify_passes, head_passes (both as the model saw them) and
// level_passes (levels the rounds ran): of the drafted runs. equal_alone: plain replies that are what the same request
// says alone; equal_undrafted: drafted ones.
json::Object to_json_object(const LadderRow& row);

std::string ladder_header();  // two lines over the rows
std::string to_text_line(const LadderRow& row);

// Replies of these rows that are not the lone undrafted ones.
int num_different(const LadderRow& row);

}  // namespace rondo
