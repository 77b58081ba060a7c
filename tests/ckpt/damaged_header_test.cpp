// Damage to a safetensors file itself: its length, its header, its tensors' descriptions.
#include "ckpt/checkpoint.h"
#include "tests/ckpt/damaged.h"

namespace rondo {
namespace {

Damage cut(const std::string& name, std::function<std::size_t(const std::string&)> length, const std::string& words) {
  const auto inflict = [length](const TempFolder& folder) {
    const std::string whole = folder.read(kModel);
    folder.write(kModel, whole.substr(0, length(whole)));
  };
  return {name, "qwen3_5", inflict, kModel, words};
}

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

INSTANTIATE_TEST_SUITE_P(Headers, Damaged,
                         testing::ValuesIn(Damaged::all_of({cuts(), lengths(), headers(), tensors()})),
                         [](const auto& damage) { return damage.param.name; });

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

}  // namespace
}  // namespace rondo
