// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// What few reservations have, and those that do not should not pay for. Internal; see `ReservationBlock`.
// Thread safety: set before the reservation is shared, but for `waiters`, which guards itself. Ownership: owns all of
// it.
#pragma once

#include <atomic>
#include <optional>

#include "earmark/core/call_stack.hpp"
#include "earmark/memory/account.hpp"
#include "earmark/memory/reservation_options.hpp"
#include "earmark/memory/waiter_list.hpp"

namespace earmark::detail {

class Preallocation;

struct BlockExtras {
  BlockExtras() = default;
  BlockExtras(BlockExtras const&) = delete;
  BlockExtras& operator=(BlockExtras const&) = delete;
  ~BlockExtras();

  std::optional<Overbooking> overbooking;              // if granting it took any
  std::optional<CallStack> reserved_at;                // if call stacks are recorded
  std::atomic<Preallocation*> preallocation{nullptr};  // if it is preallocated
  BasicWaiterList<StdAtomics> waiters;                 // nested adaptors that wait for its bytes
};

}  // namespace earmark::detail
