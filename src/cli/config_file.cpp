#include "cli/config_file.h"

#include <fmt/format.h>

#include <fstream>
#include <memory>
#include <set>
#include <vector>

namespace rondo {

namespace {

class ConfigError final : public CLI::ParseError {
 public:
  explicit ConfigError(const std::string& message) : ParseError("ConfigError", message, CLI::ExitCodes::ConfigError) {}
};

// The option that a key names: a flag, or MODEL.
CLI::Option* find_option(CLI::App& app, const std::string& key) {
  if (key == "config" || key == "help") return nullptr;
  if (key == "model") return app.get_option_no_throw("MODEL");
  return app.get_option_no_throw("--" + key);
}

// A key whose flag the command line has already given is checked for its name alone.
void apply(CLI::App& app, const std::set<const CLI::Option*>& given, const std::string& file,
           const CLI::ConfigItem& item) {
  CLI::Option* option = item.parents.empty() ? find_option(app, item.name) : nullptr;
  if (option == nullptr) {
    throw ConfigError(fmt::format("{}: there is no key '{}': the keys are the flags", file, item.fullname()));
  }
  if (given.contains(option)) return;
  if (!option->empty()) throw ConfigError(fmt::format("{}: key '{}' is there twice", file, item.name));
  try {
    if (option->get_expected_max() == 0) {  // a flag without a value: true or false
      option->add_result(option->get_flag_value(item.name, app.get_config_formatter()->to_flag(item)));
    } else {
      option->add_result(item.inputs);
    }
    option->run_callback();
  } catch (const CLI::ParseError& error) {
    throw ConfigError(fmt::format("{}: key '{}': {}", file, item.name, error.what()));
  }
}

void read_config(CLI::App& app, const std::string& file) {
  std::ifstream text(file);
  if (!text) throw ConfigError(fmt::format("{}: cannot be read", file));
  std::vector<CLI::ConfigItem> items;
  try {
    items = app.get_config_formatter()->from_config(text);
  } catch (const CLI::ParseError& error) {
    throw ConfigError(fmt::format("{}: {}", file, error.what()));
  }
  std::set<const CLI::Option*> given;
  for (const CLI::Option* option : app.get_options()) {
    if (!option->empty()) given.insert(option);
  }
  for (const CLI::ConfigItem& item : items) {
    if (item.name == "++" || item.name == "--") continue;  // CLI11's marks of a section's beginning and end
    apply(app, given, file, item);
  }
}

}  // namespace

void add_config_flag(CLI::App& app) {
  const auto file = std::make_shared<std::string>();
  app.add_option("--config", *file, "TOML file with these flags as keys, without the dashes in front");
  app.parse_complete_callback([&app, file] {
    if (!file->empty()) read_config(app, *file);
  });
}

}  // namespace rondo
