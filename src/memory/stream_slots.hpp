// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// The streams that holes of a carved block are ordered behind: a hole names a slot of this table. A slot lives while
// holes or waits refer to it.
// Thread safety: none; the carved block's lock guards it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <vector>

#include "earmark/memory/stream_events.hpp"
#include "memory/extent.hpp"

namespace earmark::detail {

// A stream. The handle of the per-thread default stream means another stream in each thread; others have thread 0.
struct StreamKey {
  cudaStream_t handle;
  std::uint64_t thread;
  bool operator==(StreamKey const&) const = default;

  [[nodiscard]] static StreamKey of(cuda::stream_ref stream) noexcept {
    return {stream.get(), stream.get() == cudaStreamPerThread ? this_thread() : 0};
  }
  // Unlike a thread's id or the address of something in it, never used twice.
  [[nodiscard]] static std::uint64_t this_thread() noexcept;
};

struct StreamSlot {
  enum class State : std::uint8_t {
    Unused,
    Open,    // the stream exists: a mark is recorded when another stream wants a hole of it
    Marked,  // only its own thread can record marks, so `mark` is moved at every free
    Gone,    // the stream may be destroyed: `mark` is behind all its holes
    Done,    // nothing is left to wait for
  };
  StreamKey key{};
  EventHandle mark{};
  std::uint64_t holes{0};
  std::uint32_t pins{0};  // waits under way
  State state{State::Unused};
};

class StreamSlots {
 public:
  static constexpr SlotNumber none = Extent::no_slot;
  static constexpr SlotNumber done = 0;  // of holes that anyone may have at once

  StreamSlots(StreamEvents& events, std::pmr::memory_resource& metadata)
      : events_(events), slots_(1 + spare_slots, &metadata) {
    slots_[done] = {.pins = 1, .state = StreamSlot::State::Done};
  }
  StreamSlots(StreamSlots const&) = delete;
  StreamSlots& operator=(StreamSlots const&) = delete;
  ~StreamSlots() {
    for (StreamSlot& slot : slots_) { release_mark(slot); }
  }

  [[nodiscard]] StreamSlot& operator[](SlotNumber number) noexcept { return slots_[number]; }
  [[nodiscard]] std::size_t size() const noexcept { return slots_.size(); }
  [[nodiscard]] std::size_t bytes() const noexcept { return slots_.size() * sizeof(StreamSlot); }

  // Sees to it that frees on streams not seen so far find a slot. Throws: std::bad_alloc.
  void reserve() {
    if (!has_spare()) { grow(); }
  }
  [[nodiscard]] bool has_spare() const noexcept { return in_use_ < enough_for_; }
  // Whether there are holes of several.
  [[nodiscard]] bool differ() const noexcept {
    return std::ranges::count_if(slots_, [](StreamSlot const& slot) { return slot.holes != 0; }) > 1;
  }
  // Returns: the slot of that stream, or none.
  [[nodiscard]] SlotNumber find(cuda::stream_ref stream) noexcept {
    return name_of(stream) == recent_stream_ ? recent_ : search(stream);
  }
  // Returns: the slot of that stream, a new one if need be, or none if all are in use.
  [[nodiscard]] SlotNumber find_or_take(cuda::stream_ref stream, StreamSlot::State state) noexcept {
    SlotNumber const found = find(stream);
    return found != none ? found : take_idle(stream, state);
  }

  // Whether a stream with slot `own` (or none) may have a hole of slot `number` without waiting.
  [[nodiscard]] bool ready(SlotNumber number, SlotNumber own) const noexcept {
    return number == own || slots_[number].state == StreamSlot::State::Done;
  }

  void add_hole(SlotNumber number) noexcept { ++slots_[number].holes; }
  void drop_hole(SlotNumber number) noexcept {
    --slots_[number].holes;
    discard_if_over(slots_[number]);
  }
  void pin(SlotNumber number) noexcept { ++slots_[number].pins; }
  void unpin(SlotNumber number) noexcept {
    --slots_[number].pins;
    discard_if_over(slots_[number]);
  }
  // The mark of a stream that is gone was seen to have passed.
  void set_done(SlotNumber number) noexcept {
    StreamSlot& slot = slots_[number];
    if (slot.state != StreamSlot::State::Gone || slot.pins > 1) { return; }  // moved on, or others look at the mark
    release_mark(slot);
    slot.state = StreamSlot::State::Done;
  }
  // The stream may be destroyed from now on. Without a mark, nothing is left to wait for.
  void set_gone(SlotNumber number, EventHandle mark) noexcept {
    forget_recent();
    slots_[number].mark = mark;
    slots_[number].state = mark == EventHandle{} ? StreamSlot::State::Done : StreamSlot::State::Gone;
  }
  void discard(StreamSlot& slot) noexcept {
    if (slot.state == StreamSlot::State::Unused) { return; }
    forget_recent();
    release_mark(slot);
    slot = {};
    --in_use_;
  }
  // But for those that somebody is looking at.
  void discard_all() noexcept {
    for (std::size_t i = 1; i < slots_.size(); ++i) {
      if (slots_[i].pins == 0) { discard(slots_[i]); }
    }
  }

 private:
  static constexpr std::size_t spare_slots = 15;
  static constexpr std::uintptr_t no_stream = ~std::uintptr_t{0};

  [[nodiscard]] static bool holds(StreamSlot const& slot, StreamKey key) noexcept {
    return (slot.state == StreamSlot::State::Open || slot.state == StreamSlot::State::Marked) && slot.key == key;
  }
  void grow() {
    if (slots_.size() < none) { slots_.resize(std::min<std::size_t>(2 * slots_.size(), none)); }
    enough_for_ = slots_.size() < none ? slots_.size() - spare_slots + 1 : none;
  }
  [[nodiscard, gnu::noinline]] SlotNumber search(cuda::stream_ref stream) noexcept {
    StreamKey const key = StreamKey::of(stream);
    for (std::size_t i = 1; i < slots_.size(); ++i) {
      if (holds(slots_[i], key)) { return remember(stream, static_cast<SlotNumber>(i)); }
    }
    return remember(stream, none);
  }
  [[nodiscard, gnu::noinline]] SlotNumber take_idle(cuda::stream_ref stream, StreamSlot::State state) noexcept {
    SlotNumber const number = idle();
    if (number == none) { return none; }
    discard(slots_[number]);
    slots_[number] = {.key = StreamKey::of(stream), .state = state};
    ++in_use_;
    return remember(stream, number);
  }
  // A stream that means another one in each thread is looked up anew each time.
  SlotNumber remember(cuda::stream_ref stream, SlotNumber number) noexcept {
    if (stream.get() != cudaStreamPerThread) {
      recent_stream_ = name_of(stream);
      recent_ = number;
    }
    return number;
  }
  void forget_recent() noexcept { recent_stream_ = no_stream; }
  [[nodiscard]] static std::uintptr_t name_of(cuda::stream_ref stream) noexcept {
    return reinterpret_cast<std::uintptr_t>(stream.get());
  }
  // An unused slot or one without holes; one with a mark last, since marks cost something to make.
  [[nodiscard]] SlotNumber idle() const noexcept {
    SlotNumber with_mark = none;
    for (std::size_t i = 1; i < slots_.size(); ++i) {
      StreamSlot const& slot = slots_[i];
      if (slot.holes != 0 || slot.pins != 0) { continue; }
      if (slot.mark == EventHandle{}) { return static_cast<SlotNumber>(i); }
      with_mark = static_cast<SlotNumber>(i);
    }
    return with_mark;
  }
  // Slots of streams that exist stay for their next hole; the others would never be found again.
  void discard_if_over(StreamSlot& slot) noexcept {
    if (slot.holes == 0 && slot.pins == 0 && slot.state >= StreamSlot::State::Gone) [[unlikely]] { discard(slot); }
  }
  void release_mark(StreamSlot& slot) noexcept {
    if (slot.mark != EventHandle{}) { events_.release(slot.mark); }
    slot.mark = EventHandle{};
  }

  StreamEvents& events_;
  std::pmr::vector<StreamSlot> slots_;
  std::size_t in_use_{1};
  std::size_t enough_for_{2};                // with fewer in use, there are spare ones
  std::uintptr_t recent_stream_{no_stream};  // looked up last
  SlotNumber recent_{none};
};

}  // namespace earmark::detail
