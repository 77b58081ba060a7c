// Folders to be damaged: a copy of a fixture in a temporary place, and the edits that make it wrong.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "base/json.h"

namespace rondo {

// A folder that is gone with the object.
class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  std::string path() const { return path_.string(); }
  std::filesystem::path operator/(std::string_view file) const { return path_ / file; }

  void copy_from(const std::string& folder);  // files above 1 MB as links, until somebody writes them
  std::string read(std::string_view file) const;
  void write(std::string_view file, std::string_view bytes) const;  // replaces a link, leaves its target alone
  void remove(std::string_view file) const;

 private:
  std::filesystem::path path_;
};

// Seconds of processor time that `work` took, as an optimised build on a quiet machine would take them: neighbours on
// the machine do not count, and what sanitizers and debug builds add is divided out, roughly. A test that waits for
// something is ended by ctest's own limit.
double processor_seconds(const std::function<void()>& work);

// A safetensors file in its parts.
struct SafetensorsParts {
  std::string header;  // JSON
  std::string data;
};
SafetensorsParts split_safetensors(std::string_view file);
std::string join_safetensors(const SafetensorsParts& parts);  // with the header's true length in front
std::string header_length(std::uint64_t length);              // the eight bytes

// Changes the header's JSON object, keeps the data.
void edit_header(const TempFolder& folder, std::string_view file, const std::function<void(json::Object&)>& edit);
// Changes a JSON file's object.
void edit_json(const TempFolder& folder, std::string_view file, const std::function<void(json::Object&)>& edit);

}  // namespace rondo
