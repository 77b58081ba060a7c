#include "text/jinja/parser.h"

namespace rondo::jinja {

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

}  // namespace rondo::jinja
