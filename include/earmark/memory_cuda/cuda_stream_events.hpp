// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Marks on streams as CUDA events: what memory needs to hand bytes that one stream freed to another, and to wait for
// frees that are still pending. When to use: for reservations of device or pinned memory.
//
//   CudaStreamEvents events;
//   ReservationAwareResourceAdaptor adaptor{rmm::mr::cuda_async_memory_resource{}, 8_GiB, {.events = &events}};
//   MemoryReservation r = adaptor.reserve(1_GiB, {.backing = Backing::Preallocated});
//
// Events are kept and used again, so recording costs no more than CUDA's own call once as many exist as are in use at a
// time. Streams may be of several devices; each event belongs to its stream's device, and streams of other devices can
// wait for it. A stream must be the same one on every thread, so not `cudaStreamPerThread` when other threads free;
// streams under capture cannot be marked.
//
// Thread safety: any thread. Ownership: owns its events; must outlive all adaptors, reservations and buffers that were
// given it. It calls CUDA when it is destroyed, so it must not be a static object: one that buffers need until the
// process ends is allocated and never deleted. Where the driver has already gone, all work counts as done.
#pragma once

#include <driver_types.h>

#include <cstddef>
#include <deque>
#include <vector>

#include "earmark/core/thread_annotations.hpp"
#include "earmark/memory/stream_events.hpp"

namespace earmark {

class CudaStreamEvents final : public StreamEvents {
 public:
  // Calls nothing of CUDA: also made where there is no device.
  CudaStreamEvents() = default;
  ~CudaStreamEvents() override;

  // Throws: CudaError, std::bad_alloc.
  [[nodiscard]] EventHandle record(cuda::stream_ref stream) override;
  void record_again(EventHandle mark, cuda::stream_ref stream) noexcept override;
  // Throws: CudaError.
  void wait(cuda::stream_ref stream, EventHandle mark) override;
  // Throws: CudaError.
  [[nodiscard]] bool passed(EventHandle mark) override;
  void release(EventHandle mark) noexcept override;
  // Throws: CudaError. Blocks: without using the processor meanwhile where it waits for a mark.
  void synchronize(cuda::stream_ref stream) override;
  void synchronize(EventHandle mark) override;
  void synchronize_all() override;

  // Events made so far, in use or kept.
  [[nodiscard]] std::size_t event_count() const;

 private:
  struct Mark {
    cudaEvent_t event;
    int device;
    Mark* next_spare;
  };

  static Mark& mark_of(EventHandle handle) noexcept;
  [[nodiscard]] Mark& take(int device);
  [[nodiscard]] Mark* try_take_spare(int device);
  [[nodiscard]] Mark& keep(cudaEvent_t event, int device);

  mutable Mutex mutex_;
  std::deque<Mark> marks_ EARMARK_GUARDED_BY(mutex_);    // a deque: marks stay where they are
  std::vector<Mark*> spare_ EARMARK_GUARDED_BY(mutex_);  // by device, what nobody has
};

}  // namespace earmark
