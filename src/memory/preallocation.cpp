// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// What a preallocated reservation does otherwise than others.
#include "memory/preallocation.hpp"

#include <algorithm>
#include <memory>
#include <memory_resource>
#include <new>
#include <optional>
#include <span>
#include <utility>

#include "earmark/memory/errors.hpp"
#include "earmark/memory/ledger.hpp"
#include "earmark/memory/resource_concepts.hpp"

namespace earmark::detail {

Preallocation::Preallocation(Ledger& ledger, std::size_t bytes, FallbackPolicy fallback)
    : carver_(ledger.granularity(), ledger.events(), *std::pmr::new_delete_resource()),
      ledger_(ledger),
      fallback_(fallback) {
  take(bytes);
}

void Preallocation::give_back() noexcept {
  if (base_ == nullptr) { return; }
  carver_.vacate(no_stream());
  ledger_.deallocate_upstream(no_stream(), std::exchange(base_, nullptr), bytes_, ledger_.granularity());
}

void Preallocation::take(std::size_t bytes) {
  if (bytes == 0) { return; }
  void* const base = ledger_.allocate_upstream(no_stream(), bytes, ledger_.granularity());
  try {
    carver_.occupy({static_cast<std::byte*>(base), bytes}, no_stream());
  }
  catch (...) {
    ledger_.deallocate_upstream(no_stream(), base, bytes, ledger_.granularity());
    throw;
  }
  base_ = base;
  bytes_ = bytes;
}

BlockExtras::~BlockExtras() { delete preallocation.load(std::memory_order_relaxed); }

// -- allocation ------------------------------------------------------------------------------------------------------

void* ReservationBlock::allocate_within(Within const& request) {
  if (request.alignment == 0 || (request.alignment & (request.alignment - 1)) != 0) [[unlikely]] {
    throw std::bad_alloc{};
  }
  Carver::Refusal refusal;
  Carver::Piece piece;
  try {
    piece = preallocation().carver().allocate(request.bytes, request.alignment, request.stream, refusal);
  }
  catch (...) {
    if (refusal.last) { finish_preallocation(); }
    throw;
  }
  if (piece.pointer == nullptr) [[unlikely]] { return allocate_otherwise(request, refusal); }
  count({ledger_->charge_of_live(request.bytes), piece.live});
  return piece.pointer;
}

void* ReservationBlock::allocate_otherwise(Within const& request, Carver::Refusal const& refusal) {
  using Why = Carver::Refusal::Why;
  std::int64_t const charge = ledger_->charge(request.bytes);
  if (refusal.why == Why::Closed) { throw_short({Take::Closed, 0}, charge); }
  if (refusal.why == Why::Short) {
    throw_short({Take::Short, refusal.available}, charge < 0 ? Budget::max_bytes : charge);
  }
  if (preallocation().fallback() == FallbackPolicy::Upstream) { return allocate_beside(request); }
  ErrorFields fields = this->fields(charge, refusal.available);  // there is enough, but not in one piece
  fields.largest_hole = refusal.largest_hole;
  fields.setting.assign("FallbackPolicy::Upstream, or a larger reservation");
  throw ReservationExhausted(fields);
}

// From the upstream, charged to the budget beside the reservation.
void* ReservationBlock::allocate_beside(Within const& request) {
  std::int64_t const charge = ledger_->charge(request.bytes);
  Taken const taken = purse_->take(charge, Pass::Yes);
  if (taken.result != Take::Ok) { ledger_->refuse(request.bytes, charge, taken, *purse_, label_record()); }
  try {
    void* const pointer = request.stream ? ledger_->allocate_upstream(*request.stream, request.bytes, request.alignment)
                                         : ledger_->allocate_upstream_sync(request.bytes, request.alignment);
    ledger_->count_unreserved({charge, 0});
    return pointer;
  }
  catch (...) {
    purse_->credit(charge);
    throw_upstream_failure(charge);
  }
}

// Once the carver has the piece back, and others still hold some, the control block may go any time.
void ReservationBlock::deallocate_within(void* pointer, Within const& request) noexcept {
  Carver& carver = preallocation().carver();
  if (ledger_->observed()) [[unlikely]] {
    std::int64_t const charge = ledger_->charge_of_live(request.bytes);
    if (carver.owns(pointer)) { observe(TraceKind::Free, charge); }
  }
  Carver::Freed const freed = carver.deallocate(pointer, request.stream);
  if (freed.last) [[unlikely]] { return finish_preallocation(); }
  if (freed.bytes == 0) [[unlikely]] { deallocate_beside(pointer, request); }
}

void ReservationBlock::deallocate_beside(void* pointer, Within const& request) noexcept {
  if (request.stream) {
    ledger_->deallocate_upstream(*request.stream, pointer, request.bytes, request.alignment);
  } else {
    ledger_->deallocate_upstream_sync(pointer, request.bytes, request.alignment);
  }
  std::int64_t const charge = ledger_->charge_of_live(request.bytes);
  if (ledger_->tracks_exactly()) { ledger_->track(-charge); }
  if (ledger_->observed()) { ledger_->trace(TraceKind::Free, nullptr, charge); }
  purse_->credit(charge);
}

void ReservationBlock::forget_stream(cuda::stream_ref stream) noexcept {
  if (preallocated_) { preallocation().carver().forget_stream(stream); }
}

// -- beginning and end -----------------------------------------------------------------------------------------------

void ReservationBlock::preallocate(FallbackPolicy fallback) {
  BlockExtras& extras = make_extras();
  auto made = std::make_unique<Preallocation>(*ledger_, static_cast<std::size_t>(account_.granted()), fallback);
  draw_all();
  extras.preallocation.store(made.release(), std::memory_order_release);
  preallocated_ = true;
}

FallbackPolicy ReservationBlock::fallback() const noexcept { return preallocation().fallback(); }

// While it has memory, the account has nothing to give: all of it is lent to the carver.
void ReservationBlock::draw_all() noexcept { (void)account_.try_take(account_.available()); }
void ReservationBlock::undraw_all() noexcept {
  if (std::int64_t const drawn = account_.read().live(); drawn != 0) { account_.credit(drawn); }
}

Account::Reading ReservationBlock::reading_of(Preallocation const& preallocation) const noexcept {
  Carver::Reading const carved = preallocation.carver().read();
  Account::Reading reading = account_.read();
  if (reading.closed) { return reading; }
  reading.available = std::max<std::int64_t>(reading.granted - carved.live, 0);
  reading.closed = carved.closed;
  return reading;
}

bool ReservationBlock::closed() const noexcept {
  Preallocation const* const preallocation = find_preallocation();
  return account_.closed() || (preallocation != nullptr && preallocation->carver().read().closed);
}

bool ReservationBlock::close_preallocation() noexcept {
  if (!preallocated_) { return false; }
  if (preallocation().carver().close()) { finish_preallocation(); }
  return true;
}

// Nothing is live any more: its memory and its bytes go back, in this order. From when the account is empty, whoever
// drops the last reference may recycle the block: what is needed after that is held.
void ReservationBlock::finish_preallocation() noexcept {
  Ledger& ledger = *ledger_;
  BudgetCore& purse = *purse_;
  ledger.hold();
  if (purse.is_consumer()) { purse.owner()->hold_budget(); }
  preallocation().give_back();
  undraw_all();
  ledger.trace(TraceKind::Close, &label_record(), account_.granted(), this);
  std::int64_t const unspent = account_.close_and_take_unspent();
  if (unspent != 0) { purse.credit(unspent); }
  recycle_if_settled();
  if (purse.is_consumer()) { purse.owner()->let_go_of_budget(); }
  ledger.let_go();
}

// -- what changes its size -------------------------------------------------------------------------------------------

void ReservationBlock::begin_rebuild() {
  if (!preallocation().carver().begin_rebuild()) {
    throw ReservationMismatch(fields(0, 0), "a preallocated reservation with live allocations keeps its block");
  }
  preallocation().give_back();
  undraw_all();
}

// Throws: what the upstream throws: then the reservation has its bytes, but is closed.
void ReservationBlock::end_rebuild() {
  Carver& carver = preallocation().carver();
  try {
    preallocation().take(static_cast<std::size_t>(account_.granted()));
  }
  catch (...) {
    carver.end_rebuild(Carver::Then::Open);
    close();
    throw_upstream_failure(account_.granted());
  }
  draw_all();
  carver.end_rebuild(Carver::Then::Open);
}

void ReservationBlock::end_rebuild_closed() noexcept { preallocation().carver().end_rebuild(Carver::Then::Closed); }

std::int64_t ReservationBlock::shrink_preallocation() noexcept {
  Carver& carver = preallocation().carver();
  if (closed() || !carver.begin_rebuild()) { return 0; }  // its block is one piece
  preallocation().give_back();
  undraw_all();
  std::int64_t const unspent = account_.detach_unspent();
  carver.end_rebuild(Carver::Then::Open);
  return unspent;
}

}  // namespace earmark::detail
