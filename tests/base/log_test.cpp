#include "base/log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "base/json.h"

namespace rondo {
namespace {

// One process, one log: the formats are tried in the order in which a process may set them.
TEST(Log, WritesOneLineAnEventAsTextOrAsJson) {
  testing::internal::CaptureStderr();
  log_info("serving {} on port {}", "rondo-demo", 8080);
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(text.ends_with("serving rondo-demo on port 8080\n")) << text;
  EXPECT_NE(text.find("info"), std::string::npos);

  set_log(LogFormat::Json, LogLevel::Warning);
  testing::internal::CaptureStderr();
  log_info("below the level, so not shown");
  log_warning("a \"quoted\" name,\na second line and \\ {}", "%v");
  const std::string line = testing::internal::GetCapturedStderr();
  const auto object = parse_json(line);
  ASSERT_TRUE(object) << line;
  EXPECT_EQ(object->at("level").as_string(), "warning");
  EXPECT_EQ(object->at("message").as_string(), "a \"quoted\" name,\na second line and \\ %v");
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1);
}

}  // namespace
}  // namespace rondo
