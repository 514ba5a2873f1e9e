// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Which objects spill for a number of bytes. Private to tier. Thread safety: pure, of values.
#pragma once

#include <cstdint>
#include <vector>

#include "earmark/tier/spill_manager.hpp"

namespace earmark::detail {

struct SpillCandidate {
  std::size_t index{0};  // the caller's
  std::int64_t bytes{0};
  SpillRank rank{};
  bool just_restored{false};
};

// Returns: candidates whose bytes cover `bytes`, or all where that is not enough, in the order in which they should go:
// by rank, and among equals the smallest that covers what is left, else the largest. So what is freed is less than
// `bytes` and the largest of them together. Throws: std::bad_alloc.
[[nodiscard]] std::vector<SpillCandidate> choose_victims(std::vector<SpillCandidate> candidates, std::int64_t bytes);

}  // namespace earmark::detail
