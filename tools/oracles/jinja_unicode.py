#!/usr/bin/env python3
"""Writes src/text/jinja/unicode_tables.h from this Python's str: what utf8proc does not tell.

  jinja_unicode.py > src/text/jinja/unicode_tables.h && clang-format -i src/text/jinja/unicode_tables.h
"""
import unicodedata

CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def literal(text):
    return '"' + "".join(f"\\x{byte:02x}" for byte in text.encode()) + '"'


def ranges(holds):
    found = []
    for c in CODE_POINTS:
        if not holds(chr(c)):
            continue
        if found and found[-1][1] == c - 1:
            found[-1][1] = c
        else:
            found.append([c, c])
    return found


def print_ranges(name, comment, holds):
    print(f"// {comment}\nconstexpr CharRange {name}[] = {{")
    for first, last in ranges(holds):
        print(f"    {{0x{first:04X}, 0x{last:04X}}},")
    print("};\n")


def main():
    print("// Written by tools/oracles/jinja_unicode.py from Python 3.11's str; not edited by hand.")
    print("#pragma once\n\n#include <cstdint>\n\nnamespace rondo::jinja {\n")
    print("struct SpecialCase {\n  char32_t from;\n  const char* upper;  // UTF-8\n  const char* title;\n};")
    print("// Code points whose upper or title case is more than one code point, ascending.")
    print("constexpr SpecialCase kSpecialCases[] = {")
    for c in CODE_POINTS:
        if len(chr(c).upper()) > 1 or len(chr(c).title()) > 1:
            print(f"    {{0x{c:04X}, {literal(chr(c).upper())}, {literal(chr(c).title())}}},")
    print("};\n\nstruct CharRange {\n  char32_t first, last;\n};")
    print_ranges("kOtherDigits", "str.isdigit, but not decimal digits.", lambda c: c.isdigit() and not c.isdecimal())
    print_ranges("kNumeralLetters", "str.isnumeric, but not of the number categories: ideographs that are numerals.",
                 lambda c: c.isnumeric() and not unicodedata.category(c).startswith("N"))
    print("}  // namespace rondo::jinja")


if __name__ == "__main__":
    main()
