#include "api/openai_tools.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace rondo {

namespace {

constexpr std::size_t kMostTools = 128;
constexpr std::size_t kMostNameBytes = 128;

// A name stands between "<function=" and ">".
bool is_function_name(std::string_view name) {
  const auto is_name_byte = [](unsigned char c) { return c > ' ' && c != '<' && c != '>' && c != '"' && c != 0x7F; };
  return !name.empty() && name.size() <= kMostNameBytes && std::all_of(name.begin(), name.end(), is_name_byte);
}

const Tool* find_tool(const std::vector<Tool>& tools, std::string_view name) {
  const auto found = std::find_if(tools.begin(), tools.end(), [&](const Tool& tool) { return tool.name == name; });
  return found == tools.end() ? nullptr : &*found;
}

void expect_function(RequestFields& fields) {
  const std::string type = fields.text("type").value_or("");
  if (type == "function" || fields.refusal()) return;
  if (type.empty()) return fields.refuse("type", fmt::format("{} is missing", fields.path_of("type")));
  fields.refuse(
      "type", fmt::format("{}: '{}' is not supported: functions are the only tools here", fields.path_of("type"), type),
      ErrorCode::Unsupported);
}

class ToolsReader {
 public:
  explicit ToolsReader(RequestFields& fields) : fields_(fields) {}

  ToolUse read() {
    if (const json::Array* array = fields_.array("tools")) read_declared(*array);
    use_.callable = std::make_shared<const std::vector<Tool>>(tools_);
    if (!tools_.empty()) use_.choice = ToolChoice::Auto;
    if (const json::Value* choice = fields_.find("tool_choice")) read_choice(*choice);
    use_.parallel = fields_.boolean("parallel_tool_calls").value_or(true) && use_.parallel;
    if (use_.choice == ToolChoice::None) use_.callable.reset();
    return std::move(use_);
  }

 private:
  void read_declared(const json::Array& array) {
    if (array.size() > kMostTools) {
      fields_.refuse("tools", fmt::format("tools takes at most {} tools, not {}", kMostTools, array.size()));
    }
    for (std::size_t i = 0; i < array.size() && !fields_.refusal(); ++i) {
      const std::string path = fmt::format("tools[{}]", i);
      if (!array[i].is_object()) {
        return fields_.refuse(ApiError{ErrorCode::InvalidArgument,
                                       fmt::format("{} must be an object, not {}", path, kind_in_words(array[i])), path,
                                       ""});
      }
      RequestFields tool(array[i].get_object(), path);
      expect_function(tool);
      read_function(tool);
      tool.refuse_unread();
      if (tool.refusal()) fields_.refuse(*tool.refusal());
    }
  }

  void read_function(RequestFields& tool) {
    const json::Object* function = tool.object("function");
    if (function == nullptr) return tool.refuse("function", fmt::format("{} is missing", tool.path_of("function")));
    RequestFields fields(*function, tool.path_of("function"));
    json::Object shown;
    Tool read;
    read.name = fields.text("name").value_or("");
    if (!is_function_name(read.name)) {
      fields.refuse("name", fmt::format("{} must be 1 to {} characters, without spaces, quotes and angle brackets",
                                        fields.path_of("name"), kMostNameBytes));
    } else if (find_tool(tools_, read.name) != nullptr) {
      fields.refuse("name", fmt::format("{}: there are two functions named '{}'", fields.path_of("name"), read.name));
    }
    shown["name"] = read.name;
    if (const auto description = fields.text("description")) shown["description"] = *description;
    if (const json::Object* parameters = fields.object("parameters")) {
      read.parameters = *parameters;
      shown["parameters"] = *parameters;
    }
    read.strict = fields.boolean("strict").value_or(false);
    fields.refuse_unread();
    if (fields.refusal()) return tool.refuse(*fields.refusal());
    use_.declared.push_back({{"type", "function"}, {"function", std::move(shown)}});
    tools_.push_back(std::move(read));
  }

  void read_choice(const json::Value& choice) {
    if (choice.is_string()) return read_mode("tool_choice", choice.get_string());
    if (!choice.is_object()) {
      return fields_.refuse("tool_choice",
                            fmt::format("tool_choice must be a string or an object, not {}", kind_in_words(choice)));
    }
    RequestFields fields(choice.get_object(), "tool_choice");
    if (fields.text("type").value_or("") == "allowed_tools") {
      read_allowed(fields);
    } else {
      expect_function(fields);
      read_named(fields);
    }
    fields.refuse_unread();
    if (fields.refusal()) fields_.refuse(*fields.refusal());
  }

  void read_mode(const std::string& field, std::string_view mode) {
    if (mode == "none") {
      use_.choice = ToolChoice::None;
    } else if (mode == "required") {
      if (tools_.empty()) return fields_.refuse("tool_choice", "tool_choice 'required' needs tools");
      use_.choice = ToolChoice::Required;
    } else if (mode != "auto") {
      fields_.refuse("tool_choice",
                     fmt::format("{} must be none, auto, required or name a function, not '{}'", field, mode));
    }
  }

  std::string name_in(RequestFields& fields) {
    const json::Object* function = fields.object("function");
    if (function == nullptr) {
      fields.refuse("function", fmt::format("{} is missing", fields.path_of("function")));
      return "";
    }
    RequestFields inner(*function, fields.path_of("function"));
    std::string name = inner.text("name").value_or("");
    if (find_tool(tools_, name) == nullptr) {
      inner.refuse("name", fmt::format("{}: there is no tool '{}'", inner.path_of("name"), name));
    }
    inner.refuse_unread();
    if (inner.refusal()) fields.refuse(*inner.refusal());
    return name;
  }

  void allow(const std::vector<std::string>& names) {
    std::vector<Tool> allowed;
    for (const std::string& name : names) {
      if (const Tool* tool = find_tool(tools_, name)) allowed.push_back(*tool);
    }
    use_.callable = std::make_shared<const std::vector<Tool>>(std::move(allowed));
  }

  // One function by name: it is called, once.
  void read_named(RequestFields& fields) {
    allow({name_in(fields)});
    use_.choice = ToolChoice::Required;
    use_.parallel = false;
  }

  void read_allowed(RequestFields& fields) {
    const json::Object* given = fields.object("allowed_tools");
    if (given == nullptr) {
      return fields.refuse("allowed_tools", fmt::format("{} is missing", fields.path_of("allowed_tools")));
    }
    RequestFields inner(*given, fields.path_of("allowed_tools"));
    read_mode(inner.path_of("mode"), inner.text("mode").value_or("auto"));
    std::vector<std::string> names;
    if (const json::Array* tools = inner.array("tools")) {
      for (std::size_t i = 0; i < tools->size() && !inner.refusal(); ++i) {
        const std::string path = fmt::format("{}[{}]", inner.path_of("tools"), i);
        if (!(*tools)[i].is_object()) {
          inner.refuse(ApiError{ErrorCode::InvalidArgument, path + " must be an object", path, ""});
          break;
        }
        RequestFields tool((*tools)[i].get_object(), path);
        expect_function(tool);
        names.push_back(name_in(tool));
        tool.refuse_unread();
        if (tool.refusal()) inner.refuse(*tool.refusal());
      }
    }
    if (names.empty()) inner.refuse("tools", fmt::format("{} must name a tool", inner.path_of("tools")));
    inner.refuse_unread();
    if (inner.refusal()) return fields.refuse(*inner.refusal());
    allow(names);
  }

  RequestFields& fields_;
  std::vector<Tool> tools_;
  ToolUse use_;
};

}  // namespace

ToolUse read_tools(RequestFields& fields) { return ToolsReader(fields).read(); }

}  // namespace rondo
