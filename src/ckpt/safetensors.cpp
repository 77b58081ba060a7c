#include "ckpt/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/basic_parser_impl.hpp>
#include <limits>
#include <optional>
#include <string_view>
#include <unordered_set>

namespace rondo {

namespace {

constexpr std::uint64_t kLengthBytes = 8;
constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // the format's own limit
constexpr std::size_t kMaxTensors = 1u << 18;           // the largest published checkpoint has 152,089 in all
constexpr std::size_t kMaxDepth = 8;                    // the format needs three; __metadata__ may nest a little
constexpr std::string_view kMetadata = "__metadata__";

std::string counted(std::uint64_t number, std::string_view noun) {
  return fmt::format("{} {}{}", number, noun, number == 1 ? "" : "s");
}

// One tensor as it is being read; what is still absent at its closing brace is an error.
struct Description {
  std::optional<std::string> dtype;
  std::optional<std::vector<std::uint64_t>> shape;
  std::optional<std::vector<std::uint64_t>> offsets;
};

// Boost's event parser calls this with each piece of the document. Depth 1 holds names, depth 2 the three keys,
// depth 3 their lists; below __metadata__ everything passes.
class HeaderReader {
 public:
  static constexpr std::size_t max_object_size = std::numeric_limits<std::size_t>::max();
  static constexpr std::size_t max_array_size = std::numeric_limits<std::size_t>::max();
  static constexpr std::size_t max_key_size = std::numeric_limits<std::size_t>::max();
  static constexpr std::size_t max_string_size = std::numeric_limits<std::size_t>::max();
  using error_code = boost::json::error_code;
  using string_view = boost::json::string_view;

  SafetensorsHeader header;
  std::string complaint;  // why parsing stopped, unless Boost stopped it

  bool on_document_begin(error_code&) { return true; }
  bool on_document_end(error_code&) { return true; }

  bool on_object_begin(error_code& error) {
    ++depth_;
    if (depth_ == 2 && name_ == kMetadata) metadata_depth_ = depth_;
    if (in_metadata() || depth_ <= 2) return true;
    return stop(error, "its value is an object");
  }
  bool on_object_end(std::size_t, error_code& error) {
    if (metadata_depth_ == depth_) {
      metadata_depth_ = 0;
    } else if (depth_ == 2) {
      if (!finish_tensor(error)) return false;
    }
    --depth_;
    return true;
  }
  bool on_array_begin(error_code& error) {
    ++depth_;
    if (in_metadata()) return true;
    if (depth_ == 1) return stop(error, "the header is a list");
    if (depth_ != 3) return stop(error, "an unexpected list");
    if (key_ == "shape") return start_list(error, description_.shape);
    if (key_ == "data_offsets") return start_list(error, description_.offsets);
    return stop(error, "an unexpected list");
  }
  bool on_array_end(std::size_t, error_code&) {
    --depth_;
    list_ = nullptr;
    return true;
  }
  bool on_key_part(string_view part, std::size_t, error_code&) {
    partial_ += part;
    return true;
  }
  bool on_key(string_view part, std::size_t, error_code& error) {
    partial_ += part;
    if (depth_ == 1) return start_tensor(error);
    if (depth_ == 2) key_ = partial_;
    partial_.clear();
    if (in_metadata() || key_ == "dtype" || key_ == "shape" || key_ == "data_offsets") return true;
    return stop(error, fmt::format("unknown key \"{}\"", key_.substr(0, 40)));
  }
  bool on_string_part(string_view part, std::size_t, error_code&) {
    partial_ += part;
    return true;
  }
  bool on_string(string_view part, std::size_t, error_code& error) {
    partial_ += part;
    std::string text = std::move(partial_);
    partial_.clear();
    if (in_metadata()) return true;
    if (depth_ != 2 || key_ != "dtype") return stop(error, "an unexpected text");
    if (description_.dtype) return stop(error, "dtype stands twice");
    description_.dtype = std::move(text);
    return true;
  }
  bool on_number_part(string_view, error_code&) { return true; }
  bool on_int64(std::int64_t number, string_view, error_code& error) {
    if (!in_metadata() && number < 0) return stop(error, fmt::format("{} is negative", key_));
    return on_uint64(static_cast<std::uint64_t>(number), {}, error);
  }
  bool on_uint64(std::uint64_t number, string_view, error_code& error) {
    if (in_metadata()) return true;
    if (list_ == nullptr) return stop(error, "an unexpected number");
    if (list_->size() == kMaxListed) return stop(error, fmt::format("{} has more than {} numbers", key_, kMaxListed));
    list_->push_back(number);
    return true;
  }
  bool on_double(double, string_view, error_code& error) { return scalar(error, "a number that is not whole"); }
  bool on_bool(bool, error_code& error) { return scalar(error, "an unexpected true or false"); }
  bool on_null(error_code& error) { return scalar(error, "an unexpected null"); }
  bool on_comment_part(string_view, error_code&) { return true; }
  bool on_comment(string_view, error_code&) { return true; }

 private:
  static constexpr std::size_t kMaxListed = Shape::kMaxRank;

  bool in_metadata() const { return metadata_depth_ != 0; }

  bool stop(error_code& error, std::string_view why) {
    complaint = name_.empty() ? std::string(why) : fmt::format("tensor {}: {}", name_, why);
    error = boost::json::error::syntax;
    return false;
  }
  bool scalar(error_code& error, std::string_view what) { return in_metadata() || stop(error, what); }

  bool start_list(error_code& error, std::optional<std::vector<std::uint64_t>>& list) {
    if (list) return stop(error, fmt::format("{} stands twice", key_));
    list_ = &list.emplace();
    return true;
  }
  bool start_tensor(error_code& error) {
    const std::string name = std::move(partial_);
    partial_.clear();
    description_ = {};
    name_.clear();
    if (!is_printable_name(name)) return stop(error, "a tensor's name is empty, too long or holds a control character");
    name_ = name;
    if (names_.size() > kMaxTensors) return stop(error, fmt::format("more than {} tensors", kMaxTensors));
    if (!names_.insert(name_).second) return stop(error, "the name stands twice");
    return true;
  }
  bool finish_tensor(error_code& error);

  int depth_ = 0;           // of open objects and lists
  int metadata_depth_ = 0;  // where __metadata__ opened; 0 outside of it
  std::string name_, key_, partial_;
  Description description_;
  std::vector<std::uint64_t>* list_ = nullptr;
  std::unordered_set<std::string> names_;
};

// elements * size(dtype), or nothing where it does not fit.
std::optional<std::uint64_t> stored_bytes(const std::vector<std::uint64_t>& shape, DType dtype) {
  // A dimension of zero makes an empty tensor, however large the others are.
  if (std::find(shape.begin(), shape.end(), 0u) != shape.end()) return 0;
  std::uint64_t bytes = size_bytes(dtype);
  for (const std::uint64_t dim : shape) {
    constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (dim > kMost / bytes) return std::nullopt;
    bytes *= dim;
  }
  return bytes;
}

// Checks the description by itself; where it lies in the file is for check_layout.
bool HeaderReader::finish_tensor(error_code& error) {
  if (!description_.dtype) return stop(error, "dtype is missing");
  if (!description_.shape) return stop(error, "shape is missing");
  if (!description_.offsets || description_.offsets->size() != 2) {
    return stop(error, "data_offsets are not two numbers");
  }
  StoredTensor tensor;
  tensor.name = name_;
  tensor.begin = description_.offsets->front();
  tensor.end = description_.offsets->back();
  const auto fault = [&](const std::string& why) {
    header.faults.push_back(fmt::format("tensor {}: {}", name_, why));
    tensor.sound = false;
  };
  const auto dtype = find_dtype(*description_.dtype);
  tensor.dtype = dtype.value_or(DType::U8);
  for (const std::uint64_t dim : *description_.shape) {
    constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
    tensor.shape.append(static_cast<std::int64_t>(std::min(dim, kMost)));
  }
  const auto bytes = stored_bytes(*description_.shape, tensor.dtype);
  if (tensor.begin > tensor.end) {
    fault(fmt::format("data_offsets [{}, {}] run backwards", tensor.begin, tensor.end));
  } else if (!dtype) {
    fault(fmt::format("unknown dtype \"{}\"", description_.dtype->substr(0, 40)));
  } else if (!bytes) {
    fault(fmt::format("shape {} is larger than any file", tensor.shape.to_string()));
  } else if (*bytes != tensor.end - tensor.begin) {
    fault(fmt::format("{} of {} takes {} bytes, but data_offsets [{}, {}] hold {}", tensor.shape.to_string(),
                      dtype_name(*dtype), *bytes, tensor.begin, tensor.end, tensor.end - tensor.begin));
  }
  header.tensors.push_back(std::move(tensor));
  return true;
}

// Ranges in order of their beginning: each must start where the last one ended, and the last one end with the file.
void check_layout(SafetensorsHeader& header, std::uint64_t data_bytes) {
  std::vector<StoredTensor*> ordered;
  for (StoredTensor& tensor : header.tensors) {
    if (tensor.begin <= tensor.end) ordered.push_back(&tensor);
  }
  const auto earlier = [](const StoredTensor* a, const StoredTensor* b) {
    return a->begin != b->begin ? a->begin < b->begin : a->end < b->end;
  };
  std::sort(ordered.begin(), ordered.end(), earlier);
  std::uint64_t reached = 0;
  const StoredTensor* last = nullptr;  // the one that reached furthest
  const StoredTensor* first_cut = nullptr;
  std::uint64_t num_cut = 0;
  for (StoredTensor* tensor : ordered) {
    if (tensor->begin < reached && tensor->begin != tensor->end) {
      header.faults.push_back(fmt::format("tensor {}: overlaps tensor {}", tensor->name, last->name));
      tensor->sound = false;
    } else if (tensor->begin > reached) {
      header.faults.push_back(
          fmt::format("tensor {}: {} unused before it", tensor->name, counted(tensor->begin - reached, "byte")));
    }
    if (tensor->end > data_bytes) {
      if (num_cut++ == 0) first_cut = tensor;
      tensor->sound = false;
    }
    if (last == nullptr || tensor->end > reached) {
      reached = tensor->end;
      last = tensor;
    }
  }
  if (num_cut > 0) {
    const std::string others = num_cut > 1 ? fmt::format(" (and past it {})", counted(num_cut - 1, "other")) : "";
    header.faults.push_back(fmt::format("tensor {}: ends at byte {} of the data, but the file holds only {}{}",
                                        first_cut->name, first_cut->end, data_bytes, others));
  } else if (reached < data_bytes) {
    header.faults.push_back(counted(data_bytes - reached, "byte") + " after the last tensor");
  }
}

}  // namespace

bool is_printable_name(std::string_view name) {
  constexpr std::size_t kMaxNameBytes = 512;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const auto byte = static_cast<unsigned char>(name[i]);
    // U+0080 to U+009F, the second block of control characters, are C2 80 to C2 9F in UTF-8.
    const bool starts_c1 = byte == 0xC2 && i + 1 < name.size() && static_cast<unsigned char>(name[i + 1]) < 0xA0;
    if (byte < 0x20 || byte == 0x7F || starts_c1) return false;
  }
  return !name.empty() && name.size() <= kMaxNameBytes;
}

Result<SafetensorsHeader> parse_safetensors(std::span<const std::byte> file) {
  if (file.size() < kLengthBytes) {
    return failure(ErrorCode::Corrupt, counted(file.size(), "byte") + " long, too short for a safetensors file");
  }
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i) length |= std::to_integer<std::uint64_t>(file[i]) << (8 * i);
  if (length > kMaxHeaderBytes) {
    return failure(ErrorCode::Corrupt, fmt::format("header length {} is above the limit of 100 MB", length));
  }
  const std::uint64_t after_length = file.size() - kLengthBytes;
  if (length > after_length) {
    return failure(ErrorCode::Corrupt,
                   fmt::format("header length {} reaches past the end of the file ({} bytes)", length, file.size()));
  }
  const std::string_view text(reinterpret_cast<const char*>(file.data()) + kLengthBytes, length);
  if (!text.starts_with('{')) return failure(ErrorCode::Corrupt, "the header does not begin with '{'");

  boost::json::parse_options options;
  options.max_depth = kMaxDepth;
  boost::json::basic_parser<HeaderReader> parser(options);
  boost::json::error_code error;
  const std::size_t read = parser.write_some(false, text.data(), text.size(), error);
  HeaderReader& reader = parser.handler();
  if (!error && text.find_first_not_of(" \t\r\n", read) != std::string_view::npos) {
    return failure(ErrorCode::Corrupt, fmt::format("header: text after the JSON document at byte {}", read));
  }
  if (error) {
    const std::string why =
        reader.complaint.empty() ? fmt::format("invalid JSON at byte {}: {}", read, error.message()) : reader.complaint;
    return failure(ErrorCode::Corrupt, "header: " + why);
  }
  const std::uint64_t data_start = kLengthBytes + length;
  check_layout(reader.header, file.size() - data_start);
  for (StoredTensor& tensor : reader.header.tensors) {
    if (!tensor.sound) continue;
    tensor.begin += data_start;
    tensor.end += data_start;
  }
  return std::move(reader.header);
}

}  // namespace rondo
