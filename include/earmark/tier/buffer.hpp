// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Bytes in one tier, whichever: memory of a device, pinned or pageable host memory, or a disk. An owner that can be
// moved and that `BufferResource` makes, copies and moves between tiers.
//
//   HostMemoryReservation r = buffers.host().reserve(1_MiB);
//   Buffer buffer = buffers.allocate(1_MiB, stream, r);
//   std::memset(buffer.data(), 0, buffer.size());
//
// Thread safety: one thread at a time. Ownership: its bytes go back to the reservation they were drawn from when it
// goes, after their last use; it may outlive that reservation's handle and the `BufferResource`.
#pragma once

#include <cstddef>
#include <cuda/stream_ref>
#include <type_traits>
#include <utility>
#include <variant>

#include "earmark/memory/memory_type.hpp"
#include "earmark/tier/memory_bytes.hpp"
#include "earmark/tier/spilled_bytes.hpp"

namespace earmark {

class Buffer {
 public:
  using DeviceBytes = MemoryBytes<device_accessible>;
  using PinnedBytes = MemoryBytes<host_accessible, device_accessible>;
  using HostBytes = MemoryBytes<host_accessible>;

  // Takes over bytes that somebody made.
  explicit Buffer(DeviceBytes bytes) noexcept : bytes_(std::move(bytes)) {}
  explicit Buffer(PinnedBytes bytes) noexcept : bytes_(std::move(bytes)) {}
  explicit Buffer(HostBytes bytes) noexcept : bytes_(std::move(bytes)) {}
  explicit Buffer(SpilledBytes bytes) noexcept : bytes_(std::move(bytes)) {}
  // Out of line: GCC 12 takes the variant in an empty `std::optional<Buffer>` for one that is used.
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();

  [[nodiscard]] MemoryType memory_type() const noexcept {
    constexpr MemoryType types[] = {MemoryType::Device, MemoryType::Pinned, MemoryType::Host, MemoryType::Disk};
    return types[bytes_.index()];
  }
  // Of a moved-from one: 0.
  [[nodiscard]] std::size_t size() const noexcept {
    return std::visit([](auto const& bytes) { return bytes.size(); }, bytes_);
  }
  // Null on a disk, and of nothing. A device's can be read only there.
  [[nodiscard]] std::byte* data() const noexcept {
    return of_memory([](auto const& bytes) { return bytes.data(); });
  }

  // Call after `stream` was given work that uses the bytes. Throws: what the device reports.
  void used_on(cuda::stream_ref stream) {
    std::visit(
        [&](auto& bytes) {
          if constexpr (!on_disk<decltype(bytes)>) { bytes.used_on(stream); }
        },
        bytes_);
  }
  // Call before `stream` is given work that uses the bytes, unless it is the stream of their last use.
  void order_after_last_use(cuda::stream_ref stream) const {
    std::visit(
        [&](auto const& bytes) {
          if constexpr (!on_disk<decltype(bytes)>) { bytes.order_after_last_use(stream); }
        },
        bytes_);
  }
  // What lies on a disk; null elsewhere.
  [[nodiscard]] SpilledBytes const* spilled() const noexcept { return std::get_if<SpilledBytes>(&bytes_); }

 private:
  template <class Bytes>
  static constexpr bool on_disk = std::is_same_v<std::remove_cvref_t<Bytes>, SpilledBytes>;

  template <class Use>
  [[nodiscard]] std::byte* of_memory(Use const& use) const noexcept {
    return std::visit(
        [&](auto const& bytes) -> std::byte* {
          if constexpr (on_disk<decltype(bytes)>) {
            return nullptr;
          } else {
            return use(bytes);
          }
        },
        bytes_);
  }

  std::variant<DeviceBytes, PinnedBytes, HostBytes, SpilledBytes> bytes_;
};

static_assert(std::is_nothrow_move_constructible_v<Buffer> && std::is_nothrow_move_assignable_v<Buffer>);
static_assert(!std::is_copy_constructible_v<Buffer>);

}  // namespace earmark
