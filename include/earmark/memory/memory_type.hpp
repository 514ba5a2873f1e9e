// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Which kind of memory (or storage) bytes lie in. Thread safety: values.
#pragma once

#include <cstdint>
#include <string_view>

namespace earmark {

enum class MemoryType : std::uint8_t {
  Device,  // a GPU's own memory
  Pinned,  // host memory that devices can reach
  Host,    // pageable host memory
  Disk,
};

// Returns: the name used in errors and reports: "device", "pinned", "host", "disk".
[[nodiscard]] constexpr std::string_view to_string(MemoryType type) noexcept {
  switch (type) {
    case MemoryType::Device: return "device";
    case MemoryType::Pinned: return "pinned";
    case MemoryType::Host: return "host";
    case MemoryType::Disk: return "disk";
  }
  return "unknown";
}

}  // namespace earmark
