// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/testing/faulty_spill_disk.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <deque>
#include <thread>
#include <vector>

#include "earmark/core/file_system.hpp"

namespace earmark::testing {
namespace {

// A disk that is memory and does transfers when they are waited for.
class MemoryFile final : public SpillFile {
 public:
  explicit MemoryFile(std::string folder) : folder_(std::move(folder)) {}
  int place_bytes(std::int64_t, std::int64_t) noexcept override { return 0; }
  void release_bytes(std::int64_t, std::int64_t) noexcept override {}
  std::string const& folder() const noexcept override { return folder_; }
  bool direct() const noexcept override { return false; }

  std::array<std::byte, 4 * spill_alignment> bytes{};

 private:
  std::string folder_;
};

class MemoryQueue final : public SpillQueue {
 public:
  void submit(SpillTransfer const& transfer) noexcept override { transfers_.push_back(transfer); }
  SpillOutcome wait() noexcept override {
    SpillTransfer const next = transfers_.front();
    transfers_.pop_front();
    std::byte* const stored = static_cast<MemoryFile*>(next.file)->bytes.data() + next.offset;
    bool const writes = next.direction == SpillDirection::Write;
    std::memcpy(writes ? stored : next.memory, writes ? next.memory : stored, next.bytes);
    return {next.tag, 0};
  }

 private:
  std::deque<SpillTransfer> transfers_;
};

class MemoryDisk final : public SpillDisk {
 public:
  std::unique_ptr<SpillFile> create_unnamed(std::string const& folder) override {
    return std::make_unique<MemoryFile>(folder);
  }
  std::unique_ptr<SpillQueue> open_queue(std::size_t) override { return std::make_unique<MemoryQueue>(); }
  SpillPlace look_at(std::string const&) override { return {{"ext4"}, false, 1000}; }
  SpillMethod method() const noexcept override { return SpillMethod::Workers; }
};

using Block = std::array<std::byte, 2 * spill_alignment>;

class FaultySpillDiskTest : public ::testing::Test {
 protected:
  SpillOutcome move(SpillDirection direction, Block& block, std::uint64_t tag = 0) {
    queue->submit({direction, file.get(), block.data(), block.size(), 0, tag});
    return queue->wait();
  }
  static Block ones() {
    Block block;
    block.fill(std::byte{1});
    return block;
  }

  MemoryDisk real;
  FaultySpillDisk disk{real};
  std::unique_ptr<SpillFile> file = disk.create_unnamed("folder");
  std::unique_ptr<SpillQueue> queue = disk.open_queue(2);
};

TEST_F(FaultySpillDiskTest, PassesEverythingOnAndCounts) {
  Block written = ones();
  Block read{};
  EXPECT_EQ(move(SpillDirection::Write, written, 7).tag, 7U);
  EXPECT_EQ(move(SpillDirection::Read, read).error_number, 0);
  EXPECT_EQ(read, written);
  EXPECT_EQ(file->place_bytes(0, 4096), 0);
  file->release_bytes(0, 4096);
  EXPECT_EQ(disk.released_bytes(), 4096);
  EXPECT_EQ(disk.look_at("folder").free_bytes, 1000);
  EXPECT_EQ(file->folder(), "folder");
  EXPECT_EQ(disk.method(), SpillMethod::Workers);
  EXPECT_EQ(disk.count(SpillOperation::Write), 1);
  EXPECT_EQ(disk.count(every_spill_operation), 6);
  EXPECT_EQ(disk.open_handles(), 2);
  queue.reset();
  file.reset();
  EXPECT_EQ(disk.open_handles(), 0);
  EXPECT_EQ(disk.faults(), 0);
}

TEST_F(FaultySpillDiskTest, FailsTheNthOperationOfAKind) {
  Block block{};
  disk.fail({.operations = SpillOperation::Write, .after = 1, .error_number = ENOSPC});
  EXPECT_EQ(move(SpillDirection::Write, block).error_number, 0);
  EXPECT_EQ(move(SpillDirection::Read, block).error_number, 0);
  EXPECT_EQ(move(SpillDirection::Write, block, 9).error_number, ENOSPC);
  EXPECT_EQ(move(SpillDirection::Write, block).error_number, 0);
  EXPECT_EQ(disk.faults(), 1);
}

TEST_F(FaultySpillDiskTest, FailsForeverUntilHealed) {
  disk.fail({.repeat = SpillFaultRepeat::Forever, .error_number = EROFS});
  EXPECT_EQ(file->place_bytes(0, 4096), EROFS);
  EXPECT_THROW((void)disk.create_unnamed("folder"), FileSystemError);
  EXPECT_THROW((void)disk.open_queue(1), FileSystemError);
  EXPECT_THROW((void)disk.look_at("folder"), FileSystemError);
  disk.heal();
  EXPECT_EQ(file->place_bytes(0, 4096), 0);
}

TEST_F(FaultySpillDiskTest, FlipsABitOfWhatIsReadOrWritten) {
  Block written = ones();
  Block read{};
  disk.fail({.operations = SpillOperation::Write, .effect = SpillFaultEffect::FlipBit});
  EXPECT_EQ(move(SpillDirection::Write, written).error_number, 0);
  EXPECT_EQ(written, ones());
  EXPECT_EQ(move(SpillDirection::Read, read).error_number, 0);
  EXPECT_EQ(read[0], std::byte{0});
  disk.fail({.operations = SpillOperation::Read, .effect = SpillFaultEffect::FlipBit});
  EXPECT_EQ(move(SpillDirection::Read, read).error_number, 0);
  EXPECT_EQ(read, ones());
}

TEST_F(FaultySpillDiskTest, TearsAWrite) {
  Block written = ones();
  Block read{};
  disk.fail({.operations = SpillOperation::Write, .effect = SpillFaultEffect::Tear});
  EXPECT_EQ(move(SpillDirection::Write, written).error_number, 0);
  EXPECT_EQ(move(SpillDirection::Read, read).error_number, 0);
  EXPECT_EQ(std::count(read.begin(), read.end(), std::byte{1}), static_cast<std::ptrdiff_t>(spill_alignment));
}

TEST_F(FaultySpillDiskTest, HoldsTransfersUntilLetGo) {
  Block block{};
  disk.hold();
  std::thread waiter{[&] { EXPECT_EQ(move(SpillDirection::Write, block).error_number, 0); }};
  disk.wait_until_held();
  disk.let_go();
  waiter.join();
}

TEST_F(FaultySpillDiskTest, ShowsAnotherPlace) {
  disk.pretend({{"tmpfs"}, true, 5});
  EXPECT_TRUE(disk.look_at("folder").held_in_memory);
  disk.heal();
  EXPECT_FALSE(disk.look_at("folder").held_in_memory);
}

}  // namespace
}  // namespace earmark::testing
