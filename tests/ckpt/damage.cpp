#include "tests/ckpt/damage.h"

#include <stdlib.h>

#include <ctime>
#include <fstream>
#include <iterator>

#include "base/check.h"

namespace rondo {

namespace fs = std::filesystem;

TempFolder::TempFolder() {
  std::string pattern = (fs::temp_directory_path() / "rondo-ckpt-XXXXXX").string();
  CHECK(::mkdtemp(pattern.data()) != nullptr);
  path_ = pattern;
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

void TempFolder::copy_from(const std::string& folder) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    const fs::path to = path_ / entry.path().filename();
    if (entry.file_size() > (1u << 20)) {
      fs::create_symlink(entry.path(), to);
    } else {
      fs::copy_file(entry.path(), to);
    }
  }
}

std::string TempFolder::read(std::string_view file) const {
  std::ifstream in(path_ / file, std::ios::binary);
  CHECK(in.good());
  return {std::istreambuf_iterator<char>(in), {}};
}

void TempFolder::write(std::string_view file, std::string_view bytes) const {
  fs::remove(path_ / file);
  std::ofstream out(path_ / file, std::ios::binary);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  CHECK(out.good());
}

void TempFolder::remove(std::string_view file) const { CHECK(fs::remove(path_ / file)); }

double processor_seconds(const std::function<void()>& work) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(NDEBUG)
  constexpr double kSlowdown = 20;
#else
  constexpr double kSlowdown = 1;
#endif
  const std::clock_t start = std::clock();
  work();
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC / kSlowdown;
}

SafetensorsParts split_safetensors(std::string_view file) {
  std::uint64_t length = 0;
  for (int i = 7; i >= 0; --i) length = length << 8 | static_cast<unsigned char>(file[static_cast<std::size_t>(i)]);
  return {std::string(file.substr(8, length)), std::string(file.substr(8 + length))};
}

std::string header_length(std::uint64_t length) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(length >> (8 * i) & 0xFF);
  return bytes;
}

std::string join_safetensors(const SafetensorsParts& parts) {
  return header_length(parts.header.size()) + parts.header + parts.data;
}

void edit_header(const TempFolder& folder, std::string_view file, const std::function<void(json::Object&)>& edit) {
  SafetensorsParts parts = split_safetensors(folder.read(file));
  json::Value header = *parse_json(parts.header);
  edit(header.as_object());
  parts.header = to_json(header);
  parts.header.resize((parts.header.size() + 7) / 8 * 8, ' ');
  folder.write(file, join_safetensors(parts));
}

void edit_json(const TempFolder& folder, std::string_view file, const std::function<void(json::Object&)>& edit) {
  json::Value document = *parse_json(folder.read(file));
  edit(document.as_object());
  folder.write(file, to_json(document));
}

}  // namespace rondo
