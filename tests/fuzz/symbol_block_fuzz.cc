// The compressed names in a profile: below the checksum lies a parser, so the bytes are also fed to it as text with a
// right checksum.
#include <zlib.h>
#include <zstd.h>

#include <cstdlib>
#include <cstring>

#include "symbolizer/packed_text.h"
#include "symbolizer/symbol_block.h"
#include "tests/fuzz/corpus_runner.h"

namespace cadastre::testing {
namespace {

SymbolBlock Sample() {
  SymbolBlock block;
  Frame frame;
  frame.function = "acme::billing::Index::add";
  frame.file = "/src/index.cc";
  frame.line = 300;
  frame.resolved = true;
  for (uint64_t i = 0; i < 5; i++) block.frames.push_back({i, {frame, frame}});
  block.warnings = {"one"};
  return block;
}

}  // namespace

std::vector<std::string> FuzzSeeds() {
  std::string bytes = WriteSymbolBlock(Sample());
  PackedHeader header;
  memcpy(&header, bytes.data(), sizeof(header));
  std::string text(header.text_bytes, '\0');
  ZSTD_decompress(text.data(), text.size(), bytes.data() + sizeof(header), header.stored_bytes);
  return {bytes, text};
}

}  // namespace cadastre::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace cadastre;
  (void)ParseSymbolBlock(reinterpret_cast<const char*>(bytes), size);
  PackedHeader header{};
  memcpy(header.magic, kSymbolBlockMagic, sizeof(header.magic));
  header.version = kSymbolBlockVersion;
  header.checksum = crc32_z(0, bytes, size);
  header.text_bytes = size;
  std::string packed(ZSTD_compressBound(size), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), bytes, size, 1));
  header.stored_bytes = packed.size();
  std::string block = std::string(reinterpret_cast<const char*>(&header), sizeof(header)) + packed;
  absl::StatusOr<SymbolBlock> parsed = ParseSymbolBlock(block.data(), block.size());
  if (!parsed.ok()) return 0;
  // What was accepted can be written and read again.
  std::string again = WriteSymbolBlock(*parsed);
  if (!ParseSymbolBlock(again.data(), again.size()).ok()) abort();
  return 0;
}
