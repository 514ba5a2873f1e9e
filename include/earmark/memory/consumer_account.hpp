// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// What the copies of a `Consumer` and its reservations share. Internal.
// Thread safety: any thread. Ownership: counted by handles and reservations; keeps the ledger.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "earmark/core/error.hpp"
#include "earmark/memory/basic_budget.hpp"
#include "earmark/memory/ledger.hpp"

namespace earmark::detail {

class ConsumerAccount final : private BudgetOwner {
 public:
  // With one reference, for the caller. Throws: std::bad_alloc.
  ConsumerAccount(Ledger& ledger, std::string_view name, std::int64_t quota);
  ConsumerAccount(ConsumerAccount const&) = delete;
  ConsumerAccount& operator=(ConsumerAccount const&) = delete;

  void retain() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
  void release() noexcept;

  [[nodiscard]] Ledger& ledger() const noexcept { return ledger_; }
  [[nodiscard]] std::string_view name() const noexcept { return name_.view(); }
  [[nodiscard]] BudgetCore& budget() noexcept { return budget_; }
  void abort() noexcept;

 private:
  ~ConsumerAccount();
  void hold_budget() noexcept override { retain(); }
  void let_go_of_budget() noexcept override { release(); }
  void pressure_changed() noexcept override {}  // its requests wait in the ledger's queue

  Ledger& ledger_;
  FixedText<47> name_;
  TraceLabel traced_as_;
  BudgetCore budget_;
  std::atomic<std::int32_t> references_{1};
};

}  // namespace earmark::detail
