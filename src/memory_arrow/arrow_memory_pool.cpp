// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/memory_arrow/arrow_memory_pool.hpp"

#include <arrow/memory_pool.h>
#include <arrow/status.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <new>
#include <string>
#include <unordered_map>
#include <utility>

#include "earmark/core/bytes.hpp"
#include "earmark/core/thread_annotations.hpp"
#include "earmark/memory/errors.hpp"

namespace earmark {
namespace {

// The numbers of a refusal, attached to the status that reports it.
class MemoryErrorDetail final : public arrow::StatusDetail {
 public:
  static constexpr char const* id = "earmark::MemoryErrorDetail";
  explicit MemoryErrorDetail(ErrorFields const& fields) : fields_(fields) {}
  [[nodiscard]] char const* type_id() const override { return id; }
  // The message has the numbers already.
  [[nodiscard]] std::string ToString() const override { return "memory reservation"; }
  [[nodiscard]] ErrorFields const& fields() const noexcept { return fields_; }

 private:
  ErrorFields fields_;
};

// Where buffers of no bytes point; Arrow wants a valid address, and never writes there.
alignas(64) std::uint8_t no_bytes[64];

arrow::Status out_of_memory(MemoryError const& error) {
  return arrow::Status::OutOfMemory(error.what()).WithDetail(std::make_shared<MemoryErrorDetail>(error.fields()));
}

std::size_t granularity(HostMemoryReservation::Resource const& resource) { return resource.adaptor().granularity(); }
std::size_t granularity(HostReservationAwareResourceAdaptor const& adaptor) { return adaptor.granularity(); }

template <class Resource>
class Pool final : public arrow::MemoryPool {
 public:
  explicit Pool(Resource resource) : granularity_(granularity(resource)), resource_(std::move(resource)) {}

  // The owner's reference; each buffer holds one more.
  void release() noexcept {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) { delete this; }
  }

  using arrow::MemoryPool::Allocate;
  using arrow::MemoryPool::Free;
  using arrow::MemoryPool::Reallocate;

  arrow::Status Allocate(std::int64_t size, std::int64_t alignment, std::uint8_t** out) override {
    if (size < 0) { return arrow::Status::Invalid("negative allocation size"); }
    if (arrow::Status status = take(size, alignment, out); !status.ok()) { return status; }
    count(size, 1);
    return arrow::Status::OK();
  }

  arrow::Status Reallocate(std::int64_t old_size, std::int64_t new_size, std::int64_t alignment,
                           std::uint8_t** block) override {
    if (new_size < 0) { return arrow::Status::Invalid("negative reallocation size"); }
    if (!resize_in_place(*block, old_size, new_size)) {
      std::uint8_t* moved = nullptr;
      arrow::Status status = take(new_size, alignment, &moved);
      if (status.ok()) {
        std::memcpy(moved, *block, static_cast<std::size_t>(std::min(old_size, new_size)));
        give_back(*block, old_size, alignment);
        *block = moved;
      } else if (new_size > old_size || new_size == 0) {
        return status;
      } else {
        keep_capacity(*block, old_size, new_size);  // no room to shrink by moving: shrinking must not fail for that
      }
    }
    count(new_size - old_size, 1);
    return arrow::Status::OK();
  }

  void Free(std::uint8_t* block, std::int64_t size, std::int64_t alignment) override {
    count(-size, 0);
    give_back(block, size, alignment);  // may end this pool
  }

  [[nodiscard]] std::int64_t bytes_allocated() const override { return live_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::int64_t max_memory() const override { return peak_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::int64_t total_bytes_allocated() const override { return total_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::int64_t num_allocations() const override { return allocations_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::string backend_name() const override { return "earmark"; }

 private:
  ~Pool() override = default;  // by `release` alone

  // What a block of `size` bytes occupies: whole granules, so that a block may grow into what it is charged anyway.
  [[nodiscard]] std::int64_t standard_capacity(std::int64_t size) const noexcept {
    return checked_round_up(static_cast<std::size_t>(size), granularity_).value_or(size);
  }

  [[nodiscard]] arrow::Status take(std::int64_t size, std::int64_t alignment, std::uint8_t** out) {
    if (size == 0) {
      *out = no_bytes;
      return arrow::Status::OK();
    }
    try {
      *out = static_cast<std::uint8_t*>(resource_.allocate_sync(static_cast<std::size_t>(standard_capacity(size)),
                                                                static_cast<std::size_t>(alignment)));
    }
    catch (MemoryError const& error) {
      return out_of_memory(error);
    }
    catch (std::bad_alloc const& error) {
      return arrow::Status::OutOfMemory(error.what());
    }
    references_.fetch_add(1, std::memory_order_relaxed);
    return arrow::Status::OK();
  }

  void give_back(std::uint8_t* block, std::int64_t size, std::int64_t alignment) noexcept {
    if (block == no_bytes) { return; }
    std::int64_t const capacity = forget_capacity(block, size);
    resource_.deallocate_sync(block, static_cast<std::size_t>(capacity), static_cast<std::size_t>(alignment));
    release();
  }

  // Returns: whether the block can serve the new size where it is. One that shrinks below half moves, so that the
  // memory comes back.
  [[nodiscard]] bool resize_in_place(std::uint8_t* block, std::int64_t old_size, std::int64_t new_size) {
    if (block == no_bytes || new_size == 0) { return old_size == new_size; }
    std::int64_t const have = capacity(block, old_size);
    if (new_size > have || new_size < have / 2) { return false; }
    keep_capacity(block, old_size, new_size);
    return true;
  }

  // Blocks whose capacity is not the standard one of their size are few: they are kept in a table, which frees look at
  // only while it has entries.
  [[nodiscard]] std::int64_t capacity(std::uint8_t* block, std::int64_t size) const {
    if (unusual_count_.load(std::memory_order_acquire) != 0) {
      MutexLock lock{mutex_};
      auto const found = unusual_.find(block);
      if (found != unusual_.end()) { return found->second; }
    }
    return standard_capacity(size);
  }
  void keep_capacity(std::uint8_t* block, std::int64_t old_size, std::int64_t new_size) {
    std::int64_t const have = forget_capacity(block, old_size);
    if (have == standard_capacity(new_size)) { return; }
    MutexLock lock{mutex_};
    unusual_[block] = have;
    unusual_count_.store(unusual_.size(), std::memory_order_release);
  }
  std::int64_t forget_capacity(std::uint8_t* block, std::int64_t size) noexcept {
    if (unusual_count_.load(std::memory_order_acquire) != 0) {
      MutexLock lock{mutex_};
      auto const found = unusual_.find(block);
      if (found != unusual_.end()) {
        std::int64_t const have = found->second;
        unusual_.erase(found);
        unusual_count_.store(unusual_.size(), std::memory_order_release);
        return have;
      }
    }
    return standard_capacity(size);
  }

  void count(std::int64_t change, std::int64_t allocations) noexcept {
    std::int64_t const live = live_.fetch_add(change, std::memory_order_relaxed) + change;
    allocations_.fetch_add(allocations, std::memory_order_relaxed);
    if (change <= 0) { return; }
    total_.fetch_add(change, std::memory_order_relaxed);
    std::int64_t peak = peak_.load(std::memory_order_relaxed);
    while (live > peak && !peak_.compare_exchange_weak(peak, live, std::memory_order_relaxed)) {}
  }

  std::size_t granularity_;
  Resource resource_;
  std::atomic<std::int64_t> references_{1};
  std::atomic<std::int64_t> live_{0};
  std::atomic<std::int64_t> peak_{0};
  std::atomic<std::int64_t> total_{0};
  std::atomic<std::int64_t> allocations_{0};
  mutable Mutex mutex_;
  std::unordered_map<std::uint8_t*, std::int64_t> unusual_ EARMARK_GUARDED_BY(mutex_);
  std::atomic<std::size_t> unusual_count_{0};
};

// Shared with Arrow's threads through its buffers, so the owners' end is not the pool's end.
template <class Resource>
std::shared_ptr<arrow::MemoryPool> make_pool(Resource resource) {
  return {new Pool<Resource>{std::move(resource)}, [](Pool<Resource>* pool) { pool->release(); }};
}

}  // namespace

std::shared_ptr<arrow::MemoryPool> make_arrow_memory_pool(HostMemoryReservation::Resource resource) {
  return make_pool(std::move(resource));
}

std::shared_ptr<arrow::MemoryPool> make_arrow_memory_pool(HostReservationAwareResourceAdaptor adaptor) {
  return make_pool(std::move(adaptor));
}

std::optional<ErrorFields> memory_error_fields(arrow::Status const& status) {
  auto const& detail = status.detail();
  if (detail == nullptr || std::strcmp(detail->type_id(), MemoryErrorDetail::id) != 0) { return std::nullopt; }
  return static_cast<MemoryErrorDetail const&>(*detail).fields();
}

}  // namespace earmark
