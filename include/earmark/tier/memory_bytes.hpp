// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Bytes that lie in memory: an owner of them, drawn from a reservation, that knows how long streams still use them.
// What a `Buffer` holds unless it lies on a disk. Thread safety: one thread at a time. Ownership: the bytes go back to
// the reservation they were drawn from when this goes, after their last use. It may outlive the reservation's handle
// and the adaptor, not the events.
#pragma once

#include <cstddef>
#include <cuda/stream_ref>
#include <utility>

#include "earmark/memory/memory_reservation.hpp"
#include "earmark/memory/stream_events.hpp"

namespace earmark {

template <class... Properties>
class MemoryBytes {
 public:
  using Reservation = BasicMemoryReservation<Properties...>;

  // What buffers begin at a multiple of.
  static constexpr std::size_t alignment = 256;

  // Throws: ReservationExhausted, ReservationClosed, UpstreamOutOfMemory.
  MemoryBytes(std::size_t bytes, cuda::stream_ref stream, Reservation& reservation, StreamEvents& events)
      : resource_(reservation.resource()), stream_(stream), events_(&events), bytes_(bytes) {
    data_ = static_cast<std::byte*>(resource_.allocate(stream, bytes, alignment));
  }
  MemoryBytes(MemoryBytes&& other) noexcept
      : resource_(other.resource_),
        stream_(other.stream_),
        events_(other.events_),
        last_use_(std::exchange(other.last_use_, EventHandle{})),
        data_(std::exchange(other.data_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)) {}
  MemoryBytes& operator=(MemoryBytes&& other) noexcept {
    MemoryBytes taken{std::move(other)};
    std::swap(resource_, taken.resource_);
    std::swap(stream_, taken.stream_);
    std::swap(events_, taken.events_);
    std::swap(last_use_, taken.last_use_);
    std::swap(data_, taken.data_);
    std::swap(bytes_, taken.bytes_);
    return *this;
  }
  ~MemoryBytes() {
    await_last_use();
    if (data_ != nullptr) { resource_.deallocate(stream_, data_, bytes_, alignment); }
  }

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return bytes_; }

  // What `stream` has been given so far may use the bytes: what comes after them on another stream, and freeing them,
  // waits for it. Throws: what the device reports.
  void used_on(cuda::stream_ref stream) {
    if (last_use_ != EventHandle{}) { events_->wait(stream, last_use_); }  // the new mark is behind both
    EventHandle const mark = events_->record(stream);
    if (last_use_ != EventHandle{}) { events_->release(last_use_); }
    last_use_ = mark;
  }
  // What `stream` is given from here on comes after the last use. Throws: what the device reports.
  void order_after_last_use(cuda::stream_ref stream) const {
    if (last_use_ != EventHandle{}) { events_->wait(stream, last_use_); }
  }

 private:
  // A device's memory is freed in its stream's order; the system's at once, so nobody may still be at it.
  void await_last_use() noexcept {
    if (last_use_ == EventHandle{}) { return; }
    try {
      if constexpr (detail::contains_v<host_accessible, Properties...>) {
        events_->synchronize(last_use_);
      } else {
        events_->wait(stream_, last_use_);
      }
    }
    catch (...) {
      // The device has failed for good, and runs nothing any more.
    }
    events_->release(std::exchange(last_use_, EventHandle{}));
  }

  typename Reservation::Resource resource_;
  cuda::stream_ref stream_;
  StreamEvents* events_;
  EventHandle last_use_{};
  std::byte* data_{nullptr};
  std::size_t bytes_{0};
};

}  // namespace earmark
