// The grammar is jinja2's, without what needs other templates (include, import, extends, block) and autoescape.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "text/jinja/ast.h"
#include "text/jinja/lexer.h"
#include "text/jinja/runtime.h"

namespace rondo::jinja {

namespace {

class Parser {
 public:
  Parser(std::string_view source, Program& program) : program_(program), tokens_(lex(source)) {}
  Body run() { return subparse({}); }

 private:
  // One level deeper into the grammar; hostile nesting must not reach the end of the stack.
  class Deeper {
   public:
    explicit Deeper(Parser& parser) : parser_(parser) {
      if (++parser_.depth_ > kMaxNesting) parser_.fail("the template nests deeper than " + std::to_string(kMaxNesting));
    }
    ~Deeper() { --parser_.depth_; }
    Deeper(const Deeper&) = delete;
    Deeper& operator=(const Deeper&) = delete;

   private:
    Parser& parser_;
  };
  enum class Conditional { No, Yes };
  using EndTags = std::vector<std::string_view>;

  const Token& current() const { return tokens_[at_]; }
  const Token& look() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  const Token& next() {
    const Token& token = tokens_[at_];
    if (at_ + 1 < tokens_.size()) ++at_;
    return token;
  }
  bool skip_op(std::string_view op) { return current().is(op) && (next(), true); }
  bool skip_name(std::string_view name) { return current().is_name(name) && (next(), true); }
  [[noreturn]] void fail(const std::string& message) const { fault_at(current().line, message); }
  void expect_op(std::string_view op);
  void expect(TokenKind kind, const char* what);
  std::string expect_name();
  static std::string describe(const Token& token);

  Body subparse(const EndTags& end_tags);
  // Up to, not including, one of the tags; then current() is its name. inner_statements opens a scope, so that what is
  // inside no longer stands directly in an if.
  Body statements(const EndTags& end_tags);
  Body inner_statements(const EndTags& end_tags) {
    const bool was_soft = std::exchange(soft_, false);
    Body body = statements(end_tags);
    soft_ = was_soft;
    return body;
  }
  void end_tag(std::string_view name);
  void statement(Body& body);
  [[noreturn]] void unknown_tag(const EndTags* looking_for);
  StmtPtr make(StmtKind kind, int line) {
    auto stmt = std::make_unique<Stmt>();
    stmt->kind = kind;
    stmt->line = line;
    return stmt;
  }
  StmtPtr parse_set();
  StmtPtr parse_for();
  StmtPtr parse_if();
  StmtPtr parse_with();
  StmtPtr parse_macro();
  StmtPtr parse_call_block();
  StmtPtr parse_filter_block();
  StmtPtr parse_generation();
  StmtPtr parse_print();
  StmtPtr parse_loop_control(StmtKind kind);
  void signature(MacroDef& macro);
  void macro_body(MacroDef& macro, std::string_view end);

  enum class Namespaces { No, Yes };
  Target target(Namespaces namespaces, std::string_view end_name);
  Target target_primary(Namespaces namespaces);

  ExprPtr node(ExprKind kind, int line) const {
    auto expr = std::make_unique<Expr>();
    expr->kind = kind;
    expr->line = line;
    return expr;
  }
  ExprPtr sealed(ExprPtr expr) const;
  template <class... Kids>
  ExprPtr branch(ExprKind kind, int line, Kids... kids) const {
    ExprPtr expr = node(kind, line);
    (expr->kids.push_back(std::move(kids)), ...);
    return sealed(std::move(expr));
  }
  ExprPtr literal(Value value, int line) const {
    ExprPtr expr = node(ExprKind::Literal, line);
    expr->literal = value;
    return expr;
  }
  ExprPtr binary(Op op, int line, ExprPtr left, ExprPtr right) const {
    ExprPtr expr = branch(ExprKind::Binary, line, std::move(left), std::move(right));
    expr->op = op;
    return expr;
  }

  ExprPtr tuple(Conditional conditional = Conditional::Yes, std::string_view end_name = {}, bool in_parens = false);
  ExprPtr expression(Conditional conditional = Conditional::Yes) {
    return conditional == Conditional::Yes ? condition() : disjunction();
  }
  ExprPtr condition();
  ExprPtr disjunction();
  ExprPtr conjunction();
  ExprPtr negation();
  ExprPtr comparison();
  ExprPtr sum();
  ExprPtr concat();
  ExprPtr product();
  ExprPtr power();
  ExprPtr unary(bool with_filter = true);
  ExprPtr primary();
  ExprPtr list();
  ExprPtr dict();
  ExprPtr postfix(ExprPtr expr);
  ExprPtr filters_and_tests(ExprPtr expr);
  ExprPtr subscript(ExprPtr object);
  ExprPtr subscribed();
  ExprPtr call(ExprPtr callee);
  std::unique_ptr<ArgList> arguments();
  ExprPtr filter(ExprPtr input, bool start_inline);
  ExprPtr one_filter(ExprPtr input);
  ExprPtr test(ExprPtr input);
  ExprPtr name_or_constant();
  void unknown(const std::string& message, int line);
  void check_unknown();

  NameId name_id(const std::string& name);
  Value text(std::string_view bytes) { return str(program_.heap, bytes); }

  struct Unknown {
    std::string message;
    int line;
  };

  Program& program_;
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int depth_ = 0;
  int loops_ = 0;      // open for loops of this macro body
  bool soft_ = false;  // directly inside an if: an unknown filter is an error only when it is reached
  std::vector<Unknown> unknown_;
  std::vector<std::string> open_tags_;
  std::vector<MacroDef*> open_macros_;
  std::unordered_map<std::string, NameId> name_ids_;
};

NameId Parser::name_id(const std::string& name) {
  const auto [it, is_new] = name_ids_.try_emplace(name, static_cast<NameId>(program_.names.size()));
  if (is_new) program_.names.push_back(make_text(program_.heap, name));
  return it->second;
}

ExprPtr Parser::sealed(ExprPtr expr) const {
  int depth = 0;
  for (const ExprPtr& kid : expr->kids) {
    if (kid) depth = std::max(depth, kid->depth);
  }
  if (expr->args) {
    for (const ExprPtr& arg : expr->args->positional) depth = std::max(depth, arg->depth);
    for (const auto& [name, arg] : expr->args->keywords) depth = std::max(depth, arg->depth);
    if (expr->args->star) depth = std::max(depth, expr->args->star->depth);
    if (expr->args->star_star) depth = std::max(depth, expr->args->star_star->depth);
  }
  expr->depth = depth + 1;
  if (expr->depth > kMaxNesting) fault_at(expr->line, "an expression nests deeper than " + std::to_string(kMaxNesting));
  return expr;
}

std::string Parser::describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::Data: return "template data / text";
    case TokenKind::BlockBegin: return "begin of statement block";
    case TokenKind::BlockEnd: return "end of statement block";
    case TokenKind::VariableBegin: return "begin of print statement";
    case TokenKind::VariableEnd: return "end of print statement";
    case TokenKind::Integer: return "integer";
    case TokenKind::Float: return "float";
    case TokenKind::End: return "end of template";
    default: return token.text;
  }
}

void Parser::expect_op(std::string_view op) {
  if (skip_op(op)) return;
  if (current().kind == TokenKind::End) fail("unexpected end of template, expected '" + std::string(op) + "'.");
  fail("expected token '" + std::string(op) + "', got '" + describe(current()) + "'");
}

void Parser::expect(TokenKind kind, const char* what) {
  if (current().kind != kind) fail(std::string("expected token '") + what + "', got '" + describe(current()) + "'");
  next();
}

std::string Parser::expect_name() {
  if (current().kind != TokenKind::Name) fail("expected token 'name', got '" + describe(current()) + "'");
  return next().text;
}

void Parser::unknown(const std::string& message, int line) {
  if (!soft_) unknown_.push_back({message, line});
}

void Parser::check_unknown() {
  if (!unknown_.empty()) fault_at(unknown_.front().line, unknown_.front().message);
}

// ---- statements

Body Parser::subparse(const EndTags& end_tags) {
  Body body;
  const auto output = [&](ExprPtr expr) {
    if (body.empty() || body.back()->kind != StmtKind::Output) body.push_back(make(StmtKind::Output, expr->line));
    body.back()->exprs.push_back(std::move(expr));
  };
  while (current().kind != TokenKind::End) {
    const int line = current().line;
    if (current().kind == TokenKind::Data) {
      output(literal(text(next().text), line));
    } else if (current().kind == TokenKind::VariableBegin) {
      next();
      output(tuple());
      expect(TokenKind::VariableEnd, "end of print statement");
      check_unknown();
    } else {
      next();  // a block begins
      const auto is_end = [this](std::string_view name) { return current().is_name(name); };
      if (std::any_of(end_tags.begin(), end_tags.end(), is_end)) return body;
      const std::size_t before = body.size();
      statement(body);
      if (body.size() == before && current().kind != TokenKind::BlockEnd) unknown_tag(&end_tags);
      expect(TokenKind::BlockEnd, "end of statement block");
      check_unknown();
    }
  }
  return body;
}

Body Parser::statements(const EndTags& end_tags) {
  skip_op(":");
  expect(TokenKind::BlockEnd, "end of statement block");
  check_unknown();
  Body body = subparse(end_tags);
  if (current().kind == TokenKind::End) unknown_tag(&end_tags);
  return body;
}

void Parser::unknown_tag(const EndTags* looking_for) {
  std::string message = current().kind == TokenKind::End ? "Unexpected end of template."
                                                         : "Encountered unknown tag '" + current().text + "'.";
  if (looking_for != nullptr && !looking_for->empty()) {
    message += " Jinja was looking for the following tags: ";
    for (std::size_t i = 0; i < looking_for->size(); ++i) {
      message += fmt::format("{}'{}'", i > 0 ? " or " : "", (*looking_for)[i]);
    }
    message += ".";
  }
  if (!open_tags_.empty()) message += " The innermost block that needs to be closed is '" + open_tags_.back() + "'.";
  fail(message);
}

void Parser::statement(Body& body) {
  const Deeper deeper(*this);
  if (current().kind != TokenKind::Name) fail("tag name expected");
  const std::string tag = current().text;
  static const std::unordered_map<std::string_view, StmtPtr (Parser::*)()> kTags = {
      {"set", &Parser::parse_set},
      {"for", &Parser::parse_for},
      {"if", &Parser::parse_if},
      {"with", &Parser::parse_with},
      {"macro", &Parser::parse_macro},
      {"call", &Parser::parse_call_block},
      {"filter", &Parser::parse_filter_block},
      {"generation", &Parser::parse_generation},
      {"print", &Parser::parse_print},
  };
  if (tag == "break" || tag == "continue") {
    body.push_back(parse_loop_control(tag == "break" ? StmtKind::Break : StmtKind::Continue));
    return;
  }
  for (const char* refused : {"include", "import", "from", "extends", "block", "autoescape"}) {
    if (tag == refused) fail("the tag '" + tag + "' is not supported");
  }
  const auto it = kTags.find(tag);
  if (it == kTags.end()) return;  // the caller knows which tags it looks for
  open_tags_.push_back(tag);
  body.push_back((this->*it->second)());
  open_tags_.pop_back();
}

StmtPtr Parser::parse_set() {
  StmtPtr stmt = make(StmtKind::Set, next().line);
  stmt->target = target(Namespaces::Yes, {});
  if (skip_op("=")) {
    stmt->exprs.push_back(tuple());
    return stmt;
  }
  stmt->kind = StmtKind::SetBlock;
  const bool was_soft = std::exchange(soft_, false);
  if (current().is("|")) stmt->exprs.push_back(filter(nullptr, false));
  soft_ = was_soft;
  stmt->bodies.push_back(inner_statements({"endset"}));
  next();
  return stmt;
}

StmtPtr Parser::parse_for() {
  StmtPtr stmt = make(StmtKind::For, next().line);
  stmt->target = target(Namespaces::No, "in");
  if (!skip_name("in")) fail("expected token 'in', got '" + describe(current()) + "'");
  stmt->exprs.push_back(tuple(Conditional::No, "recursive"));
  stmt->exprs.push_back(skip_name("if") ? expression() : nullptr);
  stmt->recursive = skip_name("recursive");
  ++loops_;
  stmt->bodies.push_back(inner_statements({"endfor", "else"}));
  --loops_;
  if (next().text == "else") {
    stmt->bodies.push_back(inner_statements({"endfor"}));
    next();
  }
  return stmt;
}

StmtPtr Parser::parse_if() {
  StmtPtr stmt = make(StmtKind::If, next().line);
  const bool was_soft = std::exchange(soft_, true);
  while (true) {
    stmt->exprs.push_back(tuple(Conditional::No));
    stmt->bodies.push_back(statements({"elif", "else", "endif"}));
    const std::string tag = next().text;
    if (tag == "elif") continue;
    if (tag == "else") {
      stmt->bodies.push_back(statements({"endif"}));
      next();
    }
    soft_ = was_soft;
    return stmt;
  }
}

StmtPtr Parser::parse_with() {
  StmtPtr stmt = make(StmtKind::With, next().line);
  while (current().kind != TokenKind::BlockEnd) {
    if (!stmt->targets.empty()) expect_op(",");
    stmt->targets.push_back(target(Namespaces::No, {}));
    expect_op("=");
    stmt->exprs.push_back(expression());
  }
  stmt->bodies.push_back(inner_statements({"endwith"}));
  next();
  return stmt;
}

void Parser::signature(MacroDef& macro) {
  expect_op("(");
  while (!current().is(")")) {
    if (!macro.params.empty()) expect_op(",");
    macro.params.push_back(name_id(expect_name()));
    if (skip_op("=")) {
      macro.defaults.push_back(expression());
    } else if (!macro.defaults.empty()) {
      fail("non-default argument follows default argument");
    }
  }
  expect_op(")");
  for (std::size_t i = 0; i < macro.params.size(); ++i) {
    if (std::count(macro.params.begin(), macro.params.end(), macro.params[i]) > 1) fail("duplicate macro argument");
  }
}

void Parser::macro_body(MacroDef& macro, std::string_view end) {
  const int loops = std::exchange(loops_, 0);
  open_macros_.push_back(&macro);
  macro.body = inner_statements({end});
  next();
  open_macros_.pop_back();
  loops_ = loops;
}

StmtPtr Parser::parse_macro() {
  StmtPtr stmt = make(StmtKind::Macro, next().line);
  stmt->macro = std::make_unique<MacroDef>();
  MacroDef& macro = *stmt->macro;
  macro.name_id = name_id(expect_name());
  macro.name = program_.names[static_cast<std::size_t>(macro.name_id)];
  signature(macro);
  macro_body(macro, "endmacro");
  return stmt;
}

StmtPtr Parser::parse_call_block() {
  StmtPtr stmt = make(StmtKind::CallBlock, next().line);
  stmt->macro = std::make_unique<MacroDef>();
  if (current().is("(")) signature(*stmt->macro);
  stmt->exprs.push_back(expression());
  if (stmt->exprs[0]->kind != ExprKind::Call) fault_at(stmt->line, "expected call");
  macro_body(*stmt->macro, "endcall");
  return stmt;
}

StmtPtr Parser::parse_filter_block() {
  StmtPtr stmt = make(StmtKind::FilterBlock, next().line);
  const bool was_soft = std::exchange(soft_, false);
  stmt->exprs.push_back(filter(nullptr, true));
  soft_ = was_soft;
  stmt->bodies.push_back(inner_statements({"endfilter"}));
  next();
  return stmt;
}

// transformers' tag around what the assistant wrote; it changes nothing in the text.
StmtPtr Parser::parse_generation() {
  StmtPtr stmt = make(StmtKind::Scope, next().line);
  const int loops = std::exchange(loops_, 0);  // there it is a macro's body
  stmt->bodies.push_back(inner_statements({"endgeneration"}));
  loops_ = loops;
  next();
  return stmt;
}

StmtPtr Parser::parse_print() {
  StmtPtr stmt = make(StmtKind::Output, next().line);
  while (current().kind != TokenKind::BlockEnd) {
    if (!stmt->exprs.empty()) expect_op(",");
    stmt->exprs.push_back(expression());
  }
  return stmt;
}

StmtPtr Parser::parse_loop_control(StmtKind kind) {
  if (loops_ == 0) fail(fmt::format("'{}' outside loop", current().text));
  return make(kind, next().line);
}

Target Parser::target(Namespaces namespaces, std::string_view end_name) {
  const Deeper deeper(*this);
  Target first;
  std::vector<Target> parts;
  bool is_tuple = false;
  while (true) {
    if (!parts.empty()) expect_op(",");
    if (current().kind == TokenKind::BlockEnd || current().kind == TokenKind::VariableEnd || current().is(")") ||
        (!end_name.empty() && current().is_name(end_name))) {
      break;
    }
    parts.push_back(target_primary(namespaces));
    if (!current().is(",")) break;
    is_tuple = true;
  }
  if (parts.empty()) fail("Expected an expression, got '" + describe(current()) + "'");
  if (!is_tuple) return std::move(parts[0]);
  Target all;
  all.kind = Target::Kind::Tuple;
  all.parts = std::move(parts);
  return all;
}

Target Parser::target_primary(Namespaces namespaces) {
  if (skip_op("(")) {
    Target inner = target(namespaces, {});
    expect_op(")");
    return inner;
  }
  if (current().kind != TokenKind::Name) fail("can't assign to '" + describe(current()) + "'");
  const std::string name = next().text;
  for (const char* constant : {"true", "false", "none", "True", "False", "None"}) {
    if (name == constant) fail("can't assign to '" + name + "'");
  }
  Target target;
  target.name = name_id(name);
  if (namespaces == Namespaces::Yes && skip_op(".")) {
    target.kind = Target::Kind::Attribute;
    target.attribute = text(expect_name());
  } else if (name == "loop" && namespaces == Namespaces::No) {
    fail("Can't assign to special loop variable in for-loop target");
  }
  return target;
}

// ---- expressions

ExprPtr Parser::tuple(Conditional conditional, std::string_view end_name, bool in_parens) {
  const int line = current().line;
  std::vector<ExprPtr> parts;
  bool is_tuple = false;
  while (true) {
    if (!parts.empty()) expect_op(",");
    if (current().kind == TokenKind::VariableEnd || current().kind == TokenKind::BlockEnd || current().is(")") ||
        (!end_name.empty() && current().is_name(end_name))) {
      break;
    }
    parts.push_back(expression(conditional));
    if (!current().is(",")) break;
    is_tuple = true;
  }
  if (!is_tuple && parts.size() == 1) return std::move(parts[0]);
  if (!is_tuple && !in_parens) fail("Expected an expression, got '" + describe(current()) + "'");
  ExprPtr expr = node(ExprKind::Tuple, line);
  expr->kids = std::move(parts);
  return sealed(std::move(expr));
}

ExprPtr Parser::condition() {
  const Deeper deeper(*this);
  int line = current().line;
  const std::size_t known_before = unknown_.size();
  ExprPtr value = disjunction();
  while (skip_name("if")) {
    ExprPtr when = disjunction();
    ExprPtr otherwise = skip_name("else") ? condition() : nullptr;
    value = branch(ExprKind::If, line, std::move(value), std::move(when), std::move(otherwise));
    unknown_.resize(known_before);  // an unknown filter in a branch is an error only when reached
    line = current().line;
  }
  return value;
}

ExprPtr Parser::disjunction() {
  const int line = current().line;
  ExprPtr left = conjunction();
  while (skip_name("or")) left = branch(ExprKind::Or, line, std::move(left), conjunction());
  return left;
}

ExprPtr Parser::conjunction() {
  const int line = current().line;
  ExprPtr left = negation();
  while (skip_name("and")) left = branch(ExprKind::And, line, std::move(left), negation());
  return left;
}

ExprPtr Parser::negation() {
  const Deeper deeper(*this);
  if (!current().is_name("not")) return comparison();
  const int line = next().line;
  return branch(ExprKind::Not, line, negation());
}

ExprPtr Parser::comparison() {
  static const std::unordered_map<std::string_view, Op> kOps = {{"==", Op::Eq}, {"!=", Op::Ne}, {"<", Op::Lt},
                                                                {"<=", Op::Le}, {">", Op::Gt},  {">=", Op::Ge}};
  const int line = current().line;
  ExprPtr first = sum();
  ExprPtr expr;
  while (true) {
    Op op = Op::In;
    if (current().kind == TokenKind::Operator && kOps.contains(current().text)) {
      op = kOps.at(next().text);
    } else if (current().is_name("not") && look().is_name("in")) {
      next();
      next();
      op = Op::NotIn;
    } else if (!skip_name("in")) {
      break;
    }
    if (!expr) {
      expr = node(ExprKind::Compare, line);
      expr->kids.push_back(std::move(first));
    }
    expr->ops.push_back(op);
    expr->kids.push_back(sum());
  }
  return expr ? sealed(std::move(expr)) : std::move(first);
}

ExprPtr Parser::sum() {
  ExprPtr left = concat();
  while (current().is("+") || current().is("-")) {
    const Token& op = next();
    left = binary(op.text == "+" ? Op::Add : Op::Sub, op.line, std::move(left), concat());
  }
  return left;
}

ExprPtr Parser::concat() {
  const int line = current().line;
  ExprPtr first = product();
  if (!current().is("~")) return first;
  ExprPtr expr = node(ExprKind::Concat, line);
  expr->kids.push_back(std::move(first));
  while (skip_op("~")) expr->kids.push_back(product());
  return sealed(std::move(expr));
}

ExprPtr Parser::product() {
  static const std::unordered_map<std::string_view, Op> kOps = {
      {"*", Op::Mul}, {"/", Op::Div}, {"//", Op::FloorDiv}, {"%", Op::Mod}};
  ExprPtr left = power();
  while (current().kind == TokenKind::Operator && kOps.contains(current().text)) {
    const Token& op = next();
    left = binary(kOps.at(op.text), op.line, std::move(left), power());
  }
  return left;
}

ExprPtr Parser::power() {
  ExprPtr left = unary();
  while (current().is("**")) {
    const int line = next().line;
    left = binary(Op::Pow, line, std::move(left), unary());
  }
  return left;
}

ExprPtr Parser::unary(bool with_filter) {
  const Deeper deeper(*this);
  ExprPtr expr;
  if (current().is("-") || current().is("+")) {
    const Token& op = next();
    expr = branch(op.text == "-" ? ExprKind::Negate : ExprKind::Plus, op.line, unary(false));
  } else {
    expr = primary();
  }
  expr = postfix(std::move(expr));
  return with_filter ? filters_and_tests(std::move(expr)) : std::move(expr);
}

ExprPtr Parser::name_or_constant() {
  const Token& token = next();
  const std::string& name = token.text;
  if (name == "true" || name == "True") return literal(Value::boolean(true), token.line);
  if (name == "false" || name == "False") return literal(Value::boolean(false), token.line);
  if (name == "none" || name == "None") return literal(Value::none(), token.line);
  for (MacroDef* const macro : open_macros_) {
    macro->takes_caller = macro->takes_caller || name == "caller";
    macro->takes_varargs = macro->takes_varargs || name == "varargs";
    macro->takes_kwargs = macro->takes_kwargs || name == "kwargs";
  }
  ExprPtr expr = node(ExprKind::Name, token.line);
  expr->name = name_id(name);
  return expr;
}

ExprPtr Parser::primary() {
  const Token& token = current();
  switch (token.kind) {
    case TokenKind::Name: return name_or_constant();
    case TokenKind::String: {
      std::string joined;
      while (current().kind == TokenKind::String) joined += next().text;
      return literal(text(joined), token.line);
    }
    case TokenKind::Integer: next(); return literal(Value::integer(token.integer), token.line);
    case TokenKind::Float: next(); return literal(Value::real(token.real), token.line);
    default: break;
  }
  if (skip_op("(")) {
    ExprPtr inner = tuple(Conditional::Yes, {}, true);
    expect_op(")");
    return inner;
  }
  if (token.is("[")) return list();
  if (token.is("{")) return dict();
  fail("unexpected '" + describe(token) + "'");
}

ExprPtr Parser::list() {
  ExprPtr expr = node(ExprKind::List, next().line);
  while (!current().is("]")) {
    if (!expr->kids.empty()) expect_op(",");
    if (current().is("]")) break;
    expr->kids.push_back(expression());
  }
  expect_op("]");
  return sealed(std::move(expr));
}

ExprPtr Parser::dict() {
  ExprPtr expr = node(ExprKind::Dict, next().line);
  while (!current().is("}")) {
    if (!expr->kids.empty()) expect_op(",");
    if (current().is("}")) break;
    expr->kids.push_back(expression());
    expect_op(":");
    expr->kids.push_back(expression());
  }
  expect_op("}");
  return sealed(std::move(expr));
}

ExprPtr Parser::postfix(ExprPtr expr) {
  while (true) {
    if (current().is(".") || current().is("[")) {
      expr = subscript(std::move(expr));
    } else if (current().is("(")) {
      expr = call(std::move(expr));
    } else {
      return expr;
    }
  }
}

ExprPtr Parser::filters_and_tests(ExprPtr expr) {
  while (true) {
    if (current().is("|")) {
      expr = filter(std::move(expr), false);
    } else if (current().is_name("is")) {
      expr = test(std::move(expr));
    } else if (current().is("(")) {
      expr = call(std::move(expr));
    } else {
      return expr;
    }
  }
}

ExprPtr Parser::subscript(ExprPtr object) {
  const Token& open = next();
  if (open.text == ".") {
    const Token& name = next();
    if (name.kind == TokenKind::Name) {
      ExprPtr expr = branch(ExprKind::Attribute, open.line, std::move(object));
      expr->literal = text(name.text);
      return expr;
    }
    if (name.kind != TokenKind::Integer) fault_at(name.line, "expected name or number");
    return branch(ExprKind::Item, open.line, std::move(object), literal(Value::integer(name.integer), name.line));
  }
  std::vector<ExprPtr> parts;
  while (!current().is("]")) {
    if (!parts.empty()) expect_op(",");
    parts.push_back(subscribed());
  }
  expect_op("]");
  if (parts.size() == 1) return branch(ExprKind::Item, open.line, std::move(object), std::move(parts[0]));
  ExprPtr key = node(ExprKind::Tuple, open.line);
  key->kids = std::move(parts);
  for (const ExprPtr& part : key->kids) {
    if (part->kind == ExprKind::Slice) fault_at(open.line, "a slice inside a tuple subscript is not supported");
  }
  return branch(ExprKind::Item, open.line, std::move(object), sealed(std::move(key)));
}

ExprPtr Parser::subscribed() {
  const int line = current().line;
  ExprPtr parts[3];
  if (!current().is(":")) {
    parts[0] = expression();
    if (!current().is(":")) return std::move(parts[0]);
  }
  next();
  const auto ends = [this] { return current().is("]") || current().is(",") || current().is(":"); };
  if (!ends()) parts[1] = expression();
  if (skip_op(":") && !ends()) parts[2] = expression();
  return branch(ExprKind::Slice, line, std::move(parts[0]), std::move(parts[1]), std::move(parts[2]));
}

std::unique_ptr<ArgList> Parser::arguments() {
  const int line = current().line;
  expect_op("(");
  auto args = std::make_unique<ArgList>();
  const auto ensure = [&](bool ok) {
    if (!ok) fault_at(line, "invalid syntax for function call expression");
  };
  bool is_first = true;
  while (!current().is(")")) {
    if (!is_first) {
      expect_op(",");
      if (current().is(")")) break;
    }
    is_first = false;
    if (skip_op("*")) {
      ensure(!args->star && !args->star_star);
      args->star = expression();
    } else if (skip_op("**")) {
      ensure(!args->star_star);
      args->star_star = expression();
    } else if (current().kind == TokenKind::Name && look().is("=")) {
      ensure(!args->star_star);
      const Value name = text(next().text);
      next();
      for (const auto& [other, expr] : args->keywords) {
        if (other.text->view() == name.text->view())
          fail("keyword argument repeated: " + std::string(name.text->view()));
      }
      args->keywords.emplace_back(name, expression());
    } else {
      ensure(!args->star && !args->star_star && args->keywords.empty());
      args->positional.push_back(expression());
    }
  }
  expect_op(")");
  return args;
}

ExprPtr Parser::call(ExprPtr callee) {
  ExprPtr expr = node(ExprKind::Call, current().line);
  expr->kids.push_back(std::move(callee));
  expr->args = arguments();
  return sealed(std::move(expr));
}

ExprPtr Parser::one_filter(ExprPtr input) {
  ExprPtr expr = node(ExprKind::Filter, current().line);
  std::string name = expect_name();
  while (skip_op(".")) name.append(".").append(expect_name());
  expr->kids.push_back(std::move(input));
  expr->literal = text(name);
  expr->filter = find_filter(name);
  if (expr->filter == nullptr) unknown(unknown_filter(name), expr->line);
  expr->args = current().is("(") ? arguments() : std::make_unique<ArgList>();
  return sealed(std::move(expr));
}

ExprPtr Parser::filter(ExprPtr input, bool start_inline) {
  if (start_inline) input = one_filter(std::move(input));
  while (skip_op("|")) input = one_filter(std::move(input));
  return input;
}

ExprPtr Parser::test(ExprPtr input) {
  const int line = next().line;
  const bool negated = skip_name("not");
  std::string name = expect_name();
  while (skip_op(".")) name.append(".").append(expect_name());
  ExprPtr expr = node(ExprKind::Test, line);
  expr->kids.push_back(std::move(input));
  expr->literal = text(name);
  expr->test = find_test(name);
  if (expr->test == nullptr) unknown("No test named '" + name + "'.", line);
  if (current().is("(")) {
    expr->args = arguments();
  } else {
    expr->args = std::make_unique<ArgList>();
    const Token& token = current();
    const bool takes_operand = token.kind == TokenKind::Name || token.kind == TokenKind::String ||
                               token.kind == TokenKind::Integer || token.kind == TokenKind::Float || token.is("[") ||
                               token.is("{");
    if (takes_operand && !token.is_name("else") && !token.is_name("or") && !token.is_name("and")) {
      if (token.is_name("is")) fail("You cannot chain multiple tests with is");
      expr->args->positional.push_back(postfix(primary()));
    }
  }
  expr = sealed(std::move(expr));
  return negated ? branch(ExprKind::Not, line, std::move(expr)) : std::move(expr);
}

}  // namespace

std::unique_ptr<Program> parse(std::string_view source, const std::string& name) {
  if (source.size() > kMaxTemplateBytes) {
    fault_at(1, "the template is larger than " + std::to_string(kMaxTemplateBytes >> 20) + " MiB");
  }
  auto program = std::make_unique<Program>();
  program->name = name;
  program->body = Parser(source, *program).run();
  return program;
}

}  // namespace rondo::jinja
