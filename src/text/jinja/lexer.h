// Lexer: a template's source to tokens, as jinja2 cuts it with trim_blocks and lstrip_blocks on.
//
// Text outside tags becomes Data, already stripped as the tags beside it ask: `-` inside a tag takes all white space on
// that side, `+` keeps it; without either, a block or comment alone on its line loses the blanks before it
// (lstrip_blocks) and the newline behind it (trim_blocks). Line ends are \n from here on, and one at the end of the
// source is dropped. Comments vanish; raw blocks are Data.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rondo::jinja {

enum class TokenKind : std::uint8_t {
  Data,
  BlockBegin,
  BlockEnd,
  VariableBegin,
  VariableEnd,
  Name,
  String,
  Integer,
  Float,
  Operator,
  End,
};

struct Token {
  TokenKind kind;
  int line;
  std::string text;  // Data, Name, String (unescaped), Operator
  std::int64_t integer = 0;
  double real = 0;
  bool is(std::string_view op) const { return kind == TokenKind::Operator && text == op; }
  bool is_name(std::string_view name) const { return kind == TokenKind::Name && text == name; }
};

std::vector<Token> lex(std::string_view source);  // valid UTF-8; ends with End; Fault with the line

}  // namespace rondo::jinja
