// Flags that several commands share, and one way of saying what is wrong with them.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "base/result.h"
#include "cli/load.h"

namespace rondo {

// The exit status to end with, when the flags say to end: 0 after --help, 2 after one line on stderr.
std::optional<int> parse_flags(CLI::App& app, int argc, char** argv);

void add_device_flag(CLI::App& app, LoadOptions& options);  // --device
// MODEL --device --threads --context
void add_load_flags(CLI::App& app, LoadOptions& options);
void add_capacity_flags(CLI::App& app, LoadOptions& options);  // what serve reserves for: streams, prefix cache

int fail_with(const std::string& command, const Error& error);  // one line on stderr, and 1

}  // namespace rondo
