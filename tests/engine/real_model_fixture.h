// RealModelTest: a checkpoint that is really run, opened once, and models of it in the sizes a test asks for.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "base/check.h"
#include "base/thread_pool.h"
#include "ckpt/checkpoint.h"
#include "tests/engine/real_model.h"
#include "text/tokenizer.h"

namespace rondo::test {

class RealModelTest : public testing::TestWithParam<RealModel> {
 protected:
  explicit RealModelTest(int context_tokens) : context_tokens_(context_tokens) {}

  void SetUp() override {
    auto opened = Checkpoint::open(GetParam().folder);
    ASSERT_TRUE(opened) << opened.error().message;
    checkpoint_.emplace(std::move(*opened));
    if (GetParam().has_tokenizer) {
      auto tokenizer = Tokenizer::open(GetParam().folder);
      ASSERT_TRUE(tokenizer) << tokenizer.error().message;
      tokenizer_.emplace(std::move(*tokenizer));
    }
  }

  std::unique_ptr<Model> load(int streams, int rows, int drafts, bool head) {
    ModelOptions options;
    options.isa = GetParam().isa;
    options.context_tokens = context_tokens_;
    options.max_streams = streams;
    options.max_rows = rows;
    options.max_drafts = drafts;
    options.has_head = head;
    if (head) options.cache_states = 5;
    if (head) options.cache_blocks = 4;
    auto model = load_model(*checkpoint_, pool_, options, {});
    CHECK(model.has_value());
    return std::move(*model);
  }

  const Tokenizer* tokenizer() const { return tokenizer_ ? &*tokenizer_ : nullptr; }
  int context_tokens() const { return context_tokens_; }

 private:
  int context_tokens_;
  ThreadPool pool_{2};
  std::optional<Checkpoint> checkpoint_;
  std::optional<Tokenizer> tokenizer_;
};

}  // namespace rondo::test
