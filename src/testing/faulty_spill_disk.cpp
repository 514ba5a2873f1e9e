// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/testing/faulty_spill_disk.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "earmark/core/file_system.hpp"

namespace earmark::testing {

class FaultySpillDisk::FaultyFile final : public SpillFile {
 public:
  FaultyFile(FaultySpillDisk& disk, std::unique_ptr<SpillFile> base) : disk_(disk), base_(std::move(base)) {
    disk_.change_open_handles(1);
  }
  ~FaultyFile() override { disk_.change_open_handles(-1); }

  [[nodiscard]] int place_bytes(std::int64_t offset, std::int64_t bytes) noexcept override {
    if (auto const fault = disk_.begin(SpillOperation::Place)) { return fault->error_number; }
    return base_->place_bytes(offset, bytes);
  }
  void release_bytes(std::int64_t offset, std::int64_t bytes) noexcept override {
    disk_.note_released(bytes);
    base_->release_bytes(offset, bytes);
  }
  [[nodiscard]] std::string const& folder() const noexcept override { return base_->folder(); }
  [[nodiscard]] bool direct() const noexcept override { return base_->direct(); }
  [[nodiscard]] SpillFile& base() noexcept { return *base_; }

 private:
  FaultySpillDisk& disk_;
  std::unique_ptr<SpillFile> base_;
};

class FaultySpillDisk::FaultyQueue final : public SpillQueue {
 public:
  FaultyQueue(FaultySpillDisk& disk, std::unique_ptr<SpillQueue> base) : disk_(disk), base_(std::move(base)) {
    disk_.change_open_handles(1);
  }
  ~FaultyQueue() override {
    base_.reset();
    disk_.change_open_handles(-1);
  }

  void submit(SpillTransfer const& transfer) noexcept override {
    bool const writes = transfer.direction == SpillDirection::Write;
    auto const fault = disk_.begin(writes ? SpillOperation::Write : SpillOperation::Read);
    if (fault && fault->effect == SpillFaultEffect::Fail) {
      return ready_.push_back({transfer.tag, fault->error_number});
    }
    SpillTransfer passed_on = transfer;
    passed_on.file = &static_cast<FaultyFile*>(transfer.file)->base();
    if (fault && writes) {
      damage(passed_on, fault->effect);
    } else if (fault) {
      flipped_when_read_.emplace_back(transfer.tag, transfer.memory);
    }
    base_->submit(passed_on);
  }

  [[nodiscard]] SpillOutcome wait() noexcept override {
    disk_.wait_until_let_go();
    if (!ready_.empty()) {
      SpillOutcome const outcome = ready_.back();
      ready_.pop_back();
      return outcome;
    }
    SpillOutcome const outcome = base_->wait();
    auto const flipped = std::find_if(flipped_when_read_.begin(), flipped_when_read_.end(),
                                      [&](auto const& each) { return each.first == outcome.tag; });
    if (flipped != flipped_when_read_.end()) {
      *flipped->second ^= std::byte{1};
      flipped_when_read_.erase(flipped);
    }
    return outcome;
  }
  [[nodiscard]] bool usable() const noexcept override { return base_->usable(); }

 private:
  struct FreePages {
    void operator()(std::byte* pages) const noexcept { ::operator delete(pages, std::align_val_t{spill_alignment}); }
  };
  using Pages = std::unique_ptr<std::byte, FreePages>;

  // Writes a damaged copy, or half, in place of what was asked.
  void damage(SpillTransfer& transfer, SpillFaultEffect effect) {
    if (effect == SpillFaultEffect::Tear) {
      std::size_t const half = transfer.bytes / 2;
      transfer.bytes = std::max(half - half % spill_alignment, spill_alignment);
    }
    Pages copy{static_cast<std::byte*>(::operator new(transfer.bytes, std::align_val_t{spill_alignment}))};
    std::memcpy(copy.get(), transfer.memory, transfer.bytes);
    if (effect == SpillFaultEffect::FlipBit) { *copy ^= std::byte{1}; }
    transfer.memory = copy.get();
    copies_.push_back(std::move(copy));
  }

  FaultySpillDisk& disk_;
  std::vector<Pages> copies_;  // outlive the transfers
  std::vector<SpillOutcome> ready_;
  std::vector<std::pair<std::uint64_t, std::byte*>> flipped_when_read_;
  std::unique_ptr<SpillQueue> base_;
};

void FaultySpillDisk::fail(SpillFault const& fault) {
  MutexLock lock{mutex_};
  faults_.push_back({fault});
}

void FaultySpillDisk::pretend(SpillPlace const& place) {
  MutexLock lock{mutex_};
  pretence_ = place;
}

void FaultySpillDisk::hold() {
  MutexLock lock{mutex_};
  holds_ = true;
}

void FaultySpillDisk::let_go() {
  MutexLock lock{mutex_};
  holds_ = false;
  changed_.notify_all();
}

void FaultySpillDisk::wait_until_held() {
  MutexLock lock{mutex_};
  while (held_back_ == 0) { changed_.wait(mutex_); }
}

void FaultySpillDisk::heal() {
  let_go();
  MutexLock lock{mutex_};
  faults_.clear();
  pretence_.reset();
}

std::int64_t FaultySpillDisk::count(SpillOperation operations) const {
  MutexLock lock{mutex_};
  std::int64_t sum = 0;
  for (auto const& [operation, count] : counts_) { sum += contains(operations, operation) ? count : 0; }
  return sum;
}

std::int64_t FaultySpillDisk::faults() const {
  MutexLock lock{mutex_};
  return struck_;
}

std::int64_t FaultySpillDisk::open_handles() const {
  MutexLock lock{mutex_};
  return open_handles_;
}

std::int64_t FaultySpillDisk::released_bytes() const {
  MutexLock lock{mutex_};
  return released_;
}

std::unique_ptr<SpillFile> FaultySpillDisk::create_unnamed(std::string const& folder) {
  begin_or_throw(SpillOperation::CreateFile, "create a file in", folder);
  return std::make_unique<FaultyFile>(*this, base_.create_unnamed(folder));
}

std::unique_ptr<SpillQueue> FaultySpillDisk::open_queue(std::size_t depth) {
  begin_or_throw(SpillOperation::OpenQueue, "open a queue for", "the disk");
  return std::make_unique<FaultyQueue>(*this, base_.open_queue(depth));
}

SpillPlace FaultySpillDisk::look_at(std::string const& folder) {
  begin_or_throw(SpillOperation::LookAt, "look at", folder);
  {
    MutexLock lock{mutex_};
    if (pretence_) { return *pretence_; }
  }
  return base_.look_at(folder);
}

std::optional<SpillFault> FaultySpillDisk::begin(SpillOperation operation) {
  MutexLock lock{mutex_};
  ++counts_[operation];
  std::optional<SpillFault> struck;
  for (Armed& armed : faults_) {
    if (!contains(armed.fault.operations, operation) || armed.spent) { continue; }
    if (armed.seen++ < armed.fault.after || struck) { continue; }
    armed.spent = armed.fault.repeat == SpillFaultRepeat::Once;
    struck = armed.fault;
  }
  if (struck) { ++struck_; }
  return struck;
}

void FaultySpillDisk::begin_or_throw(SpillOperation operation, std::string const& doing, std::string const& folder) {
  if (auto const fault = begin(operation)) { throw FileSystemError(doing, folder, fault->error_number); }
}

void FaultySpillDisk::change_open_handles(std::int64_t by) {
  MutexLock lock{mutex_};
  open_handles_ += by;
}

void FaultySpillDisk::note_released(std::int64_t bytes) {
  MutexLock lock{mutex_};
  released_ += bytes;
}

void FaultySpillDisk::wait_until_let_go() {
  MutexLock lock{mutex_};
  ++held_back_;
  if (holds_) { changed_.notify_all(); }
  while (holds_) { changed_.wait(mutex_); }
  --held_back_;
}

}  // namespace earmark::testing
