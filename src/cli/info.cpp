// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "info.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "build_facts.hpp"
#include "earmark/core/bytes.hpp"
#include "earmark/core/file_system.hpp"
#include "kernel_features.hpp"

namespace earmark::cli {
namespace {

// Returns: the text after the colon of the first line that begins with `key`; empty when there is none.
[[nodiscard]] std::string value_in(char const* path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    auto const colon = line.find(':');
    if (!line.starts_with(key) || colon == std::string::npos) { continue; }
    auto const start = line.find_first_not_of(" \t", colon + 1);
    return start == std::string::npos ? "" : line.substr(start);
  }
  return {};
}

// Returns: folders `node0`, `node1`, ...; 1 on machines that have none.
[[nodiscard]] std::int64_t numa_nodes() {
  std::error_code ignored;
  std::int64_t nodes = 0;
  for (auto const& entry : std::filesystem::directory_iterator("/sys/devices/system/node", ignored)) {
    auto const name = entry.path().filename().string();
    bool const is_node =
        name.size() > 4 && name.starts_with("node") && std::isdigit(static_cast<unsigned char>(name[4])) != 0;
    nodes += is_node ? 1 : 0;
  }
  return std::max<std::int64_t>(nodes, 1);
}

[[nodiscard]] std::vector<Fact> machine_facts() {
  std::vector<Fact> facts;
  auto const cpu = value_in("/proc/cpuinfo", "model name");
  if (!cpu.empty()) { facts.push_back({"cpu", cpu}); }
  facts.push_back({"cores", std::int64_t{::sysconf(_SC_NPROCESSORS_ONLN)}});
  facts.push_back({"usable_cores", std::int64_t{std::thread::hardware_concurrency()}});
  facts.push_back({"numa_nodes", numa_nodes()});
  facts.push_back({"page", Bytes{::sysconf(_SC_PAGESIZE)}});
  return facts;
}

[[nodiscard]] std::optional<MachineMemory> machine_memory() {
  try {
    return read_machine_memory();
  }
  catch (FileSystemError const&) {
    return std::nullopt;
  }
}

// Returns: what the limit was derived from, or who named it.
[[nodiscard]] std::string limit_source(RunInfo const& wanted, MachineMemory const& memory) {
  if (wanted.memory.kind != MemorySetting::Kind::Size) { return memory_origin(wanted.memory, memory); }
  auto const named = std::find_if(wanted.settings.begin(), wanted.settings.end(),
                                  [](Setting const& setting) { return setting.name == "memory"; });
  return named == wanted.settings.end() ? "" : named->source;
}

[[nodiscard]] std::vector<Fact> memory_facts(std::optional<MachineMemory> const& memory, RunInfo const& wanted) {
  if (!memory) { return {{"machine", "unknown"}}; }
  std::vector<Fact> facts{{"machine", Bytes{memory->machine_bytes}, "/proc/meminfo"},
                          {"machine_available", Bytes{memory->machine_available_bytes}, "/proc/meminfo"},
                          {"cgroup", memory->cgroup_folder.empty() ? "none" : memory->cgroup_folder}};
  if (auto const* const cgroup = memory->tightest_cgroup()) {
    facts.push_back({"cgroup_limit", Bytes{cgroup->limit_bytes}, cgroup->limit_path});
    facts.push_back({"cgroup_available", Bytes{cgroup->available_bytes()}, cgroup->limit_path});
  }
  facts.push_back({"limit", Bytes{memory_limit(wanted.memory, *memory)}, limit_source(wanted, *memory)});
  return facts;
}

[[nodiscard]] Fact resource_limit(char const* name, __rlimit_resource_t resource, bool in_bytes) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0) { return {name, "unknown"}; }
  if (limit.rlim_cur == RLIM_INFINITY) { return {name, "unlimited"}; }
  auto const value = static_cast<std::int64_t>(limit.rlim_cur);
  if (in_bytes) { return {name, Bytes{value}}; }
  return {name, value};
}

[[nodiscard]] std::vector<Fact> limit_facts() {
  return {resource_limit("open_files", RLIMIT_NOFILE, false), resource_limit("processes", RLIMIT_NPROC, false),
          resource_limit("address_space", RLIMIT_AS, true), resource_limit("file_size", RLIMIT_FSIZE, true),
          resource_limit("locked_memory", RLIMIT_MEMLOCK, true)};
}

[[nodiscard]] std::vector<Fact> kernel_facts(std::optional<MachineMemory> const& memory) {
  std::vector<Fact> facts{{"release", kernel_release()}, {"io_uring", io_uring_allowed()}};
  if (memory && !memory->cgroup_folder.empty()) {
    facts.push_back({"memory_cgroup_writable", may_write_folder(memory->cgroup_folder), memory->cgroup_folder});
  }
  return facts;
}

// Returns: the folder itself, or the nearest one above it that exists.
[[nodiscard]] std::string existing_folder(std::string const& folder) {
  std::error_code ignored;
  auto path = std::filesystem::absolute(folder, ignored).lexically_normal();
  while (!std::filesystem::is_directory(path, ignored) && path.has_relative_path()) { path = path.parent_path(); }
  return path.string();
}

[[nodiscard]] std::vector<Fact> folder_facts(std::string const& wanted) {
  auto const folder = existing_folder(wanted);
  std::vector<Fact> facts{{"path", folder}};
  std::error_code error;
  auto const space = std::filesystem::space(folder, error);
  if (!error) { facts.push_back({"free", Bytes{static_cast<std::int64_t>(space.available)}}); }
  facts.push_back({"writable", may_write_folder(folder)});
  facts.push_back({"direct_io", direct_io_in(folder)});
  facts.push_back({"unnamed_files", unnamed_files_in(folder)});
  facts.push_back({"exchange", exchange_in(folder)});
  return facts;
}

[[nodiscard]] std::vector<Fact> setting_facts(RunInfo const& wanted) {
  std::vector<Fact> facts;
  for (auto const& setting : wanted.settings) {
    auto name = setting.name;
    std::replace(name.begin(), name.end(), '-', '_');
    facts.push_back({name, setting.value, setting.source});
  }
  for (auto const& variable : wanted.unknown_variables) {
    facts.push_back({variable, "not an option's variable", "environment"});
  }
  return facts;
}

[[nodiscard]] std::string text_of(Fact const& fact) {
  struct Visitor {
    std::string operator()(std::string const& text) const { return text; }
    std::string operator()(std::int64_t number) const { return fmt::format("{}", number); }
    std::string operator()(Bytes bytes) const { return format_bytes(bytes.count); }
    std::string operator()(bool value) const { return value ? "yes" : "no"; }
  };
  auto const value = std::visit(Visitor{}, fact.value);
  return fact.source.empty() ? value : fmt::format("{}  ({})", value, fact.source);
}

}  // namespace

Info gather_info(RunInfo const& wanted) {
  auto const memory = machine_memory();
  return {{"build", build_facts()},
          {"libraries", library_facts()},
          {"machine", machine_facts()},
          {"memory", memory_facts(memory, wanted)},
          {"limits", limit_facts()},
          {"kernel", kernel_facts(memory)},
          {"folder", folder_facts(wanted.folder)},
          {"settings", setting_facts(wanted)}};
}

std::string info_text(Info const& info) {
  std::string text;
  for (auto const& section : info) {
    text += section.name + "\n";
    for (auto const& fact : section.facts) {
      auto name = fact.name;
      std::replace(name.begin(), name.end(), '_', fact.name.starts_with("EARMARK_") ? '_' : ' ');
      text += fmt::format("  {:<24}{}\n", name, text_of(fact));
    }
  }
  return text;
}

}  // namespace earmark::cli
