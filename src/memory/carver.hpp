// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// What is inside a `CarvedBlock` and a preallocated reservation: the records of a block's pieces and holes, the rules
// by which holes are chosen, joined and ordered, and whether the block still gives pieces away. All of it is guarded by
// one spin lock, which is the only read-modify-write that an allocation or a free makes.
//
// The piece that was freed last is kept as it is until the next call: most often that asks for the same length.
//
// Thread safety: any thread, but the destructor, `vacate` and `occupy`. Ownership: as `CarvedBlock`. It may outlive the
// block, once that is vacated.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "earmark/core/spin_lock.hpp"
#include "earmark/core/thread_annotations.hpp"
#include "earmark/memory/carved_block.hpp"
#include "memory/extent.hpp"
#include "memory/hole_index.hpp"
#include "memory/stream_slots.hpp"

namespace earmark::detail {

// Why there was no piece.
struct CarverRefusal {
  enum class Why : std::uint8_t { Short, Fragmented, Closed };
  Why why;
  bool last{false};  // after an exception: a closed block is empty now, see `Carver::Freed`
  std::int64_t available;
  std::int64_t largest_hole;
};

class Carver {
 public:
  using OptionalStream = std::optional<cuda::stream_ref>;
  using Counters = CarvedBlock::Counters;

  // `live`: bytes that were allocated right after.
  struct Piece {
    void* pointer{nullptr};
    std::int64_t live{0};
  };
  using Refusal = CarverRefusal;
  // `last`: the block was closed and is empty now. It is so for one caller, who gives it back.
  struct Freed {
    std::size_t bytes{0};
    bool last{false};
  };

  // Has no block yet. Throws: std::bad_alloc.
  Carver(std::size_t granularity, StreamEvents& events, std::pmr::memory_resource& metadata);

  // Takes a block, whose length is a whole number of granules. Requires: it has none, and nobody else allocates: it is
  // new, or being rebuilt. Throws: std::bad_alloc; what recording a mark throws. Then nothing changed.
  void occupy(std::span<std::byte> block, OptionalStream ready_on) EARMARK_EXCLUDES(lock_);
  // Puts `stream` behind everything that was freed, and forgets block and marks. Requires: nothing is live; it is
  // closed or being rebuilt.
  void vacate(OptionalStream stream) noexcept EARMARK_EXCLUDES(lock_);

  // Refuses from now on. Returns: whether nothing was live, to one caller: then he gives the block back.
  [[nodiscard]] bool close() noexcept EARMARK_EXCLUDES(lock_);
  // The block is about to be changed: until `end_rebuild`, who allocates waits. Returns: false if something is live or
  // it is closed; then nothing changed.
  [[nodiscard]] bool begin_rebuild() noexcept EARMARK_EXCLUDES(lock_);
  // Memory may come back, and somebody be called back, on the thread that rebuilds: to it, there is nothing to
  // allocate.
  enum class Then : std::uint8_t { Open, Closed };
  void end_rebuild(Then then) noexcept EARMARK_EXCLUDES(lock_);

  // Writes `refusal` only where there is no piece. Blocks: while the block is being rebuilt. Throws: as `CarvedBlock`.
  [[nodiscard]] Piece allocate(std::size_t bytes, std::size_t alignment, OptionalStream stream, Refusal& refusal)
      EARMARK_EXCLUDES(lock_);
  // Touches nothing of the carver once others can see the piece as freed. Nothing freed: there is no such piece.
  Freed deallocate(void* pointer, OptionalStream stream) noexcept EARMARK_EXCLUDES(lock_);
  void forget_stream(cuda::stream_ref stream) noexcept EARMARK_EXCLUDES(lock_);
  void drain(OptionalStream stream) noexcept EARMARK_EXCLUDES(lock_);

  [[nodiscard]] bool owns(void const* pointer) const noexcept EARMARK_EXCLUDES(lock_) {
    BasicMutexLock<SpinLock> const lock{lock_};
    return offset_of(pointer) < granules_;
  }
  [[nodiscard]] std::size_t largest_hole() noexcept EARMARK_EXCLUDES(lock_) {
    BasicMutexLock<SpinLock> const lock{lock_};
    return longest_run() << shift_;
  }
  [[nodiscard]] std::size_t live_blocks() const noexcept EARMARK_EXCLUDES(lock_) {
    BasicMutexLock<SpinLock> const lock{lock_};
    return live_count();
  }
  // One moment of it; allocations under way count as live.
  struct Reading {
    std::int64_t live{0};
    bool closed{false};
  };
  [[nodiscard]] Reading read() const noexcept EARMARK_EXCLUDES(lock_) {
    BasicMutexLock<SpinLock> const lock{lock_};
    return {static_cast<std::int64_t>((granules_ - hole_granules_) << shift_), state_ == State::Closed};
  }
  [[nodiscard]] Counters counters() const noexcept EARMARK_EXCLUDES(lock_);

 private:
  enum class State : std::uint8_t { Open, Rebuilding, Closed };
  // In granules.
  struct Request {
    std::uint64_t length;
    std::uint64_t alignment;
  };
  // What has to be waited for before holes of one slot can be used.
  struct Wait {
    SlotNumber slot;
    StreamSlot::State state;
    cudaStream_t handle;
    EventHandle mark;
    bool passed{false};
  };
  // Holes that were taken for one allocation, neighbours each with its slot still, and what they are behind.
  struct Claim {
    Extent* first{nullptr};
    Extent* last{nullptr};
    std::pmr::vector<Wait> waits;
  };
  struct Place {
    Extent* hole{nullptr};  // the one in which `start` lies
    std::uint64_t start{0};
  };

  [[nodiscard]] Piece allocate_behind_others(Request const& request, OptionalStream stream, Refusal& refusal)
      EARMARK_EXCLUDES(lock_);
  void wait_while_rebuilt() noexcept EARMARK_EXCLUDES(lock_);
  [[nodiscard]] bool rebuilt_by_another() const noexcept EARMARK_REQUIRES(lock_) {
    return state_ == State::Rebuilding && rebuilder_ != std::this_thread::get_id();
  }
  [[nodiscard]] Refusal refused(Refusal::Why why) noexcept EARMARK_REQUIRES(lock_);
  [[nodiscard]] Piece piece(Extent const& extent) const noexcept EARMARK_REQUIRES(lock_);
  [[nodiscard]] bool empty() const noexcept EARMARK_REQUIRES(lock_) { return live_count() == 0 && claims_ == 0; }
  [[nodiscard]] std::size_t live_count() const noexcept EARMARK_REQUIRES(lock_) {
    return live_.count() - (fresh_ != nullptr ? 1 : 0);
  }
  [[nodiscard]] Extent* take_fresh(Request const& request, SlotNumber own) noexcept EARMARK_REQUIRES(lock_);
  void settle_fresh() noexcept EARMARK_REQUIRES(lock_) {
    if (fresh_ != nullptr) { settle(*fresh_); }
  }
  void settle(Extent& extent) noexcept EARMARK_REQUIRES(lock_);
  [[nodiscard]] std::uint64_t longest_run() noexcept EARMARK_REQUIRES(lock_);
  // All that one allocation, and the free of what it allocates, may need. Two records: a piece can leave a hole on
  // either side.
  void reserve_records() EARMARK_REQUIRES(lock_) {
    if (!pool_.has_two() || !live_.has_room() || !slots_.has_spare()) [[unlikely]] { make_records(); }
  }
  [[gnu::noinline]] void make_records() EARMARK_REQUIRES(lock_) {
    pool_.reserve_two();
    live_.reserve_one();
    slots_.reserve();
  }
  [[nodiscard]] SlotNumber slot_of(OptionalStream stream) noexcept EARMARK_REQUIRES(lock_) {
    return !stream || at_once_ ? StreamSlots::none : slots_.find(*stream);
  }
  [[nodiscard]] Place find_place(Request const& request, SlotNumber own) const noexcept EARMARK_REQUIRES(lock_);
  [[nodiscard]] Place find_aligned(Request const& request) const noexcept EARMARK_REQUIRES(lock_);

  [[nodiscard, gnu::always_inline]] inline Extent& take_front(Extent& hole, std::uint64_t length) noexcept
      EARMARK_REQUIRES(lock_);
  void claim(Place const& place, std::uint64_t length, SlotNumber own, Claim& claim) EARMARK_REQUIRES(lock_);
  void claim_hole(Extent& hole, SlotNumber own, Claim& claim) EARMARK_REQUIRES(lock_);
  [[nodiscard]] Extent& finish(Claim& claim) noexcept EARMARK_REQUIRES(lock_);
  void abandon(Claim& claim) noexcept EARMARK_REQUIRES(lock_);
  void follow(Wait& wait, OptionalStream stream) EARMARK_EXCLUDES(lock_);
  void follow_for_certain(Wait& wait, OptionalStream stream) noexcept EARMARK_EXCLUDES(lock_);
  [[nodiscard]] Wait wait_for(SlotNumber slot) noexcept EARMARK_REQUIRES(lock_) {
    return {slot, slots_[slot].state, slots_[slot].key.handle, slots_[slot].mark};
  }

  Freed give_back(void* pointer, SlotNumber slot) noexcept EARMARK_REQUIRES(lock_);
  Freed deallocate_marked(void* pointer, cuda::stream_ref stream) noexcept EARMARK_EXCLUDES(lock_);
  void become_hole(Extent& extent) noexcept EARMARK_REQUIRES(lock_);
  void make_hole(Extent& extent, SlotNumber slot) noexcept EARMARK_REQUIRES(lock_);
  void unmake_hole(Extent& hole) noexcept EARMARK_REQUIRES(lock_);
  void link_before(Extent& extent, Extent& next) noexcept EARMARK_REQUIRES(lock_);
  void drop(Extent& extent) noexcept EARMARK_REQUIRES(lock_);
  // Calls `visit(first, length)` for each hole or, if several follow one another, for all of them, until it returns
  // false: whoever waits for all their streams may have them as one.
  template <class Visit>
  void for_each_run(Visit const& visit) const noexcept EARMARK_REQUIRES(lock_) {
    for (Extent* extent = edge_.next; extent != &edge_; extent = extent->next) {
      if (!extent->is_hole()) { continue; }
      Extent& first = *extent;
      while (extent->next->is_hole()) { extent = extent->next; }
      if (!visit(first, extent->end() - first.offset)) { return; }
    }
  }
  void synchronize(cuda::stream_ref stream) noexcept;

  [[nodiscard]] void* address_of(Extent const& extent) const noexcept EARMARK_REQUIRES(lock_) {
    return base_ + (extent.offset << shift_);
  }
  // Of what lies before the block: a number larger than any offset in it.
  [[nodiscard]] std::uint64_t offset_of(void const* pointer) const noexcept EARMARK_REQUIRES(lock_) {
    return (reinterpret_cast<std::uintptr_t>(pointer) - reinterpret_cast<std::uintptr_t>(base_)) >> shift_;
  }

  StreamEvents& events_;
  std::pmr::memory_resource& metadata_;

  // What every allocation and free touches, together.
  alignas(64) mutable SpinLock lock_;
  State state_ EARMARK_GUARDED_BY(lock_){State::Open};
  bool const at_once_;
  int const shift_;
  std::byte* base_ EARMARK_GUARDED_BY(lock_){nullptr};
  std::uint64_t granules_ EARMARK_GUARDED_BY(lock_){0};
  std::uint64_t hole_granules_ EARMARK_GUARDED_BY(lock_){0};  // with the fresh piece
  Extent* fresh_ EARMARK_GUARDED_BY(lock_){nullptr};          // freed last, in the index still, and not a hole yet
  Extent** fresh_link_ EARMARK_GUARDED_BY(lock_){nullptr};
  std::uint64_t claimed_granules_ EARMARK_GUARDED_BY(lock_){0};
  LiveExtents live_ EARMARK_GUARDED_BY(lock_);
  ExtentPool pool_ EARMARK_GUARDED_BY(lock_);
  StreamSlots slots_ EARMARK_GUARDED_BY(lock_);
  HoleIndex holes_ EARMARK_GUARDED_BY(lock_);
  std::thread::id rebuilder_ EARMARK_GUARDED_BY(lock_);
  Extent edge_ EARMARK_GUARDED_BY(lock_){};           // before the first and behind the last extent
  std::int64_t claims_ EARMARK_GUARDED_BY(lock_){0};  // allocations under way without the lock
  std::int64_t refusals_ EARMARK_GUARDED_BY(lock_){0};
  std::int64_t stream_waits_ EARMARK_GUARDED_BY(lock_){0};
  std::int64_t joins_ EARMARK_GUARDED_BY(lock_){0};
};

}  // namespace earmark::detail
