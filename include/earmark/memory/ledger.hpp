// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// What the copies of one adaptor share: its budget, its pool of reservation blocks, its totals. Internal; see
// `ReservationAwareResourceAdaptor`.
// Thread safety: any thread. Ownership: counted by adaptor handles, consumers, waiting requests and blocks in use, so
// that a buffer may outlive reservation and adaptor.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "earmark/core/thread_annotations.hpp"
#include "earmark/core/trace_ring.hpp"
#include "earmark/memory/block_pool.hpp"
#include "earmark/memory/budget.hpp"
#include "earmark/memory/consumer.hpp"
#include "earmark/memory/memory_report.hpp"
#include "earmark/memory/memory_type.hpp"
#include "earmark/memory/pressure.hpp"
#include "earmark/memory/reservation_block.hpp"
#include "earmark/memory/reservation_options.hpp"
#include "earmark/memory/stream_events.hpp"
#include "earmark/memory/waiting.hpp"

namespace earmark::detail {

class BlockLender;
class ConsumerAccount;

class Ledger : private BudgetOwner {
 public:
  // `lender`: the reservation that a nested adaptor draws on, else null. Throws: std::invalid_argument for a
  // granularity that is no power of two, std::bad_alloc.
  Ledger(std::size_t limit, MemoryType type, AdaptorOptions const& options, ReservationBlock* lender);
  Ledger(Ledger const&) = delete;
  Ledger& operator=(Ledger const&) = delete;
  virtual ~Ledger();

  // A handle to the adaptor. When the last one goes, what is still out is logged, if that was asked for.
  void retain() noexcept;
  void release() noexcept;
  // Anyone else who needs the ledger.
  void hold() noexcept { pool_.add_reference(); }
  void let_go() noexcept {
    if (pool_.drop_reference()) { end(); }
  }
  // Call when the pool said that the last reference went.
  void end() noexcept { delete this; }

  // Returns: `bytes` rounded up to the granularity, or -1 when that is more than any budget can hold.
  [[nodiscard]] std::int64_t charge(std::size_t bytes) const noexcept {
    if (bytes > static_cast<std::size_t>(Budget::max_bytes) - granule_mask_) { return -1; }
    return static_cast<std::int64_t>((bytes + granule_mask_) & ~granule_mask_);
  }
  [[nodiscard]] std::size_t granularity() const noexcept { return granule_mask_ + 1; }
  [[nodiscard]] MemoryType memory_type() const noexcept { return type_; }
  [[nodiscard]] BudgetCore& budget() noexcept { return budget_; }
  [[nodiscard]] BlockPool& pool() noexcept { return pool_; }
  [[nodiscard]] StreamEvents& events() const noexcept { return *events_; }

  void set_limit(std::size_t limit) noexcept;
  void shutdown() noexcept;
  [[nodiscard]] Consumer make_consumer(std::string_view name, std::size_t quota);
  void add_consumer(ConsumerAccount& consumer);
  void remove_consumer(ConsumerAccount& consumer) noexcept;
  [[nodiscard]] PressureSubscription on_pressure(std::function<void(std::int64_t)> listener);

  // Returns: a block with one reference and `resource_` not placed yet. Throws: ReservationRefused,
  // ImpossibleRequest, ReservationAborted, std::bad_alloc; then nothing was taken.
  [[nodiscard]] ReservationBlock& reserve(std::size_t bytes, ReservationOptions const& options);
  // Returns: null when the bytes are not there. Throws: std::bad_alloc for the block itself.
  [[nodiscard]] ReservationBlock* try_reserve(std::size_t bytes, ReservationOptions const& options);
  [[nodiscard]] ReservationBlock& reserve_up_to(std::size_t bytes, std::size_t at_least,
                                                ReservationOptions const& options);
  // Blocks: until it is decided. Throws: as `reserve`; ReservationRefused is for the deadline.
  [[nodiscard]] ReservationBlock& reserve_blocking(std::size_t bytes, ReservationOptions const& options,
                                                   WaitOptions const& wait);
  // Calls `done` with a block, or with null and the error.
  void async_reserve(std::size_t bytes, ReservationOptions const& options, WaitOptions const& wait,
                     std::function<void(ReservationBlock*, std::exception_ptr)> done);
  // Returns: an open block that holds `granted` bytes which the caller took. Throws: std::bad_alloc.
  [[nodiscard]] ReservationBlock& make_block(std::int64_t granted, BudgetCore& purse,
                                             ReservationOptions const& options);
  // Takes for a reservation: not for an aborted consumer, and not ahead of those who wait, unless it may overbook.
  [[nodiscard]] Taken take_for(BudgetCore& purse, std::int64_t bytes,
                               AllowOverbooking overbooking = AllowOverbooking::NO) noexcept;

  // Allocations without a reservation. Throws: ReservationExhausted.
  [[nodiscard]] ReservationBlock::Draw draw_unreserved(std::size_t bytes);
  void count_unreserved(ReservationBlock::Draw const& draw) noexcept;
  void give_back_unreserved(std::size_t bytes) noexcept;
  [[noreturn]] void fail_unreserved(ReservationBlock::Draw const& draw);

  // The upstream, whatever its type: for preallocated reservations.
  [[nodiscard]] virtual void* allocate_upstream(cuda::stream_ref stream, std::size_t bytes, std::size_t alignment) = 0;
  virtual void deallocate_upstream(cuda::stream_ref stream, void* pointer, std::size_t bytes,
                                   std::size_t alignment) noexcept = 0;
  [[nodiscard]] virtual void* allocate_upstream_sync(std::size_t bytes, std::size_t alignment) = 0;
  virtual void deallocate_upstream_sync(void* pointer, std::size_t bytes, std::size_t alignment) noexcept = 0;

  // Frees that streams have not come to yet. After an upstream's out-of-memory: waits for them; returns whether there
  // were any, so that asking again makes sense.
  void note_free() noexcept {
    if (order_by_stream_ && !frees_pending_.load(std::memory_order_relaxed)) [[unlikely]] {
      frees_pending_.store(true, std::memory_order_release);
    }
  }
  [[nodiscard]] bool wait_for_pending_frees() noexcept;

  // After somebody took what was not there: tells those who listen, here and below.
  void tell_of_overbooking() noexcept;

  // For blocks.
  void note_peak(std::int64_t live) noexcept;
  [[nodiscard]] bool tracks_exactly() const noexcept { return tracking_ == Tracking::Exact; }
  void track(std::int64_t change) noexcept;
  [[nodiscard]] bool observed() const noexcept { return observed_; }
  // Does nothing without a ring. `id`: which reservation, null for none.
  void trace(TraceKind kind, LabelRecord const* label, std::int64_t bytes, void const* id = nullptr) noexcept {
    if (trace_ != nullptr) [[unlikely]] {
      trace(kind, label == nullptr ? TraceLabel::None : label->traced_as(), bytes, id);
    }
  }
  void trace(TraceKind kind, TraceLabel label, std::int64_t bytes, void const* id) noexcept;
  [[nodiscard]] TraceLabel trace_label(std::string_view text) {
    return trace_ == nullptr ? TraceLabel::None : trace_->label(text);
  }

  [[nodiscard]] AdaptorSnapshot snapshot() noexcept;
  [[nodiscard]] std::vector<OutstandingReservation> outstanding() const;
  [[nodiscard]] std::vector<LabelCounters> label_counters();
  [[nodiscard]] MemoryReport report();
  // Limit, committed, tier and the largest holders. Allocates nothing.
  [[nodiscard]] ErrorFields fields(std::int64_t requested, std::int64_t shortfall) noexcept;
  // What a request of `purse` could have now (negative: a deficit), and what bounds it: of the consumer's quota, the
  // limit here, and the reservation that this adaptor stands on, the one with the least room.
  struct Room {
    std::int64_t bytes;
    std::string_view bound;
    [[nodiscard]] std::int64_t shortfall(std::int64_t requested) const noexcept {
      return requested - std::clamp<std::int64_t>(bytes, 0, requested);
    }
  };
  [[nodiscard]] Room room(BudgetCore& purse) noexcept;
  // Throws what says why `taken` was not Ok. `charge` is -1 for a size that no limit can hold.
  [[noreturn]] void refuse(std::size_t bytes, std::int64_t charge, Taken const& taken, BudgetCore& purse,
                           LabelRecord& label);

 private:
  // A request while it is decided: what it asks for, of whom, in which name.
  struct Asked {
    std::size_t bytes;
    std::int64_t charge;
    BudgetCore& purse;
    ReservationOptions const& options;
  };

  void hold_budget() noexcept override { hold(); }
  void let_go_of_budget() noexcept override { let_go(); }
  void pressure_changed() noexcept override;

  // Throws: ReservationMismatch for a consumer of another adaptor, std::invalid_argument for options that contradict
  // each other.
  [[nodiscard]] BudgetCore& purse_of(ReservationOptions const& options);
  [[nodiscard]] Asked ask(std::size_t bytes, ReservationOptions const& options);
  [[nodiscard]] Wish wish(Asked const& asked, LabelRecord const& label) const noexcept;
  [[nodiscard]] ReservationBlock& grant(Asked const& asked, std::int64_t granted, Taken const& taken);
  [[noreturn]] void refuse(Asked const& asked, Taken const& taken);
  void note_wait(LabelRecord& label, Clock::time_point since, Asked const& asked, Taken const& taken) noexcept;
  [[nodiscard]] std::int64_t live_now() noexcept;
  void log_leaks() noexcept;

  // Read by every allocation and never written: apart from what reserving changes.
  std::size_t granule_mask_;
  MemoryType type_;
  UnreservedPolicy unreserved_;
  Tracking tracking_;
  CallStacks call_stacks_;
  bool order_by_stream_;
  bool observed_;                           // tracking is exact, or there is a trace
  std::atomic<bool> frees_pending_{false};  // streams may not have come to some yet
  SteadyClock steady_clock_;                // when no other is given
  HostStreamEvents host_events_;
  StreamEvents* events_;
  Clock const* clock_;
  TraceRing* trace_;
  LogSink* log_;
  TraceLabel traced_as_{TraceLabel::None};
  std::unique_ptr<BlockLender> lender_;

  alignas(64) BudgetCore budget_;
  BlockPool pool_;
  PressureListeners listeners_;
  std::atomic<std::int64_t> handles_{0};
  std::atomic<bool> handles_gone_{false};  // for a moment at least: references are counted in one word since
  std::atomic<std::int64_t> traced_pressure_{0};
  std::atomic<std::int64_t> unreserved_bytes_{0};
  std::atomic<std::int64_t> unreserved_allocations_{0};
  std::atomic<std::int64_t> known_peak_{0};    // Exact: the peak; else the largest that was seen
  std::atomic<std::int64_t> tracked_live_{0};  // Exact only
  Mutex consumers_mutex_;
  std::vector<ConsumerAccount*> consumers_ EARMARK_GUARDED_BY(consumers_mutex_);
};

// The allocation path, inline because every allocation passes it.

inline ReservationBlock::Draw ReservationBlock::draw(std::size_t bytes) {
  Draw draw{charge_of_live(bytes), 0};
  if (bytes > static_cast<std::size_t>(Budget::max_bytes) - granule_mask_) [[unlikely]] { return draw_slowly(bytes); }
  count(draw.charge);
  if (!account_.take_quickly(draw.charge, draw.live)) [[unlikely]] { return draw_slowly(bytes); }
  return draw;
}

inline void ReservationBlock::count(std::int64_t charge) noexcept {
  void* const me = __builtin_thread_pointer();
  void* owner = own_thread_.load(std::memory_order_relaxed);
  if (owner == nullptr && own_thread_.compare_exchange_strong(owner, me, std::memory_order_relaxed)) { owner = me; }
  if (owner == me && charge < largest_counted) [[likely]] {
    std::uint64_t const step = (static_cast<std::uint64_t>(charge) << count_bits) | 1U;
    std::uint64_t const now = own_counters_.load(std::memory_order_relaxed) + step;
    own_counters_.store(now, std::memory_order_relaxed);
    if ((now & fold_mask) != 0) [[unlikely]] { fold_own_counters(); }
  } else {
    ledger_->pool().count(label_record(), {0, 1, charge, 0});
  }
}

inline void ReservationBlock::give_back(std::size_t bytes) noexcept {
  std::int64_t const charge = charge_of_live(bytes);
  if (observed_) [[unlikely]] { observe(TraceKind::Free, charge); }
  if (account_.credit(charge) != &account_) [[unlikely]] { recycle_if_settled(); }
}

}  // namespace earmark::detail
