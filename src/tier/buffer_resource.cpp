// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/tier/buffer_resource.hpp"

#include <stdexcept>
#include <utility>

#include "earmark/memory/errors.hpp"

namespace earmark {

BufferResource::BufferResource(BufferResourceOptions options) : options_(std::move(options)) {
  if (options_.device && (options_.device_copier == nullptr || options_.events == nullptr)) {
    throw std::invalid_argument("a device tier needs a copier and events");
  }
  if (options_.disk) { bounces_.emplace(options_.host, options_.bounces); }
}

bool BufferResource::has(MemoryType type) const noexcept {
  switch (type) {
    case MemoryType::Device: return options_.device.has_value();
    case MemoryType::Pinned: return options_.pinned.has_value();
    case MemoryType::Host: return true;
    case MemoryType::Disk: return options_.disk.has_value();
  }
  return false;
}

Buffer BufferResource::copy(Buffer& from, cuda::stream_ref stream, DiskSpaceReservation& reservation) {
  Timed timed{*this, from, MemoryType::Disk};
  if (SpilledBytes const* const spilled = from.spilled()) {
    Buffer copied{disk().copy(*spilled, reservation, *bounces_)};
    timed.succeeded();
    return copied;
  }
  // Host memory is read by this thread and the disk, which no stream orders.
  from.order_after_last_use(stream);
  events().synchronize(stream);
  MemoryCopier* const by = copier(from.memory_type(), MemoryType::Host);
  Buffer written{disk().write({from.data(), from.size(), from.memory_type(), by, stream}, reservation, *bounces_)};
  timed.succeeded();
  return written;
}

void BufferResource::fill(TransferMemory const& to, Buffer& from) {
  if (SpilledBytes const* const spilled = from.spilled()) { return disk().read(*spilled, to, *bounces_); }
  from.order_after_last_use(to.stream);
  to.copier->copy(to.data, from.data(), from.size(), to.stream);
  from.used_on(to.stream);
}

Buffer BufferResource::copy_below(Buffer& from, cuda::stream_ref stream) {
  MemoryType const type = from.memory_type();
  ReservationOptions const options{.label = "spilled"};
  if (type < MemoryType::Pinned && options_.pinned) {
    if (auto room = options_.pinned->try_reserve(from.size(), options)) { return copy(from, stream, *room); }
  }
  if (type < MemoryType::Host) {
    if (auto room = options_.host.try_reserve(from.size(), options)) { return copy(from, stream, *room); }
  }
  if (type < MemoryType::Disk && options_.disk) {
    DiskSpaceReservation room = options_.disk->adaptor().reserve(from.size(), options);
    return copy(from, stream, room);
  }
  ErrorFields fields;
  fields.tier.assign(to_string(type));
  fields.requested = static_cast<std::int64_t>(from.size());
  fields.setting.assign("a disk tier to spill to");
  throw ReservationRefused(fields);
}

std::int64_t BufferResource::charge(MemoryType type, std::size_t bytes) const noexcept {
  switch (type) {
    case MemoryType::Device: return options_.device->charge(bytes);
    case MemoryType::Pinned: return options_.pinned->charge(bytes);
    case MemoryType::Host: return options_.host.charge(bytes);
    case MemoryType::Disk: return options_.disk->adaptor().charge(bytes);
  }
  return 0;
}

TransferStatistics BufferResource::statistics(MemoryType from, MemoryType to) const noexcept {
  Counters const& counted = counters_[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)];
  return {counted.count.load(std::memory_order_relaxed), counted.bytes.load(std::memory_order_relaxed),
          counted.failed.load(std::memory_order_relaxed),
          Clock::duration{counted.nanoseconds.load(std::memory_order_relaxed)}};
}

BufferResource::Timed::Timed(BufferResource& buffers, Buffer const& from, MemoryType to) noexcept
    : buffers_(buffers),
      counters_(buffers.counters(from.memory_type(), to)),
      bytes_(static_cast<std::int64_t>(from.size())),
      start_(buffers.clock().now()) {}

BufferResource::Timed::~Timed() {
  if (!succeeded_) {
    counters_.failed.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  counters_.count.fetch_add(1, std::memory_order_relaxed);
  counters_.bytes.fetch_add(bytes_, std::memory_order_relaxed);
  counters_.nanoseconds.fetch_add((buffers_.clock().now() - start_).count(), std::memory_order_relaxed);
}

}  // namespace earmark
