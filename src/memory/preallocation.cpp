// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// What a preallocated reservation does otherwise than others.
#include "memory/preallocation.hpp"

#include <algorithm>
#include <bit>
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
  if (!std::has_single_bit(request.alignment)) [[unlikely]] {
    std::int64_t const charge = ledger_->charge(request.bytes);
    ErrorFields fields = this->fields(charge < 0 ? Budget::max_bytes : charge, balance());
    fields.setting.assign("the alignment: a power of two");
    throw ReservationExhausted(fields);
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
  if (is_new_peak(piece.live)) { raise_peak(piece.live); }
  std::int64_t const charge = charge_of_live(request.bytes);
  count(charge);
  note_allocation(charge);
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
    std::int64_t const charge = charge_of_live(request.bytes);
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
  std::int64_t const charge = charge_of_live(request.bytes);
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
  std::unique_ptr<Preallocation> made;
  try {
    made = std::make_unique<Preallocation>(*ledger_, static_cast<std::size_t>(account_.granted()), fallback);
  }
  catch (...) {
    throw_upstream_failure(account_.granted());
  }
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

void ReservationBlock::require_idle() const {
  if (preallocation().carver().live_blocks() != 0) { throw_busy(); }
}
void ReservationBlock::throw_busy() const {
  throw ReservationMismatch(fields(0, 0), "a preallocated reservation with live allocations keeps its block");
}

// From here who allocates waits, and the account has what the carver had. Nothing may be called back before the end:
// that might allocate here, on this thread.
void ReservationBlock::begin_rebuild() {
  if (!preallocation().carver().begin_rebuild()) {
    if (closed()) { throw ReservationClosed(fields(0, 0)); }
    throw_busy();
  }
  undraw_all();
}

void ReservationBlock::end_rebuild() noexcept {
  draw_all();
  preallocation().carver().end_rebuild(Carver::Then::Open);
}

// Takes a block for all that the account has. Throws: UpstreamOutOfMemory.
void ReservationBlock::take_block() {
  try {
    preallocation().take(static_cast<std::size_t>(account_.granted()));
  }
  catch (...) {
    throw_upstream_failure(account_.granted());
  }
}

// As it was, after a change that failed: the upstream had this block a moment ago. If somebody else was faster, there
// is nothing that could be allocated here, and the reservation closes.
void ReservationBlock::restore_block() noexcept {
  try {
    take_block();
    end_rebuild();
  }
  catch (...) {
    preallocation().carver().end_rebuild(Carver::Then::Open);
    close();
  }
}

// Gives the block back and takes others by `take_blocks`, after `change` moved bytes of the account. The old one goes
// first: upstream and reservation would else hold more than was granted. Throws: ReservationMismatch if something is
// live, ReservationClosed, what `change` throws: then nothing happened. What `take_blocks` throws: then `undo` moved
// the bytes back, and the reservation has a block of the old size, or is closed.
template <class Change, class TakeBlocks, class Undo>
void ReservationBlock::rebuild_around(Change const& change, TakeBlocks const& take_blocks, Undo const& undo) {
  begin_rebuild();
  try {
    change();
  }
  catch (...) {
    end_rebuild();
    throw;
  }
  preallocation().give_back();
  try {
    take_blocks();
  }
  catch (...) {
    preallocation().give_back();
    undo();
    restore_block();
    throw;
  }
  end_rebuild();
}

// `taken`: bytes of the budget; if there is no block with them, they go back there.
void ReservationBlock::grow_block(std::int64_t taken) {
  try {
    rebuild_around([&] { account_.grow(taken); }, [&] { take_block(); }, [&] { (void)account_.detach(taken); });
  }
  catch (...) {
    purse_->credit(taken);
    throw;
  }
}

ReservationBlock& ReservationBlock::split_block(std::int64_t charge) {
  ReservationBlock* piece = nullptr;
  rebuild_around([&] { piece = &split_off(charge); },
                 [&] {
                   take_block();
                   piece->preallocate(fallback());
                 },
                 [&] {
                   (void)piece->move_all_to(*this);
                   piece->drop();
                 });
  return *piece;
}

// Moves all that it has to the account of `other`: it must not have lent any of it. Returns: how much.
std::int64_t ReservationBlock::move_all_to(ReservationBlock& other) {
  std::int64_t const all = account_.granted();
  if (account_.detach(all).result != Take::Ok) {
    throw ReservationMismatch(fields(0, 0), "a reservation with live allocations has no place in a preallocated one");
  }
  other.account_.grow(all);
  return all;
}

// One of the two is preallocated.
void ReservationBlock::merge_into_block(ReservationBlock& other) {
  std::int64_t const all = other.preallocated_ ? move_into_block_of(other) : leave_block();
  ledger_->trace(TraceKind::Merge, &label_record(), all, &other);
  if (preallocated_) { preallocation().carver().end_rebuild(Carver::Then::Closed); }
  if (std::int64_t const unspent = account_.close_and_take_unspent(); unspent != 0) { purse_->credit(unspent); }
  if (!other.preallocated_) { other.account_.grow(all); }  // last: it may call back
}

// Returns: its bytes, which nobody has now.
std::int64_t ReservationBlock::leave_block() {
  begin_rebuild();
  preallocation().give_back();
  std::int64_t const all = account_.granted();
  (void)account_.detach(all);
  return all;
}

// What is live here would lie outside the other's block, and has no room in a new one. Returns: how many bytes.
std::int64_t ReservationBlock::move_into_block_of(ReservationBlock& other) {
  std::optional<std::int64_t> moved;
  try {
    other.rebuild_around(
        [&] {
          if (preallocated_) { begin_rebuild(); }
          moved = move_all_to(other);
        },
        [&] {
          if (preallocated_) { preallocation().give_back(); }
          other.take_block();
        },
        [&] { (void)other.account_.detach(*moved); });
  }
  catch (...) {
    if (moved) {
      account_.grow(*moved);
      if (preallocated_) { restore_block(); }
    }
    throw;
  }
  return *moved;
}

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
