// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// How much memory there is for this process: what the machine has, and what control groups (cgroups, version 1 and 2)
// allow. A container's limit is such a group's, and so is what a service manager sets; the kernel kills who goes above.
// Use it to choose a limit; `ResidentMemory` tells what a process occupies.
//
//   earmark::MachineMemory const memory = earmark::read_machine_memory();
//   auto const limit = memory.available_bytes() / 5 * 4;
//
// Ownership: a value, a snapshot: others take and give memory meanwhile.
// Thread safety: `read_machine_memory` may be called from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace earmark {

// One cgroup above this process that has a limit.
struct CgroupMemory {
  std::string limit_path;        // the file that says the limit, e.g. "/sys/fs/cgroup/user.slice/memory.max"
  std::int64_t limit_bytes{0};   // the lower of what kills and what throttles (memory.max, memory.high)
  std::int64_t in_use_bytes{0};  // without the cache of files, which gives way
  // Returns: bytes that the group may still take, at least 0.
  [[nodiscard]] std::int64_t available_bytes() const noexcept {
    return limit_bytes > in_use_bytes ? limit_bytes - in_use_bytes : 0;
  }
};

struct MachineMemory {
  std::int64_t machine_bytes{0};            // all there is
  std::int64_t machine_available_bytes{0};  // what programs can still get without swapping, as the kernel estimates
  std::string cgroup_folder;                // the process's own cgroup; empty where there is none for memory
  std::vector<CgroupMemory> cgroups;        // those with a limit, from the process's own outwards

  // Returns: the smaller of the machine's memory and the lowest limit.
  [[nodiscard]] std::int64_t limit_bytes() const noexcept;
  // Returns: the least of what the machine and each cgroup leave.
  [[nodiscard]] std::int64_t available_bytes() const noexcept;
  // Returns: the cgroup with the lowest limit, if one is lower than the machine's memory.
  [[nodiscard]] CgroupMemory const* tightest_cgroup() const noexcept;
};

// Reads /proc and the cgroups' file systems. The limits of all ancestors count, as far as they are visible: inside a
// container those of the host are not, but version 1 tells the lowest of them in the group itself.
// `root` is put before every path, for tests that bring a tree of their own.
// Throws: FileSystemError when the machine does not tell its memory. What is missing or odd about cgroups is taken for
// no limit.
[[nodiscard]] MachineMemory read_machine_memory(std::string const& root = "");

}  // namespace earmark
