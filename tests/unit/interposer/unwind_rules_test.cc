// The interpretation of call frame programs decides where every stack goes. Hand-made programs pin down each
// instruction that compilers and hand-written assembly use, at the address before and after each row; random ones show
// that damaged tables cannot hurt the target.
#include "interposer/unwind_rules.h"

#include <initializer_list>
#include <random>
#include <vector>

#include "interposer/library_map.h"
#include "tests/support/catch.h"

using namespace cadastre;

namespace {

constexpr uint64_t kStart = 0x1000;

// The program of the usual CIE: CFA = rsp + 8, return address at CFA - 8.
const std::vector<uint8_t> kUsualInitial = {0x0c, 7, 8, 0x90, 1};

struct Program {
  std::vector<uint8_t> initial, body;
  bool signal_frame = false;

  UnwindRule At(uint64_t pc) const {
    FrameTable table = {};
    table.start = kStart;
    table.end = kStart + 0x1000;
    table.initial_begin = initial.data();
    table.initial_end = initial.data() + initial.size();
    table.program_begin = body.data();
    table.program_end = body.data() + body.size();
    table.code_alignment = 1;
    table.data_alignment = -8;
    table.return_register = 16;
    table.signal_frame = signal_frame;
    return BuildUnwindRule(table, pc);
  }
};

Program Usual(std::initializer_list<uint8_t> body) { return {kUsualInitial, body}; }

}  // namespace

TEST_CASE("A frame pointer is followed from the instruction after it was set, and not before") {
  // +1: push rbp; +4: mov rsp, rbp; +20: leave
  Program program = Usual({0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x50, 0x0c, 7, 8, 0xc6});
  UnwindRule at_entry = program.At(kStart), pushed = program.At(kStart + 1), set = program.At(kStart + 4);
  CHECK(at_entry.kind == kUnwindFromRsp);
  CHECK(at_entry.cfa_offset == 8);
  CHECK(at_entry.saved_rbp == kRbpUnchanged);
  CHECK(pushed.kind == kUnwindFromRsp);
  CHECK(pushed.cfa_offset == 16);
  CHECK(pushed.saved_rbp == kRbpAtCfa);
  CHECK(pushed.rbp_offset == -16);
  CHECK(program.At(kStart + 3).kind == kUnwindFromRsp);
  CHECK(set.kind == kUnwindFromRbp);
  CHECK(set.cfa_offset == 16);
  CHECK(program.At(kStart + 19).kind == kUnwindFromRbp);
  UnwindRule left = program.At(kStart + 20);
  CHECK(left.kind == kUnwindFromRsp);
  CHECK(left.cfa_offset == 8);
  CHECK(left.saved_rbp == kRbpUnchanged);
}

TEST_CASE("A remembered row comes back whole, CFA included") {
  // +1: CFA +64; remember; +2: CFA +8; +3: restore
  Program program = Usual({0x41, 0x0e, 64, 0x0a, 0x41, 0x0e, 8, 0x41, 0x0b});
  CHECK(program.At(kStart + 1).cfa_offset == 64);
  CHECK(program.At(kStart + 2).cfa_offset == 8);
  CHECK(program.At(kStart + 3).cfa_offset == 64);
}

TEST_CASE("Locations advance by one, two and four bytes") {
  Program program = Usual({0x02, 200, 0x0e, 16, 0x03, 0x00, 0x02, 0x0e, 24, 0x04, 0x00, 0x01, 0, 0, 0x0e, 32});
  CHECK(program.At(kStart + 199).cfa_offset == 8);
  CHECK(program.At(kStart + 200).cfa_offset == 16);
  CHECK(program.At(kStart + 200 + 511).cfa_offset == 16);
  CHECK(program.At(kStart + 200 + 512).cfa_offset == 24);
  CHECK(program.At(kStart + 200 + 512 + 256).cfa_offset == 32);
}

TEST_CASE("A PLT entry's expression becomes an offset that depends on the pc alone") {
  Program program = {kUsualInitial, {0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22}};
  CHECK(program.At(kStart + 0x20 + 10).cfa_offset == 8);
  CHECK(program.At(kStart + 0x20 + 11).cfa_offset == 16);
  CHECK(program.At(kStart + 0x20 + 15).kind == kUnwindFromRsp);
}

TEST_CASE("A realigned frame is found through the pointer it keeps") {
  // CFA = *(rbp - 8); rbp saved at rbp + 0
  Program program = {kUsualInitial, {0x10, 6, 2, 0x76, 0, 0x0f, 3, 0x76, 0x78, 0x06}};
  UnwindRule rule = program.At(kStart);
  CHECK(rule.kind == kUnwindRbpDeref);
  CHECK(rule.cfa_offset == -8);
  CHECK(rule.saved_rbp == kRbpAtRbp);
  CHECK(rule.rbp_offset == 0);
}

TEST_CASE("A stack pointer kept on the stack is read back, with what lies above it") {
  Program program = {kUsualInitial, {0x0f, 6, 0x77, 0x98, 0x01, 0x06, 0x23, 8}};  // *(rsp + 152) + 8
  UnwindRule rule = program.At(kStart);
  CHECK(rule.kind == kUnwindRspDeref);
  CHECK(rule.cfa_offset == 152);
  CHECK(rule.cfa_addend == 8);
}

TEST_CASE("An undefined return address is the whole stack's end") {
  CHECK(Usual({0x07, 16}).At(kStart).kind == kUnwindEnd);
}

TEST_CASE("The kernel's signal frame is known by where it says the registers are") {
  Program program = {
      {}, {0x0f, 4, 0x77, 0xa0, 0x01, 0x06, 0x10, 6, 3, 0x77, 0xf8, 0x00, 0x10, 16, 3, 0x77, 0xa8, 0x01}, true};
  CHECK(program.At(kStart).kind == kUnwindSignal);
  program.body.back() = 0x02;  // another place
  CHECK(program.At(kStart).kind == kUnwindByLibrary);
}

TEST_CASE("What a rule cannot say goes to the library") {
  CHECK(Usual({0x0d, 3}).At(kStart).kind == kUnwindByLibrary);              // CFA from rbx
  CHECK(Usual({0x0c, 10, 0}).At(kStart).kind == kUnwindByLibrary);          // CFA from r10
  CHECK(Usual({0x09, 6, 3}).At(kStart).kind == kUnwindByLibrary);           // rbp is in rbx
  CHECK(Usual({0x16, 6, 2, 0x77, 0}).At(kStart).kind == kUnwindByLibrary);  // rbp is rsp + 0
  CHECK(Usual({0x90, 2}).At(kStart).kind == kUnwindByLibrary);              // return address elsewhere
  CHECK(Usual({0x0a, 0x0a, 0x0a, 0x0a, 0x0a}).At(kStart).kind == kUnwindByLibrary);
  CHECK(Usual({0x0b}).At(kStart).kind == kUnwindByLibrary);  // restores what nobody remembered
  CHECK(Usual({0x3f}).At(kStart).kind == kUnwindByLibrary);  // no such instruction
}

TEST_CASE("Other callee-saved registers change nothing") {
  UnwindRule rule = Usual({0x83, 3, 0x8c, 4, 0x8d, 5, 0x0e, 48}).At(kStart);
  CHECK(rule.kind == kUnwindFromRsp);
  CHECK(rule.cfa_offset == 48);
  CHECK(rule.saved_rbp == kRbpUnchanged);
}

TEST_CASE("Random programs end, inside their bytes") {
  std::mt19937 random(7);
  int kinds[8] = {};
  for (int i = 0; i < 200000; i++) {
    Program program = {kUsualInitial, {}};
    for (uint32_t bytes = random() % 40; bytes > 0; bytes--) program.body.push_back(static_cast<uint8_t>(random()));
    kinds[program.At(kStart + random() % 64).kind]++;  // under AddressSanitizer a read past the end is a failure
  }
  CHECK(kinds[kUnwindFromRsp] > 0);
  CHECK(kinds[kUnwindByLibrary] > 0);
}

TEST_CASE("The rule of real code is found through .eh_frame_hdr") {
  LibraryMapInit("");
  auto pc = reinterpret_cast<uint64_t>(&BuildUnwindRule);
  LibraryEntry library;
  FrameTable table;
  REQUIRE(LookupLibrary(pc, &library));
  REQUIRE(FindFrameTable(library, pc, &table));
  CHECK(table.start == pc);
  UnwindRule rule = BuildUnwindRule(table, pc);
  CHECK(rule.kind == kUnwindFromRsp);
  CHECK(rule.cfa_offset == 8);
  FrameTable other;
  CHECK_FALSE(FindFrameTable(library, library.start, &other));  // the ELF header is not code
}

TEST_CASE("Tables cut at any byte give a rule or none, and no read past the cut") {
  LibraryMapInit("");
  LibraryEntry library;
  REQUIRE(LookupLibrary(reinterpret_cast<uint64_t>(&BuildUnwindRule), &library));
  const uint64_t header = reinterpret_cast<uint64_t>(library.eh_frame_hdr), tables = library.tables_end - header;
  std::vector<uint8_t> copy(library.eh_frame_hdr, library.eh_frame_hdr + tables);
  std::mt19937 random(11);
  for (int i = 0; i < 20000; i++) {
    std::vector<uint8_t> damaged(copy.begin(), copy.begin() + static_cast<long>(random() % tables + 1));
    for (int flips = 0; flips < 8; flips++)
      damaged[random() % damaged.size()] ^= static_cast<uint8_t>(1u << random() % 8);
    LibraryEntry entry = library;
    entry.eh_frame_hdr = damaged.data();
    entry.eh_frame_hdr_bytes = damaged.size();
    entry.tables_start = reinterpret_cast<uint64_t>(damaged.data());
    entry.tables_end = entry.tables_start + damaged.size();
    FrameTable table;
    // The copy lies elsewhere, so its addresses shift with it.
    uint64_t pc = entry.tables_start - header + library.start + random() % (library.end - library.start);
    if (FindFrameTable(entry, pc, &table)) BuildUnwindRule(table, pc);
  }
}
