// `cadastre snapshot`: a labelled copy of a running process's profile, or of a dead one's.
#include <iostream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "report/cli/choices.h"
#include "report/cli/command.h"
#include "report/process_info.h"
#include "report/profile_copy.h"
#include "report/snapshot_label.h"
#include "report/text_table.h"

namespace cadastre {
namespace {

struct SnapshotCommand {
  std::string profile, label, output, nmt;
  bool force = false;
};

int Snapshot(const SnapshotCommand& command) {
  if (absl::Status status = CheckLabel(command.label); !status.ok()) return Fail(status);
  absl::StatusOr<ProfilePath> where = FindProfile(command.profile);
  if (!where.ok()) return Fail(where.status());
  absl::StatusOr<Profile> profile = ReadProfile(where->path);
  if (!profile.ok()) return Fail(profile.status());
  CopyOptions options;
  options.label = command.label;
  options.overwrite = command.force;
  options.pid = where->pid != 0 ? where->pid
                                : RunningProcessOf(profile->pid, profile->pid_namespace, profile->process_start_ticks);
  std::string nmt_problem;
  if (!command.nmt.empty()) {
    if (options.pid == 0)
      return Fail(absl::StrCat("--nmt ", command.nmt, ": the process of ", command.profile, " has ended"));
    options.nmt = command.nmt == "detail" ? NmtWanted::kDetail : NmtWanted::kSummary;
    options.nmt_problem = &nmt_problem;
  }
  // Beside a deleted file (/proc/PID/map_files/...) nothing can be put.
  if (command.output.empty() && absl::StartsWith(where->base, "/proc/"))
    return Fail(absl::StrCat("the profile of ", command.profile, " was deleted: -o FILE says where its snapshot goes"));
  std::string output = command.output.empty() ? absl::StrCat(where->base, "@", command.label) : command.output;
  if (absl::Status status = CopyProfile(where->path, output, options); !status.ok()) {
    return Fail(absl::StrCat(status.message(),
                             status.code() == absl::StatusCode::kAlreadyExists ? "; --force replaces it" : ""));
  }
  if (!nmt_problem.empty())
    std::cerr << "cadastre: no report of native memory tracking in it: " << SafeText(nmt_problem) << "\n";
  return Print(output + "\n");
}

}  // namespace

void AddSnapshotCommand(CLI::App& app, Invocation* invocation) {
  auto options = std::make_shared<SnapshotCommand>();
  CLI::App* command = app.add_subcommand("snapshot", "a labelled snapshot; prints its path");
  command->add_option("P", options->profile, "PID or profile")->required();
  command->add_option("--label", options->label, "name of the snapshot: P@LABEL")->required();
  command->add_option("-o,--output", options->output, "write it there (default: beside the profile)");
  command
      ->add_option("--nmt", options->nmt,
                   "ask the JVM for its native memory tracking, summary or detail (default: what its command line or "
                   "environment says that it was started with)")
      ->check(OneOf({"summary", "detail"}));
  command->add_flag("--force", options->force, "replace a snapshot of the same label");
  command->footer("Example: cadastre snapshot 4242 --label before && cadastre report 4242@before");
  command->callback([=] { invocation->status = Snapshot(*options); });
}

}  // namespace cadastre
