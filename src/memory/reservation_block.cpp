// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/memory/reservation_block.hpp"

#include <algorithm>
#include <new>

#include "earmark/memory/errors.hpp"
#include "earmark/memory/ledger.hpp"

namespace earmark::detail {

void ReservationBlock::open(std::int64_t granted, Account& budget, Overbooking const& overbooking, Label const* label,
                            ReservationOptions const& options) noexcept {
  peak_.store(0, std::memory_order_relaxed);
  counters_.store(0, std::memory_order_relaxed);
  references_.store(1, std::memory_order_relaxed);
  use_.store(Use::InUse, std::memory_order_relaxed);
  exhausted_ = options.exhausted;
  refund_ = options.refund;
  merged_into_ = nullptr;
  label_ = label;
  overbooking_ = overbooking;
  account_.open(granted, &budget);
}

Taken ReservationBlock::draw_growing(std::int64_t charge, ExhaustedPolicy policy) noexcept {
  for (;;) {
    Taken const taken = account_.try_take(charge);
    if (taken.result != Take::Short || policy == ExhaustedPolicy::Refuse) { return taken; }
    std::int64_t const missing = charge - taken.available;
    Taken const more =
        policy == ExhaustedPolicy::GrowOrOverbook ? ledger_->take_anyway(missing) : ledger_->take(missing);
    if (more.result != Take::Ok) { return taken; }
    // Another thread may draw what was grown here; then the next round grows again.
    account_.grow(missing);
  }
}

Taken ReservationBlock::try_draw(std::int64_t charge) noexcept { return draw_growing(charge, exhausted_); }

Taken ReservationBlock::draw_anyway(std::int64_t charge) noexcept {
  return draw_growing(charge, ExhaustedPolicy::GrowOrOverbook);
}

void ReservationBlock::fail(Draw const& draw) {
  account_.credit(draw.charge);
  ErrorFields fields = this->fields(draw.charge, account_.available());
  fields.shortfall = 0;  // the ledger had granted it
  fields.setting.assign("the upstream's capacity");
  try {
    throw;
  }
  catch (std::bad_alloc const& cause) {
    throw UpstreamOutOfMemory(fields, cause.what());
  }
}

void ReservationBlock::throw_short(Taken const& taken, std::int64_t charge) const {
  ErrorFields fields = this->fields(charge, taken.available);
  if (taken.result == Take::Closed) { throw ReservationClosed(fields); }
  fields.setting.assign(exhausted_ == ExhaustedPolicy::Refuse
                            ? "the reservation's size, or ExhaustedPolicy::GrowOrRefuse"
                            : "the adaptor's limit");
  throw ReservationExhausted(fields);
}

ErrorFields ReservationBlock::fields(std::int64_t charge, std::int64_t balance) const noexcept {
  ErrorFields fields = ledger_->fields(charge, std::max<std::int64_t>(charge - balance, 0));
  fields.live = account_.read().live();
  return fields;
}

void ReservationBlock::close() noexcept { account_.close(); }

void ReservationBlock::merge_into(ReservationBlock& other) noexcept {
  if (account_.closed()) { return; }  // nothing left to hand over: what is live goes to the budget
  other.retain();
  merged_into_ = &other;
  account_.merge_into(other.account_);
}

void ReservationBlock::grow(std::size_t bytes, AllowOverbooking overbooking) {
  std::int64_t const charge = ledger_->charge(bytes);
  if (charge < 0) { ledger_->refuse(bytes, charge, {Take::Short, 0}); }
  if (account_.closed()) { throw ReservationClosed(fields(charge, 0)); }
  Taken const taken = overbooking == AllowOverbooking::YES ? ledger_->take_anyway(charge) : ledger_->take(charge);
  if (taken.result != Take::Ok) { ledger_->refuse(bytes, charge, taken); }
  account_.grow(charge);
}

bool ReservationBlock::try_grow(std::size_t bytes) noexcept {
  std::int64_t const charge = ledger_->charge(bytes);
  if (charge < 0 || account_.closed() || ledger_->take(charge).result != Take::Ok) { return false; }
  return account_.grow(charge);
}

std::int64_t ReservationBlock::shrink_to_fit() noexcept {
  std::int64_t const unspent = account_.detach_unspent();
  if (unspent != 0) { ledger_->credit(unspent); }
  return unspent;
}

ReservationBlock& ReservationBlock::split(std::size_t bytes) {
  std::int64_t const charge = ledger_->charge(bytes);
  if (charge < 0) { throw_short({Take::Short, account_.available()}, Budget::max_bytes); }
  Taken const taken = account_.detach(charge);
  if (taken.result != Take::Ok) { throw_short(taken, charge); }
  ReservationOptions options;
  options.label = label();
  options.exhausted = exhausted_;
  options.refund = refund_;
  try {
    return ledger_->make_block(charge, Overbooking{charge, 0, 0}, options);
  }
  catch (std::bad_alloc const&) {
    account_.grow(charge);
    throw;
  }
}

void ReservationBlock::last_reference_gone() noexcept {
  account_.close();
  references_.store(0, std::memory_order_relaxed);
  // Bytes still live here were allocated through a reference that nobody holds any more: keep the block, so that
  // `outstanding()` can name them and a late free finds its way.
  use_.exchange(Use::Orphaned, std::memory_order_acq_rel);
  recycle_if_settled();
}

void ReservationBlock::recycle_if_settled() noexcept {
  // A read-modify-write of `use_` on both sides, so that of the last free and the last release one sees the other.
  std::uint8_t expected = use_.fetch_or(0, std::memory_order_acq_rel);
  if (expected != Use::Orphaned || account_.granted() != 0) { return; }
  if (use_.compare_exchange_strong(expected, Use::InUse, std::memory_order_acq_rel)) { ledger_->recycle(*this); }
}

void ReservationBlock::raise_peak(std::int64_t live) noexcept {
  std::int64_t peak = peak_.load(std::memory_order_relaxed);
  while (live > peak && !peak_.compare_exchange_weak(peak, live, std::memory_order_relaxed)) {}
}

std::int64_t ReservationBlock::counted_bytes(std::uint64_t counters) const noexcept {
  return static_cast<std::int64_t>((counters >> count_bits) << ledger_->granule_shift());
}

std::int64_t ReservationBlock::counted_allocations(std::uint64_t counters) noexcept {
  return static_cast<std::int64_t>(counters & ((std::uint64_t{1} << count_bits) - 1));
}

void ReservationBlock::fold_counters() noexcept {
  if (counters_.load(std::memory_order_relaxed) == 0) { return; }
  std::uint64_t const counters = counters_.exchange(0, std::memory_order_relaxed);
  ledger_->add_totals(counted_bytes(counters), counted_allocations(counters));
}

void ReservationBlock::add_counters_to(AdaptorSnapshot& snapshot) const noexcept {
  std::uint64_t const counters = counters_.load(std::memory_order_relaxed);
  snapshot.total_allocated += counted_bytes(counters);
  snapshot.allocation_count += counted_allocations(counters);
}

}  // namespace earmark::detail
