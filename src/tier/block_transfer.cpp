// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "block_transfer.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

#include "block_checksum.hpp"
#include "earmark/core/file_system.hpp"
#include "earmark/tier/errors.hpp"

namespace earmark::detail {
namespace {

constexpr std::size_t whole_pages(std::size_t bytes) noexcept {
  return (bytes + spill_alignment - 1) & ~(spill_alignment - 1);
}

FileSystemError failed(SpillDirection direction, std::size_t bytes, SpillFile const& file, int error_number) {
  std::string const what = std::to_string(bytes) + " bytes ";
  return {direction == SpillDirection::Write ? "write " + what + "to" : "read " + what + "from", file.folder(),
          error_number, static_cast<std::int64_t>(bytes)};
}

void verify(std::span<std::byte const> bytes, std::uint64_t expected, SpillFile const& file, std::size_t first) {
  if (checksum(bytes) != expected) {
    throw SpilledDataCorrupted(file.folder(), static_cast<std::int64_t>(first),
                               static_cast<std::int64_t>(bytes.size()));
  }
}

// Moves one block and waits for it.
void move_block(SpillTransfer const& transfer, SpillQueue& queue) {
  queue.submit(transfer);
  if (int const error = queue.wait().error_number) {
    throw failed(transfer.direction, transfer.bytes, *transfer.file, error);
  }
}

}  // namespace

BlockTransfer::BlockTransfer(BlockTransferPlan const& plan, SpillQueue& queue, BouncePool& bounces)
    : plan_(plan), queue_(queue), bounces_(bounces), slots_(plan.in_flight) {
  free_.reserve(slots_.size());
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) { free_.push_back(slot); }
}

void BlockTransfer::write(std::span<std::uint64_t> checksums) {
  if (int const error =
          plan_.file.place_bytes(plan_.offset, static_cast<std::int64_t>(whole_pages(plan_.memory.bytes)))) {
    throw failed(SpillDirection::Write, plan_.memory.bytes, plan_.file, error);
  }
  run(
      SpillDirection::Write,
      [&](Block& block) {
        if (block.bounce) {
          copy(block.memory, whole(block), block.bytes);
          // What a page held before is nobody's business.
          std::memset(block.memory + block.bytes, 0, whole_pages(block.bytes) - block.bytes);
        }
        checksums[block.number] = checksum({block.memory, block.bytes});
      },
      [](Block const&) {});
}

void BlockTransfer::read(std::span<std::uint64_t const> checksums) {
  run(
      SpillDirection::Read,
      [](Block const& block) {
        // Memory that was never touched would be faulted in page by page where the kernel wants to start the transfer.
        if (!block.bounce) { (void)::madvise(block.memory, block.bytes, MADV_POPULATE_WRITE); }
      },
      [&](Block& block) {
        verify({block.memory, block.bytes}, checksums[block.number], plan_.file, block.number * plan_.block_bytes);
        if (block.bounce) { copy(whole(block), block.memory, block.bytes); }
      });
}

// After the first failure nothing is begun any more, but what is in flight is waited for: it uses the memory.
template <class Begin, class End>
void BlockTransfer::run(SpillDirection direction, Begin const& begin, End const& end) {
  std::size_t const bytes = plan_.memory.bytes;
  for (std::size_t number = 0; number * plan_.block_bytes < bytes && failure_ == nullptr; ++number) {
    if (free_.empty()) { end_one(direction, end); }
    std::size_t const slot = free_.back();
    Block& block = slots_[slot];
    block = {number, std::min(plan_.block_bytes, bytes - number * plan_.block_bytes), std::nullopt, nullptr};
    block.memory = whole(block);
    if (!moves_as_it_lies(block)) {
      while (!(block.bounce = bounces_.try_take())) {
        if (free_.size() == slots_.size()) {
          block.bounce.emplace(bounces_.take());
          break;
        }
        end_one(direction, end);
      }
      block.memory = block.bounce->bytes().data();
    }
    try {
      if (failure_ == nullptr) { begin(block); }
    }
    catch (...) {
      failure_ = std::current_exception();
    }
    if (failure_ != nullptr) { break; }
    std::erase(free_, slot);
    queue_.submit({direction, &plan_.file, block.memory, whole_pages(block.bytes),
                   plan_.offset + static_cast<std::int64_t>(number * plan_.block_bytes), slot});
  }
  while (free_.size() != slots_.size()) { end_one(direction, end); }
  if (failure_ != nullptr) { std::rethrow_exception(failure_); }
}

template <class End>
void BlockTransfer::end_one(SpillDirection direction, End const& end) {
  SpillOutcome const outcome = queue_.wait();
  Block& block = slots_[outcome.tag];
  try {
    if (outcome.error_number != 0) {
      note_failure(direction, block, outcome.error_number);
    } else if (failure_ == nullptr) {
      end(block);
    }
  }
  catch (...) {
    failure_ = std::current_exception();
  }
  block.bounce.reset();
  free_.push_back(outcome.tag);
}

bool BlockTransfer::moves_as_it_lies(Block const& block) const noexcept {
  bool const addressable = plan_.memory.type == MemoryType::Host || plan_.memory.type == MemoryType::Pinned;
  return addressable && block.bytes % spill_alignment == 0 &&
         std::bit_cast<std::uintptr_t>(block.memory) % spill_alignment == 0;
}

void BlockTransfer::copy(std::byte* to, std::byte const* from, std::size_t bytes) {
  plan_.memory.copier->copy(to, from, bytes, plan_.memory.stream);
  plan_.memory.copier->events().synchronize(plan_.memory.stream);
}

void BlockTransfer::note_failure(SpillDirection direction, Block const& block, int error_number) {
  if (failure_ != nullptr) { return; }  // the first says why
  throw failed(direction, block.bytes, plan_.file, error_number);
}

void copy_blocks(BlockCopyPlan const& plan, std::span<std::uint64_t const> checksums, SpillQueue& queue,
                 BouncePool& bounces) {
  BouncePool::Buffer const bounce = bounces.take();
  std::byte* const memory = bounce.bytes().data();
  for (std::size_t first = 0; first < plan.bytes; first += plan.block_bytes) {
    std::size_t const bytes = std::min(plan.block_bytes, plan.bytes - first);
    auto const skip = static_cast<std::int64_t>(first);
    move_block({SpillDirection::Read, &plan.from.file, memory, whole_pages(bytes), plan.from.offset + skip}, queue);
    verify({memory, bytes}, checksums[first / plan.block_bytes], plan.from.file, first);
    move_block({SpillDirection::Write, &plan.to.file, memory, whole_pages(bytes), plan.to.offset + skip}, queue);
  }
}

}  // namespace earmark::detail
