// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/tier/spillable_buffer.hpp"

namespace earmark {

SpillableBuffer::SpillableBuffer(BufferResource& buffers, Buffer buffer, cuda::stream_ref stream,
                                 SpillableBufferOptions const& options)
    : buffers_(buffers), stream_(stream), options_(options), size_(buffer.size()) {
  bool const on_disk = buffer.memory_type() == MemoryType::Disk;
  state_ = on_disk ? State::Spilled : State::Resident;
  (on_disk ? below_ : upper_).emplace(std::move(buffer));
}

std::shared_ptr<SpillableBuffer> SpillableBuffer::make(BufferResource& buffers, Buffer buffer, cuda::stream_ref stream,
                                                       SpillableBufferOptions const& options) {
  return std::shared_ptr<SpillableBuffer>(new SpillableBuffer(buffers, std::move(buffer), stream, options));
}

std::optional<SpillableBuffer::Use> SpillableBuffer::try_use(Access access) {
  std::optional<Buffer> stale;
  MutexLock lock{mutex_};
  if (state_ != State::Resident) { return std::nullopt; }
  stale = count_use(access);
  return Use{shared_from_this()};
}

bool SpillableBuffer::begin_use_or_restoring(Access access) {
  std::optional<Buffer> stale;
  MutexLock lock{mutex_};
  while (state_ == State::Spilling || state_ == State::Restoring) { settled_.wait(mutex_); }
  if (state_ == State::Spilled) {
    state_ = State::Restoring;
    return false;
  }
  stale = count_use(access);
  return true;
}

void SpillableBuffer::restore(Access access, std::function<Buffer(Buffer&)> const& copy_up) {
  try {
    upper_.emplace(copy_up(*below_));
  }
  catch (...) {
    settle(State::Spilled);
    options_.waker.wake();  // it may go further down, which it could not meanwhile
    throw;
  }
  std::optional<Buffer> stale;
  MutexLock lock{mutex_};
  restored_at_ = clock().now();
  stale = count_use(options_.clean_copies == CleanCopies::Keep ? access : Access::Write);
  state_ = State::Resident;
  settled_.notify_all();
}

std::optional<Buffer> SpillableBuffer::count_use(Access access) {
  ++uses_;
  return access == Access::Write ? std::exchange(below_, std::nullopt) : std::nullopt;
}

void SpillableBuffer::end_use() noexcept {
  {
    MutexLock lock{mutex_};
    if (--uses_ != 0) { return; }
  }
  options_.waker.wake();
}

void SpillableBuffer::settle(State state) noexcept {
  MutexLock lock{mutex_};
  state_ = state;
  settled_.notify_all();
}

SpillableBuffer::State SpillableBuffer::state() const noexcept {
  MutexLock lock{mutex_};
  return state_;
}

MemoryType SpillableBuffer::memory_type() const noexcept {
  MutexLock lock{mutex_};
  while (state_ == State::Spilling || state_ == State::Restoring) { settled_.wait(mutex_); }
  return upper_ ? upper_->memory_type() : below_->memory_type();
}

std::byte* SpillableBuffer::resident_data() const noexcept {
  MutexLock lock{mutex_};
  return upper_->data();
}

void SpillableBuffer::used_on(cuda::stream_ref stream) {
  MutexLock lock{mutex_};
  upper_->used_on(stream);
}

void SpillableBuffer::order_after_last_use(cuda::stream_ref stream) {
  MutexLock lock{mutex_};
  upper_->order_after_last_use(stream);
}

std::optional<Clock::time_point> SpillableBuffer::restored_at() const noexcept {
  MutexLock lock{mutex_};
  return restored_at_;
}

SpillableBuffer::Step SpillableBuffer::step(MemoryType tier) const noexcept {
  if (state_ == State::Resident && upper_->memory_type() == tier) { return uses_ == 0 ? Step::Leave : Step::Nothing; }
  bool const below = below_ && below_->memory_type() == tier;
  if (state_ == State::Resident && below) { return Step::DropCopy; }
  if (state_ == State::Spilled && below && tier != MemoryType::Disk) { return Step::Demote; }
  return Step::Nothing;
}

std::int64_t SpillableBuffer::spillable_bytes(MemoryType tier) const noexcept {
  MutexLock lock{mutex_};
  if (state_ == State::Spilling || state_ == State::Restoring) { return 0; }
  return step(tier) == Step::Nothing ? 0 : buffers_.charge(tier, size_);
}

std::int64_t SpillableBuffer::spill(MemoryType tier) {
  Step next = Step::Nothing;
  State back = State::Resident;
  {
    MutexLock lock{mutex_};
    if (state_ == State::Spilling || state_ == State::Restoring) { return 0; }
    next = step(tier);
    if (next == Step::Nothing) { return 0; }
    if (next != Step::DropCopy) { back = std::exchange(state_, State::Spilling); }
  }
  if (next == Step::DropCopy) { return drop_copy() == 0 ? 0 : buffers_.charge(tier, size_); }
  std::optional<Buffer> gone;
  try {
    if (next == Step::Demote) {
      gone = std::exchange(below_, buffers_.copy_below(*below_, stream_));
    } else {
      if (!below_) { below_.emplace(buffers_.copy_below(*upper_, stream_)); }
      gone = std::exchange(upper_, std::nullopt);
    }
  }
  catch (...) {
    settle(back);
    throw;
  }
  settle(State::Spilled);
  // Last: bytes that come back may go to a waiter whose callback runs here and uses this very buffer.
  gone.reset();
  return buffers_.charge(tier, size_);
}

std::int64_t SpillableBuffer::drop_copy() noexcept {
  std::optional<Buffer> stale;
  MutexLock lock{mutex_};
  if (state_ != State::Resident || !below_) { return 0; }
  stale = std::exchange(below_, std::nullopt);
  return buffers_.charge(stale->memory_type(), size_);
}

}  // namespace earmark
