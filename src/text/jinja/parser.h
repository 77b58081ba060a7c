// Parser: from a template's tokens to its tree. The grammar is jinja2's, without what needs other templates (include,
// import, extends, block) and autoescape. parse_statements.cpp has what stands in {% %}, parse_expressions.cpp what
// stands in {{ }}.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "text/jinja/ast.h"
#include "text/jinja/lexer.h"
#include "text/jinja/runtime.h"

namespace rondo::jinja {

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

}  // namespace rondo::jinja
