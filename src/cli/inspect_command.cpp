#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/flags.h"
#include "cli/inspect.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace rondo {

namespace {

template <class T>
void note_problem(std::vector<Problem>& problems, const Result<T>& opened, const std::string& file) {
  // What is absent is told by the report itself, and is no damage.
  if (!opened && opened.error().code != ErrorCode::NotFound) problems.push_back({file, opened.error().message});
}

std::vector<Problem> check_text_files(const Checkpoint& checkpoint) {
  std::vector<Problem> problems;
  note_problem(problems, Tokenizer::open(checkpoint.folder()), "tokenizer.json");
  note_problem(problems, ChatTemplate::open(checkpoint.folder()), "chat template");
  return problems;
}

}  // namespace

int inspect_command(int argc, char** argv) {
  CLI::App app("What a checkpoint holds, and every problem in it by file. Exit 1 when there is any.", "rondo inspect");
  std::string folder;
  app.add_option("MODEL", folder, "checkpoint folder")->required();
  if (const auto status = parse_flags(app, argc, argv)) return *status;
  return run_inspect(folder, check_text_files);
}

}  // namespace rondo
