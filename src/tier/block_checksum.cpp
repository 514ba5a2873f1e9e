// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "block_checksum.hpp"

#define XXH_INLINE_ALL  // nothing to link, and compiled for this build's processor
#include <xxhash.h>

namespace earmark::detail {

std::uint64_t checksum(std::span<std::byte const> bytes) noexcept { return XXH3_64bits(bytes.data(), bytes.size()); }

}  // namespace earmark::detail
