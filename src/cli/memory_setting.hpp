// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// What `--memory` may say: a size, a share of what there is, or `auto`. Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "earmark/core/machine_memory.hpp"

namespace earmark::cli {

struct MemorySetting {
  enum class Kind { Size, Percent, Auto };
  Kind kind{Kind::Auto};
  std::int64_t bytes{0};  // of a size
  double percent{0};      // above 0, at most 100
};

// Reads `512MiB`, `50%` or `auto`. Throws: UsageError that begins with `option` for anything else.
[[nodiscard]] MemorySetting parse_memory(std::string_view option, std::string_view text);

// Returns: the limit in bytes, at least 1. A percentage is of the smaller of the machine's memory and its cgroups'
// lowest limit; `auto` is 80 % of what they leave at the moment.
[[nodiscard]] std::int64_t memory_limit(MemorySetting const& setting, MachineMemory const& machine);

// Returns: what a limit was derived from, for people: "80 % of what the machine leaves"; empty for a size.
[[nodiscard]] std::string memory_origin(MemorySetting const& setting, MachineMemory const& machine);

}  // namespace earmark::cli
