// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// The tier that is a disk: space under a limit, and moving bytes between memory and it, many blocks at a time, with a
// checksum for each that is verified when it comes back.
//
//   DiskTier tier{files, disk, {.space = {.directory = "/data/spill"}, .limit = 100_GiB}};
//   DiskSpaceReservation reservation = tier.adaptor().reserve(source.bytes);
//   SpilledBytes stored = tier.write(source, reservation, bounces);        // or throws, and nothing changed
//   tier.read(stored, target, bounces);
//
// Host memory goes to the disk and comes from it as it lies, where it begins at a page; the rest, and memory of a
// device, goes through bounce buffers. A transfer waits for bounce buffers only while it holds none. Thread safety: any
// thread; bytes are read by several at once, and nobody may write the memory that is being spilled. Ownership: copies
// share the tier; file system and disk are borrowed and outlive it and all bytes on it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cuda/stream_ref>
#include <memory>
#include <string>

#include "earmark/core/spill_disk.hpp"
#include "earmark/memory/memory_type.hpp"
#include "earmark/tier/bounce_pool.hpp"
#include "earmark/tier/disk_space.hpp"
#include "earmark/tier/memory_copier.hpp"
#include "earmark/tier/spilled_bytes.hpp"

namespace earmark {

struct DiskTierOptions {
  DiskSpaceOptions space{};
  std::size_t limit{SIZE_MAX};
  AdaptorOptions adaptor{};  // its granularity is a block of the disk, whatever it says
  // Bytes with a checksum of their own, moved at once; a multiple of 4096.
  std::size_t block_bytes{std::size_t{1} << 20};
  std::size_t blocks_in_flight{8};  // of one transfer
};

// Memory on one side of a transfer. `copier` gets its bytes to host memory (a source) or from there (a target); null
// where it is host memory itself.
struct TransferMemory {
  std::byte* data{nullptr};
  std::size_t bytes{0};
  MemoryType type{MemoryType::Host};
  MemoryCopier* copier{nullptr};
  cuda::stream_ref stream{cudaStream_t{}};
};

// The tier as it is, for people.
struct DiskTierReport {
  std::string directory;
  SpillPlace place;  // as it is now
  SpillMethod method{SpillMethod::Workers};
  bool direct{false};
  std::int64_t limit{0};
  std::int64_t committed{0};
  std::int64_t removed_stale{0};
};

class DiskTier {
 public:
  // Throws: SpillPlaceRefused, FileSystemError; std::invalid_argument for a block that is no whole number of disk
  // blocks.
  DiskTier(FileSystem& files, SpillDisk& disk, DiskTierOptions const& options);

  [[nodiscard]] DiskSpaceAdaptor adaptor() const noexcept;

  // Writes the bytes of `from`, behind what its stream has been given. Requires: bounce buffers of a block at least;
  // `from.data` stays as it is meanwhile.
  // Throws: ReservationExhausted, ReservationClosed; ReservationMismatch for one of another disk tier;
  // FileSystemError (full, broken, read-only) with folder, bytes and
  // errno; what the copier throws. Then the space is free again and `reservation` is as it was. Blocks: until all is
  // written.
  [[nodiscard]] SpilledBytes write(TransferMemory const& from, DiskSpaceReservation& reservation, BouncePool& bounces);
  // Reads all of `stored` into `to`. Requires: `to` has room for it.
  // Throws: ReservationMismatch for bytes on another disk tier; FileSystemError, SpilledDataCorrupted; then `stored` is
  // as it was, and what is in `to` means nothing. Blocks: until all is there (of a device: until it is copied).
  void read(SpilledBytes const& stored, TransferMemory const& to, BouncePool& bounces);

  // Copies what lies on this disk to another place on it, a block at a time. Throws: as `write` and `read`.
  [[nodiscard]] SpilledBytes copy(SpilledBytes const& stored, DiskSpaceReservation& reservation, BouncePool& bounces);

  // Throws: FileSystemError.
  [[nodiscard]] DiskTierReport report() const;

 private:
  struct State;
  std::shared_ptr<State> state_;  // shared by copies: tiers serve several
};

}  // namespace earmark
