// Damage: one way to spoil a copy of a fixture, and what must be said of it.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "tests/ckpt/damage.h"

namespace rondo {

inline constexpr const char* kModel = "model.safetensors";
inline constexpr const char* kHead = "model-mtp.safetensors";
inline constexpr const char* kIndex = "model.safetensors.index.json";
inline constexpr const char* kConfig = "config.json";
inline constexpr const char* kUp = "model.layers.1.mlp.up_proj.weight";  // [96, 64] in the qwen3_5 fixture

struct Damage {
  std::string name;
  std::string fixture;
  std::function<void(const TempFolder&)> inflict;
  std::string file;   // that the message is about
  std::string words;  // that it says
};
inline std::ostream& operator<<(std::ostream& out, const Damage& damage) { return out << damage.name; }

using Edit = std::function<void(json::Object&)>;

// A JSON file of a fixture changed.
Damage json_is(const std::string& name, const std::string& fixture, const char* file, Edit edit,
               const std::string& words);
Damage text_config_is(const std::string& name, const std::string& key, json::Value value, const std::string& words);
// A file of the qwen3_5 fixture replaced by other bytes, or by a folder.
Damage file_is(const std::string& name, const char* file, const std::string& bytes, const std::string& words);
Damage is_folder(const std::string& name, const char* file);
// The damage is done in one file and seen in another.
Damage about(const std::string& file, Damage damage);

std::string fixture_folder(const std::string& fixture);
std::size_t data_start(const std::string& file);  // of a safetensors file's bytes

// Each damage ends, within a second, in a message that names the file and the tensor or key. Its test stands in
// damaged_test.cpp; what is damaged is instantiated by file.
class Damaged : public testing::TestWithParam<Damage> {
 public:
  static std::vector<Damage> all_of(std::initializer_list<std::vector<Damage>> lists);
};

}  // namespace rondo
