// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// The control block of one reservation: its account, its counters, and the resource object that non-owning references
// point at. Internal; `MemoryReservation` owns one, its resources share it. Blocks are pooled by their ledger and are
// 128 bytes, so a reservation costs no allocation of its own.
// Thread safety: any thread, but `close`, `merge_into` and `split` are for the owner of the handle.
// Ownership: reference-counted; a block whose last reference is gone returns to its ledger's pool once nothing is live.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <string_view>

#include "earmark/core/error.hpp"
#include "earmark/memory/account.hpp"
#include "earmark/memory/reservation_options.hpp"

namespace earmark::detail {

class Ledger;

// 128: two neighbours must not share what the hardware fetches in pairs of cache lines.
class alignas(128) ReservationBlock {
 public:
  using Label = FixedText<47>;
  // A charge that was taken from the balance for one allocation, and what was live with it.
  struct Draw {
    std::int64_t charge{0};
    std::int64_t live{0};
  };

  ReservationBlock() noexcept = default;
  ReservationBlock(ReservationBlock const&) = delete;
  ReservationBlock& operator=(ReservationBlock const&) = delete;

  // -- allocation: on the path of every allocation, touching nothing but this block ----------------------------------

  // Takes the charge for `bytes` (> 0) from the balance, as the exhausted policy allows.
  // Throws: ReservationExhausted, ReservationClosed.
  [[nodiscard]] Draw draw(std::size_t bytes);
  // Counts an allocation that the upstream made.
  void count(Draw const& draw) noexcept;
  // Gives a charge back: to the balance while open, else onward. Call after the upstream freed the bytes.
  void give_back(std::size_t bytes) noexcept;
  // Undoes a draw whose allocation failed. Call in a handler. Throws: UpstreamOutOfMemory for a bad_alloc, else
  // what is being handled.
  [[noreturn]] void fail(Draw const& draw);

  // As `draw` for bytes that are a charge already, without throwing: for nested budgets.
  [[nodiscard]] Taken try_draw(std::int64_t charge) noexcept;
  [[nodiscard]] Taken draw_anyway(std::int64_t charge) noexcept;

  // -- the handle's side ---------------------------------------------------------------------------------------------

  void close() noexcept;
  void merge_into(ReservationBlock& other) noexcept;
  void grow(std::size_t bytes, AllowOverbooking overbooking);
  [[nodiscard]] bool try_grow(std::size_t bytes) noexcept;
  std::int64_t shrink_to_fit() noexcept;
  // Returns: a block with one reference, holding `bytes` of this one's balance. Throws: ReservationExhausted,
  // ReservationClosed, std::bad_alloc.
  [[nodiscard]] ReservationBlock& split(std::size_t bytes);

  [[nodiscard]] Account& account() noexcept { return account_; }
  [[nodiscard]] Account const& account() const noexcept { return account_; }
  [[nodiscard]] Ledger& ledger() const noexcept { return *ledger_; }
  [[nodiscard]] Overbooking const& overbooking() const noexcept { return overbooking_; }
  [[nodiscard]] std::string_view label() const noexcept { return label_ == nullptr ? "" : label_->view(); }
  [[nodiscard]] RefundPolicy refund() const noexcept { return refund_; }
  [[nodiscard]] ExhaustedPolicy exhausted() const noexcept { return exhausted_; }
  [[nodiscard]] std::int64_t peak() const noexcept { return peak_.load(std::memory_order_relaxed); }

  // -- references ----------------------------------------------------------------------------------------------------

  void retain() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
  void release() noexcept {
    // The last owner needs no read-modify-write: nobody is left to race with.
    if (references_.load(std::memory_order_acquire) == 1 || references_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      last_reference_gone();
    }
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
  friend class Ledger;  // pools, opens and reads blocks

  enum Use : std::uint8_t { Free, InUse, Orphaned };  // orphaned: no references, but bytes still live

  // Allocations and their bytes in one word: the count in the low bits, granules above. Folded into the ledger's
  // totals long before either part can overflow.
  static constexpr int count_bits = 24;
  static constexpr std::uint64_t fold_mask = (std::uint64_t{1} << (count_bits - 1)) | (std::uint64_t{1} << 63);
  static constexpr std::int64_t largest_counted_granules = std::int64_t{1} << 32;

  [[nodiscard]] Taken draw_growing(std::int64_t charge, ExhaustedPolicy policy) noexcept;
  void last_reference_gone() noexcept;
  void recycle_if_settled() noexcept;
  void raise_peak(std::int64_t live) noexcept;
  [[nodiscard]] std::int64_t counted_bytes(std::uint64_t counters) const noexcept;
  [[nodiscard]] static std::int64_t counted_allocations(std::uint64_t counters) noexcept;
  void fold_counters() noexcept;
  void add_counters_to(AdaptorSnapshot& snapshot) const noexcept;
  void open(std::int64_t granted, Account& budget, Overbooking const& overbooking, Label const* label,
            ReservationOptions const& options) noexcept;
  [[noreturn]] void throw_short(Taken const& taken, std::int64_t charge) const;
  [[nodiscard]] ErrorFields fields(std::int64_t charge, std::int64_t balance) const noexcept;

  Account account_;
  Ledger* ledger_{nullptr};
  std::atomic<std::int64_t> peak_{0};
  std::atomic<std::uint64_t> counters_{0};
  std::atomic<std::int32_t> references_{0};
  std::atomic<std::uint8_t> use_{Use::Free};
  ExhaustedPolicy exhausted_{ExhaustedPolicy::Refuse};
  RefundPolicy refund_{RefundPolicy::AtClose};
  union {
    ReservationBlock* next_free_{nullptr};  // while pooled
    ReservationBlock* merged_into_;         // while in use: keeps the heir alive
  };
  Label const* label_{nullptr};
  Overbooking overbooking_{};
  alignas(void*) std::byte resource_[sizeof(void*)]{};
};

static_assert(sizeof(ReservationBlock) == 128, "a reservation costs two cache lines");

}  // namespace earmark::detail
