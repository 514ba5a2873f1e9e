// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Moves bytes between memory and a range of a file, block by block, with several blocks in flight. Private to tier.
// Thread safety: one thread. Ownership: borrows everything for the call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <vector>

#include "earmark/tier/disk_tier.hpp"

namespace earmark::detail {

struct BlockTransferPlan {
  TransferMemory memory;
  SpillFile& file;
  std::int64_t offset;
  std::size_t block_bytes;
  std::size_t in_flight;
};

class BlockTransfer {
 public:
  BlockTransfer(BlockTransferPlan const& plan, SpillQueue& queue, BouncePool& bounces);

  // Writes all, and notes each block's checksum. Throws: FileSystemError, what the copier throws. When it returns or
  // throws, nothing is in flight.
  void write(std::span<std::uint64_t> checksums);
  // Reads all, and compares each block's checksum. Throws: as `write`, and SpilledDataCorrupted.
  void read(std::span<std::uint64_t const> checksums);

 private:
  struct Block {
    std::size_t number{0};
    std::size_t bytes{0};
    std::optional<BouncePool::Buffer> bounce;
    std::byte* memory{nullptr};  // the bounce's or, without one, the other side's own
  };
  template <class Begin, class End>
  void run(SpillDirection direction, Begin const& begin, End const& end);
  template <class End>
  void end_one(SpillDirection direction, End const& end);

  [[nodiscard]] std::byte* whole(Block const& block) const noexcept {
    return plan_.memory.data + block.number * plan_.block_bytes;
  }
  // Whether the system can move the block as it lies.
  [[nodiscard]] bool moves_as_it_lies(Block const& block) const noexcept;
  void copy(std::byte* to, std::byte const* from, std::size_t bytes);
  void note_failure(SpillDirection direction, Block const& block, int error_number);

  BlockTransferPlan plan_;
  SpillQueue& queue_;
  BouncePool& bounces_;
  std::vector<Block> slots_;
  std::vector<std::size_t> free_;
  std::exception_ptr failure_;
};

struct BlockCopyPlan {
  DiskSpaceResource::Extent from;
  DiskSpaceResource::Extent to;
  std::size_t bytes;
  std::size_t block_bytes;
};

// Copies from one range of a file to another, a block at a time through one bounce buffer, comparing checksums on the
// way. Throws: as `BlockTransfer`.
void copy_blocks(BlockCopyPlan const& plan, std::span<std::uint64_t const> checksums, SpillQueue& queue,
                 BouncePool& bounces);

}  // namespace earmark::detail
