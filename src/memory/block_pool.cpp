// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/memory/block_pool.hpp"

#include <bit>
#include <thread>

#include "earmark/memory/ledger.hpp"

namespace earmark::detail {
namespace {

// While cores' counts are being brought together, the word must not seem to be used up.
constexpr std::int64_t not_yet_together = std::int64_t{1} << 60;

}  // namespace

BlockPool::BlockPool(Ledger& ledger)
    : ledger_(ledger),
      mask_(std::bit_ceil(std::max<std::size_t>(std::thread::hardware_concurrency(), 1)) - 1),
      caches_(std::make_unique<Cache[]>(mask_ + 1)) {}

ReservationBlock& BlockPool::take(std::string_view text) {
  std::string_view const label = text.substr(0, LabelRecord::most_characters);
  Cache& cache = here();
  for (;;) {
    {
      BasicMutexLock<SpinLock> lock{cache.lock};
      if (cache.free != nullptr && cache.label != nullptr && cache.label->name() == label) {
        ReservationBlock& block = *cache.free;
        cache.free = block.next_free_;
        --cache.count;
        if (cache.together) {
          together_.fetch_add(1, std::memory_order_relaxed);
        } else {
          ++cache.references;
        }
        block.label_.store(cache.label, std::memory_order_relaxed);
        return block;
      }
    }
    prepare(cache, label);
  }
}

// Gives `cache` blocks and makes `label` its label. What needs memory or the pool's lock happens outside the cache's.
void BlockPool::prepare(Cache& cache, std::string_view text) {
  LabelRecord& record = label(text);
  ReservationBlock* chain = nullptr;
  std::uint32_t count = 0;
  {
    MutexLock lock{mutex_};
    do {
      ReservationBlock& block = take_or_make();
      block.next_free_ = chain;
      chain = &block;
    } while (++count < batch && has_any());
  }
  {
    BasicMutexLock<SpinLock> lock{cache.lock};
    set_label(cache, record);
    if (cache.free == nullptr) {
      cache.free = std::exchange(chain, nullptr);
      cache.count = count;
    }
  }
  keep(chain);
}

bool BlockPool::put(ReservationBlock& block) noexcept {
  LabelRecord::Counters const counters = block.counters();
  if (block.extras() != nullptr) { remove_extras(block); }
  block.use_.store(ReservationBlock::Use::Free, std::memory_order_release);
  ReservationBlock* surplus = nullptr;
  bool together = false;
  {
    Cache& cache = here();
    BasicMutexLock<SpinLock> lock{cache.lock};
    add(cache, block.label_record(), counters);
    block.next_free_ = cache.free;
    cache.free = &block;
    if (++cache.count > most_cached) { surplus = detach(cache, batch); }
    together = cache.together;
    if (!together) { --cache.references; }
  }
  if (surplus != nullptr) { keep(surplus); }
  return together && last_of_all();
}

// The last thing that a thread does here: from then on another one may end the ledger.
bool BlockPool::last_of_all() noexcept { return together_.fetch_sub(1, std::memory_order_acq_rel) == 1; }

// Under the lock of those who walk the blocks and may be looking at them.
void BlockPool::remove_extras(ReservationBlock& block) noexcept {
  MutexLock lock{mutex_};
  delete block.extras_.exchange(nullptr, std::memory_order_acq_rel);
}

void BlockPool::count(LabelRecord& label, LabelRecord::Counters const& counters) noexcept {
  Cache& cache = here();
  BasicMutexLock<SpinLock> lock{cache.lock};
  add(cache, label, counters);
}

void BlockPool::add(Cache& cache, LabelRecord& label, LabelRecord::Counters const& counters) noexcept {
  set_label(cache, label);
  cache.counters.reservations += counters.reservations;
  cache.counters.allocations += counters.allocations;
  cache.counters.allocated_bytes += counters.allocated_bytes;
  cache.counters.peak = std::max(cache.counters.peak, counters.peak);
}

void BlockPool::set_label(Cache& cache, LabelRecord& record) noexcept {
  if (cache.label == &record) { return; }
  if (cache.label != nullptr) { cache.label->add(std::exchange(cache.counters, {})); }
  cache.label = &record;
}

ReservationBlock* BlockPool::detach(Cache& cache, std::uint32_t blocks) noexcept {
  ReservationBlock* const chain = cache.free;
  ReservationBlock* last = chain;
  for (std::uint32_t i = 1; i < blocks; ++i) { last = last->next_free_; }
  cache.free = std::exchange(last->next_free_, nullptr);
  cache.count -= blocks;
  return chain;
}

void BlockPool::keep(ReservationBlock* chain) noexcept {
  MutexLock lock{mutex_};
  while (chain != nullptr) {
    ReservationBlock* const next = chain->next_free_;
    chain->next_free_ = free_;
    free_ = std::exchange(chain, next);
  }
}

ReservationBlock& BlockPool::take_or_make() {
  if (free_ != nullptr) { return *std::exchange(free_, free_->next_free_); }
  if (!has_any()) { slabs_.emplace_back(slabs_.empty() ? batch : std::min(slabs_.back().size * 2, largest_slab)); }
  Slab& slab = slabs_.back();
  ReservationBlock& block = *std::construct_at(slab.memory.get() + slab.made++);
  block.belongs_to(ledger_);
  return block;
}

LabelRecord& BlockPool::label(std::string_view text) {
  std::string_view const name = text.substr(0, LabelRecord::most_characters);
  MutexLock lock{mutex_};
  auto const known = labels_.find(name);
  if (known != labels_.end()) { return known->second; }
  TraceLabel const traced_as = ledger_.trace_label(name);
  return labels_.try_emplace(std::string{name}, name, traced_as).first->second;
}

void BlockPool::add_reference() noexcept {
  Cache& cache = here();
  BasicMutexLock<SpinLock> lock{cache.lock};
  if (cache.together) {
    together_.fetch_add(1, std::memory_order_relaxed);
  } else {
    ++cache.references;
  }
}

bool BlockPool::drop_reference() noexcept {
  {
    Cache& cache = here();
    BasicMutexLock<SpinLock> lock{cache.lock};
    if (!cache.together) {
      --cache.references;
      return false;
    }
  }
  return last_of_all();
}

void BlockPool::bring_references_together() noexcept {
  together_.store(not_yet_together, std::memory_order_relaxed);
  std::int64_t sum = 0;
  for (std::size_t i = 0; i <= mask_; ++i) {
    BasicMutexLock<SpinLock> lock{caches_[i].lock};
    caches_[i].together = true;
    sum += caches_[i].references;
  }
  together_.fetch_add(sum - not_yet_together, std::memory_order_acq_rel);  // the caller's own is among them
}

}  // namespace earmark::detail
