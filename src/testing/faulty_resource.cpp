// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/testing/faulty_resource.hpp"

#include <algorithm>
#include <new>
#include <unordered_map>

#include "earmark/core/thread_annotations.hpp"

namespace earmark::testing {

struct FaultControl::Record {
  struct Block {
    std::size_t bytes;
    std::size_t alignment;
  };
  mutable Mutex mutex;
  std::unordered_map<void*, Block> live EARMARK_GUARDED_BY(mutex);
  std::int64_t successes_left EARMARK_GUARDED_BY(mutex){-1};  // negative: no failure is planned
  Fails fails EARMARK_GUARDED_BY(mutex){Fails::Once};
  std::int64_t allocations EARMARK_GUARDED_BY(mutex){0};
  std::int64_t failures EARMARK_GUARDED_BY(mutex){0};
  std::int64_t deallocations EARMARK_GUARDED_BY(mutex){0};
  std::int64_t wrong_deallocations EARMARK_GUARDED_BY(mutex){0};
  std::int64_t live_bytes EARMARK_GUARDED_BY(mutex){0};
  std::int64_t peak_live_bytes EARMARK_GUARDED_BY(mutex){0};
};

FaultControl::FaultControl() : record_(std::make_shared<Record>()) {}

void FaultControl::fail_allocation(std::int64_t successes, Fails fails) {
  MutexLock lock{record_->mutex};
  record_->successes_left = successes;
  record_->fails = fails;
}

void FaultControl::fail_none() { fail_allocation(-1, Fails::Once); }

void FaultControl::before_allocation() {
  MutexLock lock{record_->mutex};
  if (record_->successes_left < 0) { return; }
  if (record_->successes_left > 0) {
    --record_->successes_left;
    return;
  }
  ++record_->failures;
  if (record_->fails == Fails::Once) { record_->successes_left = -1; }
  throw std::bad_alloc{};
}

void FaultControl::after_allocation(void* pointer, std::size_t bytes, std::size_t alignment) {
  MutexLock lock{record_->mutex};
  ++record_->allocations;
  if (bytes == 0) { return; }  // their addresses are not unique
  record_->live[pointer] = {bytes, alignment};
  record_->live_bytes += static_cast<std::int64_t>(bytes);
  record_->peak_live_bytes = std::max(record_->peak_live_bytes, record_->live_bytes);
}

void FaultControl::before_deallocation(void* pointer, std::size_t bytes, std::size_t alignment) noexcept {
  MutexLock lock{record_->mutex};
  ++record_->deallocations;
  if (bytes == 0) { return; }
  auto const block = record_->live.find(pointer);
  if (block == record_->live.end()) {
    ++record_->wrong_deallocations;
    return;
  }
  if (block->second.bytes != bytes || block->second.alignment != alignment) { ++record_->wrong_deallocations; }
  record_->live_bytes -= static_cast<std::int64_t>(block->second.bytes);
  record_->live.erase(block);
}

std::int64_t FaultControl::allocations() const {
  MutexLock lock{record_->mutex};
  return record_->allocations;
}
std::int64_t FaultControl::failures() const {
  MutexLock lock{record_->mutex};
  return record_->failures;
}
std::int64_t FaultControl::deallocations() const {
  MutexLock lock{record_->mutex};
  return record_->deallocations;
}
std::int64_t FaultControl::live_bytes() const {
  MutexLock lock{record_->mutex};
  return record_->live_bytes;
}
std::int64_t FaultControl::peak_live_bytes() const {
  MutexLock lock{record_->mutex};
  return record_->peak_live_bytes;
}
std::int64_t FaultControl::wrong_deallocations() const {
  MutexLock lock{record_->mutex};
  return record_->wrong_deallocations;
}

}  // namespace earmark::testing
