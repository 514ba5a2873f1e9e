// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// What is counted for all reservations of one label. Internal; `ReservationAwareResourceAdaptor::label_counters` shows
// it. Blocks count for themselves and are added here when they go, so allocations never meet at a label.
// Thread safety: any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "earmark/core/error.hpp"
#include "earmark/core/trace_ring.hpp"
#include "earmark/memory/atomic_max.hpp"

namespace earmark::detail {

class LabelRecord {
 public:
  static constexpr std::size_t most_characters = 47;  // longer names are cut

  struct Counters {
    std::int64_t reservations{0};
    std::int64_t allocations{0};
    std::int64_t allocated_bytes{0};
    std::int64_t peak{0};  // the most bytes live in one reservation
  };

  // `traced_as`: its number in the trace ring, if there is one.
  LabelRecord(std::string_view name, TraceLabel traced_as) noexcept : name_(name), traced_as_(traced_as) {}

  [[nodiscard]] std::string_view name() const noexcept { return name_.view(); }
  [[nodiscard]] TraceLabel traced_as() const noexcept { return traced_as_; }
  void add(Counters const& counters) noexcept {
    reservations_.fetch_add(counters.reservations, std::memory_order_relaxed);
    allocations_.fetch_add(counters.allocations, std::memory_order_relaxed);
    allocated_bytes_.fetch_add(counters.allocated_bytes, std::memory_order_relaxed);
    raise(peak_, counters.peak);
  }
  void refused() noexcept { refusals_.fetch_add(1, std::memory_order_relaxed); }
  void waited(std::int64_t nanoseconds) noexcept {
    waits_.fetch_add(1, std::memory_order_relaxed);
    waited_nanoseconds_.fetch_add(nanoseconds, std::memory_order_relaxed);
  }

  [[nodiscard]] Counters counters() const noexcept {
    return {reservations_.load(std::memory_order_relaxed), allocations_.load(std::memory_order_relaxed),
            allocated_bytes_.load(std::memory_order_relaxed), peak_.load(std::memory_order_relaxed)};
  }
  [[nodiscard]] std::int64_t refusals() const noexcept { return refusals_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::int64_t waits() const noexcept { return waits_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::int64_t waited_nanoseconds() const noexcept {
    return waited_nanoseconds_.load(std::memory_order_relaxed);
  }

 private:
  FixedText<most_characters> name_;
  TraceLabel traced_as_;
  std::atomic<std::int64_t> reservations_{0};
  std::atomic<std::int64_t> allocations_{0};
  std::atomic<std::int64_t> allocated_bytes_{0};
  std::atomic<std::int64_t> peak_{0};
  std::atomic<std::int64_t> refusals_{0};
  std::atomic<std::int64_t> waits_{0};
  std::atomic<std::int64_t> waited_nanoseconds_{0};
};

}  // namespace earmark::detail
