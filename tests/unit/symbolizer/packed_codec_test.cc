// What a codec packs it unpacks, in every effort; and what is no such text it refuses.
#include "symbolizer/packed_codec.h"

#include <random>

#include "tests/support/catch.h"

namespace cadastre {
namespace {

ColumnText Columns(size_t values) {
  std::mt19937_64 random(7);
  std::vector<uint64_t> sizes(values), sites(values);
  for (size_t i = 0; i < values; i++) {
    sizes[i] = 16 + random() % 40 * 8;
    sites[i] = i / 7 % 300;
  }
  ColumnText columns;
  PutColumn(sizes, &columns);
  columns.EndColumn();
  PutColumn(sites, &columns);
  columns.EndColumn();
  return columns;
}

TEST_CASE("Columns come back from every effort, also with bytes behind them", "[packed_codec]") {
  BlockCompressor compressor;
  for (size_t values : {0, 1, 1000, 700000}) {
    const ColumnText columns = Columns(values);
    for (Effort effort : {Effort::kQuick, Effort::kMiddling, Effort::kThorough}) {
      INFO(values << " values, effort " << static_cast<int>(effort));
      std::string stored;
      REQUIRE(compressor.Compress(columns, effort, &stored).ok());
      for (size_t more : {0, 1, 5000}) {
        PadTo(more == 0 ? 0 : stored.size() + more + 8, CodecOf(effort), &stored);
        std::string again(columns.text.size(), '\1');
        REQUIRE(Uncompress(CodecOf(effort), stored.data(), stored.size(), &again));
        CHECK((again == columns.text));
      }
    }
  }
}

TEST_CASE("LZMA is smaller than zstd where columns are packed thoroughly", "[packed_codec]") {
  BlockCompressor compressor;
  const ColumnText columns = Columns(100000);
  std::string middling, thorough;
  REQUIRE(compressor.Compress(columns, Effort::kMiddling, &middling).ok());
  REQUIRE(compressor.Compress(columns, Effort::kThorough, &thorough).ok());
  CHECK(thorough.size() < middling.size());
}

TEST_CASE("What is cut, of another length or another codec's is refused", "[packed_codec]") {
  BlockCompressor compressor;
  const ColumnText columns = Columns(1000);
  for (Effort effort : {Effort::kQuick, Effort::kThorough}) {
    std::string stored, again(columns.text.size(), '\0');
    REQUIRE(compressor.Compress(columns, effort, &stored).ok());
    for (size_t cut : {size_t{0}, size_t{1}, stored.size() / 2, stored.size() - 1})
      CHECK_FALSE(Uncompress(CodecOf(effort), stored.data(), cut, &again));
    for (size_t length : {columns.text.size() - 1, columns.text.size() + 1}) {
      std::string other(length, '\0');
      CHECK_FALSE(Uncompress(CodecOf(effort), stored.data(), stored.size(), &other));
    }
    const PackedCodec wrong = CodecOf(effort) == kCodecZstd ? kCodecLzma : kCodecZstd;
    CHECK_FALSE(Uncompress(wrong, stored.data(), stored.size(), &again));
    CHECK_FALSE(Uncompress(2, stored.data(), stored.size(), &again));
  }
}

}  // namespace
}  // namespace cadastre
