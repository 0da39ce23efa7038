// `cadastre list`: profiles and their snapshots.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "report/cli/choices.h"
#include "report/cli/command.h"
#include "report/format.h"
#include "report/json_writer.h"
#include "report/live_place.h"
#include "report/process_info.h"
#include "report/runtime_facts.h"
#include "report/saved_profiles.h"

namespace cadastre {
namespace {

struct ListCommand {
  std::string where, format = "text";
};

// Bytes on disk: a live profile is mostly holes.
uint64_t UsedBytes(const std::string& path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0 ? static_cast<uint64_t>(status.st_blocks) * 512 : 0;
}

int List(const ListCommand& command) {
  std::vector<std::string> paths;
  std::string where = command.where.empty() ? DefaultLiveDirectory() : command.where;
  if (IsDirectory(where)) {
    absl::StatusOr<std::vector<std::string>> found = ProfilesIn(where, true);
    if (!found.ok()) return Fail(found.status());
    paths = *found;
  } else {
    absl::StatusOr<ProfilePath> found = FindProfile(where);
    if (!found.ok()) return Fail(found.status());
    paths = SnapshotsOf(found->base);
    paths.insert(paths.begin(), found->base);
  }
  TextTable table({{"PROGRAM", Align::kLeft, true},
                   {"PID", Align::kRight},
                   {"HOST", Align::kLeft, true},
                   {"STARTED"},
                   {"UP"},
                   {"END"},
                   {"SIZE", Align::kRight},
                   {"FILE", Align::kLeft, true}});
  std::vector<std::string> rows;
  int status = kExitDone;
  for (const std::string& path : paths) {
    absl::StatusOr<Profile> read = ReadProfile(path);
    if (!read.ok()) {
      // One file that is no profile does not hide the others.
      if (paths.size() == 1) return Fail(read.status());
      Fail(read.status());
      continue;
    }
    const Profile& profile = *read;
    std::string end = profile.is_snapshot ? absl::StrCat("snapshot ", profile.label) : EndWord(profile);
    if (profile.end == EndState::kExit && profile.end_status_known && !profile.is_snapshot)
      absl::StrAppend(&end, " ", profile.end_value);
    // A directory's own name would push what differs out of the line.
    std::string shown = IsDirectory(where) ? path.substr(path.rfind('/') + 1) : path;
    table.AddRow({ProgramName(profile), absl::StrCat(profile.pid), profile.host, TimeText(profile.start_realtime_ns),
                  FormatDuration(static_cast<double>(profile.duration_ns) / 1e9), end,
                  FormatBytes(static_cast<double>(UsedBytes(path))), shown});
    JsonObject row;
    row.Text("path", path)
        .Text("program", ProgramName(profile))
        .Integer("pid", profile.pid)
        .TextOrNull("host", profile.host);
    row.Text("started", TimeText(profile.start_realtime_ns))
        .Number("duration_s", static_cast<double>(profile.duration_ns) / 1e9);
    row.Text("end", EndWord(profile))
        .Integer("file_bytes", UsedBytes(path))
        .TextOrNull("snapshot", profile.is_snapshot ? profile.label : "");
    rows.push_back(row.Done());
  }
  if (command.format == "json")
    return Print(absl::StrCat("{\"schema\": \"cadastre.list/1\", \"profiles\": ", JsonArray(rows, ""), "}\n"));
  if (rows.empty()) return Print(absl::StrCat("no profiles in ", where, "\n"));
  // A terminal has an edge; what reads a pipe wants the names whole.
  size_t width = isatty(STDOUT_FILENO) ? kTextWidth : SIZE_MAX / 2;
  int printed = Print(table.Print(width, StyleForDescriptor(STDOUT_FILENO)));
  return printed != kExitDone ? printed : status;
}

}  // namespace

void AddListCommand(CLI::App& app, Invocation* invocation) {
  auto options = std::make_shared<ListCommand>();
  CLI::App* command = app.add_subcommand("list", "profiles and their snapshots");
  command->add_option("DIR|P", options->where, "a directory, a profile or a PID (default: where profiles go)");
  command->add_option("--format", options->format, "text (default) or json")->check(OneOf({"text", "json"}));
  command->footer("Example: cadastre list /dev/shm");
  command->callback([=] { invocation->status = List(*options); });
}

}  // namespace cadastre
