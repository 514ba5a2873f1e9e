// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "memory/carver.hpp"

#include <bit>
#include <limits>
#include <thread>
#include <utility>

namespace earmark::detail {

namespace {

using SlotState = StreamSlot::State;

// Whether a stream with slot `own` may have a hole without waiting.
struct Ready {
  StreamSlots const& slots;
  SlotNumber own;
  bool operator()(Extent const& hole) const noexcept { return slots.ready(hole.slot, own); }
};

constexpr std::uint64_t align_up(std::uint64_t value, std::uint64_t alignment) noexcept {
  return (value + alignment - 1) & ~(alignment - 1);
}

}  // namespace

Carver::Carver(std::size_t granularity, StreamEvents& events, std::pmr::memory_resource& metadata)
    : events_(events),
      metadata_(metadata),
      at_once_(events.order() == StreamEvents::Order::AtOnce),
      shift_(std::countr_zero(granularity)),
      live_(metadata),
      pool_(metadata),
      slots_(events, metadata),
      holes_(0, metadata) {
  edge_.previous = edge_.next = &edge_;
  edge_.slot = Extent::no_slot;
}

void Carver::occupy(std::span<std::byte> block, OptionalStream ready_on) {
  std::uint64_t const granules = block.size() >> shift_;
  HoleIndex holes(granules, metadata_);
  bool const by_stream = ready_on && !at_once_;
  bool const per_thread = by_stream && ready_on->get() == cudaStreamPerThread;
  EventHandle mark = per_thread ? events_.record(*ready_on) : EventHandle{};
  BasicMutexLock<SpinLock> const lock{lock_};
  try {
    reserve_records();
  }
  catch (...) {
    if (mark != EventHandle{}) { events_.release(mark); }
    throw;
  }
  SlotNumber slot = StreamSlots::done;
  if (by_stream) {
    slot = slots_.find_or_take(*ready_on, per_thread ? SlotState::Marked : SlotState::Open);
    if (per_thread) { slots_[slot].mark = mark; }
  }
  holes_.swap(holes);
  base_ = block.data();
  granules_ = hole_granules_ = granules;
  Extent& whole = pool_.take(0, granules);
  link_before(whole, edge_);
  make_hole(whole, slot);
}

void Carver::vacate(OptionalStream stream) noexcept {
  drain(stream);
  BasicMutexLock<SpinLock> const lock{lock_};
  settle_fresh();
  while (edge_.next != &edge_) {
    Extent& hole = *edge_.next;
    unmake_hole(hole);
    drop(hole);
  }
  slots_.discard_all();
  granules_ = hole_granules_ = 0;
}

bool Carver::close() noexcept {
  BasicMutexLock<SpinLock> const lock{lock_};
  return std::exchange(state_, State::Closed) == State::Open && empty();
}

bool Carver::begin_rebuild() noexcept {
  BasicMutexLock<SpinLock> const lock{lock_};
  if (state_ != State::Open || !empty()) { return false; }
  state_ = State::Rebuilding;
  rebuilder_ = std::this_thread::get_id();
  return true;
}

void Carver::end_rebuild(Then then) noexcept {
  BasicMutexLock<SpinLock> const lock{lock_};
  state_ = then == Then::Open ? State::Open : State::Closed;
}

// -- allocation -------------------------------------------------------------------------------------------------------

Carver::Piece Carver::allocate(std::size_t bytes, std::size_t alignment, OptionalStream stream, Refusal& refusal) {
  Request const request{((bytes - 1) >> shift_) + 1, alignment >> shift_};
  {
    BasicMutexLock<SpinLock> const lock{lock_};
    if (state_ == State::Open) [[likely]] {
      if (request.length > hole_granules_) [[unlikely]] {
        refusal = refused(Refusal::Why::Short);
        return {};
      }
      SlotNumber const own = slot_of(stream);
      if (fresh_ != nullptr) {
        if (Extent* const extent = take_fresh(request, own)) { return piece(*extent); }
        settle(*fresh_);
      }
      reserve_records();
      if (request.alignment <= 1) [[likely]] {
        Extent* const hole = holes_.find(request.length, Ready{slots_, own});
        if (hole != nullptr) [[likely]] { return piece(take_front(*hole, request.length)); }
      }
    }
  }
  return allocate_behind_others(request, stream, refusal);
}

// The one that was freed last, if it is as long as it should be.
Extent* Carver::take_fresh(Request const& request, SlotNumber own) noexcept {
  Extent& extent = *fresh_;
  if (extent.length != request.length || request.alignment > 1 || !slots_.ready(extent.behind, own)) { return nullptr; }
  fresh_ = nullptr;
  slots_.drop_hole(extent.behind);
  hole_granules_ -= request.length;
  return &extent;
}

void Carver::settle(Extent& extent) noexcept {
  fresh_ = nullptr;
  live_.remove(fresh_link_);
  become_hole(extent);
}

Carver::Piece Carver::piece(Extent const& extent) const noexcept {
  return {address_of(extent), static_cast<std::int64_t>((granules_ - hole_granules_ - claimed_granules_) << shift_)};
}

Carver::Refusal Carver::refused(Refusal::Why why) noexcept {
  ++refusals_;
  std::uint64_t const longest = why == Refusal::Why::Fragmented ? longest_run() : 0;
  return {why, false, static_cast<std::int64_t>(hole_granules_ << shift_),
          static_cast<std::int64_t>(longest << shift_)};
}

void Carver::wait_while_rebuilt() noexcept {
  for (bool rebuilt = true;;) {
    {
      BasicMutexLock<SpinLock> const lock{lock_};
      rebuilt = rebuilt_by_another();
    }
    if (!rebuilt) { return; }
    std::this_thread::yield();
  }
}

// With the lock let go while marks are recorded: the device may take its time. What was claimed is out of everybody
// else's reach meanwhile.
Carver::Piece Carver::allocate_behind_others(Request const& request, OptionalStream stream, Refusal& refusal) {
  Claim claimed{.waits = std::pmr::vector<Wait>(&metadata_)};
  for (;;) {
    wait_while_rebuilt();
    BasicMutexLock<SpinLock> const lock{lock_};
    if (rebuilt_by_another()) { continue; }  // anew
    if (state_ == State::Rebuilding) {
      refusal = refused(Refusal::Why::Short);
      return {};
    }
    if (state_ == State::Closed) {
      refusal = refused(Refusal::Why::Closed);
      return {};
    }
    settle_fresh();
    reserve_records();
    claimed.waits.reserve(slots_.size());
    SlotNumber const own = slot_of(stream);
    Place const place = find_place(request, own);
    if (place.hole == nullptr) {
      refusal = refused(request.length > hole_granules_ ? Refusal::Why::Short : Refusal::Why::Fragmented);
      return {};
    }
    claim(place, request.length, own, claimed);
    break;
  }
  try {
    for (Wait& wait : claimed.waits) { follow(wait, stream); }
  }
  catch (...) {
    BasicMutexLock<SpinLock> const lock{lock_};
    abandon(claimed);
    refusal.last = state_ == State::Closed && empty();
    throw;
  }
  BasicMutexLock<SpinLock> const lock{lock_};
  return piece(finish(claimed));
}

Carver::Place Carver::find_place(Request const& request, SlotNumber own) const noexcept {
  if (request.length > hole_granules_) { return {}; }
  if (request.alignment > 1) { return find_aligned(request); }
  Extent* hole = holes_.find(request.length, Ready{slots_, own});
  if (hole == nullptr) { hole = holes_.find_any(request.length); }
  if (hole != nullptr) { return {hole, hole->offset}; }
  Place best;
  if (!slots_.differ()) { return best; }
  std::uint64_t best_length = std::numeric_limits<std::uint64_t>::max();
  for_each_run([&](Extent& first, std::uint64_t length) {
    if (length >= request.length && length < best_length) {
      best = {&first, first.offset};
      best_length = length;
    }
    return true;
  });
  return best;
}

Carver::Place Carver::find_aligned(Request const& request) const noexcept {
  std::uint64_t const base = reinterpret_cast<std::uintptr_t>(base_) >> shift_;  // alignment is the address's
  auto const place_in = [&](Extent& first, std::uint64_t length) -> Place {
    std::uint64_t const start = align_up(base + first.offset, request.alignment) - base;
    if (start + request.length > first.offset + length) { return {}; }
    Extent* hole = &first;
    while (hole->end() <= start) { hole = hole->next; }
    return {hole, start};
  };
  // A hole that is longer by the alignment surely has room; failing that, every run of holes is looked at.
  Extent* const ample = holes_.find_any(request.length + request.alignment - 1);
  if (ample != nullptr) { return place_in(*ample, ample->length); }
  Place found;
  for_each_run([&](Extent& first, std::uint64_t length) {
    found = place_in(first, length);
    return found.hole == nullptr;
  });
  return found;
}

// The hole keeps its record, and a new one is put before it.
Extent& Carver::take_front(Extent& hole, std::uint64_t length) noexcept {
  Extent* live = &hole;
  if (std::uint64_t const rest = hole.length - length; rest != 0) {
    live = &pool_.take(hole.offset, length);
    link_before(*live, hole);
    hole.offset += length;
    holes_.set_length(hole, rest);
  } else {
    unmake_hole(hole);
  }
  hole_granules_ -= length;
  live_.insert(*live);
  return *live;
}

// What is not needed of the first and the last hole goes back at once.
void Carver::claim(Place const& place, std::uint64_t length, SlotNumber own, Claim& claim) {
  Extent& first = *place.hole;
  claim_hole(first, own, claim);
  if (std::uint64_t const before = place.start - first.offset; before != 0) {
    Extent& lead = pool_.take(first.offset, before);
    link_before(lead, first);
    first.offset = place.start;
    first.length -= before;
    make_hole(lead, first.behind);
  }
  Extent* last = &first;
  while (last->end() < place.start + length) {
    last = last->next;
    claim_hole(*last, own, claim);
  }
  if (std::uint64_t const behind = last->end() - (place.start + length); behind != 0) {
    Extent& tail = pool_.take(place.start + length, behind);
    link_before(tail, *last->next);
    last->length -= behind;
    make_hole(tail, last->behind);
  }
  claim.first = &first;
  claim.last = last;
  hole_granules_ -= length;
  claimed_granules_ += length;
  ++claims_;
}

// The pin keeps the slot, should the holes have to go back to it.
void Carver::claim_hole(Extent& hole, SlotNumber own, Claim& claim) {
  SlotNumber const slot = hole.slot;
  slots_.pin(slot);
  unmake_hole(hole);
  hole.behind = slot;
  if (slots_.ready(slot, own)) { return; }
  if (std::ranges::find(claim.waits, slot, &Wait::slot) == claim.waits.end()) { claim.waits.push_back(wait_for(slot)); }
}

Extent& Carver::finish(Claim& claim) noexcept {
  settle_fresh();
  Extent& whole = *claim.first;
  stream_waits_ += static_cast<std::int64_t>(claim.waits.size());
  joins_ += claim.first != claim.last ? 1 : 0;
  for (Wait const& wait : claim.waits) {
    if (wait.passed) { slots_.set_done(wait.slot); }
  }
  slots_.unpin(whole.behind);
  whole.length = claim.last->end() - whole.offset;
  --claims_;
  claimed_granules_ -= whole.length;
  for (bool more = claim.first != claim.last; more;) {
    Extent& part = *whole.next;
    more = &part != claim.last;
    slots_.unpin(part.behind);
    drop(part);
  }
  live_.insert(whole);
  return whole;
}

void Carver::abandon(Claim& claim) noexcept {
  std::uint64_t const length = claim.last->end() - claim.first->offset;
  --claims_;
  claimed_granules_ -= length;
  hole_granules_ += length;
  for (Extent* part = claim.first;;) {
    bool const more = part != claim.last;
    Extent* const next = part->next;
    SlotNumber const slot = part->behind;
    slots_.add_hole(slot);
    become_hole(*part);
    slots_.unpin(slot);
    if (!more) { return; }
    part = next;
  }
}

// -- free -------------------------------------------------------------------------------------------------------------

Carver::Freed Carver::deallocate(void* pointer, OptionalStream stream) noexcept {
  if (stream && !at_once_) [[likely]] {
    if (stream->get() == cudaStreamPerThread) { return deallocate_marked(pointer, *stream); }
    {
      BasicMutexLock<SpinLock> const lock{lock_};
      SlotNumber const slot = slots_.find_or_take(*stream, SlotState::Open);
      if (slot != StreamSlots::none) [[likely]] { return give_back(pointer, slot); }
    }
    synchronize(*stream);
  }
  BasicMutexLock<SpinLock> const lock{lock_};
  return give_back(pointer, StreamSlots::done);
}

Carver::Freed Carver::give_back(void* pointer, SlotNumber slot) noexcept {
  settle_fresh();
  std::uint64_t const offset = offset_of(pointer);
  if (offset >= granules_ || base_ + (offset << shift_) != pointer) [[unlikely]] { return {}; }
  Extent** const link = live_.find(offset);
  Extent* const extent = *link;
  if (extent == nullptr) [[unlikely]] { return {}; }
  __builtin_prefetch(extent->previous);
  __builtin_prefetch(extent->next);
  std::uint64_t const length = extent->length;
  extent->behind = slot;
  slots_.add_hole(slot);
  hole_granules_ += length;
  fresh_ = extent;
  fresh_link_ = link;
  return {static_cast<std::size_t>(length << shift_), state_ == State::Closed && empty()};
}

// Joined with the neighbours that wait for the same. Without a branch: which of them do cannot be foretold.
// Requires: its slot counts it among its holes.
void Carver::become_hole(Extent& extent) noexcept {
  SlotNumber const slot = extent.behind;
  Extent* const previous = extent.previous;
  Extent* const next = extent.next;
  bool const joins_previous = previous->slot == slot;
  bool const joins_next = next->slot == slot;
  slots_[slot].holes -= (joins_previous ? 1U : 0U) + (joins_next ? 1U : 0U);  // it stays a hole itself

  Extent& before = *choose(joins_previous, previous, &holes_.nothing());
  Extent& behind = *choose(joins_next, next, &holes_.nothing());
  holes_.remove(before);
  holes_.remove(behind);
  extent.offset -= before.length;
  extent.length += before.length + behind.length;
  extent.previous = choose(joins_previous, previous->previous, previous);
  extent.next = choose(joins_next, next->next, next);
  extent.previous->next = extent.next->previous = &extent;
  pool_.give_back_if(joins_previous, before);
  pool_.give_back_if(joins_next, behind);
  extent.slot = slot;
  holes_.insert(extent);
}

void Carver::make_hole(Extent& extent, SlotNumber slot) noexcept {
  extent.slot = slot;
  slots_.add_hole(slot);
  holes_.insert(extent);
}

void Carver::unmake_hole(Extent& hole) noexcept {
  holes_.remove(hole);
  slots_.drop_hole(std::exchange(hole.slot, Extent::no_slot));
}

void Carver::link_before(Extent& extent, Extent& next) noexcept {
  extent.previous = next.previous;
  extent.next = &next;
  next.previous->next = &extent;
  next.previous = &extent;
}

void Carver::drop(Extent& extent) noexcept {
  extent.previous->next = extent.next;
  extent.next->previous = extent.previous;
  pool_.give_back(extent);
}

// -- what there is ----------------------------------------------------------------------------------------------------

std::uint64_t Carver::longest_run() noexcept {
  settle_fresh();
  std::uint64_t longest = holes_.longest();
  if (!slots_.differ()) { return longest; }
  for_each_run([&](Extent&, std::uint64_t length) {
    longest = std::max(longest, length);
    return true;
  });
  return longest;
}

Carver::Counters Carver::counters() const noexcept {
  BasicMutexLock<SpinLock> const lock{lock_};
  std::size_t const metadata = pool_.bytes() + live_.bytes() + holes_.bytes() + slots_.bytes() + sizeof(Carver);
  return {.live_blocks = static_cast<std::int64_t>(live_count()),
          .live_bytes = static_cast<std::int64_t>((granules_ - hole_granules_) << shift_),
          .hole_bytes = static_cast<std::int64_t>(hole_granules_ << shift_),
          .refusals = refusals_,
          .stream_waits = stream_waits_,
          .joins = joins_,
          .metadata_bytes = static_cast<std::int64_t>(metadata)};
}

}  // namespace earmark::detail
