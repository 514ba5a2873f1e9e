// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/memory/reservation_block.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "earmark/memory/atomic_max.hpp"
#include "earmark/memory/errors.hpp"
#include "earmark/memory/ledger.hpp"

namespace earmark::detail {

void ReservationBlock::belongs_to(Ledger& ledger) noexcept {
  ledger_ = &ledger;
  granule_mask_ = static_cast<std::uint32_t>(ledger.granularity() - 1);
  observed_ = ledger.observed();
}

void ReservationBlock::open(std::int64_t granted, BudgetCore& purse, ReservationOptions const& options) noexcept {
  peak_.store(0, std::memory_order_relaxed);
  own_counters_.store(0, std::memory_order_relaxed);
  own_thread_.store(nullptr, std::memory_order_relaxed);
  references_.store(1, std::memory_order_relaxed);
  exhausted_ = options.exhausted;
  refund_ = options.refund;
  preallocated_ = false;
  merged_into_ = nullptr;
  purse_ = &purse;
  if (purse.is_consumer()) { purse.owner()->hold_budget(); }
  account_.open(granted, &purse.account());
  use_.store(Use::InUse, std::memory_order_release);
}

BlockExtras& ReservationBlock::make_extras() {
  BlockExtras* known = extras_.load(std::memory_order_acquire);
  if (known != nullptr) { return *known; }
  auto made = std::make_unique<BlockExtras>();
  if (extras_.compare_exchange_strong(known, made.get(), std::memory_order_acq_rel)) { return *made.release(); }
  return *known;
}

BasicWaiterList<StdAtomics>& ReservationBlock::waiters() {
  BasicWaiterList<StdAtomics>& waiters = make_extras().waiters;
  account_.wait_with(&waiters);
  return waiters;
}

Overbooking ReservationBlock::overbooking() const noexcept {
  BlockExtras const* const extras = this->extras();
  if (extras != nullptr && extras->overbooking) { return *extras->overbooking; }
  return {account_.granted(), 0, 0};
}

// -- drawing ---------------------------------------------------------------------------------------------------------

ReservationBlock::Draw ReservationBlock::draw_slowly(std::size_t bytes) {
  std::int64_t const charge = ledger_->charge(bytes);
  if (charge < 0) { throw_short({Take::Short, account_.available()}, Budget::max_bytes); }
  Taken const taken = try_draw(charge);
  purse_->settle();
  if (taken.result != Take::Ok) {
    uncount(charge);
    throw_short(taken, charge);
  }
  if (exhausted_ == ExhaustedPolicy::GrowOrOverbook) { ledger_->tell_of_overbooking(); }
  return {charge, account_.granted() - taken.available};
}

Taken ReservationBlock::draw_growing(std::int64_t charge, ExhaustedPolicy policy) noexcept {
  for (;;) {
    Taken taken = account_.try_take(charge);
    if (taken.result != Take::Short || policy == ExhaustedPolicy::Refuse || preallocated_) { return taken; }
    if (purse_->aborted()) { return {Take::Aborted, taken.available}; }
    std::int64_t const missing = charge - taken.available;
    // An allocation cannot wait, so it may pass those who do. Quietly: a nested budget whose lock the caller holds may
    // be among them.
    Taken const more = policy == ExhaustedPolicy::GrowOrOverbook ? purse_->take_anyway_quietly(missing)
                                                                 : purse_->take_quietly(missing, Pass::Yes);
    if (more.result != Take::Ok) { return taken; }
    taken = account_.grow_and_take(missing, charge);
    if (taken.result == Take::Ok) {
      ledger_->trace(TraceKind::Grow, &label_record(), missing, this);
      return taken;
    }
    purse_->credit_quietly(missing);  // another thread drew what was here: again
  }
}

Taken ReservationBlock::try_draw(std::int64_t charge) noexcept { return draw_growing(charge, exhausted_); }

Taken ReservationBlock::draw_anyway(std::int64_t charge) noexcept {
  return draw_growing(charge, ExhaustedPolicy::GrowOrOverbook);
}

void ReservationBlock::fail(std::int64_t charge) {
  account_.credit(charge);
  uncount(charge);
  throw_upstream_failure(charge);
}

void ReservationBlock::throw_upstream_failure(std::int64_t charge) const {
  rethrow_from_upstream(fields(charge, account_.available()));
}

void ReservationBlock::throw_short(Taken const& taken, std::int64_t charge) const {
  ErrorFields fields = this->fields(charge, taken.available);
  if (taken.result == Take::Closed) { throw ReservationClosed(fields); }
  if (taken.result == Take::Aborted) { throw ReservationAborted(fields); }
  ledger_->trace(TraceKind::Exhausted, &label_record(), charge, this);
  fields.setting.assign(exhausted_ == ExhaustedPolicy::Refuse
                            ? "the reservation's size, or ExhaustedPolicy::GrowOrRefuse"
                            : ledger_->room(*purse_).bound);
  throw ReservationExhausted(fields);
}

ErrorFields ReservationBlock::fields(std::int64_t charge, std::int64_t balance) const noexcept {
  ErrorFields fields = ledger_->fields(charge, std::max<std::int64_t>(charge - balance, 0));
  fields.live = reading().live();
  return fields;
}

// -- the handle's side -----------------------------------------------------------------------------------------------

void ReservationBlock::close() noexcept {
  if (account_.closed()) { return; }
  if (close_preallocation()) { return; }
  std::int64_t const unspent = close_account();
  if (ledger_->observed()) [[unlikely]] { ledger_->trace(TraceKind::Close, &label_record(), unspent, this); }
  if (unspent != 0) { purse_->credit(unspent); }
}

std::int64_t ReservationBlock::close_account() noexcept {
  if (references_.load(std::memory_order_acquire) == 1) {
    if (auto const unspent = account_.close_alone()) { return *unspent; }
  }
  return account_.close_and_take_unspent();
}

void ReservationBlock::drop() noexcept {
  if (refund_ == RefundPolicy::AtClose) { close(); }
  release();
}

void ReservationBlock::merge_into(ReservationBlock& other) {
  if (closed()) { return; }  // nothing left to hand over: what is live goes to the budget
  if (preallocated_ || other.preallocated_) { return merge_into_block(other); }
  other.retain();
  merged_into_ = &other;
  ledger_->trace(TraceKind::Merge, &label_record(), account_.granted(), &other);
  account_.merge_into(other.account_);
}

void ReservationBlock::grow(std::size_t bytes, AllowOverbooking overbooking) {
  std::int64_t const charge = ledger_->charge(bytes);
  if (charge < 0) { ledger_->refuse(bytes, charge, {Take::Short, 0}, *purse_, label_record()); }
  if (closed()) { throw ReservationClosed(fields(charge, 0)); }
  if (preallocated_) { require_idle(); }
  Taken const taken = ledger_->take_for(*purse_, charge, overbooking);
  if (taken.result != Take::Ok) { ledger_->refuse(bytes, charge, taken, *purse_, label_record()); }
  if (preallocated_) {
    grow_block(charge);
  } else {
    account_.grow(charge);
  }
  ledger_->trace(TraceKind::Grow, &label_record(), charge, this);
  if (overbooking == AllowOverbooking::YES) { ledger_->tell_of_overbooking(); }
}

bool ReservationBlock::try_grow(std::size_t bytes) noexcept {
  std::int64_t const charge = ledger_->charge(bytes);
  if (charge < 0 || closed() || preallocated_) { return false; }
  if (ledger_->take_for(*purse_, charge).result != Take::Ok || !account_.grow(charge)) { return false; }
  ledger_->trace(TraceKind::Grow, &label_record(), charge, this);
  return true;
}

std::int64_t ReservationBlock::shrink_to_fit() noexcept {
  std::int64_t const unspent = preallocated_ ? shrink_preallocation() : account_.detach_unspent();
  ledger_->trace(TraceKind::Shrink, &label_record(), unspent, this);
  if (unspent != 0) { purse_->credit(unspent); }
  return unspent;
}

ReservationBlock& ReservationBlock::split(std::size_t bytes) {
  std::int64_t const charge = ledger_->charge(bytes);
  if (charge < 0) { throw_short({Take::Short, account_.available()}, Budget::max_bytes); }
  if (closed()) { throw_short({Take::Closed, 0}, charge); }
  ReservationBlock& piece = preallocated_ ? split_block(charge) : split_off(charge);
  ledger_->trace(TraceKind::Split, &label_record(), charge, this);
  return piece;
}

ReservationBlock& ReservationBlock::split_off(std::int64_t charge) {
  Taken const taken = account_.detach(charge);
  if (taken.result != Take::Ok) { throw_short(taken, charge); }
  ReservationOptions options;
  options.label = label();
  options.exhausted = exhausted_;
  options.refund = refund_;
  try {
    return ledger_->make_block(charge, *purse_, options);
  }
  catch (std::bad_alloc const&) {
    account_.grow(charge);
    throw;
  }
}

// -- the end ---------------------------------------------------------------------------------------------------------

// A chain of merges may be long: no call for each link.
void ReservationBlock::last_reference_gone() noexcept {
  ReservationBlock* kept = end_of_references();
  while (kept != nullptr && kept->drop_reference()) { kept = kept->end_of_references(); }
}

void ReservationBlock::recycle_if_settled() noexcept {
  if (ReservationBlock* const kept = try_recycle(); kept != nullptr) { kept->release(); }
}

ReservationBlock* ReservationBlock::end_of_references() noexcept {
  close();
  references_.store(0, std::memory_order_relaxed);
  // Without a reference and without live bytes it is nobody's but ours.
  if (account_.closed() && account_.granted() == 0) { return recycle(); }
  // Bytes still live here were allocated through a reference that nobody holds any more: keep the block, so that
  // `outstanding()` can name them and a late free finds its way.
  use_.exchange(Use::Orphaned, std::memory_order_acq_rel);
  return try_recycle();
}

ReservationBlock* ReservationBlock::try_recycle() noexcept {
  // A read-modify-write of `use_` on both sides, so that of the last free and the last release one sees the other.
  std::uint8_t expected = use_.fetch_or(0, std::memory_order_acq_rel);
  if (expected != Use::Orphaned || !account_.closed() || account_.granted() != 0) { return nullptr; }
  return use_.compare_exchange_strong(expected, Use::InUse, std::memory_order_acq_rel) ? recycle() : nullptr;
}

ReservationBlock* ReservationBlock::recycle() noexcept {
  BudgetCore& purse = *purse_;
  ReservationBlock* const heir = merged_into_;
  Ledger& ledger = *ledger_;
  ledger.note_peak(peak());
  bool const of_consumer = purse.is_consumer();  // now: with the block goes its reference to the ledger
  bool const last = ledger.pool().put(*this);
  if (of_consumer) { purse.owner()->let_go_of_budget(); }
  if (last) { ledger.end(); }  // then there is no heir: it would be a block of the ledger in use
  return heir;
}

// -- counters and traces ---------------------------------------------------------------------------------------------

void ReservationBlock::observe(TraceKind kind, std::int64_t charge) noexcept {
  if (ledger_->tracks_exactly()) { ledger_->track(kind == TraceKind::Allocate ? charge : -charge); }
  ledger_->trace(kind, &label_record(), charge, this);
}

void ReservationBlock::raise_peak(std::int64_t live) noexcept { raise(peak_, live); }

LabelRecord::Counters ReservationBlock::unpack(std::uint64_t counters) const noexcept {
  return {0, static_cast<std::int64_t>(counters & ((std::uint64_t{1} << count_bits) - 1)),
          static_cast<std::int64_t>(counters >> count_bits), 0};
}

void ReservationBlock::uncount(std::int64_t charge) noexcept {
  ledger_->pool().count(label_record(), {0, -1, -charge, 0});
}

void ReservationBlock::fold_own_counters() noexcept {
  ledger_->pool().count(label_record(), unpack(own_counters_.exchange(0, std::memory_order_relaxed)));
}

LabelRecord::Counters ReservationBlock::counters() const noexcept {
  LabelRecord::Counters counters = unpack(own_counters_.load(std::memory_order_relaxed));
  counters.reservations = 1;
  counters.peak = peak();
  return counters;
}

}  // namespace earmark::detail
