// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// What the copies of one adaptor share: its budget, its pool of reservation blocks, its totals. Internal; see
// `ReservationAwareResourceAdaptor`.
// Thread safety: any thread. Ownership: reference-counted by adaptor handles and, while any is in use, by its blocks,
// so that a buffer may outlive reservation and adaptor.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "earmark/core/thread_annotations.hpp"
#include "earmark/memory/budget.hpp"
#include "earmark/memory/memory_type.hpp"
#include "earmark/memory/reservation_block.hpp"
#include "earmark/memory/reservation_options.hpp"

namespace earmark::detail {

class Ledger {
 public:
  // `lender`: the reservation that a nested adaptor draws on, else null. Throws: std::invalid_argument for a
  // granularity that is no power of two.
  Ledger(std::size_t limit, MemoryType type, AdaptorOptions const& options, ReservationBlock* lender);
  Ledger(Ledger const&) = delete;
  Ledger& operator=(Ledger const&) = delete;
  virtual ~Ledger();

  void retain() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
  void release() noexcept {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) { delete this; }
  }

  // Returns: `bytes` rounded up to the granularity, or -1 when that is more than any budget can hold.
  [[nodiscard]] std::int64_t charge(std::size_t bytes) const noexcept {
    if (bytes > static_cast<std::size_t>(Budget::max_bytes) - granule_mask_) { return -1; }
    return static_cast<std::int64_t>((bytes + granule_mask_) & ~granule_mask_);
  }
  [[nodiscard]] std::size_t granularity() const noexcept { return granule_mask_ + 1; }
  [[nodiscard]] int granule_shift() const noexcept { return granule_shift_; }
  [[nodiscard]] MemoryType memory_type() const noexcept { return type_; }
  [[nodiscard]] Budget const& budget() const noexcept { return budget_; }

  // Bytes for a reservation (all charges): from the budget and, for a nested one, from the lender.
  [[nodiscard]] Taken take(std::int64_t bytes) noexcept;
  [[nodiscard]] Taken take_anyway(std::int64_t bytes) noexcept;
  void credit(std::int64_t bytes) noexcept { budget_.credit(bytes); }
  void set_limit(std::size_t limit) noexcept { budget_.set_limit(limit); }

  // Returns: a block with one reference and `resource_` not placed yet. Throws: ReservationRefused,
  // ImpossibleRequest, std::bad_alloc; then nothing was taken.
  [[nodiscard]] ReservationBlock& reserve(std::size_t bytes, ReservationOptions const& options);
  // Returns: null when the bytes are not there. Throws: std::bad_alloc for the block itself.
  [[nodiscard]] ReservationBlock* try_reserve(std::size_t bytes, ReservationOptions const& options);
  [[nodiscard]] ReservationBlock& reserve_up_to(std::size_t bytes, std::size_t at_least,
                                                ReservationOptions const& options);
  // Returns: an open block that holds `granted` bytes which the caller took. Throws: std::bad_alloc.
  [[nodiscard]] ReservationBlock& make_block(std::int64_t granted, Overbooking const& overbooking,
                                             ReservationOptions const& options);

  // Allocations without a reservation. Throws: ReservationExhausted.
  [[nodiscard]] ReservationBlock::Draw draw_unreserved(std::size_t bytes);
  void count_unreserved(ReservationBlock::Draw const& draw) noexcept;
  void give_back_unreserved(std::size_t bytes) noexcept;
  [[noreturn]] void fail_unreserved(ReservationBlock::Draw const& draw);

  // For blocks.
  void recycle(ReservationBlock& block) noexcept;
  void add_totals(std::int64_t bytes, std::int64_t allocations) noexcept;
  [[nodiscard]] bool tracks_exactly() const noexcept { return tracking_ == Tracking::Exact; }
  void track(std::int64_t change) noexcept;

  [[nodiscard]] AdaptorSnapshot snapshot() noexcept;
  [[nodiscard]] std::vector<OutstandingReservation> outstanding() const;
  // Limit, committed, tier and the largest holders. Allocates nothing.
  [[nodiscard]] ErrorFields fields(std::int64_t requested, std::int64_t shortfall) const noexcept;
  // Throws ReservationRefused, or ImpossibleRequest where `charge` (-1: too large for any) can never fit.
  [[noreturn]] void refuse(std::size_t bytes, std::int64_t charge, Taken const& taken) const;

 private:
  static constexpr std::size_t blocks_per_slab = 64;

  [[nodiscard]] Taken take_up_to(std::int64_t bytes, std::int64_t at_least, std::int64_t& taken) noexcept;
  [[nodiscard]] ReservationBlock& grant(std::int64_t bytes, Taken const& taken, ReservationOptions const& options);
  void add_slab() EARMARK_REQUIRES(mutex_);
  [[nodiscard]] ReservationBlock::Label const* label(std::string_view text) EARMARK_REQUIRES(mutex_);
  [[nodiscard]] std::int64_t sum_of_live() const noexcept EARMARK_REQUIRES(mutex_);
  template <class Visit>
  void for_each_block(std::size_t most_slabs, Visit const& visit) const EARMARK_REQUIRES(mutex_);

  // Read by every allocation and never written: apart from what reserving changes.
  std::size_t granule_mask_;
  int granule_shift_;
  MemoryType type_;
  UnreservedPolicy unreserved_;
  Tracking tracking_;
  ReservationBlock* lender_;  // referenced

  alignas(64) Budget budget_;
  Mutex lender_mutex_;  // quota and lender are charged as one step, so that no innocent is refused in between
  std::atomic<std::int64_t> total_allocated_{0};
  std::atomic<std::int64_t> allocation_count_{0};
  std::atomic<std::int64_t> known_peak_{0};    // Exact: the peak; else the largest that was seen
  std::atomic<std::int64_t> tracked_live_{0};  // Exact only
  std::atomic<std::int32_t> references_{0};

  mutable Mutex mutex_;
  std::vector<std::unique_ptr<ReservationBlock[]>> slabs_ EARMARK_GUARDED_BY(mutex_);
  ReservationBlock* free_ EARMARK_GUARDED_BY(mutex_){nullptr};
  std::size_t blocks_in_use_ EARMARK_GUARDED_BY(mutex_){0};
  std::map<std::string, ReservationBlock::Label, std::less<>> labels_ EARMARK_GUARDED_BY(mutex_);
};

// The allocation path, inline because every allocation passes it.

inline ReservationBlock::Draw ReservationBlock::draw(std::size_t bytes) {
  std::int64_t const charge = ledger_->charge(bytes);
  if (charge < 0) [[unlikely]] { throw_short({Take::Short, account_.available()}, Budget::max_bytes); }
  Taken taken = account_.try_take(charge);
  if (taken.result != Take::Ok) [[unlikely]] {
    taken = try_draw(charge);
    if (taken.result != Take::Ok) { throw_short(taken, charge); }
  }
  return {charge, account_.granted() - taken.available};
}

inline void ReservationBlock::count(Draw const& draw) noexcept {
  if (draw.live > peak_.load(std::memory_order_relaxed)) { raise_peak(draw.live); }
  std::int64_t const granules = draw.charge >> ledger_->granule_shift();
  if (granules >= largest_counted_granules) [[unlikely]] {
    ledger_->add_totals(draw.charge, 1);
  } else {
    std::uint64_t const step = (static_cast<std::uint64_t>(granules) << count_bits) | 1U;
    if ((counters_.fetch_add(step, std::memory_order_relaxed) & fold_mask) != 0) [[unlikely]] { fold_counters(); }
  }
  if (ledger_->tracks_exactly()) { ledger_->track(draw.charge); }
}

inline void ReservationBlock::give_back(std::size_t bytes) noexcept {
  std::int64_t const charge = ledger_->charge(bytes);
  if (ledger_->tracks_exactly()) { ledger_->track(-charge); }
  if (account_.credit(charge) != &account_) [[unlikely]] { recycle_if_settled(); }
}

}  // namespace earmark::detail
