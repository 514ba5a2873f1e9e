// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/memory/consumer.hpp"

#include "earmark/memory/budget.hpp"
#include "earmark/memory/consumer_account.hpp"

namespace earmark {
namespace detail {

ConsumerAccount::ConsumerAccount(Ledger& ledger, std::string_view name, std::int64_t quota)
    : ledger_(ledger), name_(name), traced_as_(ledger.trace_label(name)), budget_(quota, ledger.budget()) {
  budget_.belongs_to(this);
  ledger_.add_consumer(*this);
  ledger_.hold();
}

void ConsumerAccount::abort() noexcept {
  budget_.abort();
  ledger_.trace(TraceKind::Abort, traced_as_, 0, nullptr);
}

ConsumerAccount::~ConsumerAccount() { ledger_.remove_consumer(*this); }

void ConsumerAccount::release() noexcept {
  if (references_.fetch_sub(1, std::memory_order_acq_rel) != 1) { return; }
  Ledger& ledger = ledger_;
  delete this;
  ledger.let_go();
}

}  // namespace detail

Consumer::Consumer(Consumer const& other) noexcept : account_(other.account_) { account_->retain(); }
Consumer::~Consumer() { account_->release(); }

std::string_view Consumer::name() const noexcept { return account_->name(); }
std::int64_t Consumer::quota() const noexcept { return account_->budget().limit(); }
void Consumer::set_quota(std::size_t bytes) noexcept { account_->budget().set_limit(Budget::clamp(bytes)); }
std::int64_t Consumer::used() const noexcept { return account_->budget().read().committed; }
std::int64_t Consumer::peak_used() const noexcept { return account_->budget().peak(); }
void Consumer::abort() noexcept { account_->abort(); }
bool Consumer::aborted() const noexcept { return account_->budget().aborted(); }

}  // namespace earmark
