// Damaged checkpoints: each ends, within a second, in a message that names the file and the tensor or key.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ostream>

#include "ckpt/checkpoint.h"
#include "cli/inspect.h"
#include "tests/ckpt/damage.h"

namespace rondo {
namespace {

namespace fs = std::filesystem;

constexpr const char* kModel = "model.safetensors";
constexpr const char* kHead = "model-mtp.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";
constexpr const char* kConfig = "config.json";
constexpr const char* kUp = "model.layers.1.mlp.up_proj.weight";  // [96, 64] in the qwen3_5 fixture

struct Damage {
  std::string name;
  std::string fixture;
  std::function<void(const TempFolder&)> inflict;
  std::string file;   // that the message is about
  std::string words;  // that it says
};
std::ostream& operator<<(std::ostream& out, const Damage& damage) { return out << damage.name; }

using Edit = std::function<void(json::Object&)>;

// Every message about the folder, one a line; what a person would read.
std::string messages(const std::string& folder) {
  const auto checkpoint = Checkpoint::inspect(folder);
  if (!checkpoint) return checkpoint.error().message + "\n";
  std::string all;
  for (const Problem& problem : checkpoint->problems()) all += problem.file + ": " + problem.message + "\n";
  return all;
}

Damage cut(const std::string& name, std::function<std::size_t(const std::string&)> length, const std::string& words) {
  const auto inflict = [length](const TempFolder& folder) {
    const std::string whole = folder.read(kModel);
    folder.write(kModel, whole.substr(0, length(whole)));
  };
  return {name, "qwen3_5", inflict, kModel, words};
}

std::size_t data_start(const std::string& file) { return 8 + split_safetensors(file).header.size(); }

Damage length_is(const std::string& name, std::function<std::uint64_t(std::uint64_t)> length,
                 const std::string& words) {
  const auto inflict = [length](const TempFolder& folder) {
    const std::string whole = folder.read(kModel);
    folder.write(kModel, header_length(length(data_start(whole) - 8)) + whole.substr(8));
  };
  return {name, "qwen3_5", inflict, kModel, words};
}

// The header replaced by other bytes, its length true.
Damage header_is(const std::string& name, std::function<std::string(std::string)> header, const std::string& words) {
  const auto inflict = [header](const TempFolder& folder) {
    SafetensorsParts parts = split_safetensors(folder.read(kModel));
    parts.header = header(parts.header);
    folder.write(kModel, join_safetensors(parts));
  };
  return {name, "qwen3_5", inflict, kModel, words};
}

// One tensor's description changed.
Damage tensor_is(const std::string& name, Edit edit, const std::string& words, const std::string& tensor = kUp) {
  const auto inflict = [edit, tensor](const TempFolder& folder) {
    edit_header(folder, kModel, [&](json::Object& header) { edit(header[tensor].as_object()); });
  };
  return {name, "qwen3_5", inflict, kModel, words};
}

Damage json_is(const std::string& name, const std::string& fixture, const char* file, Edit edit,
               const std::string& words) {
  return {name, fixture, [=](const TempFolder& folder) { edit_json(folder, file, edit); }, file, words};
}

Damage config_is(const std::string& name, Edit edit, const std::string& words) {
  return json_is(name, "qwen3_5", kConfig, std::move(edit), words);
}

Damage text_config_is(const std::string& name, const std::string& key, json::Value value, const std::string& words) {
  const auto edit = [=](json::Object& config) { config["text_config"].as_object()[key] = value; };
  return json_is(name, "qwen4_exp", kConfig, edit, words);
}

// The damage is done in one file and seen in another.
Damage about(const std::string& file, Damage damage) {
  damage.file = file;
  return damage;
}

Damage file_is(const std::string& name, const char* file, const std::string& bytes, const std::string& words) {
  return {name, "qwen3_5", [=](const TempFolder& folder) { folder.write(file, bytes); }, file, words};
}

Damage is_folder(const std::string& name, const char* file) {
  const auto inflict = [=](const TempFolder& folder) {
    fs::remove(folder / file);
    fs::create_directory(folder / file);
  };
  return {name, "qwen3_5", inflict, file, "not a regular file"};
}

std::vector<Damage> cuts() {
  return {
      cut(
          "EmptyFile", [](const auto&) { return 0; }, "0 bytes long"),
      cut(
          "CutAfterOneByte", [](const auto&) { return 1; }, "1 byte long"),
      cut(
          "CutInsideTheLength", [](const auto&) { return 7; }, "7 bytes long"),
      cut(
          "CutAfterTheLength", [](const auto&) { return 8; }, "past the end of the file (8 bytes)"),
      cut(
          "CutAfterTheFirstBrace", [](const auto&) { return 9; }, "past the end"),
      cut(
          "CutInsideTheHeader", [](const auto& whole) { return data_start(whole) / 2; }, "past the end"),
      cut(
          "CutOneByteBeforeTheData", [](const auto& whole) { return data_start(whole) - 1; }, "past the end"),
      cut(
          "CutAtTheData", [](const auto& whole) { return data_start(whole); }, "the file holds only 0"),
      cut(
          "CutInTheFirstTensor", [](const auto& whole) { return data_start(whole) + 1; }, "the file holds only 1"),
      cut(
          "CutInTheMiddle", [](const auto& whole) { return whole.size() / 2; }, " others)"),
      cut(
          "CutOneByteShort", [](const auto& whole) { return whole.size() - 1; },
          "tensor model.norm.weight: ends at byte 399016"),
      {"OneByteMore", "qwen3_5", [](const TempFolder& f) { f.write(kModel, f.read(kModel) + "x"); }, kModel,
       "1 byte after the last tensor"},
  };
}

std::vector<Damage> lengths() {
  return {
      length_is(
          "LengthZero", [](auto) { return 0; }, "does not begin with '{'"),
      length_is(
          "LengthOne", [](auto) { return 1; }, "invalid JSON"),
      length_is(
          "LengthOneShort", [](auto n) { return n - 1; }, ""),
      length_is(
          "LengthOneMore", [](auto n) { return n + 1; }, ""),
      length_is(
          "LengthHalf", [](auto n) { return n / 2; }, "invalid JSON"),
      length_is(
          "LengthOfTheWholeFile", [](auto n) { return n + 399016; }, "header"),
      length_is(
          "LengthPastTheEndByOne", [](auto n) { return n + 399017; }, "past the end"),
      length_is(
          "LengthAboveTheLimit", [](auto) { return 100'000'001; }, "above the limit of 100 MB"),
      length_is(
          "LengthTwoTo63", [](auto) { return std::uint64_t{1} << 63; }, "above the limit"),
      length_is(
          "LengthAllOnes", [](auto) { return ~std::uint64_t{0}; }, "above the limit"),
  };
}

std::string with(std::string text, std::size_t at, char byte) {
  text[at] = byte;
  return text;
}

std::string many_tensors(const std::string&) {
  std::string header = "{";
  for (int i = 0; i < 300'000; ++i) {
    header += '"' + std::to_string(i) + R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},)";
  }
  header.back() = '}';
  return header;
}

std::vector<Damage> headers() {
  const auto doubled = [](const std::string& header) {
    return R"({"model.norm.weight":{"dtype":"BF16","shape":[64],"data_offsets":[0,128]},)" + header.substr(1);
  };
  const auto twice = [](const std::string& header) {
    const std::size_t at = header.find("\"dtype\"");
    return header.substr(0, at) + R"("dtype":"BF16",)" + header.substr(at);
  };
  return {
      header_is(
          "HeaderIsAList", [](const auto&) { return "[1, 2, 3]"; }, "does not begin with '{'"),
      header_is(
          "HeaderIsNotJson", [](const auto&) { return "{this is not JSON}"; }, "invalid JSON"),
      header_is(
          "HeaderHasAControlByte", [](auto h) { return with(h, 40, '\x01'); }, "header"),
      header_is(
          "HeaderIsNotUtf8", [](auto h) { return with(h, h.find("model.") + 2, '\xFF'); }, "header"),
      header_is(
          "HeaderGoesOn", [](auto h) { return h + "{}"; }, "text after the JSON document"),
      header_is(
          "HeaderNestsDeep", [](const auto&) { return "{\"__metadata__\":{\"a\":" + std::string(100000, '['); },
          "invalid JSON"),
      header_is("NameStandsTwice", doubled, "tensor model.norm.weight: the name stands twice"),
      header_is("KeyStandsTwice", twice, "dtype stands twice"),
      header_is(
          "NameHoldsAnEscape", [](const auto& h) { return "{\"\\u001b[31m" + h.substr(2); }, "control character"),
      header_is(
          "NameIsEmpty", [](const auto&) { return "{\"\":{}}"; }, "empty"),
      header_is(
          "HeaderHoldsNothing", [](const auto&) { return "{}"; }, "it is not"),
      header_is(
          "TensorIsANumber", [](const auto&) { return "{\"a\": 1}"; }, "tensor a: an unexpected number"),
      header_is(
          "TensorIsAList", [](const auto&) { return "{\"a\": [1]}"; }, "tensor a: an unexpected list"),
      header_is(
          "TensorIsEmpty", [](const auto&) { return "{\"a\": {}}"; }, "tensor a: dtype is missing"),
      header_is("TensorsAreTooMany", many_tensors, "more than 262144 tensors"),
  };
}

std::vector<Damage> tensors() {
  const std::string up = std::string("tensor ") + kUp;
  const json::Value many = {1, 1, 1, 1, 1, 96 * 64};
  const json::Value huge = {std::int64_t{1} << 40, std::int64_t{1} << 40};
  return {
      tensor_is(
          "ShapeIsSwapped",
          [](auto& t) {
            t["shape"] = {64, 96};
          },
          up + " has shape [64, 96]"),
      tensor_is(
          "ShapeIsSmaller",
          [](auto& t) {
            t["shape"] = {96, 63};
          },
          up + ": [96, 63] of BF16 takes 12096"),
      tensor_is(
          "ShapeIsFlat", [](auto& t) { t["shape"] = {96 * 64}; }, up + " has shape [6144]"),
      tensor_is(
          "ShapeIsNegative",
          [](auto& t) {
            t["shape"] = {-96, -64};
          },
          up + ": shape is negative"),
      tensor_is(
          "ShapeIsText",
          [](auto& t) {
            t["shape"] = {"96", "64"};
          },
          up + ": an unexpected text"),
      tensor_is(
          "ShapeIsFractional",
          [](auto& t) {
            t["shape"] = {96.5, 64};
          },
          up + ": a number that is not whole"),
      tensor_is(
          "ShapeIsANumber", [](auto& t) { t["shape"] = 6144; }, up + ": an unexpected number"),
      tensor_is(
          "ShapeIsNested",
          [](auto& t) {
            t["shape"] = {json::Value{96}, 64};
          },
          up + ": an unexpected list"),
      tensor_is(
          "ShapeHasSixDimensions", [=](auto& t) { t["shape"] = many; }, up + ": shape has more than 5"),
      tensor_is(
          "ShapeOverflows", [=](auto& t) { t["shape"] = huge; }, "is larger than any file"),
      tensor_is(
          "ShapeIsMissing", [](auto& t) { t.erase("shape"); }, up + ": shape is missing"),
      tensor_is(
          "MatrixIsI16", [](auto& t) { t["dtype"] = "I16"; }, up + " is I16, expected BF16, F16, F32, F8_E4M3"),
      tensor_is(
          "MatrixIsFp8",
          [](auto& t) {
            t["dtype"] = "F8_E4M3";
            t["shape"] = {192, 64};
          },
          up + " has shape [192, 64], config.json asks for [96, 64]"),
      tensor_is(
          "VectorIsI16", [](auto& t) { t["dtype"] = "I16"; },
          "tensor model.norm.weight is I16, expected BF16, F16 or F32", "model.norm.weight"),
      tensor_is(
          "DtypeIsLarger", [](auto& t) { t["dtype"] = "F32"; }, up + ": [96, 64] of F32 takes 24576 bytes"),
      tensor_is(
          "DtypeIsUnknown", [](auto& t) { t["dtype"] = "Q4"; }, up + ": unknown dtype \"Q4\""),
      tensor_is(
          "DtypeIsANumber", [](auto& t) { t["dtype"] = 16; }, up + ": an unexpected number"),
      tensor_is(
          "DtypeIsMissing", [](auto& t) { t.erase("dtype"); }, up + ": dtype is missing"),
      tensor_is(
          "OffsetsAreMissing", [](auto& t) { t.erase("data_offsets"); }, up + ": data_offsets"),
      tensor_is(
          "OffsetsAreThree",
          [](auto& t) {
            t["data_offsets"] = {0, 1, 2};
          },
          up + ": data_offsets"),
      tensor_is(
          "OffsetsRunBackwards",
          [](auto& t) {
            t["data_offsets"] = {12288, 0};
          },
          up + ": data_offsets"),
      tensor_is(
          "OffsetsPassTheEnd",
          [](auto& t) {
            t["data_offsets"] = {399000, 399000 + 12288};
          },
          up + ": ends at byte 411288 of the data, but the file holds only 399016"),
      tensor_is(
          "OffsetsAreHuge",
          [](auto& t) {
            t["data_offsets"] = {18446744073709539327u, 18446744073709551615u};
          },
          up + ": ends at byte 18446744073709551615"),
      tensor_is(
          "OffsetsOverlap",
          [](auto& t) {
            t["data_offsets"] = {0, 12288};
          },
          "overlaps tensor"),
      tensor_is(
          "OffsetsAreNegative",
          [](auto& t) {
            t["data_offsets"] = {-8, 12280};
          },
          "data_offsets is negative"),
      tensor_is(
          "UnknownKey", [](auto& t) { t["strides"] = {1}; }, up + ": unknown key \"strides\""),
  };
}

Damage header_edit(const std::string& name, const std::string& fixture, const char* file, Edit edit,
                   const std::string& about, const std::string& words) {
  return {name, fixture, [=](const TempFolder& folder) { edit_header(folder, file, edit); }, about, words};
}

// The data moved by one byte: every tensor of two bytes is then misaligned.
void misalign(const TempFolder& folder) {
  SafetensorsParts parts = split_safetensors(folder.read(kModel));
  parts.header += ' ';
  folder.write(kModel, join_safetensors(parts));
}

std::vector<Damage> shards() {
  const auto rename = [](json::Object& header) {
    header["model.norme.weight"] = header["model.norm.weight"];
    header.erase("model.norm.weight");
  };
  const auto copy_head = [](const TempFolder& folder) {
    folder.remove(kIndex);
    folder.write("copy.safetensors", folder.read(kHead));
  };
  const auto no_weights = [](const TempFolder& folder) {
    for (const char* file : {kModel, kHead, kIndex}) folder.remove(file);
  };
  const auto pipe = [](const TempFolder& folder) {
    folder.remove(kHead);
    ASSERT_EQ(::mkfifo((folder / kHead).c_str(), 0600), 0);
  };
  const auto dangling = [](const TempFolder& folder) {
    folder.remove(kHead);
    fs::create_symlink(folder / "nowhere", folder / kHead);
  };
  const std::string second = "model-00002-of-00003.safetensors";
  const auto cut_second = [second](const TempFolder& folder) {
    const std::string whole = folder.read(second);
    folder.write(second, std::string_view(whole).substr(0, whole.size() - 4096));
  };
  return {
      {"ModelShardIsMissing", "qwen3_5", [](const TempFolder& f) { f.remove(kModel); }, kModel, "missing"},
      {"HeadShardIsMissing", "qwen3_5", [](const TempFolder& f) { f.remove(kHead); }, kHead, "missing"},
      {"OneShardOfThreeIsMissing", "demo", [second](const TempFolder& f) { f.remove(second); }, second, "missing"},
      {"OneShardOfThreeIsMissingWithoutIndex", "demo",
       [second](const TempFolder& f) {
         f.remove(kIndex);
         f.remove(second);
       },
       second, "missing"},
      {"OneShardOfThreeIsCut", "demo", cut_second, second, "ends at byte"},
      {"NoWeightsAtAll", "qwen3_5", no_weights, kModel, "no .safetensors file"},
      {"TensorIsInTwoFiles", "qwen3_5", copy_head, kHead, "tensor mtp.fc.weight is also in copy.safetensors"},
      {"TensorIsRenamed", "qwen3_5", [=](const TempFolder& f) { edit_header(f, kModel, rename); }, kModel,
       "tensor model.norm.weight: model.safetensors.index.json says it is in this file, but it is not"},
      {"TensorIsMissingWithoutIndex", "qwen3_5",
       [=](const TempFolder& f) {
         f.remove(kIndex);
         edit_header(f, kModel, rename);
       },
       kModel, "tensor norm.weight is missing"},
      {"DataIsMisaligned", "qwen3_5", misalign, kModel, "tensor model.embed_tokens.weight begins at byte 5737"},
      {"ShardIsAPipe", "qwen3_5", pipe, kHead, "not a regular file"},
      {"ShardIsADanglingLink", "qwen3_5", dangling, kHead, "missing"},
      is_folder("ShardIsAFolder", kModel),
      header_edit(
          "ExpertIsMissing", "qwen3_5_moe", kModel,
          [](auto& h) { h.erase("model.language_model.layers.1.mlp.experts.5.up_proj.weight"); }, kModel,
          "tensor model.language_model.layers.1.mlp.experts.5.up_proj.weight"),
      header_edit(
          "StackedHalfIsMissing", "qwen3_next", kHead, [](auto& h) { h.erase("mtp.layers.0.mlp.experts.down_proj"); },
          kHead, "tensor mtp.layers.0.mlp.experts.down_proj"),
      header_edit(
          "HeadTensorIsMissing", "qwen4_exp", kHead, [](auto& h) { h.erase("mtp.fc_hidden.weight"); }, kHead,
          "tensor mtp.fc_hidden.weight"),
  };
}

// Changes one number of a tensor's data.
void poke(const TempFolder& folder, const std::string& tensor, std::size_t at, char value) {
  SafetensorsParts parts = split_safetensors(folder.read(kModel));
  const json::Value header = *parse_json(parts.header);
  const auto begin = header.at(tensor).at("data_offsets").at(0).to_number<std::size_t>();
  parts.data[begin + at] = value;
  folder.write(kModel, join_safetensors(parts));
}

std::vector<Damage> tables() {
  const std::string ple = "model.language_model.layers.1.ple.ple_embedding.";
  const auto poked = [=](const std::string& name, const std::string& buffer) {
    const auto inflict = [=](const TempFolder& folder) { poke(folder, ple + buffer, 8, 99); };
    return Damage{name, "qwen4_exp", inflict, kModel, "tensor " + ple + buffer + ": number 1 is"};
  };
  return {
      poked("MultiplierIsAnother", "layer_multipliers"),
      poked("HeadOffsetIsAnother", "ngram_heads_offsets"),
      poked("HeadSizeIsAnother", "ngram_heads_vocab_sizes"),
      header_edit(
          "TableShardIsMissing", "qwen4_exp", kModel, [=](auto& h) { h.erase(ple + "ngram_embedding.shard_1.weight"); },
          kModel, "shard_1.weight"),
      about(kModel, text_config_is("TableHasOtherRows", "ngram_vocab_size_base", 90, "shard_0.weight has shape")),
      text_config_is("TableHasTooManyShards", "split_ngram_parts", 7, "text_config.split_ngram_parts is 7"),
  };
}

std::vector<Damage> indexes() {
  const auto maps = [](const std::string& name, json::Value file, const std::string& words) {
    const auto edit = [=](json::Object& index) { index["weight_map"].as_object()[kUp] = file; };
    return json_is(name, "qwen3_5", kIndex, edit, words);
  };
  const std::string plain = std::string("tensor ") + kUp + ": its file is not the plain name";
  const auto absent_tensor = [](auto& index) { index["weight_map"].as_object()["model.layers.9.nothing"] = kModel; };
  return {
      file_is("IndexIsNotJson", kIndex, "}{", "invalid JSON"),
      file_is("IndexIsEmpty", kIndex, "", "invalid JSON"),
      file_is("IndexIsAList", kIndex, "[]", "weight_map is missing"),
      file_is("IndexNestsDeep", kIndex, std::string(1 << 20, '['), "invalid JSON"),
      json_is(
          "IndexHasNoMap", "qwen3_5", kIndex, [](auto& i) { i.erase("weight_map"); }, "weight_map is missing"),
      maps("IndexLeavesTheFolder", "../model.safetensors", plain),
      maps("IndexNamesAnAbsolutePath", "/etc/model.safetensors", plain),
      maps("IndexNamesAnotherKind", "config.json", plain),
      json_is(
          "IndexNameHoldsAnEscape", "qwen3_5", kIndex,
          [](auto& index) { index["weight_map"].as_object()["\x1b[31m"] = kModel; }, "control character"),
      maps("IndexFileIsANumber", 3, plain),
      about(kHead, maps("IndexNamesTheWrongFile", kHead, "it is in model.safetensors")),
      about("model-9.safetensors", maps("IndexNamesAnAbsentFile", "model-9.safetensors", "missing")),
      about(kModel, json_is("IndexNamesAnAbsentTensor", "qwen3_5", kIndex, absent_tensor, "model.layers.9.nothing")),
      is_folder("IndexIsAFolder", kIndex),
  };
}

std::vector<Damage> configs() {
  const auto set = [](const std::string& name, const std::string& key, json::Value value, const std::string& words) {
    return config_is(
        name, [=](json::Object& config) { config[key] = value; }, words);
  };
  const auto without = [](const std::string& name, const std::string& key) {
    return config_is(
        name, [=](json::Object& config) { config.erase(key); }, key + " is missing");
  };
  return {
      {"ConfigIsMissing", "qwen3_5", [](const TempFolder& f) { f.remove(kConfig); }, kConfig, "missing"},
      is_folder("ConfigIsAFolder", kConfig),
      file_is("ConfigIsEmpty", kConfig, "", "invalid JSON"),
      file_is("ConfigIsNotJson", kConfig, "hidden_size: 64", "invalid JSON"),
      file_is("ConfigIsAList", kConfig, "[]", "not a JSON object"),
      file_is("ConfigIsBinary", kConfig, std::string(4096, '\0'), "invalid JSON"),
      set("TextConfigIsANumber", "text_config", 5, "text_config is 5, expected an object"),
      set("ArchitectureIsUnknown", "model_type", "llama", "model_type is \"llama\": not a known architecture"),
      without("ArchitectureIsMissing", "model_type"),
      without("HiddenSizeIsMissing", "hidden_size"),
      without("VocabIsMissing", "vocab_size"),
      without("HeadsAreMissing", "num_attention_heads"),
      without("LinearHeadsAreMissing", "linear_num_value_heads"),
      without("MlpIsMissing", "intermediate_size"),
      without("ContextIsMissing", "max_position_embeddings"),
      set("HiddenSizeIsZero", "hidden_size", 0, "hidden_size is 0"),
      set("HiddenSizeIsNegative", "hidden_size", -64, "hidden_size is -64"),
      set("HiddenSizeIsHuge", "hidden_size", std::int64_t{1} << 40, "hidden_size is 1099511627776"),
      set("HiddenSizeIsText", "hidden_size", "64", "hidden_size is \"64\", expected a whole number"),
      set("HiddenSizeIsFractional", "hidden_size", 64.5, "hidden_size is 64.5"),
      about(kModel, set("HiddenSizeIsAnother", "hidden_size", 128, "tensor model.embed_tokens.weight has shape")),
      set("LayersAreMore", "num_hidden_layers", 5, "layer_types is a list of 4"),
      set("LayersAreMillions", "num_hidden_layers", 5'000'000, "num_hidden_layers is 5000000"),
      set("LayerTypesAreNumbers", "layer_types", {1, 2, 3, 4}, "layer_types is a list of 4, expected"),
      set("HeadsDoNotDivide", "num_key_value_heads", 3, "num_key_value_heads is 3, expected a divisor"),
      set("LinearHeadsDoNotDivide", "linear_num_key_heads", 4, "linear_num_value_heads is 6, expected a multiple"),
      set("EpsIsNegative", "rms_norm_eps", -1e-6, "rms_norm_eps is"),
      set("HeadDimIsOdd", "head_dim", 31, "partial_rotary_factor is 0.25, expected an even share of head_dim 31"),
      set("RopeIsUnknown", "rope_scaling", json::Object{{"type", "ntk"}}, "rope_scaling.type is \"ntk\""),
      set("AttentionHasBiases", "attention_bias", true, "attention_bias is true"),
      set("ActivationIsAnother", "hidden_act", "gelu", "hidden_act is \"gelu\""),
      set("GateIsAnother", "output_gate_type", "tanh", "output_gate_type is \"tanh\""),
      set("SomeLayersAreDense", "mlp_only_layers", {0}, "mlp_only_layers"),
      set("StepIsTwo", "decoder_sparse_step", 2, "decoder_sparse_step is 2"),
      set("Quantised", "quantization_config", json::Object{{"quant_method", "awq"}}, "awq is not supported"),
      set("BlocksAreOneNumber", "quantization_config",
          json::Object{{"quant_method", "fp8"}, {"weight_block_size", 128}},
          "weight_block_size is 128, expected two whole numbers"),
      set("MlxModeIsAnother", "quantization", json::Object{{"bits", 4}, {"mode", "mxfp4"}},
          "quantization.mode is \"mxfp4\": of MLX's formats only affine"),
      text_config_is("ExpertsAreFewerThanChosen", "num_experts_per_tok", 9, "num_experts_per_tok is 9"),
      about(kIndex, text_config_is("ExpertsAreMany", "num_experts", 16384,
                                   "tensor layers.0.mlp.experts.8.gate_proj.weight is missing")),
      text_config_is("ExpertsAreNone", "num_experts", 0, "num_experts is 0"),
      text_config_is("PleLayerIsZero", "ple_layer_ids", {0}, "text_config.ple_layer_ids holds 0"),
      text_config_is("PleLayersRepeat", "ple_layer_ids", {2, 2}, "ascending"),
      text_config_is("PleDoesNotDivide", "ple_embed_dim", 63, "ple_embed_dim is 63, expected a multiple"),
      text_config_is("EosIsOutside", "eos_token_id", 320, "eos_token_id is 320, expected a token below"),
      text_config_is("IndexerBudgetIsOdd", "indexer_budget", 15, "indexer_budget is 15, expected a multiple"),
  };
}

std::vector<Damage> others() {
  const char* generation = "generation_config.json";
  const auto forbid = [](const TempFolder& f) {
    fs::permissions(f.path(), fs::perms::all);
    fs::permissions(f / kHead, fs::perms::none);
  };
  return {
      file_is("GenerationConfigIsGarbage", generation, "\xFF\xFE", "invalid JSON"),
      file_is("TemperatureIsText", generation, R"({"temperature": "hot"})", "temperature is \"hot\""),
      file_is("TopPIsAboveOne", generation, R"({"top_p": 1.5})", "top_p is 1.5"),
      file_is("EosListHoldsText", generation, R"({"eos_token_id": [3, "x"]})", "eos_token_id holds \"x\""),
      file_is("TokenizerConfigIsGarbage", "tokenizer_config.json", "nothing", "invalid JSON"),
      is_folder("TokenizerIsAFolder", "tokenizer.json"),
      {"PermissionIsDenied", "qwen3_5", forbid, kHead, "Permission denied"},
  };
}

std::vector<Damage> all_damage() {
  std::vector<Damage> all;
  for (auto make : {cuts, lengths, headers, tensors, shards, tables, indexes, configs, others}) {
    for (Damage& damage : make()) all.push_back(std::move(damage));
  }
  return all;
}

std::string fixture_folder(const std::string& fixture) {
  return fixture == "demo" ? RONDO_BUNDLED_MODEL : std::string(RONDO_FIXTURES "/") + fixture;
}

// Root may read everything; while one of these lives, root is somebody else.
class OrdinaryUser {
 public:
  explicit OrdinaryUser(bool wanted) : was_root_(wanted && ::geteuid() == 0) {
    constexpr uid_t kNobody = 65534;
    if (was_root_) CHECK(::seteuid(kNobody) == 0);
  }
  ~OrdinaryUser() {
    if (was_root_) CHECK(::seteuid(0) == 0);
  }
  OrdinaryUser(const OrdinaryUser&) = delete;
  OrdinaryUser& operator=(const OrdinaryUser&) = delete;

 private:
  bool was_root_;
};

class Damaged : public testing::TestWithParam<Damage> {};

TEST_P(Damaged, EndsInAMessageThatNamesTheFile) {
  const Damage& damage = GetParam();
  TempFolder folder;
  folder.copy_from(fixture_folder(damage.fixture));
  damage.inflict(folder);
  const OrdinaryUser user(damage.name == "PermissionIsDenied");

  std::string said;
  EXPECT_LT(processor_seconds([&] { said = messages(folder.path()); }), 1);
  bool is_named = false;
  for (std::size_t at = 0, end = 0; (end = said.find('\n', at)) != said.npos; at = end + 1) {
    const std::string each = said.substr(at, end - at);
    is_named = is_named || (each.starts_with(damage.file + ": ") && each.find(damage.words) != each.npos);
  }
  EXPECT_TRUE(is_named) << "no line about " << damage.file << " says \"" << damage.words << "\":\n" << said;

  EXPECT_FALSE(Checkpoint::open(folder.path()));
  testing::internal::CaptureStdout();
  EXPECT_EQ(run_inspect(folder.path()), 1);
  const std::string report = testing::internal::GetCapturedStdout();
  EXPECT_NE(report.find(damage.file), report.npos) << report;
  EXPECT_NE(report.find(damage.words), report.npos) << report;
}

INSTANTIATE_TEST_SUITE_P(Checkpoints, Damaged, testing::ValuesIn(all_damage()),
                         [](const auto& damage) { return damage.param.name; });

// Planted control: the checker above must be able to say "fine"; an untouched copy has nothing to report.
TEST(Undamaged, CopiesHaveNoProblem) {
  for (const char* fixture : {"qwen3_next", "qwen3_5", "qwen3_5_moe", "qwen4_exp", "demo"}) {
    TempFolder folder;
    folder.copy_from(fixture_folder(fixture));
    EXPECT_EQ(messages(folder.path()), "");
    testing::internal::CaptureStdout();
    EXPECT_EQ(run_inspect(folder.path()), 0);
    testing::internal::GetCapturedStdout();
  }
}

// Any single byte of the header, changed: whatever it makes of the file, nothing crashes and nothing hangs.
TEST(Flipped, AnyByteOfTheHeaderEndsInWordsOrInAModel) {
  TempFolder folder;
  folder.copy_from(fixture_folder("qwen3_5"));
  const std::string whole = folder.read(kHead);
  for (std::size_t at = 0; at < data_start(whole); at += 7) {
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ (1 << (at % 8)));
    folder.write(kHead, flipped);
    const auto checkpoint = Checkpoint::inspect(folder.path());
    ASSERT_TRUE(checkpoint);
    EXPECT_TRUE(!checkpoint->problems().empty() || checkpoint->has_mtp()) << "byte " << at;
  }
}

TEST(NoFolder, IsSaid) {
  EXPECT_EQ(messages("/nonexistent/model"), "/nonexistent/model: no such folder\n");
  EXPECT_EQ(messages(RONDO_BUNDLED_MODEL "/config.json"), RONDO_BUNDLED_MODEL "/config.json: not a folder\n");
  testing::internal::CaptureStdout();
  EXPECT_EQ(run_inspect("/nonexistent/model"), 1);
  EXPECT_NE(testing::internal::GetCapturedStdout().find("no such folder"), std::string::npos);
}

}  // namespace
}  // namespace rondo
