// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Whom a budget deals with: what a nested one stands on, and who owns it. Internal; see `BasicBudget`.
// Thread safety: any thread. Ownership: both are borrowed, and outlive the budget.
#pragma once

#include <cstdint>

#include "earmark/memory/account.hpp"

namespace earmark::detail {

// What a nested budget stands on.
template <class Atomics>
class BasicLender {
 public:
  [[nodiscard]] virtual BasicAccount<Atomics>& account() noexcept = 0;
  [[nodiscard]] virtual Taken take(std::int64_t bytes) noexcept = 0;
  [[nodiscard]] virtual Taken take_anyway(std::int64_t bytes) noexcept = 0;
  [[nodiscard]] virtual Taken take_up_to(std::int64_t bytes, std::int64_t at_least, std::int64_t granule,
                                         std::int64_t& taken) noexcept = 0;
  // From `subscribe` (which may throw std::bad_alloc) on, `waiters` is told of everything that a take could find.
  virtual void subscribe(Waiters& waiters) = 0;
  virtual void unsubscribe(Waiters& waiters) noexcept = 0;
  // Takes may have given bytes back without telling anybody, since locks were held: see `BasicBudget::settle`.
  virtual void settle() noexcept {}
  // The caller is about to wait: see `BasicBudget::tell_those_left`.
  virtual void tell_those_left() noexcept {}

 protected:
  ~BasicLender() = default;
};

// Who keeps a budget alive, and wants to know when somebody waits for memory.
class BudgetOwner {
 public:
  virtual void hold_budget() noexcept = 0;
  virtual void let_go_of_budget() noexcept = 0;
  // Called outside every lock when what is missing changed.
  virtual void pressure_changed() noexcept = 0;

 protected:
  ~BudgetOwner() = default;
};

}  // namespace earmark::detail
