// What /v1/models and /health say.
#include "api/openai_models.h"

#include <gtest/gtest.h>

namespace rondo {
namespace {

TEST(Models, CarryTheWindowAndWhatBothApisClientsRead) {
  ServedModel model;
  model.name = "demo";
  model.aliases = {"x", "*"};
  model.context_tokens = 4096;
  EXPECT_EQ(render_models(model),
            R"({"object":"list","has_more":false,"first_id":"demo","last_id":"x","data":[)"
            R"({"id":"demo","object":"model","created":0,"owned_by":"rondo","max_model_len":4096,"type":"model",)"
            R"("display_name":"demo","created_at":"1970-01-01T00:00:00Z"},)"
            R"({"id":"x","object":"model","created":0,"owned_by":"rondo","max_model_len":4096,"type":"model",)"
            R"("display_name":"x","created_at":"1970-01-01T00:00:00Z"}]})");
}

TEST(Health, IsAHeartbeat) {
  EngineStatus status;
  status.heartbeat_age_ms = 900;
  EXPECT_EQ(render_health(status, 1000).status, 200);
  status.heartbeat_age_ms = 1100;
  EXPECT_EQ(render_health(status, 1000).status, 503);
  status.heartbeat_age_ms = 0;
  status.stopped = true;
  EXPECT_EQ(render_health(status, 1000).status, 503);
}

}  // namespace
}  // namespace rondo
