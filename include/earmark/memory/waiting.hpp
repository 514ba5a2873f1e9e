// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// The two ways to stand in a budget's queue: with a thread, or with a function to be called. Internal; `Budget`,
// `reserve_blocking` and `async_reserve` are made of them.
// Thread safety: any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "earmark/core/clock.hpp"
#include "earmark/memory/basic_budget.hpp"
#include "earmark/memory/label_record.hpp"
#include "earmark/memory/reservation_options.hpp"

namespace earmark::detail {

using BudgetCore = BasicBudget<StdAtomics>;

// What is asked for, on whose behalf.
struct Wish {
  std::int64_t bytes{0};
  BudgetCore& purse;
  LabelRecord const* label{nullptr};
};

// A request in a budget's queue, as reports show it.
class Waiting : public BasicWaitRequest<StdAtomics> {
 public:
  Waiting(Wish const& wish, WaitOptions const& options, Clock::time_point since, Completion completion) noexcept
      : BasicWaitRequest(wish.bytes, wish.purse, options.priority, options.net_memory_delta, completion),
        label_(wish.label),
        since_(since) {}

  [[nodiscard]] LabelRecord const* label() const noexcept { return label_; }
  [[nodiscard]] Clock::time_point since() const noexcept { return since_; }

 protected:
  ~Waiting() = default;

 private:
  LabelRecord const* label_;
  Clock::time_point since_;
};

// Takes what is wished for, waiting for its turn. Blocks: until that is decided.
// Returns: Ok (taken, or at the deadline overbooked); Short at the deadline; Aborted, Impossible or Closed.
// Throws: std::bad_alloc (only of a nested budget); then nothing happened.
[[nodiscard]] Taken wait_blocking(Wish const& wish, WaitOptions const& options, Clock const& clock);

// The same without a thread: `done` is called once with the outcome, on `options.executor` if there is one (unless that
// drops it), else before this returns or on the thread that brought the bytes back, where it begins when whatever that
// thread is calling back for this budget already has returned. It must not throw, nor wait for another's. Until then it
// keeps alive what it has captured, and must so keep the budget. `decided`: the outcome, where it is known already.
// Throws: std::bad_alloc; then `done` is not called.
void wait_async(Wish const& wish, WaitOptions const& options, Clock const& clock, std::function<void(Taken)> done,
                std::optional<Taken> const& decided = std::nullopt);

}  // namespace earmark::detail
