// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// A disk to spill to that passes everything on to another one and goes wrong where a test wants: the n-th write fails,
// every read turns a bit, the disk is full, transfers take until the test lets them go. It also counts.
//
//   testing::FaultySpillDisk disk{real};
//   disk.fail({.operations = SpillOperation::Write, .after = n, .error_number = ENOSPC});
//   disk.fail({.operations = SpillOperation::Read, .effect = SpillFaultEffect::FlipBit});
//
// Thread safety: all functions may be called from any thread; queues as `SpillQueue`. Ownership: keeps a reference to
// the other disk; files and queues keep one to it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "earmark/core/spill_disk.hpp"
#include "earmark/core/thread_annotations.hpp"

namespace earmark::testing {

// Operations of a disk to spill to; a set of them is their `|`.
enum class SpillOperation : std::uint32_t {
  CreateFile = 1U << 0,
  OpenQueue = 1U << 1,
  LookAt = 1U << 2,
  Place = 1U << 3,
  Read = 1U << 4,
  Write = 1U << 5,
};
[[nodiscard]] constexpr SpillOperation operator|(SpillOperation a, SpillOperation b) noexcept {
  return static_cast<SpillOperation>(static_cast<std::uint32_t>(a) | static_cast<std::uint32_t>(b));
}
[[nodiscard]] constexpr bool contains(SpillOperation set, SpillOperation operation) noexcept {
  return (static_cast<std::uint32_t>(set) & static_cast<std::uint32_t>(operation)) != 0;
}
inline constexpr SpillOperation every_spill_operation{(1U << 6) - 1};

enum class SpillFaultRepeat : std::uint8_t { Once, Forever };
enum class SpillFaultEffect : std::uint8_t {
  Fail,     // reported, and nothing is moved
  FlipBit,  // of a transfer: one bit is wrong, and nobody is told
  Tear,     // of a write: only its first half arrives, and nobody is told
};

struct SpillFault {
  SpillOperation operations{every_spill_operation};
  std::int64_t after{0};  // matching operations that go well first
  SpillFaultRepeat repeat{SpillFaultRepeat::Once};
  SpillFaultEffect effect{SpillFaultEffect::Fail};
  int error_number{5};  // EIO
};

class FaultySpillDisk final : public SpillDisk {
 public:
  explicit FaultySpillDisk(SpillDisk& base) noexcept : base_(base) {}
  FaultySpillDisk(FaultySpillDisk const&) = delete;
  FaultySpillDisk& operator=(FaultySpillDisk const&) = delete;
  ~FaultySpillDisk() override = default;

  // Adds a fault. Several may be armed; the first that matches and is due strikes.
  void fail(SpillFault const& fault) EARMARK_EXCLUDES(mutex_);
  // Folders look like this from now on.
  void pretend(SpillPlace const& place) EARMARK_EXCLUDES(mutex_);
  // From now on, until `let_go`, transfers end only after it: a disk that is slow, for as long as the test wants.
  void hold() EARMARK_EXCLUDES(mutex_);
  void let_go() EARMARK_EXCLUDES(mutex_);
  // Blocks: until somebody waits for a transfer that is held.
  void wait_until_held() EARMARK_EXCLUDES(mutex_);
  // Removes faults and pretences, and lets go.
  void heal() EARMARK_EXCLUDES(mutex_);

  // Returns: operations of these kinds so far, those that went wrong included.
  [[nodiscard]] std::int64_t count(SpillOperation operations) const EARMARK_EXCLUDES(mutex_);
  // Returns: how often a fault struck.
  [[nodiscard]] std::int64_t faults() const EARMARK_EXCLUDES(mutex_);
  // Returns: files and queues that are open now.
  [[nodiscard]] std::int64_t open_handles() const EARMARK_EXCLUDES(mutex_);
  // Returns: bytes that were given back in place of what was written.
  [[nodiscard]] std::int64_t released_bytes() const EARMARK_EXCLUDES(mutex_);

  [[nodiscard]] std::unique_ptr<SpillFile> create_unnamed(std::string const& folder) override;
  [[nodiscard]] std::unique_ptr<SpillQueue> open_queue(std::size_t depth) override;
  [[nodiscard]] SpillPlace look_at(std::string const& folder) override;
  [[nodiscard]] SpillMethod method() const noexcept override { return base_.method(); }

 private:
  class FaultyFile;
  class FaultyQueue;
  struct Armed {
    SpillFault fault;
    std::int64_t seen{0};
    bool spent{false};
  };

  // Counts an operation. Returns: the fault that strikes it.
  std::optional<SpillFault> begin(SpillOperation operation) EARMARK_EXCLUDES(mutex_);
  void begin_or_throw(SpillOperation operation, std::string const& doing, std::string const& folder);
  void change_open_handles(std::int64_t by) EARMARK_EXCLUDES(mutex_);
  void note_released(std::int64_t bytes) EARMARK_EXCLUDES(mutex_);
  // Blocks: while transfers are held.
  void wait_until_let_go() EARMARK_EXCLUDES(mutex_);

  SpillDisk& base_;
  mutable Mutex mutex_;
  ConditionVariable changed_;
  std::vector<Armed> faults_ EARMARK_GUARDED_BY(mutex_);
  std::optional<SpillPlace> pretence_ EARMARK_GUARDED_BY(mutex_);
  std::map<SpillOperation, std::int64_t> counts_ EARMARK_GUARDED_BY(mutex_);
  std::int64_t struck_ EARMARK_GUARDED_BY(mutex_){0};
  std::int64_t open_handles_ EARMARK_GUARDED_BY(mutex_){0};
  std::int64_t released_ EARMARK_GUARDED_BY(mutex_){0};
  std::int64_t held_back_ EARMARK_GUARDED_BY(mutex_){0};
  bool holds_ EARMARK_GUARDED_BY(mutex_){false};
};

}  // namespace earmark::testing
