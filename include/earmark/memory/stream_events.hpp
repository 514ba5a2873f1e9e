// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// What memory needs to know of streams: a mark behind the work that a stream has been given so far, and other streams
// that wait for it. Memory that one stream freed is handed to another only behind such a mark. An interface, so that
// this floor needs no CUDA driver: device memory comes with an implementation over CUDA events, host memory uses
// `HostStreamEvents`, tests use `testing::ManualStreamEvents`.
//
//   EventHandle const mark = events.record(a);   // behind all that `a` has been given
//   events.wait(b, mark);                        // what `b` is given from here on runs after that
//   events.release(mark);
//
// Thread safety: every function may be called from any thread. Ownership: a mark belongs to whoever recorded it, until
// it is released; the object must outlive all that was built with it.
#pragma once

#include <cstdint>
#include <cuda/stream_ref>

namespace earmark {

// Names a mark; what is in it is the implementation's affair. `EventHandle{}` names none.
enum class EventHandle : std::uintptr_t {};

class StreamEvents {
 public:
  // Whether work on streams may still be running when a call that frees memory returns.
  enum class Order : std::uint8_t {
    ByStream,  // yes: it is ordered by marks
    AtOnce,    // never: all that was given to a stream is done
  };

  StreamEvents() = default;
  StreamEvents(StreamEvents const&) = delete;
  StreamEvents& operator=(StreamEvents const&) = delete;
  virtual ~StreamEvents() = default;

  [[nodiscard]] virtual Order order() const noexcept { return Order::ByStream; }

  // Returns: a new mark behind all that `stream` has been given, to be released. Throws: what the device reports,
  // std::bad_alloc. Blocks: no.
  [[nodiscard]] virtual EventHandle record(cuda::stream_ref stream) = 0;
  // Moves a mark of the same stream behind all that it has been given since. Called while memory is freed: where the
  // device refuses it, it has failed for good, and what it ran no longer runs. Blocks: no.
  virtual void record_again(EventHandle mark, cuda::stream_ref stream) noexcept = 0;
  // Later work of `stream` waits for the mark. Throws: what the device reports. Blocks: no.
  virtual void wait(cuda::stream_ref stream, EventHandle mark) = 0;
  // Returns: whether all that was before the mark is done. Blocks: no.
  [[nodiscard]] virtual bool passed(EventHandle mark) = 0;
  // Gives the mark back. Streams that were told to wait for it still do.
  virtual void release(EventHandle mark) noexcept = 0;

  // Throws: what the device reports. Blocks: until all that `stream` has been given, or was before `mark`, is done.
  virtual void synchronize(cuda::stream_ref stream) = 0;
  virtual void synchronize(EventHandle mark) = 0;
  // Throws: what the device reports. Blocks: until all that any stream of the device has been given is done.
  virtual void synchronize_all() = 0;
};

// For memory that no stream touches behind the back of the thread that frees it: everything is done at once.
class HostStreamEvents final : public StreamEvents {
 public:
  [[nodiscard]] Order order() const noexcept override { return Order::AtOnce; }
  [[nodiscard]] EventHandle record(cuda::stream_ref) override { return EventHandle{}; }
  void record_again(EventHandle, cuda::stream_ref) noexcept override {}
  void wait(cuda::stream_ref, EventHandle) override {}
  [[nodiscard]] bool passed(EventHandle) override { return true; }
  void release(EventHandle) noexcept override {}
  void synchronize(cuda::stream_ref) override {}
  void synchronize(EventHandle) override {}
  void synchronize_all() override {}
};

}  // namespace earmark
