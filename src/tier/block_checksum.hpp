// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// The checksum of a block that is spilled: XXH3, 64 bits. It never leaves the process, so it may change with versions.
// Private to tier; block_checksum.cpp is the one door to xxhash. Thread safety: pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace earmark::detail {

[[nodiscard]] std::uint64_t checksum(std::span<std::byte const> bytes) noexcept;

}  // namespace earmark::detail
