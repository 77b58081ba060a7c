#include "base/mmap_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace rondo {
namespace {

class MmapFileTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::path(testing::TempDir()) / (std::string("rondo_mmap_") + test->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& bytes) {
    const std::string path = (folder_ / name).string();
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  static std::string text(const MmapFile& file) {
    return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
  }

  std::filesystem::path folder_;
};

TEST_F(MmapFileTest, ShowsTheBytesOfTheFile) {
  std::string bytes("head\0tail\xff\n", 11);
  bytes += std::string(10'000, 'x');  // past one page
  const auto file = MmapFile::open(write("weights", bytes));
  ASSERT_TRUE(file);
  EXPECT_EQ(text(*file), bytes);
}

TEST_F(MmapFileTest, AnEmptyFileIsAnEmptySpan) {
  const auto file = MmapFile::open(write("empty", ""));
  ASSERT_TRUE(file);
  EXPECT_TRUE(file->bytes().empty());
}

TEST_F(MmapFileTest, AMissingFileIsNotFoundAndNamed) {
  const std::string path = (folder_ / "absent.safetensors").string();
  const auto file = MmapFile::open(path);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, ErrorCode::NotFound);
  EXPECT_NE(file.error().message.find(path), std::string::npos) << file.error().message;
}

TEST_F(MmapFileTest, APathThroughAFileIsNotFound) {
  EXPECT_EQ(MmapFile::open(write("plain", "x") + "/config.json").error().code, ErrorCode::NotFound);
}

TEST_F(MmapFileTest, AFolderIsRefusedByName) {
  const auto file = MmapFile::open(folder_.string());
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, ErrorCode::Io);
  EXPECT_EQ(file.error().message, folder_.string() + ": not a regular file");
}

TEST_F(MmapFileTest, OutlivesTheNameOfTheFile) {
  const std::string path = write("unlinked", "still here");
  const auto file = MmapFile::open(path);
  std::filesystem::remove(path);
  ASSERT_TRUE(file);
  EXPECT_EQ(text(*file), "still here");
}

TEST_F(MmapFileTest, MovesItsMappingAndLeavesNothingBehind) {
  MmapFile first = *MmapFile::open(write("first", "first"));
  MmapFile moved = std::move(first);
  EXPECT_TRUE(first.bytes().empty());  // NOLINT(bugprone-use-after-move): what a move leaves is the question
  EXPECT_EQ(text(moved), "first");
  moved = *MmapFile::open(write("second", "second"));
  EXPECT_EQ(text(moved), "second");
}

TEST_F(MmapFileTest, ReadFileCopiesTheWholeFile) {
  const std::string bytes("{\"a\": 1}\n\0", 10);
  EXPECT_EQ(read_file(write("config.json", bytes)).value(), bytes);
  EXPECT_EQ(read_file(write("empty", "")).value(), "");
  EXPECT_EQ(read_file((folder_ / "absent").string()).error().code, ErrorCode::NotFound);
}

}  // namespace
}  // namespace rondo
