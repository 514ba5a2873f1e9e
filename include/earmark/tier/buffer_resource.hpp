// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// The tiers that belong together, and bytes between them. Nothing is global: as many as wanted live in one process, and
// several may share a tier (tiers are handles). Memory is always set aside first: whoever allocates, copies or moves
// brings a reservation of the tier in which the bytes will lie.
//
//   BufferResource buffers{{.host = {HostMemoryResource{}, 512_MiB}, .disk = disk_tier}};
//   HostMemoryReservation r = buffers.host().reserve(64_MiB);
//   Buffer buffer = buffers.allocate(64_MiB, stream, r);
//   DiskSpaceReservation d = buffers.disk().adaptor().reserve(64_MiB);
//   buffer = buffers.move(std::move(buffer), stream, d);                   // its host bytes are back in `r`
//
// What passes between a disk and memory goes through a fixed set of bounce buffers in host memory, reserved when this
// is made; pages of the host need none. Thread safety: any thread; a buffer is for one at a time. Ownership: shares the
// tiers. Buffers may outlive it; copier, events, clock and what the disk tier borrows outlive the buffers.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cuda/stream_ref>
#include <optional>

#include "earmark/core/clock.hpp"
#include "earmark/memory/memory_type.hpp"
#include "earmark/memory/reservation_aware_resource_adaptor.hpp"
#include "earmark/memory/stream_events.hpp"
#include "earmark/tier/bounce_pool.hpp"
#include "earmark/tier/buffer.hpp"
#include "earmark/tier/disk_tier.hpp"
#include "earmark/tier/memory_copier.hpp"

namespace earmark {

struct BufferResourceOptions {
  HostReservationAwareResourceAdaptor host;
  std::optional<DiskTier> disk{};
  std::optional<PinnedReservationAwareResourceAdaptor> pinned{};
  std::optional<ReservationAwareResourceAdaptor> device{};
  // Bounce buffers, taken from the host tier; none are made where there is no disk.
  BouncePoolOptions bounces{};
  // What follows is borrowed. Required with a device: how its bytes are copied, from and to it and within it, and how
  // its streams are ordered. Null otherwise.
  MemoryCopier* device_copier{nullptr};
  StreamEvents* events{nullptr};
  Clock const* clock{nullptr};  // times transfers; null: the machine's steady clock
};

// What went from one tier to another, or to another place of the same one.
struct TransferStatistics {
  std::int64_t count{0};  // of those that ended well
  std::int64_t bytes{0};
  std::int64_t failed{0};
  Clock::duration time{};  // summed over transfers, also those at the same time; a device's may end later
};

class BufferResource {
 public:
  // Throws: ReservationRefused where the bounce buffers do not fit into the host tier; std::invalid_argument for a
  // device without copier and events.
  explicit BufferResource(BufferResourceOptions options);
  BufferResource(BufferResource const&) = delete;
  BufferResource& operator=(BufferResource const&) = delete;

  // The tier that computes: the device where there is one, else the host.
  [[nodiscard]] MemoryType compute_tier() const noexcept {
    return has(MemoryType::Device) ? MemoryType::Device : MemoryType::Host;
  }
  [[nodiscard]] bool has(MemoryType type) const noexcept;
  [[nodiscard]] HostReservationAwareResourceAdaptor& host() noexcept { return options_.host; }
  // Requires, of each: `has` it.
  [[nodiscard]] DiskTier& disk() noexcept { return *options_.disk; }
  [[nodiscard]] PinnedReservationAwareResourceAdaptor& pinned() noexcept { return *options_.pinned; }
  [[nodiscard]] ReservationAwareResourceAdaptor& device() noexcept { return *options_.device; }

  // Returns: `bytes` of whatever was there before. Throws: ReservationExhausted, ReservationClosed,
  // UpstreamOutOfMemory.
  template <class... Properties>
  [[nodiscard]] Buffer allocate(std::size_t bytes, cuda::stream_ref stream,
                                BasicMemoryReservation<Properties...>& reservation) {
    return Buffer{MemoryBytes<Properties...>{bytes, stream, reservation, events()}};
  }

  // Returns: a buffer with the same bytes, in the reservation's tier, ready behind what `stream` has been given.
  // Throws: as `allocate`, `DiskTier::write` and `DiskTier::read`, and what the device reports; then `from` is unharmed
  // and `reservation` as it was. Blocks: where a disk takes part.
  template <class... Properties>
  [[nodiscard]] Buffer copy(Buffer& from, cuda::stream_ref stream, BasicMemoryReservation<Properties...>& reservation) {
    Timed timed{*this, from, detail::memory_type_of<Properties...>};
    MemoryBytes<Properties...> to{from.size(), stream, reservation, events()};
    constexpr MemoryType type = detail::memory_type_of<Properties...>;
    fill({to.data(), to.size(), type, copier(from.memory_type(), type), stream}, from);
    to.used_on(stream);
    timed.succeeded();
    return Buffer{std::move(to)};
  }
  [[nodiscard]] Buffer copy(Buffer& from, cuda::stream_ref stream, DiskSpaceReservation& reservation);

  // The same, and gives the bytes of `from` back. In its own tier it just stays, and nothing is drawn. Throws: as
  // `copy`; then `from` still has its bytes.
  template <class... Properties>
  [[nodiscard]] Buffer move(Buffer&& from, cuda::stream_ref stream,
                            BasicMemoryReservation<Properties...>& reservation) {
    if (from.memory_type() == detail::memory_type_of<Properties...>) { return std::move(from); }
    Buffer moved = copy(from, stream, reservation);
    Buffer const gone = std::move(from);
    return moved;
  }

  // Copies to the first tier below the one it lies in (pinned, host, disk, in this order) that has room now, by its own
  // account; never waits for it. Throws: ReservationRefused of the lowest where none has, and as `copy`.
  [[nodiscard]] Buffer copy_below(Buffer& from, cuda::stream_ref stream);

  // Returns: what `bytes` cost in a tier. Requires: `has` it.
  [[nodiscard]] std::int64_t charge(MemoryType type, std::size_t bytes) const noexcept;
  [[nodiscard]] TransferStatistics statistics(MemoryType from, MemoryType to) const noexcept;
  [[nodiscard]] StreamEvents& events() noexcept {
    return options_.events == nullptr ? host_copier_.events() : *options_.events;
  }

 private:
  static constexpr std::size_t tiers = 4;
  struct Counters {
    std::atomic<std::int64_t> count{0};
    std::atomic<std::int64_t> bytes{0};
    std::atomic<std::int64_t> failed{0};
    std::atomic<std::int64_t> nanoseconds{0};
  };
  // Counts a transfer when it goes.
  class Timed {
   public:
    Timed(BufferResource& buffers, Buffer const& from, MemoryType to) noexcept;
    Timed(Timed const&) = delete;
    Timed& operator=(Timed const&) = delete;
    ~Timed();
    void succeeded() noexcept { succeeded_ = true; }

   private:
    BufferResource& buffers_;
    Counters& counters_;
    std::int64_t bytes_;
    Clock::time_point start_;
    bool succeeded_{false};
  };

  [[nodiscard]] Counters& counters(MemoryType from, MemoryType to) noexcept {
    return counters_[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)];
  }
  [[nodiscard]] Clock const& clock() const noexcept {
    return options_.clock == nullptr ? steady_clock_ : *options_.clock;
  }
  [[nodiscard]] MemoryCopier* copier(MemoryType from, MemoryType to) noexcept {
    return from == MemoryType::Device || to == MemoryType::Device ? options_.device_copier : &host_copier_;
  }
  // Copies the bytes of `from` to memory.
  void fill(TransferMemory const& to, Buffer& from);

  BufferResourceOptions options_;
  SteadyClock steady_clock_;
  HostCopier host_copier_;
  std::optional<BouncePool> bounces_;
  std::array<std::array<Counters, tiers>, tiers> counters_;
};

}  // namespace earmark
