// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Keeps freed large blocks for the next allocation of about their size: Arrow allocates and frees a read buffer and a
// few page buffers for every column chunk, and fresh pages from the system cost more than what is done with them.
// What is kept stays allocated in the pool below, so it counts in the budget; it is given back when that refuses.
// Thread safety: any thread.
#pragma once

#include <arrow/memory_pool.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "earmark/core/thread_annotations.hpp"

namespace earmark::detail {

class ReusingMemoryPool final : public ::arrow::MemoryPool {
 public:
  // Keeps nothing until `keep_at_most` allows it.
  explicit ReusingMemoryPool(std::shared_ptr<::arrow::MemoryPool> below) : below_(std::move(below)) {}
  ~ReusingMemoryPool() override;

  using ::arrow::MemoryPool::Allocate;
  using ::arrow::MemoryPool::Free;
  using ::arrow::MemoryPool::Reallocate;
  ::arrow::Status Allocate(std::int64_t size, std::int64_t alignment, std::uint8_t** out) override;
  ::arrow::Status Reallocate(std::int64_t old_size, std::int64_t new_size, std::int64_t alignment,
                             std::uint8_t** pointer) override;
  void Free(std::uint8_t* buffer, std::int64_t size, std::int64_t alignment) override;
  // Keeps up to `bytes` from now on, and gives back what is kept beyond that.
  void keep_at_most(std::int64_t bytes);
  // Gives back what is kept.
  void ReleaseUnused() override;
  std::int64_t bytes_allocated() const override { return below_->bytes_allocated(); }
  std::int64_t max_memory() const override { return below_->max_memory(); }
  std::int64_t total_bytes_allocated() const override { return below_->total_bytes_allocated(); }
  std::int64_t num_allocations() const override { return below_->num_allocations(); }
  std::string backend_name() const override { return below_->backend_name(); }

 private:
  struct Block {
    std::uint8_t* data{nullptr};
    std::int64_t size{0};
  };
  [[nodiscard]] std::uint8_t* take_kept(std::int64_t size);

  std::shared_ptr<::arrow::MemoryPool> below_;
  Mutex mutex_;
  std::int64_t most_kept_bytes_ EARMARK_GUARDED_BY(mutex_){0};
  std::vector<Block> kept_ EARMARK_GUARDED_BY(mutex_);
  std::int64_t kept_bytes_ EARMARK_GUARDED_BY(mutex_){0};
};

}  // namespace earmark::detail
