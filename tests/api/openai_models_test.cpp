// What /v1/models and /health say.
#include "api/openai_models.h"

#include <gtest/gtest.h>

namespace rondo {
namespace {

TEST(Models, CarryTheWindow) {
  ServedModel model;
  model.name = "demo";
  model.aliases = {"x", "*"};
  model.context_tokens = 4096;
  EXPECT_EQ(
      render_models(model),
      R"({"object":"list","data":[{"id":"demo","object":"model","created":0,"owned_by":"rondo","max_model_len":4096},)"
      R"({"id":"x","object":"model","created":0,"owned_by":"rondo","max_model_len":4096}]})");
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
