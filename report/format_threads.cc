// The threads' stacks of the RSS ledger as text, CSV and the part of its JSON.
#include "absl/strings/str_cat.h"
#include "report/csv_cell.h"
#include "report/estimate.h"
#include "report/frame_json.h"
#include "report/json_writer.h"
#include "report/ledger.h"
#include "report/stack_line.h"

namespace cadastre {
namespace {

// The frame that a stack of it would end at: its owner's, else the one that says most.
std::string Creator(const ThreadStack& stack) {
  const size_t shown = ShownFrames(stack.created_by.size(), stack.owner_frame, stack.telling_frame);
  return shown == 0 ? "" : StackLine({stack.created_by[shown - 1]}, -1, -1, kTextWidth);
}

std::string CreatorStack(const ThreadStack& stack) {
  return stack.created_by.empty() ? "" : StackLine(stack.created_by, stack.owner_frame, stack.telling_frame, SIZE_MAX);
}

}  // namespace

std::string FormatThreadStacksText(const Ledger& ledger, const TextStyle& style) {
  std::string out = style.Bold(SafeText(absl::StrCat("pid ", ledger.pid, " · ", ledger.program))) + "\n";
  TextTable table({{"TID", Align::kRight},
                   {"THREAD", Align::kLeft, true},
                   {"STACK", Align::kRight},
                   {"RESIDENT", Align::kRight},
                   {"OWNER", Align::kLeft, true},
                   {"CREATED BY", Align::kLeft, true}});
  uint64_t size = 0, resident = 0;
  for (const ThreadStack& stack : ledger.threads) {
    const bool known = stack.end != 0;
    table.AddRow({absl::StrCat(stack.tid), SafeText(stack.name),
                  known ? FormatBytes(static_cast<double>(stack.end - stack.start)) : "not known",
                  known ? FormatBytes(static_cast<double>(stack.resident_bytes)) : "",
                  SafeText(stack.guessed ? stack.owner + " ?" : stack.owner), SafeText(Creator(stack))});
    size += stack.end - stack.start;
    resident += stack.resident_bytes;
  }
  table.AddRow({"sum", absl::StrCat(ledger.threads.size(), ledger.threads.size() == 1 ? " thread" : " threads"),
                FormatBytes(static_cast<double>(size)), FormatBytes(static_cast<double>(resident)), "", ""});
  out += table.Print(kTextWidth, style);
  if (!ledger.recorded) out += "not recorded: who created the threads is not known; start it with `cadastre run`\n";
  return out;
}

std::string FormatThreadStacksCsv(const Ledger& ledger) {
  std::string out = "tid,name,virtual_bytes,resident_bytes,owner,team,created_by\n";
  for (const ThreadStack& stack : ledger.threads) {
    absl::StrAppend(&out, stack.tid, ",", CsvCell(stack.name), ",");
    if (stack.end != 0) absl::StrAppend(&out, stack.end - stack.start, ",", stack.resident_bytes, ",");
    if (stack.end == 0) out += ",,";
    absl::StrAppend(&out, CsvCell(stack.owner), ",", CsvCell(stack.team), ",", CsvCell(CreatorStack(stack)), "\n");
  }
  return out;
}

std::string ThreadStacksJson(const Ledger& ledger, absl::string_view indent) {
  std::vector<std::string> threads;
  for (const ThreadStack& stack : ledger.threads) {
    JsonObject object;
    object.Integer("tid", stack.tid).Text("name", stack.name);
    if (stack.end != 0) {
      object.Integer("virtual_bytes", stack.end - stack.start).Integer("resident_bytes", stack.resident_bytes);
    } else {
      object.Null("virtual_bytes").Null("resident_bytes");
    }
    object.TextOrNull("owner", stack.owner).TextOrNull("team", stack.team).Bool("guessed", stack.guessed);
    object.Raw("created_by", stack.created_by.empty() ? "null" : StackJson(stack.created_by));
    threads.push_back(object.Done());
  }
  return JsonArray(threads, indent);
}

}  // namespace cadastre
