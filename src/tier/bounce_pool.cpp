// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/tier/bounce_pool.hpp"

#include <stdexcept>

#include "earmark/core/bytes.hpp"
#include "earmark/core/spill_disk.hpp"

namespace earmark {
namespace {

std::size_t bytes_in_all(BouncePoolOptions const& options) {
  if (options.count == 0 || options.bytes == 0 || options.bytes % spill_alignment != 0) {
    throw std::invalid_argument("bounce buffers: at least one, each of whole blocks of 4096 bytes");
  }
  std::size_t sum = 0;
  // What does not fit can never be reserved either.
  return __builtin_mul_overflow(options.count, options.bytes, &sum) ? SIZE_MAX : sum;
}

}  // namespace

BouncePool::BouncePool(HostReservationAwareResourceAdaptor host, BouncePoolOptions const& options)
    : options_(options),
      reservation_(host.reserve(bytes_in_all(options), {.label = "bounce buffers"})),
      resource_(reservation_.resource()) {
  free_.reserve(options.count);
  try {
    while (free_.size() < options.count) {
      free_.push_back(static_cast<std::byte*>(resource_.allocate_sync(options.bytes, spill_alignment)));
    }
  }
  catch (...) {
    deallocate_free();
    throw;
  }
}

BouncePool::~BouncePool() { deallocate_free(); }

BouncePool::Buffer BouncePool::take() {
  MutexLock lock{mutex_};
  while (free_.empty()) { given_back_.wait(mutex_); }
  std::byte* const begin = free_.back();
  free_.pop_back();
  return {*this, {begin, options_.bytes}};
}

std::optional<BouncePool::Buffer> BouncePool::try_take() noexcept {
  MutexLock lock{mutex_};
  if (free_.empty()) { return std::nullopt; }
  std::byte* const begin = free_.back();
  free_.pop_back();
  return Buffer{*this, {begin, options_.bytes}};
}

void BouncePool::give_back(std::span<std::byte> bytes) noexcept {
  MutexLock lock{mutex_};
  free_.push_back(bytes.data());  // there was room for it before
  given_back_.notify_one();
}

void BouncePool::deallocate_free() noexcept {
  MutexLock lock{mutex_};
  for (std::byte* const begin : free_) { resource_.deallocate_sync(begin, options_.bytes, spill_alignment); }
  free_.clear();
}

}  // namespace earmark
