// Damage between the files of a checkpoint: missing and misplaced shards and tensors, n-gram tables, the index.
#include <sys/stat.h>

#include "tests/ckpt/damaged.h"

namespace rondo {
namespace {

namespace fs = std::filesystem;

Damage header_edit(const std::string& name, const std::string& fixture, const char* file, Edit edit,
                   const std::string& words) {
  return {name, fixture, [=](const TempFolder& folder) { edit_header(folder, file, edit); }, file, words};
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
          [](auto& h) { h.erase("model.language_model.layers.1.mlp.experts.5.up_proj.weight"); },
          "tensor model.language_model.layers.1.mlp.experts.5.up_proj.weight"),
      header_edit(
          "StackedHalfIsMissing", "qwen3_next", kHead, [](auto& h) { h.erase("mtp.layers.0.mlp.experts.down_proj"); },
          "tensor mtp.layers.0.mlp.experts.down_proj"),
      header_edit(
          "HeadTensorIsMissing", "qwen4_exp", kHead, [](auto& h) { h.erase("mtp.fc_hidden.weight"); },
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
          "shard_1.weight"),
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

INSTANTIATE_TEST_SUITE_P(Shards, Damaged, testing::ValuesIn(Damaged::all_of({shards(), tables(), indexes()})),
                         [](const auto& damage) { return damage.param.name; });

}  // namespace
}  // namespace rondo
