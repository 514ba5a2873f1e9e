// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// A reservation as what a nested adaptor's budget stands on. Internal; see `Ledger`.
// Thread safety: any thread. Ownership: holds a reference to the reservation's block.
#pragma once

#include <cstdint>

#include "earmark/memory/basic_budget.hpp"
#include "earmark/memory/ledger.hpp"
#include "earmark/memory/reservation_block.hpp"

namespace earmark::detail {

class BlockLender final : public BasicLender<StdAtomics> {
 public:
  // Throws: std::bad_alloc.
  explicit BlockLender(ReservationBlock& block) : block_(block), waiters_(block.waiters()) { block_.retain(); }
  BlockLender(BlockLender const&) = delete;
  BlockLender& operator=(BlockLender const&) = delete;
  ~BlockLender() { block_.release(); }

  [[nodiscard]] ReservationBlock& block() const noexcept { return block_; }
  [[nodiscard]] Account& account() noexcept override { return block_.account(); }
  [[nodiscard]] Taken take(std::int64_t bytes) noexcept override { return block_.try_draw(bytes); }
  [[nodiscard]] Taken take_anyway(std::int64_t bytes) noexcept override { return block_.draw_anyway(bytes); }
  [[nodiscard]] Taken take_up_to(std::int64_t bytes, std::int64_t at_least, std::int64_t granule,
                                 std::int64_t& taken) noexcept override {
    taken = bytes;
    Taken const whole = block_.try_draw(bytes);
    if (whole.result != Take::Short) { return whole; }
    return block_.account().take_up_to(bytes, at_least, granule, taken);
  }
  void subscribe(Waiters& waiters) override {
    waiters_.add(waiters, [this] { block_.account().announce(); });
    if (!grows()) { return; }
    try {
      block_.purse().queue_keeper().subscribe(waiters);
    }
    catch (...) {
      leave(waiters);
      throw;
    }
  }
  void unsubscribe(Waiters& waiters) noexcept override {
    if (grows()) { block_.purse().queue_keeper().unsubscribe(waiters); }
    leave(waiters);
  }
  void settle() noexcept override { block_.purse().settle(); }
  void tell_those_left() noexcept override { block_.purse().queue_keeper().tell_those_left(); }

 private:
  // Whether what comes back to the reservation's own budget counts as well.
  [[nodiscard]] bool grows() const noexcept { return block_.exhausted() != ExhaustedPolicy::Refuse; }
  void leave(Waiters& waiters) noexcept {
    waiters_.remove(waiters, [this] { block_.account().announce_no_more(); });
  }

  ReservationBlock& block_;
  BasicWaiterList<StdAtomics>& waiters_;
};

}  // namespace earmark::detail
