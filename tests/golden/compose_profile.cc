// Makes a profile from a description that people can read: compose_profile DESCRIPTION.txt OUT.cad
//
// One record a line; names are used by later lines; "#" begins a comment.
//   pid N | started SECONDS | interval BYTES | host TEXT | exe PATH | label K:V | uptime SECONDS | end
//   running|exit:N|signal:N|lost | counter NAME N | rss BYTES | snapshot LABEL | library NAME PATH [BUILD-ID] | thread
//   NAME TEXT area START END NAME RSS     of a snapshot's smaps, in order: hexadecimal addresses; NAME "-": anonymous
//   site NAME [cut] FRAME...     leaf first: LIBRARY+HEX, java:METHOD[:LINE] or HEX (no library) live SITE SIZE WEIGHT
//   COUNT [THREAD [SECONDS]]     COUNT sampled blocks that still live freed SITE SIZE WEIGHT COUNT
#include <stdlib.h>
#include <string.h>

#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "symbolizer/process_block.h"
#include "tests/support/profile_builder.h"

namespace cadastre::testing {
namespace {

class Composer {
 public:
  bool Line(const std::string& text) {
    std::istringstream line(text.substr(0, text.find('#')));
    std::string what;
    if (!(line >> what)) return true;
    format::Header& header = builder_.header();
    std::string name, value;
    uint64_t number = 0;
    if (what == "interval" && line >> number) {
      header.interval_bytes = number;
    } else if (what == "uptime" && line >> number) {
      header.last_sample_ns = number * 1'000'000'000;
      header.outcome.end_realtime_ns = header.start_realtime_ns + number * 1'000'000'000;
      uptime_s_ = number;
    } else if (what == "pid" && line >> number) {
      header.pid = static_cast<uint32_t>(number);
    } else if (what == "started" && line >> number) {  // after 2026-01-01; before `uptime` and `snapshot`
      header.start_realtime_ns += number * 1'000'000'000;
    } else if (what == "rss" && line >> number) {
      header.snapshot_rss_bytes = number;
    } else if (what == "host" && line >> value) {
      header.host = builder_.AddString(value);
    } else if (what == "exe" && line >> value) {
      header.exe = builder_.AddString(value);
      header.command = builder_.AddString(value);
    } else if (what == "allocator" && line >> value) {
      header.allocator = builder_.AddString(value);
    } else if (what == "label" && line >> value) {
      labels_ += (labels_.empty() ? "" : "\n") + value;
      header.labels = builder_.AddString(labels_);
    } else if (what == "snapshot" && line >> value) {
      header.is_snapshot = 1;
      header.snapshot_begin_realtime_ns = header.start_realtime_ns + uptime_s_ * 1'000'000'000;
      header.snapshot_end_realtime_ns = header.snapshot_begin_realtime_ns + 12'000'000;
      strncpy(header.label, value.c_str(), sizeof(header.label) - 1);
    } else if (what == "end" && line >> value) {
      End(value);
    } else if (what == "counter" && line >> name >> number) {
      if (name == "dropped") header.counters.dropped_live_full = number;
      if (name == "cut") header.counters.stacks_truncated = number;
      if (name == "missed_frees") header.counters.missed_frees = number;
    } else if (what == "library" && line >> name >> value) {
      std::string build_id;
      line >> build_id;
      libraries_[name] = builder_.AddLibrary(value, build_id);
      if (value.find("libcadastre.so") != std::string::npos)
        builder_.library(libraries_[name]).flags = format::kLibraryIsCadastre;
    } else if (what == "thread" && line >> name >> value) {
      threads_[name] = builder_.AddThread(value);
    } else if (what == "area") {
      return Area(line);
    } else if (what == "site" && line >> name) {
      Site(name, line);
    } else if (what == "live" || what == "freed") {
      return Samples(what == "live", line);
    } else {
      return false;
    }
    return true;
  }

  bool WriteTo(const std::string& path) {
    if (!memory_.areas.empty()) builder_.set_process_block(WriteProcessBlock(memory_));
    return builder_.WriteTo(path);
  }

 private:
  void End(const std::string& value) {
    format::Outcome& outcome = builder_.header().outcome;
    outcome.end = value.rfind("exit:", 0) == 0     ? format::kEndStatus
                  : value.rfind("signal:", 0) == 0 ? format::kEndSignal
                                                   : format::kEndUnknown;
    size_t colon = value.find(':');
    outcome.end_value = colon == std::string::npos ? 0 : atoi(value.c_str() + colon + 1);
  }

  void Site(const std::string& name, std::istringstream& line) {
    std::vector<uint64_t> frames;
    std::string frame;
    uint32_t flags = 0;
    while (line >> frame) {
      size_t plus = frame.rfind('+');
      if (frame == "cut") {
        flags = format::kSiteTruncatedUnknownPc;
      } else if (frame.rfind("java:", 0) == 0) {
        uint64_t& raw = java_frames_[frame];  // the target stores each name once, too
        if (raw == 0) {
          size_t colon = frame.find(':', 5);
          raw = builder_.JavaFrame(frame.substr(5, colon == std::string::npos ? colon : colon - 5),
                                   colon == std::string::npos ? 0 : atoi(frame.c_str() + colon + 1));
        }
        frames.push_back(raw);
      } else if (plus != std::string::npos) {
        frames.push_back(format::MakeLibraryFrame(format::kFrameReturn, libraries_.at(frame.substr(0, plus)),
                                                  strtoull(frame.c_str() + plus + 1, nullptr, 16)));
      } else {
        frames.push_back(format::MakeUnknownFrame(format::kFrameUnknown, strtoull(frame.c_str(), nullptr, 16)));
      }
    }
    sites_[name] = builder_.AddSite(frames, format::kSiteMalloc, flags);
  }

  bool Area(std::istringstream& line) {
    MemoryArea area;
    if (!(line >> std::hex >> area.start >> area.end >> area.name >> std::dec >> area.rss_bytes)) return false;
    if (area.name == "-") area.name.clear();
    area.readable = area.writable = true;
    area.private_bytes = area.anonymous_bytes = area.rss_bytes;
    memory_.areas.push_back(area);
    return true;
  }

  bool Samples(bool live, std::istringstream& line) {
    std::string site, thread;
    uint64_t size = 0, weight = 0, count = 0, seconds = 1;
    if (!(line >> site >> size >> weight >> count)) return false;
    if (line >> thread) line >> seconds;
    uint32_t owner = threads_.count(thread) > 0 ? threads_[thread] : 0;
    for (uint64_t i = 0; i < count; i++, next_address_ += 1 << 20) {
      if (live) {
        builder_.AddSample(sites_.at(site), next_address_, size, weight, seconds * 1'000'000'000, owner);
      } else {
        double w = static_cast<double>(weight), s = static_cast<double>(size);
        builder_.AddAllocated(sites_.at(site), 1, s > 0 ? w / s : 1, weight, w * (w - s));
      }
    }
    return true;
  }

  ProfileBuilder builder_;
  ProcessMemory memory_;
  std::map<std::string, uint32_t> libraries_, threads_, sites_;
  std::map<std::string, uint64_t> java_frames_;
  std::string labels_;
  uint64_t next_address_ = 0x7f0000000000, uptime_s_ = 100;
};

int Main(int argc, char** argv) {
  if (argc != 3) return 2;
  std::ifstream description(argv[1]);
  Composer composer;
  std::string line;
  for (int number = 1; std::getline(description, line); number++) {
    if (composer.Line(line)) continue;
    std::cerr << argv[1] << ":" << number << ": not understood: " << line << "\n";
    return 1;
  }
  return composer.WriteTo(argv[2]) ? 0 : 1;
}

}  // namespace
}  // namespace cadastre::testing

int main(int argc, char** argv) { return cadastre::testing::Main(argc, argv); }
