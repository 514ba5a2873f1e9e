// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// Where a ledger's reservation blocks come from, so that a reservation allocates nothing: slabs of blocks, handed out
// through a cache per core. The cache counts what it hands out, which keeps the ledger alive, and gathers the counters
// of what comes back, per label. Internal; see `Ledger`.
//
// The ledger is counted per core as long as somebody has a handle to it, since a single counter would be a word that
// all threads meet at. When the last handle goes, the cores' counts are brought together in one word, once and for all,
// and whoever takes that to zero ends the ledger (as Linux's percpu_ref does).
//
// Thread safety: any thread. Ownership: owns its blocks and labels; they stay put while it lives.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "earmark/core/error.hpp"
#include "earmark/core/spin_lock.hpp"
#include "earmark/core/thread_annotations.hpp"
#include "earmark/memory/label_record.hpp"
#include "earmark/memory/reservation_block.hpp"

namespace earmark::detail {

class BlockPool {
 public:
  explicit BlockPool(Ledger& ledger);
  BlockPool(BlockPool const&) = delete;
  BlockPool& operator=(BlockPool const&) = delete;

  // Returns: a block that is nobody else's, counted as a reference to the ledger, with its label. Throws:
  // std::bad_alloc; then nothing happened.
  [[nodiscard]] ReservationBlock& take(std::string_view label);
  // Takes a block back, with its counters, and gives up its reference. Returns: whether it was the last one.
  [[nodiscard]] bool put(ReservationBlock& block) noexcept;

  // Counts for a label, on the caller's core.
  void count(LabelRecord& label, LabelRecord::Counters const& counters) noexcept;

  // One reference to the ledger. `drop` returns whether it was the last.
  void add_reference() noexcept;
  [[nodiscard]] bool drop_reference() noexcept;
  // Counts references in one word from now on. Requires: the caller holds one; called once.
  void bring_references_together() noexcept;

  // The record of a label, made if need be. Throws: std::bad_alloc.
  [[nodiscard]] LabelRecord& label(std::string_view text);
  // Calls `visit(record)` for each label, with the counters of what came back so far.
  template <class Visit>
  void for_each_label(Visit const& visit);
  // Calls `visit(block, reading)` for each block in use, among the first `most` of all.
  template <class Visit>
  void for_each_block(std::size_t most, Visit const& visit) const;

 private:
  static constexpr std::uint32_t batch = 64;  // what a core takes from the pool, or puts back, at once
  static constexpr std::uint32_t most_cached = 2 * batch;
  // The first slab is small; then they double, so that what keeps them together is nothing a block. A block is made
  // when it is first taken: memory of those that are not is never touched.
  static constexpr std::size_t largest_slab = std::size_t{1} << 15;
  struct Slab {
    struct Release {
      void operator()(ReservationBlock* blocks) const noexcept {
        ::operator delete(blocks, std::align_val_t{alignof(ReservationBlock)});
      }
    };
    explicit Slab(std::size_t blocks)
        : size(blocks),
          memory(static_cast<ReservationBlock*>(
              ::operator new(blocks * sizeof(ReservationBlock), std::align_val_t{alignof(ReservationBlock)}))) {}
    Slab(Slab&&) noexcept = default;
    Slab& operator=(Slab&&) noexcept = default;
    ~Slab() {
      if (memory != nullptr) { std::destroy_n(memory.get(), made); }
    }

    std::size_t size;
    std::size_t made{0};
    std::unique_ptr<ReservationBlock, Release> memory;
  };

  // 128: two neighbours must not share what the hardware fetches in pairs of cache lines.
  struct alignas(128) Cache {
    SpinLock lock;
    std::uint32_t count EARMARK_GUARDED_BY(lock){0};
    ReservationBlock* free EARMARK_GUARDED_BY(lock){nullptr};
    std::int64_t references EARMARK_GUARDED_BY(lock){0};  // may be negative: blocks come back on other cores
    bool together EARMARK_GUARDED_BY(lock){false};
    // Counters of blocks that came back, all of one label, until another label's comes.
    LabelRecord* label EARMARK_GUARDED_BY(lock){nullptr};
    LabelRecord::Counters counters EARMARK_GUARDED_BY(lock){};
  };

  [[nodiscard]] Cache& here() noexcept { return caches_[StdAtomics::core() & mask_]; }
  [[nodiscard]] bool last_of_all() noexcept;
  void prepare(Cache& cache, std::string_view text) EARMARK_EXCLUDES(mutex_, cache.lock);
  // Throws: std::bad_alloc.
  [[nodiscard]] ReservationBlock& take_or_make() EARMARK_REQUIRES(mutex_);
  [[nodiscard]] bool has_any() const noexcept EARMARK_REQUIRES(mutex_) {
    return free_ != nullptr || (!slabs_.empty() && slabs_.back().made < slabs_.back().size);
  }
  void remove_extras(ReservationBlock& block) noexcept EARMARK_EXCLUDES(mutex_);
  void keep(ReservationBlock* chain) noexcept EARMARK_EXCLUDES(mutex_);
  static void add(Cache& cache, LabelRecord& label, LabelRecord::Counters const& counters) noexcept
      EARMARK_REQUIRES(cache.lock);
  static void set_label(Cache& cache, LabelRecord& record) noexcept EARMARK_REQUIRES(cache.lock);
  [[nodiscard]] static ReservationBlock* detach(Cache& cache, std::uint32_t blocks) noexcept
      EARMARK_REQUIRES(cache.lock);

  Ledger& ledger_;
  std::size_t mask_;
  std::unique_ptr<Cache[]> caches_;
  std::atomic<std::int64_t> together_{0};

  mutable Mutex mutex_;
  std::vector<Slab> slabs_ EARMARK_GUARDED_BY(mutex_);
  ReservationBlock* free_ EARMARK_GUARDED_BY(mutex_){nullptr};
  std::map<std::string, LabelRecord, std::less<>> labels_ EARMARK_GUARDED_BY(mutex_);  // they stay put
};

template <class Visit>
void BlockPool::for_each_label(Visit const& visit) {
  for (std::size_t i = 0; i <= mask_; ++i) {
    BasicMutexLock<SpinLock> lock{caches_[i].lock};
    if (caches_[i].label != nullptr) { caches_[i].label->add(std::exchange(caches_[i].counters, {})); }
  }
  MutexLock lock{mutex_};
  for (auto& [name, record] : labels_) { visit(record); }
}

template <class Visit>
void BlockPool::for_each_block(std::size_t most, Visit const& visit) const {
  MutexLock lock{mutex_};
  for (Slab const& slab : slabs_) {
    std::size_t const count = std::min(most, slab.made);
    for (std::size_t i = 0; i < count; ++i) {
      ReservationBlock const& block = slab.memory.get()[i];
      if (block.in_use()) { visit(block, block.reading()); }
    }
    most -= count;
  }
}

}  // namespace earmark::detail
