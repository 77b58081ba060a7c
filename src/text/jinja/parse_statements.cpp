#include <fmt/format.h>

#include "text/jinja/parser.h"

namespace rondo::jinja {

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

}  // namespace rondo::jinja
