// The commands of the program. Each takes the words after its name, reads flags into options and calls what does the
// work; it returns the exit status: 0, 1 when the work failed, 2 when the flags were wrong.
#pragma once

namespace rondo {

// argv[0] is the command's name.
int serve_command(int argc, char** argv);
int run_command(int argc, char** argv);
int chat_command(int argc, char** argv);
int bench_command(int argc, char** argv);
int selfcheck_command(int argc, char** argv);
int inspect_command(int argc, char** argv);
int plan_command(int argc, char** argv);

}  // namespace rondo
