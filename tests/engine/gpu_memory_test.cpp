// After ready no memory of the GPU is taken: what is free of it stays the same, whatever requests ask for. The driver
// counts it, for every process, so nothing else may run on that GPU.
#include "device/cuda/queue.h"
#include "device/stream.h"
#include "engine/engine.h"
#include "tests/engine/real_model_fixture.h"
#include "tests/engine/recording_sink.h"

namespace rondo::test {
namespace {

std::uint64_t free_on_gpu() {
  const auto queue = open_queue(Isa::Sm90);
  CHECK(queue.has_value());
  return (*queue)->facts().free_bytes;
}

Request request_of(int i, int vocab) {
  Request request;
  for (int t = 0; t < 3 + 20 * (i % 4); ++t) request.prompt_ids.push_back((t * 37 + i * 11) % vocab);
  request.max_tokens = 20 + i;
  request.draw.temperature = i % 3 == 0 ? 0.0F : 0.9F;
  request.draw.seed = static_cast<std::uint64_t>(i);
  if (i % 4 == 1) request.draw.top_p = 0.9F;
  if (i % 4 == 2) request.draw.top_k = 50;
  if (i % 5 == 0) request.draw.presence_penalty = 0.5F;
  if (i % 5 == 1) request.draw.bias = {{3, 5.0F}};
  if (i % 2 == 0) request.num_top_logprobs = 5;
  request.max_draft_depth = i % 3 == 2 ? 0 : 8;
  return request;
}

class GpuMemory : public RealModelTest {
 protected:
  GpuMemory() : RealModelTest(192) {}
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GpuMemory);

TEST_P(GpuMemory, NoneIsTakenAfterReady) {
  const auto model = load(6, 24, 8, true);
  const SteadyClock clock;
  Engine engine(*model, tokenizer(), costs_of(model->facts(), 0, 0), clock, {.stall_ms = 1e6});
  const std::uint64_t free_when_ready = free_on_gpu();
  for (int wave = 0; wave < 3; ++wave) {
    std::vector<std::shared_ptr<RecordingSink>> sinks;
    for (int i = 0; i < 10; ++i) {
      sinks.push_back(std::make_shared<RecordingSink>());
      ASSERT_TRUE(engine.submit(request_of(wave * 10 + i, model->facts().vocab_size), sinks.back()));
    }
    while (engine.turn()) {
    }
    for (const auto& sink : sinks) EXPECT_TRUE(sink->end.has_value());
    EXPECT_EQ(free_on_gpu(), free_when_ready) << "after wave " << wave;
  }
}

std::vector<RealModel> models_of_the_gpu() {
  std::vector<RealModel> models = real_models();
  std::erase_if(models, [](const RealModel& each) { return each.isa != Isa::Sm90; });
  return models;
}

INSTANTIATE_TEST_SUITE_P(Every, GpuMemory, testing::ValuesIn(models_of_the_gpu()),
                         [](const auto& each) { return each.param.name; });

// Planted control: a buffer is seen.
TEST(GpuMemoryControl, APlantedBufferIsSeen) {
  if (!has_isa(Isa::Sm90)) GTEST_SKIP() << "this machine lacks sm_90";
  const std::uint64_t before = free_on_gpu();
  const auto planted = reserve_for(Isa::Sm90, std::size_t{4} << 20, "a planted buffer");
  ASSERT_TRUE(planted.has_value());
  EXPECT_LT(free_on_gpu(), before);
}

}  // namespace
}  // namespace rondo::test
