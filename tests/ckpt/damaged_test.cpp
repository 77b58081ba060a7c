// Damaged checkpoints: what every damage must end in.
#include "tests/ckpt/damaged.h"

#include <unistd.h>

#include "ckpt/checkpoint.h"
#include "cli/inspect.h"

namespace rondo {

namespace fs = std::filesystem;

Damage json_is(const std::string& name, const std::string& fixture, const char* file, Edit edit,
               const std::string& words) {
  return {name, fixture, [=](const TempFolder& folder) { edit_json(folder, file, edit); }, file, words};
}

Damage text_config_is(const std::string& name, const std::string& key, json::Value value, const std::string& words) {
  const auto edit = [=](json::Object& config) { config["text_config"].as_object()[key] = value; };
  return json_is(name, "qwen4_exp", kConfig, edit, words);
}

Damage about(const std::string& file, Damage damage) {
  damage.file = file;
  return damage;
}

Damage file_is(const std::string& name, const char* file, const std::string& bytes, const std::string& words) {
  return {name, "qwen3_5", [=](const TempFolder& folder) { folder.write(file, bytes); }, file, words};
}

Damage is_folder(const std::string& name, const char* file) {
  const auto inflict = [=](const TempFolder& folder) {
    fs::remove(folder / file);
    fs::create_directory(folder / file);
  };
  return {name, "qwen3_5", inflict, file, "not a regular file"};
}

std::string fixture_folder(const std::string& fixture) {
  return fixture == "demo" ? RONDO_BUNDLED_MODEL : std::string(RONDO_FIXTURES "/") + fixture;
}

std::size_t data_start(const std::string& file) { return 8 + split_safetensors(file).header.size(); }

std::vector<Damage> Damaged::all_of(std::initializer_list<std::vector<Damage>> lists) {
  std::vector<Damage> all;
  for (const std::vector<Damage>& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

namespace {

// Every message about the folder, one a line; what a person would read.
std::string messages(const std::string& folder) {
  const auto checkpoint = Checkpoint::inspect(folder);
  if (!checkpoint) return checkpoint.error().message + "\n";
  std::string all;
  for (const Problem& problem : checkpoint->problems()) all += problem.file + ": " + problem.message + "\n";
  return all;
}

// Root may read everything; while one of these lives, root is somebody else.
class OrdinaryUser {
 public:
  explicit OrdinaryUser(bool wanted) : was_root_(wanted && ::geteuid() == 0) {
    constexpr uid_t kNobody = 65534;
    if (was_root_) CHECK(::seteuid(kNobody) == 0);
  }
  ~OrdinaryUser() {
    if (was_root_) CHECK(::seteuid(0) == 0);
  }
  OrdinaryUser(const OrdinaryUser&) = delete;
  OrdinaryUser& operator=(const OrdinaryUser&) = delete;

 private:
  bool was_root_;
};

TEST_P(Damaged, EndsInAMessageThatNamesTheFile) {
  const Damage& damage = GetParam();
  TempFolder folder;
  folder.copy_from(fixture_folder(damage.fixture));
  damage.inflict(folder);
  const OrdinaryUser user(damage.name == "PermissionIsDenied");

  std::string said;
  EXPECT_LT(processor_seconds([&] { said = messages(folder.path()); }), 1);
  bool is_named = false;
  for (std::size_t at = 0, end = 0; (end = said.find('\n', at)) != said.npos; at = end + 1) {
    const std::string each = said.substr(at, end - at);
    is_named = is_named || (each.starts_with(damage.file + ": ") && each.find(damage.words) != each.npos);
  }
  EXPECT_TRUE(is_named) << "no line about " << damage.file << " says \"" << damage.words << "\":\n" << said;

  EXPECT_FALSE(Checkpoint::open(folder.path()));
  testing::internal::CaptureStdout();
  EXPECT_EQ(run_inspect(folder.path()), 1);
  const std::string report = testing::internal::GetCapturedStdout();
  EXPECT_NE(report.find(damage.file), report.npos) << report;
  EXPECT_NE(report.find(damage.words), report.npos) << report;
}

// Planted control: the checker above must be able to say "fine"; an untouched copy has nothing to report.
TEST(Undamaged, CopiesHaveNoProblem) {
  for (const char* fixture : {"qwen3_next", "qwen3_5", "qwen3_5_moe", "qwen4_exp", "demo"}) {
    TempFolder folder;
    folder.copy_from(fixture_folder(fixture));
    EXPECT_EQ(messages(folder.path()), "");
    testing::internal::CaptureStdout();
    EXPECT_EQ(run_inspect(folder.path()), 0);
    testing::internal::GetCapturedStdout();
  }
}

TEST(NoFolder, IsSaid) {
  EXPECT_EQ(messages("/nonexistent/model"), "/nonexistent/model: no such folder\n");
  EXPECT_EQ(messages(RONDO_BUNDLED_MODEL "/config.json"), RONDO_BUNDLED_MODEL "/config.json: not a folder\n");
  testing::internal::CaptureStdout();
  EXPECT_EQ(run_inspect("/nonexistent/model"), 1);
  EXPECT_NE(testing::internal::GetCapturedStdout().find("no such folder"), std::string::npos);
}

}  // namespace
}  // namespace rondo
