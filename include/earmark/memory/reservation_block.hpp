// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// The control block of one reservation: its account, its counters, and the resource object that non-owning references
// point at. Internal; `MemoryReservation` owns one, its resources share it. Blocks are pooled by their ledger and are
// 128 bytes, so a reservation costs no allocation of its own; what few reservations need lies in `BlockExtras`.
// Thread safety: any thread, but `close`, `merge_into`, `split` and `drop` are for the owner of the handle.
// Ownership: reference-counted; a block whose last reference is gone returns to its ledger's pool once nothing is live.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <string_view>

#include "earmark/core/error.hpp"
#include "earmark/memory/basic_budget.hpp"
#include "earmark/memory/block_extras.hpp"
#include "earmark/memory/label_record.hpp"
#include "earmark/memory/reservation_options.hpp"
#include "earmark/memory/stream_events.hpp"
#include "earmark/memory/waiting.hpp"

namespace earmark::detail {

class Ledger;
struct CarverRefusal;

// 128: two neighbours must not share what the hardware fetches in pairs of cache lines.
class alignas(128) ReservationBlock {
 public:
  // A charge that was taken from the balance for one allocation, and what was live with it.
  struct Draw {
    std::int64_t charge{0};
    std::int64_t live{0};
  };

  // One allocation of a preallocated reservation. No stream: for use at once.
  struct Within {
    std::size_t bytes{0};
    std::size_t alignment{0};
    std::optional<cuda::stream_ref> stream{};
  };

  ReservationBlock() noexcept = default;
  ~ReservationBlock() { delete extras(); }
  ReservationBlock(ReservationBlock const&) = delete;
  ReservationBlock& operator=(ReservationBlock const&) = delete;

  // -- allocation: on the path of every allocation, touching nothing but this block ----------------------------------

  // Takes the charge for `bytes` (> 0) from the balance, as the exhausted policy allows.
  // Throws: ReservationExhausted, ReservationClosed.
  [[nodiscard]] Draw draw(std::size_t bytes);
  // Whether nothing as much was live before: to be raised once the upstream gave the bytes.
  [[nodiscard]] bool is_new_peak(std::int64_t live) const noexcept { return live > peak(); }
  void raise_peak(std::int64_t live) noexcept;
  // Tells of an allocation that the upstream made, if anybody listens.
  void note_allocation(std::int64_t charge) noexcept {
    if (observed_) [[unlikely]] { observe(TraceKind::Allocate, charge); }
  }
  // Gives a charge back: to the balance while open, else onward. Call after the upstream freed the bytes.
  void give_back(std::size_t bytes) noexcept;
  // Undoes a draw whose allocation failed. Call in a handler. Throws: UpstreamOutOfMemory for a bad_alloc, else
  // what is being handled.
  [[noreturn]] void fail(std::int64_t charge);

  // As `draw` for bytes that are a charge already, without throwing: for nested budgets.
  [[nodiscard]] Taken try_draw(std::int64_t charge) noexcept;
  [[nodiscard]] Taken draw_anyway(std::int64_t charge) noexcept;

  // -- preallocated reservations -------------------------------------------------------------------------------------

  [[nodiscard]] bool preallocated() const noexcept { return preallocated_; }
  // Takes the block's whole grant from the upstream as one piece. Throws: UpstreamOutOfMemory, std::bad_alloc; then it
  // is not preallocated.
  void preallocate(FallbackPolicy fallback);
  // Draws on the block instead of the account, and counts. Throws: ReservationExhausted, ReservationClosed,
  // UpstreamOutOfMemory; what recording a mark throws.
  [[nodiscard]] void* allocate_within(Within const& request);
  // Frees and gives back.
  void deallocate_within(void* pointer, Within const& request) noexcept;
  void forget_stream(cuda::stream_ref stream) noexcept;

  // -- the handle's side ---------------------------------------------------------------------------------------------

  void close() noexcept;
  // The owner's handle goes: closes unless the refund policy says to wait, and gives up its reference.
  void drop() noexcept;
  // Throws: ReservationMismatch if one of them is preallocated and in use, ReservationClosed if `other` is preallocated
  // and closed; then both are unharmed. Throws: UpstreamOutOfMemory; then each is unharmed, or closed if not even its
  // old block was to be had again.
  void merge_into(ReservationBlock& other);
  void grow(std::size_t bytes, AllowOverbooking overbooking);
  [[nodiscard]] bool try_grow(std::size_t bytes) noexcept;
  std::int64_t shrink_to_fit() noexcept;
  // Returns: a block with one reference, holding `bytes` of this one's balance. Throws: ReservationExhausted,
  // ReservationClosed, std::bad_alloc.
  [[nodiscard]] ReservationBlock& split(std::size_t bytes);

  [[nodiscard]] Account& account() noexcept { return account_; }
  [[nodiscard]] Account const& account() const noexcept { return account_; }
  // One moment of it. Of a closed one that is preallocated, `available` is what goes back with the last piece.
  [[nodiscard]] Account::Reading reading() const noexcept {
    Preallocation const* const preallocation = find_preallocation();
    return preallocation == nullptr ? account_.read() : reading_of(*preallocation);
  }
  // Bytes that can still be allocated.
  [[nodiscard]] std::int64_t balance() const noexcept {
    Account::Reading const now = reading();
    return now.closed ? 0 : now.available;
  }
  [[nodiscard]] Ledger& ledger() const noexcept { return *ledger_; }
  // The budget that its bytes came from and go back to: the ledger's, or its consumer's.
  [[nodiscard]] BudgetCore& purse() const noexcept { return *purse_; }
  [[nodiscard]] Overbooking overbooking() const noexcept;
  [[nodiscard]] std::string_view label() const noexcept { return label_.load(std::memory_order_relaxed)->name(); }
  [[nodiscard]] LabelRecord& label_record() const noexcept { return *label_.load(std::memory_order_relaxed); }
  [[nodiscard]] ExhaustedPolicy exhausted() const noexcept { return exhausted_; }
  [[nodiscard]] std::int64_t peak() const noexcept { return peak_.load(std::memory_order_relaxed); }
  [[nodiscard]] bool in_use() const noexcept { return use_.load(std::memory_order_acquire) != Use::Free; }
  [[nodiscard]] BlockExtras const* extras() const noexcept { return extras_.load(std::memory_order_acquire); }
  [[nodiscard]] bool closed() const noexcept;
  // Who waits for bytes of this reservation. Throws: std::bad_alloc.
  [[nodiscard]] BasicWaiterList<StdAtomics>& waiters();
  // What was counted and not yet added to the label's record.
  [[nodiscard]] LabelRecord::Counters counters() const noexcept;

  // -- references ----------------------------------------------------------------------------------------------------

  void retain() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
  void release() noexcept {
    if (drop_reference()) { last_reference_gone(); }
  }

  // The resource object inside the block, which non-owning references point at: it stays put when the handle moves.
  // It holds no reference of its own. Requires: Resource is one pointer and was placed by `place_resource`.
  template <class Resource>
  [[nodiscard]] Resource& resource() noexcept {
    return *std::launder(reinterpret_cast<Resource*>(resource_));
  }
  template <class Resource, class... Arguments>
  void place_resource(Arguments&&... arguments) noexcept {
    static_assert(sizeof(Resource) == sizeof(void*) && alignof(Resource) <= alignof(void*));
    ::new (static_cast<void*>(resource_)) Resource{static_cast<Arguments&&>(arguments)...};
  }

 private:
  friend class BlockPool;  // pools them
  friend class Ledger;     // opens them

  enum Use : std::uint8_t { Free, InUse, Orphaned };  // orphaned: no references, but bytes still live

  // Allocations and their bytes in one word: the count in the low bits, bytes above. Folded into the label's record
  // long before either part can overflow.
  static constexpr int count_bits = 24;
  static constexpr std::uint64_t fold_mask = (std::uint64_t{1} << (count_bits - 1)) | (std::uint64_t{1} << 63);
  static constexpr std::int64_t largest_counted = std::int64_t{1} << 38;

  // Of a block that the pool made. Requires: nobody else uses it.
  void belongs_to(Ledger& ledger) noexcept;
  // `Ledger::charge` for bytes that are allocated, so fit.
  [[nodiscard]] std::int64_t charge_of_live(std::size_t bytes) const noexcept {
    std::size_t const mask = granule_mask_;
    return static_cast<std::int64_t>((bytes + mask) & ~mask);
  }
  void open(std::int64_t granted, BudgetCore& purse, ReservationOptions const& options) noexcept;
  [[nodiscard]] BlockExtras& make_extras();
  // Requires: it is preallocated.
  [[nodiscard]] Preallocation& preallocation() const noexcept {
    return *extras_.load(std::memory_order_acquire)->preallocation.load(std::memory_order_acquire);
  }
  [[nodiscard]] Preallocation const* find_preallocation() const noexcept {
    BlockExtras const* const extras = this->extras();
    return extras == nullptr ? nullptr : extras->preallocation.load(std::memory_order_acquire);
  }
  [[nodiscard, gnu::cold]] void* allocate_otherwise(Within const& request, CarverRefusal const& refusal);
  [[nodiscard]] void* allocate_beside(Within const& request);
  void deallocate_beside(void* pointer, Within const& request) noexcept;
  [[nodiscard]] Account::Reading reading_of(Preallocation const& preallocation) const noexcept;
  // Returns: whether it is preallocated.
  bool close_preallocation() noexcept;
  void finish_preallocation() noexcept;
  void draw_all() noexcept;
  void undraw_all() noexcept;
  [[nodiscard]] FallbackPolicy fallback() const noexcept;
  void require_idle() const;
  [[noreturn]] void throw_busy() const;
  void begin_rebuild();
  void end_rebuild() noexcept;
  void take_block();
  void restore_block() noexcept;
  template <class Change, class TakeBlocks, class Undo>
  void rebuild_around(Change const& change, TakeBlocks const& take_blocks, Undo const& undo);
  void grow_block(std::int64_t taken);
  [[nodiscard]] ReservationBlock& split_block(std::int64_t charge);
  void merge_into_block(ReservationBlock& other);
  [[nodiscard]] std::int64_t leave_block();
  [[nodiscard]] std::int64_t move_into_block_of(ReservationBlock& other);
  std::int64_t move_all_to(ReservationBlock& other);
  [[nodiscard]] ReservationBlock& split_off(std::int64_t charge);
  [[nodiscard]] std::int64_t shrink_preallocation() noexcept;
  [[nodiscard]] std::int64_t close_account() noexcept;
  [[nodiscard]] Draw draw_slowly(std::size_t bytes);
  // Counts an allocation. Best before the bytes are taken: a store after that would hold up the next atomic operation.
  void count(std::int64_t charge) noexcept;
  // Undoes that.
  void uncount(std::int64_t charge) noexcept;
  [[nodiscard]] Taken draw_growing(std::int64_t charge, ExhaustedPolicy policy) noexcept;
  // Returns: whether it was the last one.
  [[nodiscard]] bool drop_reference() noexcept {
    // The last owner needs no read-modify-write: nobody is left to race with.
    return references_.load(std::memory_order_acquire) == 1 || references_.fetch_sub(1, std::memory_order_acq_rel) == 1;
  }
  void last_reference_gone() noexcept;
  void recycle_if_settled() noexcept;
  // These return the block that it was merged into, if it was and is recycled now: its reference is the caller's.
  [[nodiscard]] ReservationBlock* end_of_references() noexcept;
  [[nodiscard]] ReservationBlock* try_recycle() noexcept;
  [[nodiscard]] ReservationBlock* recycle() noexcept;
  void observe(TraceKind kind, std::int64_t charge) noexcept;
  void fold_own_counters() noexcept;
  [[nodiscard]] LabelRecord::Counters unpack(std::uint64_t counters) const noexcept;
  [[noreturn]] void throw_short(Taken const& taken, std::int64_t charge) const;
  // For handlers. Throws: UpstreamOutOfMemory for a bad_alloc, else what is being handled.
  [[noreturn]] void throw_upstream_failure(std::int64_t charge) const;
  [[nodiscard]] ErrorFields fields(std::int64_t charge, std::int64_t balance) const noexcept;

  // What allocations change: threads that share a reservation meet here, at one line.
  Account account_;
  std::atomic<std::int64_t> peak_{0};
  // Allocations of the thread that made the first, which alone writes this: no read-modify-write. All others count on
  // their cores, for the label.
  std::atomic<std::uint64_t> own_counters_{0};
  std::atomic<void*> own_thread_{nullptr};

  // What they only read; some of it as the ledger has it, so that it is found without asking there:
  alignas(64) Ledger* ledger_{nullptr};
  std::uint32_t granule_mask_{0};
  bool observed_{false};
  std::atomic<std::int32_t> references_{0};
  std::atomic<std::uint8_t> use_{Use::Free};
  ExhaustedPolicy exhausted_{ExhaustedPolicy::Refuse};
  RefundPolicy refund_{RefundPolicy::AtClose};
  bool preallocated_{false};
  union {
    ReservationBlock* next_free_{nullptr};  // while pooled
    ReservationBlock* merged_into_;         // while in use: keeps the heir alive
  };
  BudgetCore* purse_{nullptr};
  std::atomic<LabelRecord*> label_{nullptr};
  std::atomic<BlockExtras*> extras_{nullptr};  // owned; what few reservations need
  alignas(void*) std::byte resource_[sizeof(void*)]{};
};

static_assert(sizeof(ReservationBlock) == 128, "a reservation costs two cache lines");

}  // namespace earmark::detail
