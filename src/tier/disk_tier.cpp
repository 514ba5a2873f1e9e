// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/tier/disk_tier.hpp"

#include <stdexcept>
#include <utility>
#include <vector>

#include "block_transfer.hpp"
#include "earmark/core/thread_annotations.hpp"
#include "earmark/memory/errors.hpp"

namespace earmark {
namespace {

AdaptorOptions by_blocks(AdaptorOptions options) {
  options.granularity = disk_granularity;
  return options;
}

// Queues that nobody uses now: opening one costs more than a small transfer.
class IdleQueues {
 public:
  IdleQueues(SpillDisk& disk, std::size_t depth) : disk_(disk), depth_(depth) { idle_.reserve(most_kept); }

  // Throws: FileSystemError.
  [[nodiscard]] std::unique_ptr<SpillQueue> take() EARMARK_EXCLUDES(mutex_) {
    {
      MutexLock lock{mutex_};
      if (!idle_.empty()) {
        std::unique_ptr<SpillQueue> queue = std::move(idle_.back());
        idle_.pop_back();
        return queue;
      }
    }
    return disk_.open_queue(depth_);
  }
  // Requires: nothing is in flight.
  void give(std::unique_ptr<SpillQueue> queue) noexcept EARMARK_EXCLUDES(mutex_) {
    if (!queue->usable()) { return; }
    MutexLock lock{mutex_};
    if (idle_.size() < most_kept) { idle_.push_back(std::move(queue)); }
  }

 private:
  static constexpr std::size_t most_kept = 8;

  SpillDisk& disk_;
  std::size_t depth_;
  Mutex mutex_;
  std::vector<std::unique_ptr<SpillQueue>> idle_ EARMARK_GUARDED_BY(mutex_);
};

// A queue for a scope.
class BorrowedQueue {
 public:
  explicit BorrowedQueue(IdleQueues& queues) : queues_(queues), queue_(queues.take()) {}
  BorrowedQueue(BorrowedQueue const&) = delete;
  BorrowedQueue& operator=(BorrowedQueue const&) = delete;
  ~BorrowedQueue() { queues_.give(std::move(queue_)); }
  [[nodiscard]] SpillQueue& get() noexcept { return *queue_; }

 private:
  IdleQueues& queues_;
  std::unique_ptr<SpillQueue> queue_;
};

}  // namespace

struct DiskTier::State {
  State(FileSystem& files, SpillDisk& disk, DiskTierOptions const& given)
      : options(given),
        space(files, disk, options.space),
        adaptor(space, options.limit, by_blocks(options.adaptor)),
        queues(disk, options.blocks_in_flight) {}

  [[nodiscard]] detail::BlockTransferPlan plan(void const* extent, TransferMemory memory) noexcept {
    if (memory.copier == nullptr) { memory.copier = &host_copier; }
    auto const [file, offset] = space.extent(extent);
    return {memory, file, offset, options.block_bytes, options.blocks_in_flight};
  }
  // An extent is a name that means something on its own disk alone. Throws: ReservationMismatch.
  void require_own(void const* extent, std::size_t bytes, char const* what) const {
    if (space.owns(extent)) { return; }
    ErrorFields fields;
    fields.tier.assign("disk");
    fields.requested = static_cast<std::int64_t>(bytes);
    throw ReservationMismatch(fields, what);
  }
  void require_whole_blocks(BouncePool const& bounces) const {
    if (bounces.buffer_bytes() < options.block_bytes) {
      throw std::invalid_argument("bounce buffers must hold a block of the disk tier");
    }
  }

  DiskTierOptions options;
  DiskSpaceResource space;
  DiskSpaceAdaptor adaptor;
  IdleQueues queues;
  HostCopier host_copier;
};

DiskTier::DiskTier(FileSystem& files, SpillDisk& disk, DiskTierOptions const& options) {
  if (options.block_bytes == 0 || options.block_bytes % spill_alignment != 0 || options.blocks_in_flight == 0) {
    throw std::invalid_argument("a disk tier moves blocks of whole 4096 bytes, at least one at a time");
  }
  state_ = std::make_shared<State>(files, disk, options);
}

DiskSpaceAdaptor DiskTier::adaptor() const noexcept { return state_->adaptor; }

SpilledBytes DiskTier::write(TransferMemory const& from, DiskSpaceReservation& reservation, BouncePool& bounces) {
  state_->require_whole_blocks(bounces);
  std::size_t const block = state_->options.block_bytes;
  SpilledBytes stored{reservation.resource(), from.bytes, (from.bytes + block - 1) / block};
  if (from.bytes == 0) { return stored; }
  state_->require_own(stored.extent_, from.bytes, "the reservation is of another disk tier");
  BorrowedQueue queue{state_->queues};
  detail::BlockTransfer{state_->plan(stored.extent_, from), queue.get(), bounces}.write(stored.checksums_);
  return stored;
}

void DiskTier::read(SpilledBytes const& stored, TransferMemory const& to, BouncePool& bounces) {
  state_->require_whole_blocks(bounces);
  if (stored.bytes_ == 0) { return; }
  state_->require_own(stored.extent_, stored.bytes_, "the bytes are on another disk tier");
  TransferMemory target = to;
  target.bytes = stored.bytes_;
  BorrowedQueue queue{state_->queues};
  detail::BlockTransfer{state_->plan(stored.extent_, target), queue.get(), bounces}.read(stored.checksums_);
}

SpilledBytes DiskTier::copy(SpilledBytes const& stored, DiskSpaceReservation& reservation, BouncePool& bounces) {
  state_->require_whole_blocks(bounces);
  SpilledBytes copied{reservation.resource(), stored.bytes_, stored.checksums_.size()};
  if (stored.bytes_ == 0) { return copied; }
  state_->require_own(stored.extent_, stored.bytes_, "the bytes are on another disk tier");
  state_->require_own(copied.extent_, stored.bytes_, "the reservation is of another disk tier");
  BorrowedQueue queue{state_->queues};
  detail::copy_blocks({state_->space.extent(stored.extent_), state_->space.extent(copied.extent_), stored.bytes_,
                       state_->options.block_bytes},
                      stored.checksums_, queue.get(), bounces);
  copied.checksums_ = stored.checksums_;
  return copied;
}

DiskTierReport DiskTier::report() const {
  SpillDirectory const& directory = state_->space.directory();
  AdaptorSnapshot const now = state_->adaptor.snapshot();
  return {directory.path(),
          state_->space.disk().look_at(directory.path()),
          state_->space.disk().method(),
          state_->space.direct(),
          now.limit,
          now.committed,
          directory.removed_stale()};
}

}  // namespace earmark
