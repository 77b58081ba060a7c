// The syntax tree of a template, as the parser leaves it and the interpreter walks it. Never changes after parsing.
//
// Names are numbers into Program::names. Literals live in the program's own heap and are trusted text.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "text/jinja/value.h"

namespace rondo::jinja {

class Interpreter;
struct CallArgs;
using FilterFn = Value (*)(Interpreter&, const Value&, CallArgs&);
using TestFn = bool (*)(Interpreter&, const Value&, CallArgs&);
using NameId = int;

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;
struct Stmt;
using StmtPtr = std::unique_ptr<Stmt>;
using Body = std::vector<StmtPtr>;

enum class ExprKind : std::uint8_t {
  Literal,
  Name,
  Tuple,
  List,
  Dict,       // kids: key, value, key, value, ...
  Attribute,  // kids[0] . literal
  Item,       // kids[0] [ kids[1] ]
  Slice,      // kids: start, stop, step, each perhaps null
  Call,       // kids[0] ( args )
  Filter,     // kids[0] | filter(args); kids[0] null: the captured block
  Test,       // kids[0] is test(args)
  Negate,
  Plus,
  Not,
  And,
  Or,
  Binary,   // kids[0] op kids[1]
  Concat,   // kids joined by ~
  Compare,  // kids[0] ops[0] kids[1] ops[1] ...
  If,       // kids[1] if kids[0] else kids[2]; kids[2] perhaps null
};

enum class Op : std::uint8_t { Add, Sub, Mul, Div, FloorDiv, Mod, Pow, Eq, Ne, Lt, Le, Gt, Ge, In, NotIn };

struct ArgList {
  std::vector<ExprPtr> positional;
  std::vector<std::pair<Value, ExprPtr>> keywords;  // the name, a string
  ExprPtr star;                                     // *args
  ExprPtr star_star;                                // **kwargs
};

struct Expr {
  ExprKind kind;
  int line;
  int depth = 1;  // of the tree below; bounded, so that walking it fits the stack
  NameId name = 0;
  Op op = Op::Add;
  Value literal;  // Literal; Attribute: its name; Filter, Test that is not known: its name
  FilterFn filter = nullptr;
  TestFn test = nullptr;
  std::vector<ExprPtr> kids;
  std::vector<Op> ops;
  std::unique_ptr<ArgList> args;
};

enum class StmtKind : std::uint8_t {
  Output,     // exprs, each written
  If,         // exprs[i] -> bodies[i]; bodies may have one more, the else
  For,        // for target in exprs[0] if exprs[1] ...; bodies[0], else bodies[1]
  Set,        // target = exprs[0]
  SetBlock,   // target = bodies[0], through the filters exprs[0] if any
  Macro,      // macro
  CallBlock,  // call with exprs[0], caller = macro
  FilterBlock,
  With,   // targets = exprs; bodies[0]
  Scope,  // bodies[0] in a scope of its own: {% generation %}
  Break,
  Continue,
};

struct Target {
  enum class Kind { Name, Attribute, Tuple } kind = Kind::Name;
  NameId name = 0;
  Value attribute;  // namespace.attribute
  std::vector<Target> parts;
};

struct MacroDef {
  NameId name_id = 0;
  const Text* name = nullptr;
  std::vector<NameId> params;
  std::vector<ExprPtr> defaults;  // of the last params
  Body body;
  bool takes_caller = false;  // the body mentions caller, varargs, kwargs
  bool takes_varargs = false;
  bool takes_kwargs = false;
};

struct Stmt {
  StmtKind kind;
  int line;
  std::vector<ExprPtr> exprs;
  std::vector<Body> bodies;
  Target target;
  std::vector<Target> targets;
  std::unique_ptr<MacroDef> macro;
  bool recursive = false;
};

struct Program {
  std::string name;  // stands for the file in messages
  Heap heap;         // literals and names
  std::vector<const Text*> names;
  Body body;
};

// The tree of `source`; Fault, with line, in jinja2's words where it has them.
std::unique_ptr<Program> parse(std::string_view source, const std::string& name);

}  // namespace rondo::jinja
