// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// How a carver deals with streams, off the path of most allocations: marks are recorded and waited for here.
#include <atomic>
#include <optional>
#include <thread>

#include "memory/carver.hpp"

namespace earmark::detail {

namespace {

using SlotState = StreamSlot::State;

}  // namespace

std::uint64_t StreamKey::this_thread() noexcept {
  static std::atomic<std::uint64_t> last{0};
  thread_local std::uint64_t const number = last.fetch_add(1, std::memory_order_relaxed) + 1;
  return number;
}

// Puts the stream, or the caller, behind what a slot stands for.
void Carver::follow(Wait& wait, OptionalStream stream) {
  if (wait.state == SlotState::Open) {
    cuda::stream_ref const other{wait.handle};
    if (!stream) { return events_.synchronize(other); }
    struct Mark {
      StreamEvents& events;
      EventHandle handle;
      ~Mark() { events.release(handle); }
    } const mark{events_, events_.record(other)};
    return events_.wait(*stream, mark.handle);
  }
  wait.passed = events_.passed(wait.mark);
  if (wait.passed) { return; }
  if (stream) { return events_.wait(*stream, wait.mark); }
  events_.synchronize(wait.mark);
  wait.passed = true;
}

// Another thread could not record a mark on this thread's stream later, so it is done now.
Carver::Freed Carver::deallocate_marked(void* pointer, cuda::stream_ref stream) noexcept {
  SlotNumber slot = StreamSlots::none;
  EventHandle mark{};
  {
    BasicMutexLock<SpinLock> const lock{lock_};
    slot = slots_.find_or_take(stream, SlotState::Marked);
    if (slot != StreamSlots::none) {
      slots_.pin(slot);
      mark = slots_[slot].mark;
    }
  }
  bool marked = false;
  if (slot != StreamSlots::none) {
    try {
      if (mark == EventHandle{}) {
        mark = events_.record(stream);
      } else {
        events_.record_again(mark, stream);
      }
      marked = true;
    }
    catch (...) {
      // no mark: wait instead
    }
  }
  if (!marked) { synchronize(stream); }
  BasicMutexLock<SpinLock> const lock{lock_};
  if (slot != StreamSlots::none) {
    slots_[slot].mark = mark;
    slots_.unpin(slot);
  }
  return give_back(pointer, marked ? slot : StreamSlots::done);
}

// A stream that cannot be waited for has failed, and what it was given no longer runs.
void Carver::synchronize(cuda::stream_ref stream) noexcept {
  try {
    events_.synchronize(stream);
  }
  catch (...) {
  }
}

void Carver::forget_stream(cuda::stream_ref stream) noexcept {
  SlotNumber slot = StreamSlots::none;
  EventHandle mark{};
  {
    BasicMutexLock<SpinLock> const lock{lock_};
    slot = at_once_ ? StreamSlots::none : slots_.find(stream);
    if (slot == StreamSlots::none) { return; }
    if (slots_[slot].holes == 0 && slots_[slot].pins == 0) { return slots_.discard(slots_[slot]); }
    slots_.pin(slot);
    mark = slots_[slot].mark;
  }
  if (mark == EventHandle{}) {
    try {
      mark = events_.record(stream);
    }
    catch (...) {
      synchronize(stream);
    }
  }
  {
    BasicMutexLock<SpinLock> const lock{lock_};
    slots_.set_gone(slot, mark);
  }
  // Whoever began to record a mark on the stream before must be done before the stream can go.
  for (bool alone = false; !alone; std::this_thread::yield()) {
    BasicMutexLock<SpinLock> const lock{lock_};
    alone = slots_[slot].pins == 1;
    if (alone) { slots_.unpin(slot); }
  }
}

// One slot at a time, so that no memory is needed.
void Carver::drain(OptionalStream stream) noexcept {
  for (std::size_t i = 1;; ++i) {
    auto const number = static_cast<SlotNumber>(i);
    std::optional<Wait> wait;
    {
      BasicMutexLock<SpinLock> const lock{lock_};
      if (i >= slots_.size()) { return; }
      if (slots_[number].holes == 0 || slots_.ready(number, slot_of(stream))) { continue; }
      slots_.pin(number);
      wait = wait_for(number);
    }
    follow_for_certain(*wait, stream);
    BasicMutexLock<SpinLock> const lock{lock_};
    slots_.unpin(number);
  }
}

void Carver::follow_for_certain(Wait& wait, OptionalStream stream) noexcept {
  try {
    follow(wait, stream);
    return;
  }
  catch (...) {
    // no mark or no wait: block instead
  }
  if (wait.state == SlotState::Open) { return synchronize(cuda::stream_ref{wait.handle}); }
  try {
    events_.synchronize(wait.mark);
  }
  catch (...) {
    // as in `synchronize`
  }
}

}  // namespace earmark::detail
