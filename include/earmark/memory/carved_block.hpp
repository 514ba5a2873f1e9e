// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Cuts one block of memory that the upstream gave into pieces, as a preallocated reservation does with its own.
// Internal; see `Backing::Preallocated`. All records are kept on the host, so the block may be device memory: it is
// never touched. Not for objects of a few bytes: every piece is a multiple of the granularity.
//
//   CarvedBlock carved{{base, 1_GiB}, 256, events};
//   void* piece = carved.try_allocate(10'000, 256, stream);   // null: no hole fits, see largest_hole()
//   carved.deallocate(piece, stream);
//
// Streams: a piece that was freed on a stream is handed out again on the same stream at once, and on another one only
// after that was told to wait for what the first had been given: the wait is enqueued, the caller does not block. A
// hole of the caller's own stream is preferred; neighbouring holes are one if the same stream freed them, and before an
// allocation is refused, neighbouring holes of different streams are joined behind one mark for each stream. So a
// refusal means that no hole, however it came about, is long enough.
//
// Cost: a short spin lock; a handful of cache lines for an allocation, fewer for a free; next to none for the piece
// that was freed last; all records, before holes of several streams are joined or an allocation is refused beside such
// holes. 64 bytes for each live piece and each hole, 16 to 32 for each live piece, as many as there ever were at a
// time; and 512 bytes of lists for each power of two up to the block's length.
//
// Thread safety: every function but the destructor may be called from any thread. Marks are recorded and waited for
// without the lock. Ownership: borrows the block, the events and the memory for records; all outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <optional>
#include <span>

#include "earmark/memory/stream_events.hpp"

namespace earmark::detail {

class Carver;

class CarvedBlock {
 public:
  struct Counters {
    std::int64_t live_blocks{0};
    std::int64_t live_bytes{0};
    std::int64_t hole_bytes{0};
    std::int64_t refusals{0};
    std::int64_t stream_waits{0};    // times a stream, or a thread, had to be put behind another stream
    std::int64_t joins{0};           // allocations that took holes of several streams
    std::int64_t metadata_bytes{0};  // host memory of the records
  };

  // `granularity`: pieces begin at its multiples and are multiples of it. `ready_on`: the stream on which the upstream
  // allocated the block; without one, the block can be used at once. What is left of the block after its last whole
  // granule is not used.
  // Throws: std::invalid_argument unless the granularity is a power of two of at least 64, the block begins at a
  // multiple of it and holds at least one granule; std::bad_alloc for records.
  CarvedBlock(std::span<std::byte> block, std::size_t granularity, StreamEvents& events,
              std::optional<cuda::stream_ref> ready_on = std::nullopt,
              std::pmr::memory_resource* metadata = std::pmr::new_delete_resource());
  CarvedBlock(CarvedBlock const&) = delete;
  CarvedBlock& operator=(CarvedBlock const&) = delete;
  ~CarvedBlock();

  // Returns: memory for work that is given to `stream` from now on; null if no hole fits. An alignment above the
  // granularity is served without keeping what lies before the piece.
  // Requires: bytes > 0; the alignment is a power of two.
  // Throws: std::bad_alloc if there is no memory for the record; what recording a mark throws. Then nothing changed.
  [[nodiscard]] void* try_allocate(std::size_t bytes, std::size_t alignment, cuda::stream_ref stream);
  // The same for use at once, by anyone. Blocks: until the work before the hole's free is done, if it may not be yet.
  [[nodiscard]] void* try_allocate_sync(std::size_t bytes, std::size_t alignment);

  // Gives a piece back, behind what `stream` has been given so far. Needs no memory, and does not block unless holes of
  // 65,534 streams are left, or more than a dozen streams not seen before free between two allocations: then it waits
  // for this stream.
  // Returns: bytes of the piece; 0 if no live piece begins at `pointer`: then nothing changed.
  std::size_t deallocate(void* pointer, cuda::stream_ref stream) noexcept;
  // The same for a piece that no work under way uses.
  std::size_t deallocate_sync(void* pointer) noexcept;

  // Whether `pointer` points into the block.
  [[nodiscard]] bool owns(void const* pointer) const noexcept;

  // To be called before a stream is destroyed, when nothing more is freed on it: its holes stay ordered behind what it
  // has been given so far. Blocks: while another thread is just putting itself behind that stream.
  void forget_stream(cuda::stream_ref stream) noexcept;

  // Puts `stream`, or the caller, behind everything that was freed: then the block may go back to its upstream.
  // Blocks: only `drain_sync`, until that work is done.
  void drain_into(cuda::stream_ref stream) noexcept;
  void drain_sync() noexcept;

  // Bytes of the longest piece that could be allocated now, at the granularity's alignment.
  [[nodiscard]] std::size_t largest_hole() const noexcept;
  [[nodiscard]] std::size_t live_blocks() const noexcept;
  [[nodiscard]] Counters counters() const noexcept;

 private:
  std::unique_ptr<Carver> carver_;
};

}  // namespace earmark::detail
