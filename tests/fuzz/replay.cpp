// replay FOLDER...: runs a fuzz target once over every file of its corpus, in builds without libFuzzer.
#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>

#include "base/mmap_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

int main(int argc, char** argv) {
  int num_inputs = 0;
  for (int i = 1; i < argc; ++i) {
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      const auto input = rondo::read_file(entry.path().string());
      if (!input) return fmt::print(stderr, "{}\n", input.error().message), 1;
      LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input->data()), input->size());
      ++num_inputs;
    }
  }
  fmt::print("{} inputs\n", num_inputs);
  return num_inputs > 0 ? 0 : 1;
}
