#include "text/chat_template.h"

#include <algorithm>
#include <filesystem>

#include "base/mmap_file.h"
#include "text/jinja/ast.h"
#include "text/jinja/runtime.h"
#include "text/jinja/unicode.h"

namespace rondo {

struct ChatTemplate::Program {
  std::unique_ptr<const jinja::Program> tree;
};

ChatTemplate::ChatTemplate(std::unique_ptr<const Program> program) : program_(std::move(program)) {}
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;
ChatTemplate::~ChatTemplate() = default;

namespace {

// chat_template of tokenizer_config.json: a string, or a list of {name, template}, of which "default" is taken.
Result<std::string> template_in_config(const json::Value& config, const std::string& path) {
  const json::Object* const object = config.if_object();
  if (object == nullptr) return failure(ErrorCode::Corrupt, path + ": not a JSON object");
  const json::Value* const entry = object->if_contains("chat_template");
  if (entry == nullptr || entry->is_null()) return failure(ErrorCode::NotFound, path + ": no chat_template");
  if (const boost::json::string* const text = entry->if_string()) return std::string(*text);
  const json::Array* const named = entry->if_array();
  if (named == nullptr) return failure(ErrorCode::Corrupt, path + ": chat_template is neither a string nor a list");
  for (const json::Value& each : *named) {
    const json::Object* const pair = each.if_object();
    const json::Value* const name = pair != nullptr ? pair->if_contains("name") : nullptr;
    const json::Value* const text = pair != nullptr ? pair->if_contains("template") : nullptr;
    if (name == nullptr || !name->is_string() || text == nullptr || !text->is_string()) {
      return failure(ErrorCode::Corrupt, path + ": chat_template has an entry without name and template");
    }
    if (name->get_string() == "default") return std::string(text->get_string());
  }
  return failure(ErrorCode::NotFound, path + ": chat_template has no entry named default");
}

}  // namespace

Result<ChatTemplate> ChatTemplate::open(const std::string& folder) {
  const std::string own = folder + "/chat_template.jinja";
  std::error_code ec;
  if (std::filesystem::exists(own, ec)) {
    TRY(const std::string source, read_file(own));
    return parse(source, own);
  }
  const std::string path = folder + "/tokenizer_config.json";
  if (!std::filesystem::exists(path, ec)) {
    return failure(ErrorCode::NotFound, folder + ": neither chat_template.jinja nor tokenizer_config.json");
  }
  TRY(const std::string text, read_file(path));
  const Result<json::Value> config = parse_json(text);
  if (!config) return failure(ErrorCode::Corrupt, path + ": " + config.error().message);
  TRY(const std::string source, template_in_config(*config, path));
  return parse(source, path + ": chat_template");
}

Result<ChatTemplate> ChatTemplate::parse(std::string_view source, const std::string& name) {
  if (!jinja::is_valid_utf8(source)) return failure(ErrorCode::Corrupt, name + ": not UTF-8");
  try {
    auto program = std::make_unique<Program>();
    program->tree = jinja::parse(source, name);
    return ChatTemplate(std::move(program));
  } catch (const jinja::Fault& fault) {
    return failure(ErrorCode::Corrupt, name + ":" + std::to_string(fault.line) + ": " + fault.message);
  }
}

bool ChatTemplate::mentions(std::string_view name) const {
  const auto& names = program_->tree->names;
  return std::any_of(names.begin(), names.end(), [&](const auto* each) { return each->view() == name; });
}

Result<MarkedText> ChatTemplate::render(const json::Object& variables, std::time_t now) const {
  std::unique_ptr<jinja::Interpreter> interpreter;
  try {
    interpreter = std::make_unique<jinja::Interpreter>(*program_->tree, variables, now);
    return interpreter->run();
  } catch (const jinja::Fault& fault) {
    if (fault.verbatim) return failure(ErrorCode::InvalidArgument, fault.message);
    const int line = fault.line > 0 ? fault.line : interpreter ? interpreter->line() : 1;
    return failure(ErrorCode::InvalidArgument,
                   program_->tree->name + ":" + std::to_string(line) + ": " + fault.message);
  }
}

}  // namespace rondo
