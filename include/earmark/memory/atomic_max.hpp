// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Raises a peak that several threads raise. Internal. Thread safety: any thread.
#pragma once

#include <atomic>
#include <cstdint>

namespace earmark::detail {

// Makes `peak` at least `value`.
inline void raise(std::atomic<std::int64_t>& peak, std::int64_t value) noexcept {
  std::int64_t known = peak.load(std::memory_order_relaxed);
  while (value > known && !peak.compare_exchange_weak(known, value, std::memory_order_relaxed)) {}
}

}  // namespace earmark::detail
