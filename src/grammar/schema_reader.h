// SchemaReader: turns a JSON schema into expressions, schema by schema.
//
// A schema is first brought to one without $ref, allOf, anyOf and oneOf (schema_parts.cpp): a $ref alone is a call of
// a rule, which may be recursive; parts are merged; alternatives are read one by one. What is left names values, or
// types (schema_types.cpp, schema_containers.cpp). Every call has the place of what it reads, for whoever is told what
// is wrong there. Depth, the number of schemas looked at and the size of what is merged are bounded.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "grammar/json_text.h"
#include "grammar/rules.h"
#include "grammar/schema_bounds.h"
#include "grammar/schema_doc.h"

namespace rondo::grammar {

class SchemaReader {
 public:
  // root: the document that references point into. bare_text: what a bare string may be.
  SchemaReader(Rules& rules, json::Value root, ExprId bare_text)
      : rules_(rules), json_(rules), doc_(std::move(root)), bare_text_(bare_text) {}

  Result<ExprId> read();  // the whole document

  // A value of the schema at `path` in bare writing. What a refused one has left behind is forgotten.
  Result<ExprId> read_bare(const json::Value& schema, const std::string& path);

 private:
  using Schema = json::Object;
  // How the value that is being read is written. Bare: a string without quotes and escapes; what is inside an array or
  // object is JSON in any case.
  enum class Writing { Json, Bare };
  struct Called {
    RuleId rule;
    SchemaAt target;
    Writing writing;
  };

  static tl::unexpected<Error> wrong(const std::string& path, std::string_view why) {
    return refuse_schema(ErrorCode::InvalidArgument, path, why);
  }
  static tl::unexpected<Error> unsupported(const std::string& path, std::string_view why) {
    return refuse_schema(ErrorCode::Unsupported, path, why);
  }
  ExprId nothing() { return rules_.choice(std::span<const ExprId>()); }
  ExprId any_value() { return writing_ == Writing::Bare ? bare_text_ : json_.any_value(); }

  Result<ExprId> read_schema(const json::Value& value, const std::string& path, int depth);
  Result<ExprId> read_inner(const json::Value& value, const std::string& path, int depth);  // in an array or object
  static Result<void> check_keywords(const Schema& schema, const std::string& path);
  Result<void> read_called();

  Result<ExprId> read_reference(const Schema& schema, const std::string& path, int depth);
  Result<ExprId> read_all_of(const Schema& schema, const std::string& path, int depth);
  Result<ExprId> read_any_of(const Schema& schema, std::string_view keyword, const std::string& path, int depth);
  Result<const json::Value*> whole_part(const json::Value& part, const std::string& path) const;
  Result<void> check_exclusive(const json::Array& parts, const std::string& path) const;
  Result<Schema> merge(const Schema& a, const Schema& b, const std::string& path);
  ExprId call_rule(SchemaAt target);

  Result<ExprId> read_values(const Schema& schema, const std::string& path);  // enum, const
  Result<ExprId> read_types(const Schema& schema, const std::string& path, int depth);
  Result<ExprId> read_string(const Schema& schema, const std::string& path);
  ExprId bare_string(const std::vector<ExprId>& forms, CountBounds count);
  Result<ExprId> read_array(const Schema& schema, const std::string& path, int depth);
  Result<ExprId> read_object(const Schema& schema, const std::string& path, int depth);
  Result<std::vector<JsonText::Member>> read_properties(const Schema& schema, std::optional<ExprId> other_value,
                                                        const std::string& path, int depth);
  ExprId property(std::string_view name, ExprId value);
  ExprId other_names(const Schema& schema);
  ExprId as_rule(ExprId body, const std::string& path);

  Rules& rules_;
  JsonText json_;
  SchemaDoc doc_;
  ExprId bare_text_;
  Writing writing_ = Writing::Json;
  std::map<std::pair<std::string, Writing>, RuleId> rules_at_;  // by the path of the schema
  std::vector<Called> open_;                                    // called, and not read yet
  std::size_t num_reads_ = 0, num_merged_ = 0;
};

}  // namespace rondo::grammar
