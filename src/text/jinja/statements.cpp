#include <algorithm>

#include "text/jinja/entered.h"
#include "text/jinja/runtime.h"

namespace rondo::jinja {

Interpreter::Flow Interpreter::run_body(const Body& body, Scope& scope) {
  for (const StmtPtr& stmt : body) {
    if (const Flow flow = run_stmt(*stmt, scope); flow != Flow::Normal) return flow;
  }
  return Flow::Normal;
}

Interpreter::Flow Interpreter::run_stmt(const Stmt& stmt, Scope& scope) {
  const Entered entered(*this);
  heap_.step();
  line_ = stmt.line;
  switch (stmt.kind) {
    case StmtKind::Output:
      for (const ExprPtr& expr : stmt.exprs) write(eval(*expr, scope));
      return Flow::Normal;
    case StmtKind::If: return run_if(stmt, scope);
    case StmtKind::For: {
      const Value iterable = eval(*stmt.exprs[0], scope);
      run_for(stmt, scope, iterable, 0);
      return Flow::Normal;
    }
    case StmtKind::Set: assign(stmt.target, eval(*stmt.exprs[0], scope), scope); return Flow::Normal;
    case StmtKind::SetBlock: return run_set_block(stmt, scope);
    case StmtKind::Macro: bind_name(scope, stmt.macro->name_id, make_macro(*stmt.macro, scope)); return Flow::Normal;
    case StmtKind::CallBlock: run_call_block(stmt, scope); return Flow::Normal;
    case StmtKind::FilterBlock: return run_filter_block(stmt, scope);
    case StmtKind::With: return run_with(stmt, scope);
    case StmtKind::Scope: return run_body(stmt.bodies[0], *new_scope(&scope));
    case StmtKind::Break: return Flow::Break;
    case StmtKind::Continue: return Flow::Continue;
  }
  return Flow::Normal;
}

void Interpreter::write(const Value& value) { append_str(*out_, heap_, value); }

Interpreter::Flow Interpreter::run_if(const Stmt& stmt, Scope& scope) {
  for (std::size_t i = 0; i < stmt.exprs.size(); ++i) {
    if (truthy(eval(*stmt.exprs[i], scope))) return run_body(stmt.bodies[i], scope);
  }
  return stmt.bodies.size() > stmt.exprs.size() ? run_body(stmt.bodies.back(), scope) : Flow::Normal;
}

// What the loop goes over: the iterable's elements, less those its `if` turns away.
std::span<const Value> Interpreter::loop_items(const Stmt& stmt, Scope& scope, const Value& iterable) {
  const std::span<const Value> all = elements(heap_, iterable);
  const ExprPtr& test = stmt.exprs[1];
  if (!test) return all;
  Value* const kept = heap_.array<Value>(all.size());
  std::size_t num_kept = 0;
  Scope& inner = *new_scope(&scope);
  for (const Value& element : all) {
    assign(stmt.target, element, inner);
    if (truthy(eval(*test, inner))) kept[num_kept++] = element;
  }
  return {kept, num_kept};
}

void Interpreter::run_for(const Stmt& stmt, Scope& scope, const Value& iterable, std::int64_t depth0) {
  const std::span<const Value> items = loop_items(stmt, scope, iterable);
  LoopObject* const loop = heap_.make<LoopObject>(items.data(), items.size(), std::size_t{0}, depth0,
                                                  stmt.recursive ? &stmt : nullptr, &scope, Value());
  Value loop_value = Value::of(Kind::Loop);
  loop_value.loop = loop;
  bool body_finished = false;  // jinja2 runs the else unless some turn reached the body's end
  Scope* inner = nullptr;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (++loop_turns_ > kMaxLoopTurns) fault("the template's loops turn more than 1000000 times");
    if (inner == nullptr || inner->is_captured) inner = new_scope(&scope);
    inner->size = 0;
    loop->index0 = i;
    assign(stmt.target, items[i], *inner);
    if (loop_name_ >= 0) bind_name(*inner, loop_name_, loop_value);
    const Flow flow = run_body(stmt.bodies[0], *inner);
    if (flow == Flow::Break) break;
    body_finished = body_finished || flow == Flow::Normal;
  }
  if (!body_finished && stmt.bodies.size() > 1) run_body(stmt.bodies[1], *new_scope(&scope));
}

Value Interpreter::recurse(const LoopObject& loop, const Value& items) {
  const Entered entered(*this);
  TextBuilder text(heap_);
  TextBuilder* const outer = std::exchange(out_, &text);
  run_for(*loop.recursive, *loop.outer, items, loop.depth0 + 1);
  out_ = outer;
  return text.value();
}

Interpreter::Flow Interpreter::run_captured(const Body& body, Scope& scope, TextBuilder& into) {
  TextBuilder* const outer = std::exchange(out_, &into);
  const Flow flow = run_body(body, scope);
  out_ = outer;
  return flow;
}

Interpreter::Flow Interpreter::run_set_block(const Stmt& stmt, Scope& scope) {
  Scope& inner = *new_scope(&scope);
  TextBuilder text(heap_);
  if (const Flow flow = run_captured(stmt.bodies[0], inner, text); flow != Flow::Normal) return flow;
  Value value = text.value();
  if (!stmt.exprs.empty()) value = eval_filter(*stmt.exprs[0], inner, &value);
  assign(stmt.target, value, scope);
  return Flow::Normal;
}

Interpreter::Flow Interpreter::run_filter_block(const Stmt& stmt, Scope& scope) {
  Scope& inner = *new_scope(&scope);
  TextBuilder text(heap_);
  if (const Flow flow = run_captured(stmt.bodies[0], inner, text); flow != Flow::Normal) return flow;
  const Value value = text.value();
  write(eval_filter(*stmt.exprs[0], inner, &value));
  return Flow::Normal;
}

Interpreter::Flow Interpreter::run_with(const Stmt& stmt, Scope& scope) {
  Scope& inner = *new_scope(&scope);
  for (std::size_t i = 0; i < stmt.targets.size(); ++i) assign(stmt.targets[i], eval(*stmt.exprs[i], scope), inner);
  return run_body(stmt.bodies[0], inner);
}

void Interpreter::run_call_block(const Stmt& stmt, Scope& scope) {
  const Value caller = make_macro(*stmt.macro, scope);
  write(eval_call(*stmt.exprs[0], scope, &caller));
}

}  // namespace rondo::jinja
