#include "interposer/unwind_rules.h"

#include <string.h>

namespace cadastre {
namespace {

// DWARF register numbers of x86-64 (psABI, figure 3.36). Column 16 is the return address.
constexpr uint64_t kRbp = 6, kRsp = 7, kReturnAddress = 16;

enum CfaInstruction : uint8_t {
  kAdvanceLoc = 0x40,  // the upper two bits
  kOffset = 0x80,
  kRestore = 0xc0,
  kNop = 0x00,
  kSetLoc = 0x01,
  kAdvanceLoc1 = 0x02,
  kAdvanceLoc2 = 0x03,
  kAdvanceLoc4 = 0x04,
  kOffsetExtended = 0x05,
  kRestoreExtended = 0x06,
  kUndefined = 0x07,
  kSameValue = 0x08,
  kRegister = 0x09,
  kRememberState = 0x0a,
  kRestoreState = 0x0b,
  kDefCfa = 0x0c,
  kDefCfaRegister = 0x0d,
  kDefCfaOffset = 0x0e,
  kDefCfaExpression = 0x0f,
  kExpression = 0x10,
  kOffsetExtendedSf = 0x11,
  kDefCfaSf = 0x12,
  kDefCfaOffsetSf = 0x13,
  kValOffset = 0x14,
  kValOffsetSf = 0x15,
  kValExpression = 0x16,
  kGnuArgsSize = 0x2e,
  kGnuNegativeOffsetExtended = 0x2f,
};
enum Operation : uint8_t {
  kOpDeref = 0x06,
  kOpAnd = 0x1a,
  kOpPlus = 0x22,
  kOpPlusUconst = 0x23,
  kOpShl = 0x24,
  kOpGe = 0x2a,
  kOpLit0 = 0x30,
  kOpBreg6 = 0x76,
  kOpBreg7 = 0x77,
  kOpBreg16 = 0x80,
};

struct Block {
  const uint8_t* begin = nullptr;
  const uint8_t* end = nullptr;
};

enum SavedHow : uint8_t { kSame, kUndefinedValue, kAtOffset, kAtExpression, kOther };
struct Column {
  SavedHow how = kSame;
  int64_t offset = 0;
  Block expression;
};

struct Row {
  bool cfa_is_expression = false;
  uint64_t cfa_register = 0;
  int64_t cfa_offset = 0;
  Block cfa_expression;
  Column rbp, return_address;
  Column rsp;  // only to notice that somebody restores it in a way of his own
};

// gcc nests one level; hand-written code two.
constexpr int kRememberedRows = 4;

class CfaProgram {
 public:
  CfaProgram(const FrameTable& table, uint64_t pc) : table_(table), pc_(pc), location_(table.start) {}

  bool Run() {
    if (!Interpret(table_.initial_begin, table_.initial_end)) return false;
    initial_ = row_;
    location_ = table_.start;
    return Interpret(table_.program_begin, table_.program_end);
  }
  const Row& row() const { return row_; }

 private:
  Column* ColumnOf(uint64_t number, Row* row) {
    if (number == kRbp) return &row->rbp;
    if (number == kReturnAddress) return &row->return_address;
    if (number == kRsp) return &row->rsp;
    return nullptr;
  }
  void Set(uint64_t number, SavedHow how, int64_t offset = 0, Block expression = {}) {
    if (Column* column = ColumnOf(number, &row_)) *column = {how, offset, expression};
  }
  void Restore(uint64_t number) {
    if (Column* column = ColumnOf(number, &row_)) *column = *ColumnOf(number, &initial_);
  }
  void DefineCfa(uint64_t number, int64_t offset) {
    row_.cfa_is_expression = false;
    row_.cfa_register = number;
    row_.cfa_offset = offset;
  }
  Block ReadBlock(TableCursor* cursor) {
    uint64_t bytes = cursor->Uleb();
    Block block = {cursor->at, cursor->at};
    cursor->Skip(bytes);
    if (cursor->ok) block.end = cursor->at;
    return block;
  }
  // Unsigned, so that a damaged table overflows in a defined way.
  int64_t Factored(uint64_t value) {
    return static_cast<int64_t>(value * static_cast<uint64_t>(table_.data_alignment));
  }
  int64_t Factored(int64_t value) { return Factored(static_cast<uint64_t>(value)); }
  int64_t NegatedFactored(uint64_t value) { return Factored(0 - value); }

  // False on damage. Stops before the first row that begins after pc.
  bool Interpret(const uint8_t* begin, const uint8_t* end) {
    TableCursor cursor = {begin, end};
    while (!cursor.done() && location_ <= pc_) {
      if (!Step(cursor.U8(), &cursor)) return false;
    }
    return cursor.ok;
  }

  bool Step(uint8_t instruction, TableCursor* cursor) {
    const uint8_t low = instruction & 0x3f;
    switch (instruction & 0xc0) {
      case kAdvanceLoc:
        location_ += low * table_.code_alignment;
        return true;
      case kOffset:
        Set(low, kAtOffset, Factored(cursor->Uleb()));
        return true;
      case kRestore:
        Restore(low);
        return true;
      default:
        break;
    }
    uint64_t number;
    switch (instruction) {
      case kNop:
        return true;
      case kSetLoc:
        location_ = cursor->Pointer(table_.pointer_encoding, 0);
        return true;
      case kAdvanceLoc1:
        location_ += cursor->U8() * table_.code_alignment;
        return true;
      case kAdvanceLoc2:
        location_ += cursor->U16() * table_.code_alignment;
        return true;
      case kAdvanceLoc4:
        location_ += cursor->U32() * table_.code_alignment;
        return true;
      case kOffsetExtended:
        number = cursor->Uleb();
        Set(number, kAtOffset, Factored(cursor->Uleb()));
        return true;
      case kOffsetExtendedSf:
        number = cursor->Uleb();
        Set(number, kAtOffset, Factored(cursor->Sleb()));
        return true;
      case kGnuNegativeOffsetExtended:
        number = cursor->Uleb();
        Set(number, kAtOffset, NegatedFactored(cursor->Uleb()));
        return true;
      case kRestoreExtended:
        Restore(cursor->Uleb());
        return true;
      case kUndefined:
        Set(cursor->Uleb(), kUndefinedValue);
        return true;
      case kSameValue:
        Set(cursor->Uleb(), kSame);
        return true;
      case kRegister:
      case kValOffset:
        number = cursor->Uleb();
        cursor->Uleb();
        Set(number, kOther);
        return true;
      case kValOffsetSf:
        number = cursor->Uleb();
        cursor->Sleb();
        Set(number, kOther);
        return true;
      case kExpression:
        number = cursor->Uleb();
        Set(number, kAtExpression, 0, ReadBlock(cursor));
        return true;
      case kValExpression:
        number = cursor->Uleb();
        ReadBlock(cursor);
        Set(number, kOther);
        return true;
      case kRememberState:
        if (remembered_ == kRememberedRows) return false;
        rows_[remembered_++] = row_;
        return true;
      case kRestoreState:
        if (remembered_ == 0) return false;
        row_ = rows_[--remembered_];
        return true;
      case kDefCfa:
        number = cursor->Uleb();
        DefineCfa(number, static_cast<int64_t>(cursor->Uleb()));
        return true;
      case kDefCfaSf:
        number = cursor->Uleb();
        DefineCfa(number, Factored(cursor->Sleb()));
        return true;
      case kDefCfaRegister:
        DefineCfa(cursor->Uleb(), row_.cfa_offset);
        return true;
      case kDefCfaOffset:
        DefineCfa(row_.cfa_register, static_cast<int64_t>(cursor->Uleb()));
        return true;
      case kDefCfaOffsetSf:
        DefineCfa(row_.cfa_register, Factored(cursor->Sleb()));
        return true;
      case kDefCfaExpression:
        row_.cfa_is_expression = true;
        row_.cfa_expression = ReadBlock(cursor);
        return true;
      case kGnuArgsSize:
        cursor->Uleb();
        return true;
      default:
        return false;
    }
  }

  const FrameTable& table_;
  uint64_t pc_, location_;
  Row row_, initial_;
  Row rows_[kRememberedRows];
  int remembered_ = 0;
};

// rsp + 8, plus 8 more from the pushed index on: "breg7 8; breg16 0; lit15; and; litN; ge; lit3; shl; plus" (binutils,
// gold, lld). N depends on the PLT's shape (11, or 9 or 10 with endbr64). With the pc known it is a constant.
bool IsPltExpression(const Block& block, uint64_t pc, int32_t* offset) {
  if (block.end - block.begin != 11) return false;
  const uint8_t* code = block.begin;
  const uint8_t before[] = {kOpBreg7, 8, kOpBreg16, 0, kOpLit0 + 15, kOpAnd};
  const uint8_t after[] = {kOpGe, kOpLit0 + 3, kOpShl, kOpPlus};
  if (memcmp(code, before, sizeof(before)) != 0 || memcmp(code + 7, after, sizeof(after)) != 0) return false;
  if (code[6] < kOpLit0 || code[6] > kOpLit0 + 15) return false;
  *offset = (pc & 15) >= static_cast<uint64_t>(code[6] - kOpLit0) ? 16 : 8;
  return true;
}

// "bregN offset; deref", and with "; plus_uconst addend" after it.
bool IsDerefExpression(const Block& block, UnwindRule* rule) {
  TableCursor cursor = {block.begin, block.end};
  uint8_t base = cursor.U8();
  int64_t offset = cursor.Sleb();
  if ((base != kOpBreg6 && base != kOpBreg7) || cursor.U8() != kOpDeref || !cursor.ok) return false;
  uint64_t addend = 0;
  if (!cursor.done()) {
    if (cursor.U8() != kOpPlusUconst) return false;
    addend = cursor.Uleb();
    if (!cursor.ok || !cursor.done() || addend > 255) return false;
  }
  if (offset != static_cast<int32_t>(offset)) return false;
  rule->kind = base == kOpBreg6 ? kUnwindRbpDeref : kUnwindRspDeref;
  rule->cfa_offset = static_cast<int32_t>(offset);
  rule->cfa_addend = static_cast<uint8_t>(addend);
  return true;
}

// "bregN offset" alone: an address.
bool IsAddressExpression(const Block& block, uint8_t base, int64_t* offset) {
  TableCursor cursor = {block.begin, block.end};
  if (cursor.U8() != base) return false;
  *offset = cursor.Sleb();
  return cursor.ok && cursor.done();
}

bool SetCfa(const Row& row, uint64_t pc, UnwindRule* rule) {
  if (row.cfa_is_expression) {
    if (IsPltExpression(row.cfa_expression, pc, &rule->cfa_offset)) {
      rule->kind = kUnwindFromRsp;
      return true;
    }
    return IsDerefExpression(row.cfa_expression, rule);
  }
  if (row.cfa_register != kRsp && row.cfa_register != kRbp) return false;
  if (row.cfa_offset != static_cast<int32_t>(row.cfa_offset)) return false;
  rule->kind = row.cfa_register == kRsp ? kUnwindFromRsp : kUnwindFromRbp;
  rule->cfa_offset = static_cast<int32_t>(row.cfa_offset);
  return true;
}

bool SetSavedRbp(const Column& rbp, UnwindRule* rule) {
  int64_t offset = rbp.offset;
  switch (rbp.how) {
    case kSame:
      rule->saved_rbp = kRbpUnchanged;
      return true;
    // Nobody may rely on the value any more; keeping it does no harm, for all reads are checked.
    case kUndefinedValue:
      rule->saved_rbp = kRbpUnchanged;
      return true;
    case kAtOffset:
      rule->saved_rbp = kRbpAtCfa;
      break;
    case kAtExpression:
      if (!IsAddressExpression(rbp.expression, kOpBreg6, &offset)) return false;
      rule->saved_rbp = kRbpAtRbp;
      break;
    default:
      return false;
  }
  if (offset != static_cast<int16_t>(offset)) return false;
  rule->rbp_offset = static_cast<int16_t>(offset);
  return true;
}

bool IsKernelSignalFrame(const Row& row) {
  int64_t rip = 0, rbp = 0;
  return row.return_address.how == kAtExpression && row.rbp.how == kAtExpression &&
         IsAddressExpression(row.return_address.expression, kOpBreg7, &rip) && rip == kUcontextRip &&
         IsAddressExpression(row.rbp.expression, kOpBreg7, &rbp) && rbp == kUcontextRbp;
}

}  // namespace

UnwindRule BuildUnwindRule(const FrameTable& table, uint64_t pc) {
  UnwindRule rule;
  CfaProgram program(table, pc);
  if (table.return_register != kReturnAddress) return rule;
  if (!program.Run()) {  // damaged, or deeper than we remember: let the library judge
    rule.kind = kUnwindByLibrary;
    return rule;
  }
  const Row& row = program.row();
  if (table.signal_frame) {
    rule.kind = IsKernelSignalFrame(row) ? kUnwindSignal : kUnwindByLibrary;
    return rule;
  }
  if (row.return_address.how == kUndefinedValue) {
    rule.kind = kUnwindEnd;
    return rule;
  }
  const bool usual = row.return_address.how == kAtOffset && row.return_address.offset == -8 && row.rsp.how == kSame;
  if (!usual || !SetCfa(row, pc, &rule) || !SetSavedRbp(row.rbp, &rule)) {
    rule = UnwindRule{};
    rule.kind = kUnwindByLibrary;
  }
  return rule;
}

}  // namespace cadastre
