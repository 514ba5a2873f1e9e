// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// A buffer that makes room when others need it: it lies in a computing tier while it is used, and somewhere below it
// when a `SpillManager` asks.
//
//   auto const column = SpillableBuffer::make(buffers, std::move(buffer), stream, {.waker = spills.waker()});
//   SpillRegistration const registration = spills.add(column);
//   {
//     HostMemoryReservation room = buffers.host().reserve_blocking(column->size());   // for when it must come back
//     SpillableBuffer::Use const use = column->use(Access::Read, stream, room);
//     read(use.data(), use.size());
//   }                                                                      // may be spilled again
//
//   resident ── spill ──▶ spilling ──▶ spilled ── use ──▶ restoring ──▶ resident
//
// Reading and writing of the disk happen under no lock: whoever uses a buffer that is on its way waits for that buffer
// alone. What came back keeps its copy below until it is written to, so that spilling it again costs nothing.
// Thread safety: any thread, any number of uses at once; who may write to the bytes is the callers' affair. Ownership:
// shared: each use keeps it. Borrows the `BufferResource`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cuda/stream_ref>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "earmark/core/thread_annotations.hpp"
#include "earmark/tier/buffer.hpp"
#include "earmark/tier/buffer_resource.hpp"
#include "earmark/tier/spill_manager.hpp"
#include "earmark/tier/spillable.hpp"

namespace earmark {

// What a use does with the bytes. After a write, a copy that lies below is worth nothing and goes.
enum class Access : std::uint8_t { Read, Write };

// Whether a buffer that came back keeps its copy below.
enum class CleanCopies : std::uint8_t { Keep, Drop };

struct SpillableBufferOptions {
  CleanCopies clean_copies{CleanCopies::Keep};
  SpillWaker waker{};           // told when the last use ends
  Clock const* clock{nullptr};  // null: the machine's steady clock
};

class SpillableBuffer final : public Spillable, public std::enable_shared_from_this<SpillableBuffer> {
 public:
  enum class State : std::uint8_t { Resident, Spilling, Spilled, Restoring };

  // Keeps the bytes where they are while it lives.
  class Use {
   public:
    Use(Use&& other) noexcept = default;
    Use& operator=(Use&& other) noexcept {
      Use taken{std::move(other)};
      buffer_.swap(taken.buffer_);
      return *this;
    }
    ~Use() {
      if (buffer_ != nullptr) { buffer_->end_use(); }
    }
    // Of a moved-from one: nothing to be called.
    [[nodiscard]] std::byte* data() const noexcept { return buffer_->resident_data(); }
    [[nodiscard]] std::size_t size() const noexcept { return buffer_->size(); }
    // As `Buffer::used_on`.
    void used_on(cuda::stream_ref stream) { buffer_->used_on(stream); }

   private:
    friend class SpillableBuffer;
    explicit Use(std::shared_ptr<SpillableBuffer> buffer) noexcept : buffer_(std::move(buffer)) {}
    std::shared_ptr<SpillableBuffer> buffer_;  // shared: a use may be the last to hold it
  };

  // `stream`: on which it is spilled. A buffer that lies on a disk begins spilled.
  [[nodiscard]] static std::shared_ptr<SpillableBuffer> make(BufferResource& buffers, Buffer buffer,
                                                             cuda::stream_ref stream,
                                                             SpillableBufferOptions const& options = {});

  // Returns: a use of the bytes, where they are; or, if they are spilled, in memory drawn from `reservation`, to which
  // they belong from then on. What `stream` is given from here on comes after the last use and the restore. Throws: as
  // `BufferResource::copy`; then it is still spilled. Blocks: while this buffer is
  // spilled or restored.
  template <class... Properties>
  [[nodiscard]] Use use(Access access, cuda::stream_ref stream, BasicMemoryReservation<Properties...>& reservation) {
    if (!begin_use_or_restoring(access)) {
      restore(access, [&](Buffer& below) { return buffers_.copy(below, stream, reservation); });
    }
    Use taken{shared_from_this()};
    order_after_last_use(stream);  // another stream may still be restoring it
    return taken;
  }
  // Returns: a use if that needs no memory and no waiting. It is for the host or the stream of the last use: nothing
  // orders others behind that.
  [[nodiscard]] std::optional<Use> try_use(Access access);

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] State state() const noexcept EARMARK_EXCLUDES(mutex_);
  // Where the bytes are: of a buffer with a copy, the upper place. Blocks: while it is spilled or restored.
  [[nodiscard]] MemoryType memory_type() const noexcept EARMARK_EXCLUDES(mutex_);

  [[nodiscard]] std::int64_t spillable_bytes(MemoryType tier) const noexcept override EARMARK_EXCLUDES(mutex_);
  std::int64_t spill(MemoryType tier) override EARMARK_EXCLUDES(mutex_);
  std::int64_t drop_copy() noexcept override EARMARK_EXCLUDES(mutex_);
  [[nodiscard]] std::optional<Clock::time_point> restored_at() const noexcept override EARMARK_EXCLUDES(mutex_);

 private:
  SpillableBuffer(BufferResource& buffers, Buffer buffer, cuda::stream_ref stream,
                  SpillableBufferOptions const& options);

  // What a spill of `tier` would do now.
  enum class Step : std::uint8_t { Nothing, Leave, Demote, DropCopy };
  [[nodiscard]] Step step(MemoryType tier) const noexcept EARMARK_REQUIRES(mutex_);

  // Waits while the buffer is on its way. Returns: true, with a use counted; false if it is spilled, and the caller is
  // the one to restore it.
  [[nodiscard]] bool begin_use_or_restoring(Access access) EARMARK_EXCLUDES(mutex_);
  void restore(Access access, std::function<Buffer(Buffer&)> const& copy_up) EARMARK_EXCLUDES(mutex_);
  void end_use() noexcept EARMARK_EXCLUDES(mutex_);
  // Counts a use. Returns: a copy that is worth nothing any more, to be freed outside the lock.
  [[nodiscard]] std::optional<Buffer> count_use(Access access) EARMARK_REQUIRES(mutex_);
  [[nodiscard]] std::byte* resident_data() const noexcept EARMARK_EXCLUDES(mutex_);
  void used_on(cuda::stream_ref stream) EARMARK_EXCLUDES(mutex_);
  void order_after_last_use(cuda::stream_ref stream) EARMARK_EXCLUDES(mutex_);
  void settle(State state) noexcept EARMARK_EXCLUDES(mutex_);
  [[nodiscard]] Clock const& clock() const noexcept {
    return options_.clock == nullptr ? steady_clock_ : *options_.clock;
  }

  BufferResource& buffers_;
  cuda::stream_ref stream_;
  SpillableBufferOptions options_;
  SteadyClock steady_clock_;
  std::size_t size_;
  mutable Mutex mutex_;
  mutable ConditionVariable settled_;
  State state_ EARMARK_GUARDED_BY(mutex_){State::Resident};
  std::int64_t uses_ EARMARK_GUARDED_BY(mutex_){0};
  std::optional<Clock::time_point> restored_at_ EARMARK_GUARDED_BY(mutex_);
  // While on its way, both belong to whoever moves it, and to nobody's lock.
  std::optional<Buffer> upper_;
  std::optional<Buffer> below_;
};

}  // namespace earmark
