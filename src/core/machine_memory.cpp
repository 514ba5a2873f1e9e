// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/core/machine_memory.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <string_view>

#include "earmark/core/file_system.hpp"
#include "small_file.hpp"

namespace earmark {
namespace {

using detail::next_line;
using detail::next_word;
using detail::read_small_file;

std::optional<std::int64_t> number_in(std::string_view text) {
  std::string_view const word = next_word(text);
  std::int64_t number = 0;
  auto const [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc{} || end != word.data() + word.size() || number < 0) { return std::nullopt; }
  return number;
}

// Returns: the number that follows `key` at the beginning of a line.
std::optional<std::int64_t> number_after(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    std::string_view line = next_line(text);
    if (next_word(line) == key) { return number_in(line); }
  }
  return std::nullopt;
}

std::optional<std::int64_t> number_in_file(std::string const& path) {
  auto const text = read_small_file(path);
  return text ? number_in(*text) : std::nullopt;  // "max" is no number
}

void read_machine(std::string const& root, MachineMemory& memory) {
  constexpr std::int64_t KiB = 1024;
  std::string const path = root + "/proc/meminfo";
  auto const text = read_small_file(path);
  if (!text) { throw FileSystemError("read", path, errno); }
  auto const total = number_after(*text, "MemTotal:");
  if (!total) { throw FileSystemError("make sense of", path, EPROTO); }
  auto const available = number_after(*text, "MemAvailable:");
  memory.machine_bytes = *total * KiB;
  memory.machine_available_bytes = available.value_or(number_after(*text, "MemFree:").value_or(*total)) * KiB;
}

// A mounted hierarchy of cgroups that can limit memory.
struct Hierarchy {
  int version{0};
  std::string root;   // the cgroup that is mounted, as the hierarchy names it: not "/" inside many containers
  std::string mount;  // where
};

// Returns: the words of a comma-separated list.
bool has_item(std::string_view list, std::string_view item) {
  while (!list.empty()) {
    auto const comma = std::min(list.find(','), list.size());
    if (list.substr(0, comma) == item) { return true; }
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return false;
}

// Spaces, tabs, line ends and backslashes are written as \ooo.
std::string unescaped(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned code = 0;
    auto const digits = text.substr(i + 1, 3);
    bool const is_escape = text[i] == '\\' && digits.size() == 3 &&
                           std::from_chars(digits.data(), digits.data() + 3, code, 8).ptr == digits.data() + 3;
    result.push_back(is_escape ? static_cast<char>(code) : text[i]);
    i += is_escape ? 3 : 0;
  }
  return result;
}

std::vector<Hierarchy> mounted_hierarchies(std::string const& root) {
  std::vector<Hierarchy> found;
  std::string const content = read_small_file(root + "/proc/self/mountinfo").value_or("");
  std::string_view text = content;
  while (!text.empty()) {
    // "31 23 0:28 ROOT MOUNT options optional-fields - TYPE source super-options"
    std::string_view line = next_line(text);
    auto const separator = line.find(" - ");
    if (separator == std::string_view::npos) { continue; }
    std::string_view tail = line.substr(separator + 3);
    for (int skipped = 0; skipped < 3; ++skipped) { next_word(line); }
    Hierarchy hierarchy{0, unescaped(next_word(line)), unescaped(next_word(line))};
    std::string_view const type = next_word(tail);
    next_word(tail);
    if (type == "cgroup2") { hierarchy.version = 2; }
    if (type == "cgroup" && has_item(next_word(tail), "memory")) { hierarchy.version = 1; }
    if (hierarchy.version != 0) { found.push_back(std::move(hierarchy)); }
  }
  return found;
}

// Returns: the process's cgroup in the hierarchy of that version, e.g. "/user.slice"; nothing where it has none.
std::optional<std::string> own_cgroup(std::string const& root, int version) {
  std::string const content = read_small_file(root + "/proc/self/cgroup").value_or("");
  std::string_view text = content;
  while (!text.empty()) {
    // "4:memory,other:/path", and "0::/path" for version 2
    std::string_view const line = next_line(text);
    auto const first = line.find(':');
    auto const second = line.find(':', first + 1);
    if (first == std::string_view::npos || second == std::string_view::npos) { continue; }
    std::string_view const controllers = line.substr(first + 1, second - first - 1);
    if (version == 2 ? line.starts_with("0::") : has_item(controllers, "memory")) {
      return std::string(line.substr(second + 1));
    }
  }
  return std::nullopt;
}

bool is_within(std::string_view path, std::string_view folder) {
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

// Returns: the cgroup's path below the mount point: "" or "/a/b". A cgroup outside of what is mounted is not visible;
// then the mounted one is the nearest that is.
std::string path_below_mount(std::string_view cgroup, Hierarchy const& hierarchy) {
  std::string_view const mounted = hierarchy.root == "/" ? std::string_view{} : std::string_view(hierarchy.root);
  if (!is_within(cgroup, mounted) || cgroup.find("/..") != std::string_view::npos) { return ""; }
  cgroup.remove_prefix(mounted.size());
  return cgroup == "/" ? "" : std::string(cgroup);
}

std::int64_t reclaimable(std::string_view statistics, std::string_view prefix) {
  auto const of = [&](std::string_view key) {
    return number_after(statistics, std::string(prefix) + std::string(key)).value_or(0);
  };
  return of("inactive_file") + of("active_file");
}

void add_limit(MachineMemory& memory, std::string path, std::optional<std::int64_t> limit,
               std::optional<std::int64_t> usage, std::int64_t cache) {
  // Version 1 writes "no limit" as the largest number of whole pages.
  constexpr std::int64_t no_limit = std::int64_t{1} << 62;
  if (!limit || *limit >= no_limit) { return; }
  memory.cgroups.push_back({std::move(path), *limit, std::max<std::int64_t>(usage.value_or(0) - cache, 0)});
}

void read_version_2(MachineMemory& memory, std::string const& root, std::string const& folder) {
  std::string const statistics = read_small_file(root + folder + "/memory.stat").value_or("");
  auto const usage = number_in_file(root + folder + "/memory.current");
  for (char const* const name : {"/memory.max", "/memory.high"}) {
    add_limit(memory, folder + name, number_in_file(root + folder + name), usage, reclaimable(statistics, ""));
  }
}

void read_version_1(MachineMemory& memory, std::string const& root, std::string const& folder) {
  std::string const statistics = read_small_file(root + folder + "/memory.stat").value_or("");
  auto const usage = number_in_file(root + folder + "/memory.usage_in_bytes");
  auto const cache = reclaimable(statistics, "total_");
  auto limit = number_in_file(root + folder + "/memory.limit_in_bytes");
  add_limit(memory, folder + "/memory.limit_in_bytes", limit, usage, cache);
  // Of the group and all its ancestors, be they visible or not.
  auto const lowest = number_after(statistics, "hierarchical_memory_limit");
  if (lowest && (!limit || *lowest < *limit)) { add_limit(memory, folder + "/memory.stat", lowest, usage, cache); }
}

void read_hierarchy(MachineMemory& memory, std::string const& root, Hierarchy const& hierarchy) {
  auto const cgroup = own_cgroup(root, hierarchy.version);
  if (!cgroup) { return; }
  std::string below = path_below_mount(*cgroup, hierarchy);
  bool const has_memory = hierarchy.version == 1 || read_small_file(root + hierarchy.mount + below + "/memory.stat");
  if (has_memory) { memory.cgroup_folder = hierarchy.mount + below; }
  for (;;) {
    std::string const folder = hierarchy.mount + below;
    hierarchy.version == 2 ? read_version_2(memory, root, folder) : read_version_1(memory, root, folder);
    if (below.empty()) { return; }
    below.resize(below.rfind('/'));
  }
}

}  // namespace

std::int64_t MachineMemory::limit_bytes() const noexcept {
  std::int64_t least = machine_bytes;
  for (CgroupMemory const& cgroup : cgroups) { least = std::min(least, cgroup.limit_bytes); }
  return least;
}

std::int64_t MachineMemory::available_bytes() const noexcept {
  std::int64_t least = machine_available_bytes;
  for (CgroupMemory const& cgroup : cgroups) { least = std::min(least, cgroup.available_bytes()); }
  return least;
}

CgroupMemory const* MachineMemory::tightest_cgroup() const noexcept {
  CgroupMemory const* tightest = nullptr;
  std::int64_t least = machine_bytes;
  for (CgroupMemory const& cgroup : cgroups) {
    if (cgroup.limit_bytes >= least) { continue; }
    least = cgroup.limit_bytes;
    tightest = &cgroup;
  }
  return tightest;
}

MachineMemory read_machine_memory(std::string const& root) {
  MachineMemory memory;
  read_machine(root, memory);
  for (Hierarchy const& hierarchy : mounted_hierarchies(root)) { read_hierarchy(memory, root, hierarchy); }
  return memory;
}

}  // namespace earmark
