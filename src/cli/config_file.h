// --config FILE: flags of a command from a TOML file, its keys the flags without the dashes in front. A flag on the
// command line goes before its key. What is wrong is said with the file and the key.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace rondo {

// Adds --config to `app`; the file is read when the command line has been.
void add_config_flag(CLI::App& app);

}  // namespace rondo
