// rondo COMMAND ...: finds the command and hands it the rest. The commands and their flags have a file each.
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <new>
#include <string_view>

#include "cli/command.h"

namespace rondo {
namespace {

struct Command {
  std::string_view name;
  std::string_view summary;
  int (*run)(int argc, char** argv);
};
constexpr Command kCommands[] = {
    {"serve", "serve [MODEL]          the server, on 127.0.0.1:8080", serve_command},
    {"run", "run [MODEL] -p TEXT    one prompt, tokens as they come", run_command},
    {"chat", "chat [MODEL]           a conversation in the terminal", chat_command},
    {"bench", "bench [MODEL]          how fast it runs here, next to how fast this machine reads memory",
     bench_command},
    {"selfcheck", "selfcheck [MODEL]      proves here that a reply depends on its own request alone",
     selfcheck_command},
    {"plan", "plan [MODEL]           the memory plan and what fits, without loading", plan_command},
    {"inspect", "inspect MODEL          what a checkpoint holds, and what is wrong with it", inspect_command},
};

void print_help(std::FILE* out) {
  fmt::print(out, "Rondo serves one language model to many people at once.\n\n");
  for (const Command& command : kCommands) fmt::print(out, "  rondo {}\n", command.summary);
  fmt::print(out, "\nrondo COMMAND --help lists the flags of a command. Without MODEL, the bundled model.\n");
}

int run_program(int argc, char** argv) {
  const std::string_view name = argc > 1 ? argv[1] : "";
  if (name == "--help" || name == "-h" || name == "help") {
    print_help(stdout);
    return 0;
  }
  if (name == "--version") {
    fmt::print("rondo {}\n", RONDO_VERSION);
    return 0;
  }
  for (const Command& command : kCommands) {
    if (name == command.name) return command.run(argc - 1, argv + 1);
  }
  if (name.empty()) {
    print_help(stderr);
  } else {
    fmt::print(stderr, "rondo: there is no command '{}' (rondo --help lists them)\n", name);
  }
  return 2;
}

}  // namespace
}  // namespace rondo

int main(int argc, char** argv) {
  try {
    return rondo::run_program(argc, argv);
  } catch (const std::bad_alloc&) {
    std::fputs("rondo: the system gives no more memory\n", stderr);
  } catch (const std::exception& error) {  // no thread, say
    std::fprintf(stderr, "rondo: the system cannot give what is needed: %s\n", error.what());
  }
  return 1;
}
