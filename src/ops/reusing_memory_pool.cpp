// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "reusing_memory_pool.hpp"

#include <arrow/status.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace earmark::detail {
namespace {

constexpr std::int64_t least_kept_size = 64 << 10;  // smaller blocks come from malloc, which keeps its own
constexpr std::int64_t most_kept_size = 4 << 20;    // larger ones are few, and better exact
constexpr int steps_a_doubling = 4;                 // sizes are rounded up by a quarter of a power of two at most
constexpr std::int64_t usual_alignment = 64;

bool is_kept(std::int64_t block) { return block >= least_kept_size && block <= most_kept_size; }

// Returns: what is allocated for `size`, so that blocks of about the same size can replace each other.
std::int64_t rounded(std::int64_t size) {
  if (size < least_kept_size || size > most_kept_size) { return size; }
  auto const step = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(size))) / steps_a_doubling;
  return (size + step - 1) / step * step;
}

}  // namespace

ReusingMemoryPool::~ReusingMemoryPool() { ReusingMemoryPool::ReleaseUnused(); }

::arrow::Status ReusingMemoryPool::Allocate(std::int64_t size, std::int64_t alignment, std::uint8_t** out) {
  std::int64_t const block = alignment <= usual_alignment ? rounded(size) : size;
  if (alignment <= usual_alignment && is_kept(block)) {
    if (auto* const kept = take_kept(block)) {
      *out = kept;
      return ::arrow::Status::OK();
    }
  }
  ::arrow::Status status = below_->Allocate(block, std::max(alignment, usual_alignment), out);
  if (!status.IsOutOfMemory()) { return status; }
  ReleaseUnused();
  return below_->Allocate(block, std::max(alignment, usual_alignment), out);
}

::arrow::Status ReusingMemoryPool::Reallocate(std::int64_t old_size, std::int64_t new_size, std::int64_t alignment,
                                              std::uint8_t** pointer) {
  if (alignment > usual_alignment) { return below_->Reallocate(old_size, new_size, alignment, pointer); }
  if (rounded(old_size) == rounded(new_size)) { return ::arrow::Status::OK(); }
  std::uint8_t* larger = nullptr;
  ARROW_RETURN_NOT_OK(Allocate(new_size, alignment, &larger));
  std::memcpy(larger, *pointer, static_cast<std::size_t>(std::min(old_size, new_size)));
  Free(*pointer, old_size, alignment);
  *pointer = larger;
  return ::arrow::Status::OK();
}

void ReusingMemoryPool::Free(std::uint8_t* buffer, std::int64_t size, std::int64_t alignment) {
  if (alignment > usual_alignment) {
    below_->Free(buffer, size, alignment);
    return;
  }
  std::int64_t const block = rounded(size);
  if (is_kept(block)) {
    MutexLock const lock(mutex_);
    if (kept_bytes_ + block <= most_kept_bytes_) {
      kept_.push_back({buffer, block});
      kept_bytes_ += block;
      return;
    }
  }
  below_->Free(buffer, block, usual_alignment);
}

void ReusingMemoryPool::keep_at_most(std::int64_t bytes) {
  bool is_too_much = false;
  {
    MutexLock const lock(mutex_);
    most_kept_bytes_ = bytes;
    is_too_much = kept_bytes_ > bytes;
  }
  if (is_too_much) { ReleaseUnused(); }
}

void ReusingMemoryPool::ReleaseUnused() {
  std::vector<Block> kept;
  {
    MutexLock const lock(mutex_);
    kept.swap(kept_);
    kept_bytes_ = 0;
  }
  for (Block const& block : kept) { below_->Free(block.data, block.size, usual_alignment); }
  below_->ReleaseUnused();
}

std::uint8_t* ReusingMemoryPool::take_kept(std::int64_t size) {
  MutexLock const lock(mutex_);
  // The last one freed is the one most likely still in a cache.
  auto const found =
      std::find_if(kept_.rbegin(), kept_.rend(), [size](Block const& block) { return block.size == size; });
  if (found == kept_.rend()) { return nullptr; }
  std::uint8_t* const data = found->data;
  kept_.erase(std::next(found).base());
  kept_bytes_ -= size;
  return data;
}

}  // namespace earmark::detail
