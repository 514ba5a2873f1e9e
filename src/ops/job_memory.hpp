// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// The job's memory: one limit on the resident size of the process, a budget below it that every working byte comes
// from, and the watch that shrinks the budget by what the process holds outside of it.
//
//   resident limit = baseline (before the job) + slack (resident - baseline - committed, watched) + budget
//
// Thread safety: any thread may allocate and call `watch`.
#pragma once

#include <arrow/memory_pool.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>

#include "earmark/core/resident_memory.hpp"
#include "earmark/memory/memory_reservation.hpp"
#include "earmark/memory/reservation_aware_resource_adaptor.hpp"
#include "reusing_memory_pool.hpp"

namespace earmark::detail {

class JobMemory {
 public:
  // `limit_bytes` bounds the resident size of the process.
  JobMemory(std::int64_t limit_bytes, ResidentMemory& resident);

  [[nodiscard]] std::int64_t limit_bytes() const noexcept { return limit_; }
  [[nodiscard]] std::int64_t baseline_bytes() const noexcept { return baseline_; }
  [[nodiscard]] std::int64_t committed_bytes() const { return budget_.committed(); }
  [[nodiscard]] std::int64_t peak_committed_bytes() const { return budget_.peak_committed(); }
  [[nodiscard]] std::int64_t resident_bytes() const { return resident_.current_bytes(); }
  [[nodiscard]] std::int64_t peak_resident_bytes() const { return resident_.peak_bytes(); }
  // Returns: bytes that the process holds beyond baseline and budget, the most seen so far.
  [[nodiscard]] std::int64_t slack_bytes() const noexcept { return slack_.load(std::memory_order_relaxed); }
  // Returns: bytes that may still be reserved.
  [[nodiscard]] std::int64_t available_bytes() const { return budget_.available(); }

  // Until this call the budget leaves room for planning whatever the limit, so that a job that cannot work can be told
  // what it would need. From here on the limit holds.
  void end_planning();
  // Compares the resident size with the books and shrinks the budget by what grew outside of them.
  // Returns: the resident size.
  std::int64_t watch();

  // A reservation of the budget. Throws: ReservationRefused.
  [[nodiscard]] HostMemoryReservation reserve(std::int64_t bytes, std::string_view label);
  // Where working space comes from, Arrow's and ours: draws on the budget as it grows.
  [[nodiscard]] ::arrow::MemoryPool* pool() noexcept { return pool_.get(); }
  // Lets the pool keep up to `bytes` of freed blocks for reuse.
  void keep_at_most(std::int64_t bytes) { pool_->keep_at_most(bytes); }
  // Gives what is no longer used back to the budget and the system. One thread, while no other allocates.
  void give_back_unspent();
  // Gives back what planning left, and measures anew what is outside of the books. One thread, while no other
  // allocates.
  void forget_planning();
  // Gives back what malloc keeps of freed blocks, if that is much: it is resident all the same.
  static void trim_heap();

 private:
  [[nodiscard]] std::size_t budget_bytes() const noexcept;

  ResidentMemory& resident_;
  std::int64_t limit_;
  std::int64_t baseline_;
  std::int64_t planning_bytes_;
  std::atomic<std::int64_t> slack_{0};
  std::atomic<bool> is_planning_{true};
  HostReservationAwareResourceAdaptor budget_;
  HostMemoryReservation working_space_;
  std::unique_ptr<ReusingMemoryPool> pool_;
};

}  // namespace earmark::detail
