// RecordingSink: everything a request was told, and that it was told in order: texts, then one end or failure.
#pragma once

#include <string>
#include <vector>

#include "base/check.h"
#include "engine/request.h"

namespace rondo::test {

class RecordingSink final : public EventSink {
 public:
  void on_text(const TextEvent& event) override {
    CHECK(!is_over());
    CHECK(event.logprobs.empty() || event.logprobs.size() == event.ids.size());
    text += event.text;
    ids.insert(ids.end(), event.ids.begin(), event.ids.end());
    logprobs.insert(logprobs.end(), event.logprobs.begin(), event.logprobs.end());
    ids_after_event.push_back(static_cast<int>(ids.size()));
  }
  void on_end(EndEvent event) override {
    CHECK(!is_over());
    text += event.text;
    end = std::move(event);
  }
  void on_failed(Error error) override {
    CHECK(!is_over());
    failed = std::move(error);
  }
  bool is_over() const { return end.has_value() || failed.has_value(); }

  std::vector<std::int32_t> ids;
  std::vector<RowLogprobs> logprobs;
  std::string text;
  std::optional<EndEvent> end;
  std::optional<Error> failed;
  std::vector<int> ids_after_event;  // one event a round
};

}  // namespace rondo::test
