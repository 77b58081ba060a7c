#include "text/jinja/parser.h"

namespace rondo::jinja {

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
