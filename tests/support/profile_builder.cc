#include "tests/support/profile_builder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace cadastre::testing {
namespace {

int HexDigit(char c) { return c <= '9' ? c - '0' : c - 'a' + 10; }

template <typename Records>
std::string BytesOf(const Records& records) {
  std::string bytes;
  for (const auto& record : records) bytes.append(reinterpret_cast<const char*>(&record), sizeof(record));
  return bytes;
}

}  // namespace

ProfileBuilder::ProfileBuilder() : strings_(8, '\0') {
  memcpy(header_.magic, format::kMagic, sizeof(format::kMagic));
  header_.version = format::kVersion;
  header_.header_bytes = sizeof(format::Header);
  header_.region_count = format::kRegionCount;
  header_.run_state = format::kRunRecording;
  header_.pid = 4242;
  header_.pid_namespace = 1;  // no real namespace has this inode: the process is never looked for
  header_.process_start_ticks = 777;
  header_.start_realtime_ns = 1'767'225'600'000'000'000;  // 2026-01-01T00:00:00Z
  header_.start_monotonic_ns = 5'000'000'000;
  header_.interval_bytes = 512 * 1024;
  header_.memory_bytes = 64 << 20;
  header_.exe = AddString("/usr/bin/example");
  header_.command = AddString(std::string_view("example\0--fast", 14));
  header_.host = AddString("testhost");
  header_.allocator = AddString("libc.so.6");
  header_.allocator_path = AddString("/usr/lib/libc.so.6");
  header_.last_sample_ns = 99'000'000'000;
  header_.outcome.end = format::kEndStatus;
  header_.outcome.end_realtime_ns = header_.start_realtime_ns + 100'000'000'000;
  libraries_.emplace_back();
  threads_.emplace_back();
  live_.clear();
  sites_.emplace_back();
  sites_.push_back({.state = format::kReady});  // kSiteOverflow
}

uint32_t ProfileBuilder::AddString(std::string_view bytes) {
  if (bytes.empty()) return 0;
  const auto [known, is_new] = string_indices_.try_emplace(std::string(bytes), strings_.size() / 8);
  const uint32_t index = known->second;
  if (!is_new) return index;
  format::StringHeader header{static_cast<uint32_t>(bytes.size()), format::StringCheck(bytes.data(), bytes.size())};
  strings_.append(reinterpret_cast<const char*>(&header), sizeof(header));
  strings_.append(bytes);
  strings_.resize((strings_.size() + 7) / 8 * 8);
  return index;
}

uint32_t ProfileBuilder::AddLibrary(std::string_view path, std::string_view build_id_hex) {
  uint32_t index = libraries_.size();
  format::LibraryRecord record{};
  record.state = format::kReady;
  record.path = AddString(path);
  record.start = 0x7f0000000000 + (static_cast<uint64_t>(index) << 20);
  record.end = record.start + (1 << 20);
  record.build_id_length = build_id_hex.size() / 2;
  for (uint32_t i = 0; i < record.build_id_length; i++) {
    record.build_id[i] = HexDigit(build_id_hex[2 * i]) * 16 + HexDigit(build_id_hex[2 * i + 1]);
  }
  libraries_.push_back(record);
  return index;
}

uint32_t ProfileBuilder::AddThread(std::string_view name, uint32_t tid) {
  format::ThreadRecord record{};
  record.state = format::kReady;
  record.tid = tid;
  memcpy(record.name, name.data(), std::min(name.size(), sizeof(record.name)));
  threads_.push_back(record);
  return threads_.size() - 1;
}

uint32_t ProfileBuilder::AddSite(const std::vector<uint64_t>& frames, format::SiteKind kind, uint32_t flags) {
  format::SiteRecord record{};
  record.state = format::kReady;
  record.frame_start = frames_.size();
  record.frame_count = frames.size();
  record.kind = kind;
  record.flags = flags;
  record.hash = sites_.size() * 0x9e3779b97f4a7c15;
  frames_.insert(frames_.end(), frames.begin(), frames.end());
  sites_.push_back(record);
  return sites_.size() - 1;
}

uint64_t ProfileBuilder::JavaFrame(std::string_view method, uint32_t line) {
  return (static_cast<uint64_t>(format::kFrameJava) << format::kFrameTagShift) |
         (static_cast<uint64_t>(AddString(method)) << 28) | (line & 0xffffff);
}

uint32_t ProfileBuilder::AddLive(uint32_t site, uint64_t address, uint64_t size, uint64_t weight, uint64_t time_ns,
                                 uint32_t thread) {
  uint32_t generation = live_.size() + 1;
  live_.push_back({(generation << 2) | format::kReady, site, address, size, weight, time_ns, thread, 0});
  return live_.size() - 1;
}

uint32_t ProfileBuilder::AddMapping(uint32_t site, uint64_t start, uint64_t end, uint32_t flags, uint64_t time_ns,
                                    uint32_t thread) {
  mappings_.push_back({(1u << 2) | format::kReady, site, start, end, time_ns, thread, flags, 0});
  return mappings_.size() - 1;
}

void ProfileBuilder::AddAllocated(uint32_t site, uint64_t samples, double blocks, uint64_t bytes, double variance) {
  sites_[site].samples += samples;
  sites_[site].count_fixed += std::llround(blocks * 65536);
  sites_[site].allocated_bytes += bytes;
  sites_[site].allocated_variance += variance;
  header_.counters.samples += samples;
}

void ProfileBuilder::AddSample(uint32_t site, uint64_t address, uint64_t size, uint64_t weight, uint64_t time_ns,
                               uint32_t thread) {
  double blocks = size == 0 ? 1 : static_cast<double>(weight) / size;
  AddAllocated(site, 1, blocks, weight, static_cast<double>(weight) * (weight - size));
  AddLive(site, address, size, weight, time_ns, thread);
  sites_[site].live_bytes += weight;
  sites_[site].own_peak_bytes = std::max(sites_[site].own_peak_bytes, sites_[site].live_bytes);
  header_.live_total_bytes += weight;
  if (header_.live_total_bytes > header_.peak_total_bytes) {
    header_.peak_total_bytes = header_.live_total_bytes;
    header_.peak_ns = time_ns;
    header_.peak_epoch++;
  }
}

uint32_t ProfileBuilder::AddBuffer(const std::vector<format::Delta>& pending, uint32_t tail) {
  format::BufferRecord record{};
  record.state = format::kReady;
  record.owner_tid = 1000;
  record.tail = tail;
  record.head = tail + pending.size();
  for (uint32_t i = 0; i < pending.size(); i++) record.deltas[(tail + i) % format::kBufferDeltas] = pending[i];
  buffers_.push_back(record);
  return buffers_.size() - 1;
}

std::string ProfileBuilder::Build() const {
  format::Header header = header_;
  std::string frames(reinterpret_cast<const char*>(frames_.data()), frames_.size() * 8);
  const std::string bodies[format::kRegionCount] = {strings_,          BytesOf(libraries_), BytesOf(threads_),
                                                    BytesOf(buffers_), BytesOf(sites_),     frames,
                                                    BytesOf(live_),    BytesOf(mappings_)};
  const uint32_t record_bytes[format::kRegionCount] = {8,
                                                       sizeof(format::LibraryRecord),
                                                       sizeof(format::ThreadRecord),
                                                       sizeof(format::BufferRecord),
                                                       sizeof(format::SiteRecord),
                                                       8,
                                                       sizeof(format::LiveRecord),
                                                       sizeof(format::MappingRecord)};
  std::string file(format::kPageBytes, '\0');
  // As the target lays them out: live samples come last.
  std::vector<uint32_t> order;
  for (uint32_t kind = 0; kind < format::kRegionCount; kind++) {
    if (kind != format::kRegionLive) order.push_back(kind);
  }
  order.push_back(format::kRegionLive);
  for (uint32_t kind : order) {
    uint64_t pages = std::max<uint64_t>(1, (bodies[kind].size() + format::kPageBytes - 1) / format::kPageBytes);
    uint64_t bytes = (pages + spare_pages_) * format::kPageBytes;
    header.regions[kind] = {file.size(), bytes, record_bytes[kind], 0};
    file += bodies[kind];
    file.resize(header.regions[kind].offset + bytes);
  }
  if (!process_block_.empty()) {
    for (uint32_t kind = format::kRegionCount; kind < format::kRegionProcess; kind++)
      header.regions[kind] = {sizeof(header), 0, 0, 0};
    const uint64_t pages = (process_block_.size() + format::kPageBytes - 1) / format::kPageBytes;
    header.regions[format::kRegionProcess] = {file.size(), pages * format::kPageBytes, 1, 0};
    header.region_count = format::kRegionProcess + 1;
    file += process_block_;
    file.resize(header.regions[format::kRegionProcess].offset + pages * format::kPageBytes);
  }
  header.file_bytes = file.size();
  memcpy(file.data(), &header, sizeof(header));
  return file;
}

bool ProfileBuilder::WriteTo(const std::string& path) const {
  std::string file = Build();
  int descriptor = open(path.c_str(), O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
  if (descriptor < 0) return false;
  bool whole = write(descriptor, file.data(), file.size()) == static_cast<ssize_t>(file.size());
  return close(descriptor) == 0 && whole;
}

}  // namespace cadastre::testing
