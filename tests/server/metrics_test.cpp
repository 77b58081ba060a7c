// /metrics: the counters add up, over a real engine with a fake model; and docs/metrics.md names what is exported.
#include "server/metrics.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "tests/server/engine_fixture.h"
#include "tests/server/server_fixture.h"

namespace rondo {
namespace {

using test::EngineServerTest;

// Samples by name and labels as written, and the families' names.
struct Read {
  std::map<std::string, double> samples;
  std::set<std::string> families;
  double sum_of(const std::string& prefix) const {
    double sum = 0;
    for (const auto& [name, value] : samples) sum += name.starts_with(prefix) ? value : 0;
    return sum;
  }
  double at(const std::string& name) const { return samples.contains(name) ? samples.at(name) : -1; }
};

Read read_metrics(const std::string& text) {
  Read out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# TYPE ")) out.families.insert(line.substr(7, line.find(' ', 7) - 7));
    if (line.starts_with('#')) continue;
    const std::size_t space = line.rfind(' ');
    EXPECT_FALSE(out.samples.contains(line.substr(0, space))) << "twice: " << line;
    out.samples[line.substr(0, space)] = std::stod(line.substr(space + 1));
  }
  return out;
}

std::set<std::string> documented_names(const std::string& page) {
  std::ifstream file(page);
  std::stringstream text;
  text << file.rdbuf();
  std::set<std::string> names;
  const std::string all = text.str();
  const std::regex row("(^|\n)\\| `(rondo_[a-z_]+)` \\|");
  for (std::sregex_iterator it(all.begin(), all.end(), row), end; it != end; ++it) names.insert((*it)[2]);
  return names;
}

class Metrics : public EngineServerTest {
 protected:
  Read metrics() { return read_metrics(ask(get("/metrics")).body); }
};

TEST_F(Metrics, EveryNameExportedIsDocumentedAndTheOtherWay) {
  start();
  EXPECT_EQ(metrics().families, documented_names(RONDO_DOCS "/metrics.md"));
}

TEST_F(Metrics, CountersAddUp) {
  start();
  for (int i = 0; i < 12; ++i) {
    const bool streamed = i % 2 == 0;
    EXPECT_EQ(ask(post_chat(streamed ? kHelloStreamed : kHello)).status, 200);
  }
  EXPECT_EQ(ask(post_chat("{")).status, 400);
  EXPECT_EQ(ask(get("/nowhere")).status, 404);
  EXPECT_EQ(ask("nonsense\r\n\r\n").status, 400);
  const Read read = metrics();
  EXPECT_EQ(read.at(R"(rondo_http_requests_total{route="/v1/chat/completions",status="200"})"), 12);
  EXPECT_EQ(read.at(R"(rondo_http_requests_total{route="/v1/chat/completions",status="400"})"), 1);
  EXPECT_EQ(read.at(R"(rondo_http_requests_total{route="other",status="404"})"), 1);
  EXPECT_EQ(read.at(R"(rondo_http_requests_total{route="other",status="400"})"), 1);
  EXPECT_EQ(read.at("rondo_requests_taken_total"), 12);
  EXPECT_EQ(read.sum_of("rondo_requests_ended_total"), 12);
  EXPECT_EQ(read.at("rondo_streams_running"), 0);
  EXPECT_EQ(read.at("rondo_requests_queued"), 0);
  EXPECT_EQ(read.at("rondo_time_to_first_token_seconds_count"), 12);
  EXPECT_EQ(read.at("rondo_time_to_first_token_seconds_count") + read.at("rondo_time_between_tokens_seconds_count"),
            read.at("rondo_completion_tokens_total"));
  EXPECT_GT(read.at("rondo_completion_tokens_total"), 12);
  EXPECT_EQ(read.at("rondo_prompt_tokens_total"), 12 * 5);
  EXPECT_GT(read.at("rondo_rounds_total"), 0);
  EXPECT_GE(read.at("rondo_rows_total"), read.at("rondo_completion_tokens_total"));
  EXPECT_GT(read.sum_of("rondo_drafts_kept_total"), 0);
  for (int depth = 1; depth <= 16; ++depth) {
    const std::string label = "{depth=\"" + std::to_string(depth) + "\"}";
    EXPECT_LE(read.at("rondo_drafts_kept_total" + label), read.at("rondo_drafts_verified_total" + label));
  }
  EXPECT_EQ(read.at("rondo_http_body_bytes"), 0);
  EXPECT_GE(read.at("rondo_http_connections"), 1);
  EXPECT_GT(read.at("rondo_kv_blocks"), 0);
}

TEST_F(Metrics, ARequestWhoseClientLeftIsCountedAsCancelled) {
  start();
  model.hold();
  RawClient client(port);
  client.send(post_chat(kHelloStreamed));
  model.wait_until_stuck();
  client.leave();
  while (metrics().at("rondo_clients_gone_total") != 1) {
  }
  model.let_go();
  while (metrics().at("rondo_streams_running") != 0) {
  }
  const Read read = metrics();
  EXPECT_EQ(read.at(R"(rondo_requests_ended_total{reason="cancelled"})"), 1);
  EXPECT_EQ(read.sum_of("rondo_requests_ended_total"), 1);
  EXPECT_EQ(read.at("rondo_kv_blocks_used"), 0);
}

TEST_F(Metrics, AHistogramsRangesRiseToItsCount) {
  start();
  for (int i = 0; i < 5; ++i) ask(post_chat(kHello));
  std::istringstream lines(ask(get("/metrics")).body);
  std::map<std::string, double> last;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t bucket = line.find("_bucket{le=");
    if (bucket == std::string::npos) continue;
    const double value = std::stod(line.substr(line.rfind(' ') + 1));
    EXPECT_GE(value, last[line.substr(0, bucket)]) << line;
    last[line.substr(0, bucket)] = value;
  }
  EXPECT_EQ(last.size(), 2U);
  EXPECT_EQ(last.at("rondo_time_to_first_token_seconds"), 5);
}

TEST(Histogram, TheEndOfARangeBelongsToIt) {
  Histogram histogram;
  histogram.see(0.0005);
  histogram.see(0.00051, 3);
  histogram.see(1000);
  EXPECT_EQ(histogram.counts.front(), 1U);
  EXPECT_EQ(histogram.counts[1], 3U);
  EXPECT_EQ(histogram.counts.back(), 1U);
  EXPECT_EQ(histogram.total(), 5U);
}

class LoadingMetrics : public ServerTest {};

TEST_F(LoadingMetrics, AreThereBeforeTheModel) {
  start_loading();
  const Read read = read_metrics(ask(get("/metrics")).body);
  EXPECT_EQ(read.at("rondo_ready"), 0);
  EXPECT_EQ(read.at("rondo_streams_running"), -1) << "not known yet, so not said";
  open();
  EXPECT_EQ(read_metrics(ask(get("/metrics")).body).at("rondo_ready"), 1);
}

}  // namespace
}  // namespace rondo
