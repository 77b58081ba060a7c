#include "model/groups.h"

#include "base/check.h"

namespace rondo {

void split_into_groups(std::span<const int> rows, int max_rows, std::vector<int>& ends) {
  ends.clear();
  int in_group = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CHECK(rows[i] >= 0 && rows[i] <= max_rows);
    if (in_group + rows[i] > max_rows) {
      ends.push_back(static_cast<int>(i));
      in_group = 0;
    }
    in_group += rows[i];
  }
  if (!rows.empty()) ends.push_back(static_cast<int>(rows.size()));
}

}  // namespace rondo
