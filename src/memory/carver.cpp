// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "memory/carver.hpp"

#include <bit>
#include <thread>
#include <utility>

namespace earmark::detail {

namespace {

using SlotState = StreamSlot::State;

// Whether a stream with slot `own` may have a hole without waiting.
struct Ready {
  StreamSlots const& slots;
  SlotNumber own;
  bool operator()(Extent const& hole) const noexcept { return slots.ready(hole.slot(), own); }
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
      holes_(0, metadata) {}

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
    slot = slots_.find_or_take(StreamKey::of(*ready_on), per_thread ? SlotState::Marked : SlotState::Open);
    if (per_thread) { slots_[slot].mark = mark; }
  }
  holes_.swap(holes);
  base_ = block.data();
  granules_ = hole_granules_ = granules;
  first_ = &pool_.take(0, granules);
  first_->previous = first_->next = nullptr;
  make_hole(*first_, slot);
}

void Carver::vacate(OptionalStream stream) noexcept {
  drain(stream);
  BasicMutexLock<SpinLock> const lock{lock_};
  settle_fresh();
  while (first_ != nullptr) {
    Extent& hole = *first_;
    unmake_hole(hole);
    unlink(hole);
    pool_.give_back(hole);
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
  return true;
}

void Carver::end_rebuild(Then then) noexcept {
  BasicMutexLock<SpinLock> const lock{lock_};
  state_ = then == Then::Open ? State::Open : State::Closed;
}

// -- allocation -------------------------------------------------------------------------------------------------------

Carver::Piece Carver::allocate(std::size_t bytes, std::size_t alignment, OptionalStream stream, Refusal& refusal) {
  std::size_t const rest_mask = (std::size_t{1} << shift_) - 1;
  Request const request{std::max<std::uint64_t>((bytes >> shift_) + ((bytes & rest_mask) != 0 ? 1 : 0), 1),
                        std::max<std::uint64_t>(alignment >> shift_, 1)};
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
      if (request.alignment == 1) [[likely]] {
        Ready const ready{slots_, own};
        Extent* const hole = holes_.find(request.length, ready);
        if (hole != nullptr && ready(*hole)) [[likely]] { return piece(take_front(*hole, request.length)); }
      }
    }
  }
  return allocate_behind_others(request, stream, refusal);
}

// The one that was freed last, if it is as long as it should be.
Extent* Carver::take_fresh(Request const& request, SlotNumber own) noexcept {
  Extent& extent = *fresh_;
  if (extent.length() != request.length || request.alignment != 1 || !slots_.ready(extent.slot(), own)) {
    return nullptr;
  }
  fresh_ = nullptr;
  slots_.drop_hole(extent.slot());
  hole_granules_ -= request.length;
  live_.insert(extent);
  return &extent;
}

// The slot keeps count of it as of a hole, all the time.
void Carver::settle(Extent& extent) noexcept {
  SlotNumber const slot = extent.slot();
  fresh_ = nullptr;
  become_hole(extent, slot);
  slots_.drop_hole(slot);
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
      rebuilt = state_ == State::Rebuilding;
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
    if (state_ == State::Rebuilding) { continue; }  // anew
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
  if (request.alignment > 1) { return find_aligned(request); }
  Extent* hole = holes_.find(request.length, Ready{slots_, own});
  if (hole == nullptr) { hole = holes_.find_any(request.length); }
  if (hole != nullptr) { return {hole, hole->offset()}; }
  HoleRun best;
  holes_.for_each_run([&](HoleRun const& run) {
    if (run.length >= request.length && (best.first == nullptr || run.length < best.length)) { best = run; }
  });
  return best.first == nullptr ? Place{} : Place{best.first, best.first->offset()};
}

Carver::Place Carver::find_aligned(Request const& request) const noexcept {
  std::uint64_t const base = reinterpret_cast<std::uintptr_t>(base_) >> shift_;  // alignment is the address's
  auto const place_in = [&](Extent& first, std::uint64_t length) -> Place {
    std::uint64_t const start = align_up(base + first.offset(), request.alignment) - base;
    if (start + request.length > first.offset() + length) { return {}; }
    Extent* hole = &first;
    while (hole->end() <= start) { hole = hole->next; }
    return {hole, start};
  };
  // A hole that is longer by the alignment surely has room; failing that, every run of holes is looked at.
  Extent* const ample = holes_.find_any(request.length + request.alignment - 1);
  if (ample != nullptr) { return place_in(*ample, ample->length()); }
  for (Extent* extent = first_; extent != nullptr; extent = extent->next) {
    if (!extent->is_hole()) { continue; }
    HoleRun const run = HoleIndex::run_from(*extent);
    if (Place const place = place_in(*extent, run.length); place.hole != nullptr) { return place; }
    while (extent->has_seam()) { extent = extent->next; }
  }
  return {};
}

// The hole's record stays where it is in its lists, most often, and a new one is put before it.
Extent& Carver::take_front(Extent& hole, std::uint64_t length) noexcept {
  Extent* live = &hole;
  if (std::uint64_t const rest = hole.length() - length; rest != 0) {
    live = &pool_.take(hole.offset(), length);
    link_before(*live, hole);
    if (live->previous != nullptr) { holes_.refresh_seam(*live->previous); }
    hole.set_offset(hole.offset() + length);
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
  if (std::uint64_t const before = place.start - first.offset(); before != 0) {
    Extent& lead = pool_.take(first.offset(), before);
    link_before(lead, first);
    first.set_offset(place.start);
    first.set_length(first.length() - before);
    make_hole(lead, first.slot());
  }
  Extent* last = &first;
  while (last->end() < place.start + length) {
    last = last->next;
    claim_hole(*last, own, claim);
  }
  if (std::uint64_t const behind = last->end() - (place.start + length); behind != 0) {
    Extent& tail = pool_.take(place.start + length, behind);
    link_after(tail, *last);
    last->set_length(last->length() - behind);
    make_hole(tail, last->slot());
  }
  claim.first = &first;
  claim.last = last;
  hole_granules_ -= length;
  claimed_granules_ += length;
  ++claims_;
}

// The pin keeps the slot, should the holes have to go back to it.
void Carver::claim_hole(Extent& hole, SlotNumber own, Claim& claim) {
  SlotNumber const slot = hole.slot();
  slots_.pin(slot);
  unmake_hole(hole);
  if (slots_.ready(slot, own)) { return; }
  if (std::ranges::find(claim.waits, slot, &Wait::slot) == claim.waits.end()) { claim.waits.push_back(wait_for(slot)); }
}

Extent& Carver::finish(Claim& claim) noexcept {
  Extent& whole = *claim.first;
  stream_waits_ += static_cast<std::int64_t>(claim.waits.size());
  joins_ += claim.first != claim.last ? 1 : 0;
  for (Wait const& wait : claim.waits) {
    if (wait.passed) { slots_.set_done(wait.slot); }
  }
  slots_.unpin(whole.slot());
  whole.set_length(claim.last->end() - whole.offset());
  --claims_;
  claimed_granules_ -= whole.length();
  for (bool more = claim.first != claim.last; more;) {
    Extent& part = *whole.next;
    more = &part != claim.last;
    slots_.unpin(part.slot());
    unlink(part);
    pool_.give_back(part);
  }
  live_.insert(whole);
  return whole;
}

void Carver::abandon(Claim& claim) noexcept {
  std::uint64_t const length = claim.last->end() - claim.first->offset();
  --claims_;
  claimed_granules_ -= length;
  hole_granules_ += length;
  for (Extent* part = claim.first;;) {
    bool const more = part != claim.last;
    Extent* const next = part->next;
    SlotNumber const slot = part->slot();
    become_hole(*part, slot);
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
      SlotNumber const slot = slots_.find_or_take(StreamKey::of(*stream), SlotState::Open);
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
  Extent* const extent = live_.take(offset);
  if (extent == nullptr) [[unlikely]] { return {}; }
  std::uint64_t const length = extent->length();
  extent->set_slot(slot);
  slots_.add_hole(slot);
  hole_granules_ += length;
  fresh_ = extent;
  return {static_cast<std::size_t>(length << shift_), state_ == State::Closed && empty()};
}

// Joined with the neighbours that wait for the same, whose records stay in their lists as far as possible.
void Carver::become_hole(Extent& extent, SlotNumber slot) noexcept {
  auto const joins = [slot](Extent const* hole) { return hole != nullptr && hole->is_hole() && hole->slot() == slot; };
  Extent* const previous = joins(extent.previous) ? extent.previous : nullptr;
  Extent* const next = joins(extent.next) ? extent.next : nullptr;
  if (previous == nullptr && next == nullptr) { return make_hole(extent, slot); }

  std::uint64_t length = extent.length();
  unlink(extent);
  pool_.give_back(extent);
  Extent& whole = previous != nullptr ? *previous : *next;
  if (previous == nullptr) {
    whole.set_offset(whole.offset() - length);
  } else if (next != nullptr) {
    length += next->length();
    unmake_hole(*next);
    unlink(*next);
    pool_.give_back(*next);
  }
  holes_.set_length(whole, whole.length() + length);
  refresh_seams_around(whole);
}

void Carver::make_hole(Extent& extent, SlotNumber slot) noexcept {
  extent.set_slot(slot);
  slots_.add_hole(slot);
  holes_.insert(extent);
  refresh_seams_around(extent);
}

void Carver::unmake_hole(Extent& hole) noexcept {
  holes_.remove(hole);
  slots_.drop_hole(hole.slot());
}

void Carver::refresh_seams_around(Extent& extent) noexcept {
  holes_.refresh_seam(extent);
  if (extent.previous != nullptr) { holes_.refresh_seam(*extent.previous); }
}

void Carver::link_before(Extent& extent, Extent& next) noexcept {
  extent.previous = next.previous;
  extent.next = &next;
  (next.previous != nullptr ? next.previous->next : first_) = &extent;
  next.previous = &extent;
}

void Carver::link_after(Extent& extent, Extent& previous) noexcept {
  extent.previous = &previous;
  extent.next = previous.next;
  if (previous.next != nullptr) { previous.next->previous = &extent; }
  previous.next = &extent;
}

void Carver::unlink(Extent& extent) noexcept {
  (extent.previous != nullptr ? extent.previous->next : first_) = extent.next;
  if (extent.next != nullptr) { extent.next->previous = extent.previous; }
}

// -- what there is ----------------------------------------------------------------------------------------------------

std::uint64_t Carver::longest_run() noexcept {
  settle_fresh();
  std::uint64_t longest = holes_.longest();
  holes_.for_each_run([&](HoleRun const& run) { longest = std::max(longest, run.length); });
  return longest;
}

Carver::Counters Carver::counters() const noexcept {
  BasicMutexLock<SpinLock> const lock{lock_};
  std::size_t const metadata = pool_.bytes() + live_.bytes() + holes_.bytes() + slots_.bytes() + sizeof(Carver);
  return {.live_blocks = static_cast<std::int64_t>(live_.count()),
          .live_bytes = static_cast<std::int64_t>((granules_ - hole_granules_) << shift_),
          .hole_bytes = static_cast<std::int64_t>(hole_granules_ << shift_),
          .refusals = refusals_,
          .stream_waits = stream_waits_,
          .joins = joins_,
          .metadata_bytes = static_cast<std::int64_t>(metadata)};
}

}  // namespace earmark::detail
