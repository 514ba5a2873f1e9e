// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// How reservations end, under every interleaving of two or three threads: a block is recycled once, and touched by
// nobody afterwards; a preallocated one gives its memory back once, with nobody inside; a ledger ends once, last of
// all. The account is the real one. What surrounds it is modelled: the same operations in the same order as in
// `ReservationBlock`, `Carver` and `BlockPool`, which are no templates.
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <utility>

#include "earmark/memory/account.hpp"
#include "memory/exploring.hpp"

namespace earmark::detail::explored {
namespace {

// -- the block --------------------------------------------------------------------------------------------------------

struct Block : Scenario {
  static constexpr int free = 0, in_use = 1, orphaned = 2;
  Account budget{0, nullptr};
  Account account{5, &budget};
  Atomic<int> references;
  Atomic<int> use{in_use};
  int recycled{0};

  Block(int held, std::int64_t live) : references(held) { (void)account.try_take(live); }
  void touch() { require(recycled == 0, "touched after it was recycled"); }

  void release() {
    touch();
    if (references.load() == 1 || references.fetch_sub(1) == 1) { last_reference_gone(); }
  }
  void close() {
    touch();
    if (account.closed()) { return; }
    if (std::int64_t const unspent = close_account(); unspent != 0) { budget.credit(unspent); }
  }
  std::int64_t close_account() {
    if (references.load() == 1) {
      if (auto const unspent = account.close_alone()) { return *unspent; }
    }
    return account.close_and_take_unspent();
  }
  void last_reference_gone() {
    close();
    references.store(0);
    if (account.closed() && account.granted() == 0) { return recycle(); }
    use.exchange(orphaned);
    recycle_if_settled();
  }
  void recycle_if_settled() {
    int expected = use.fetch_or(0);
    if (expected != orphaned || !account.closed() || account.granted() != 0) { return; }
    if (use.compare_exchange_strong(expected, in_use)) { recycle(); }
  }
  void recycle() {
    require(recycled++ == 0, "recycled twice");
    use.store(free);
  }
  void give_back(std::int64_t bytes) {
    if (account.credit(bytes) != &account) { recycle_if_settled(); }
  }
  void free_buffer(std::int64_t bytes) {  // which holds a reference
    touch();
    give_back(bytes);
    release();
  }
  void drop() {
    close();
    release();
  }
  std::uint64_t plain_state() const override { return static_cast<std::uint64_t>(recycled); }
  void at_end() override {
    require(recycled == 1, "not recycled");
    require(budget.available() == 5 && account.granted() == 0, "bytes were lost or doubled");
  }
};

struct DropAndBuffer : Block {
  DropAndBuffer() : Block(2, 3) {}
  Threads threads() override {
    return {[this] { drop(); }, [this] { free_buffer(3); }};
  }
};
TEST(ReservationProtocol, RecyclesABlockOnceWhenHandleAndBufferGoTogether) { expect_holds<DropAndBuffer>(); }

struct DropAndTwoBuffers : Block {
  DropAndTwoBuffers() : Block(3, 4) {}
  Threads threads() override {
    return {[this] { drop(); }, [this] { free_buffer(3); }, [this] { free_buffer(1); }};
  }
};
TEST(ReservationProtocol, RecyclesABlockOnceWhenHandleAndTwoBuffersGoTogether) { expect_holds<DropAndTwoBuffers>(); }

struct DropAndAllocation : Block {
  DropAndAllocation() : Block(2, 0) {}
  Threads threads() override {
    return {[this] { drop(); },
            [this] {
              if (account.try_take(2).result == Take::Ok) { give_back(2); }
              release();
            }};
  }
};
TEST(ReservationProtocol, ClosesAloneOnlyWhenNobodyElseCanAllocate) { expect_holds<DropAndAllocation>(); }

// Freed through references that hold nothing, after the last that did has gone.
struct LateFrees : Block {
  LateFrees() : Block(1, 3) { (void)account.close(); }
  Threads threads() override {
    return {[this] { release(); }, [this] { give_back(2); }, [this] { give_back(1); }};
  }
};
TEST(ReservationProtocol, RecyclesAnOrphanOnceWhenItsLastBytesComeBack) { expect_holds<LateFrees>(); }

// After a late free has brought the last bytes, the block serves another owner with another budget at once.
struct LateFreesAndReuse : Block {
  Account other{0, nullptr};
  LateFreesAndReuse() : Block(0, 3) {
    (void)account.close();
    use.store(orphaned);
  }
  Threads threads() override {
    return {[this] { give_back(2); }, [this] { give_back(1); },
            [this] {
              World::current()->wait_until([this] { return use.load() == free; });
              account.open(1, &other);
            }};
  }
  void at_end() override {
    require(budget.available() == 5 && other.available() == 0, "bytes went to the new owner");
    require(account.granted() == 1 && account.available() == 1, "the new owner's bytes are not whole");
  }
};
TEST(ReservationProtocol, GivesALateFreeToWhomItBelongsThoughTheBlockIsReused) { expect_holds<LateFreesAndReuse>(); }

struct ReaderOfABlock : Block {
  ReaderOfABlock() : Block(1, 0) {}
  Threads threads() override {
    return {[this] {
              drop();
              account.open(7, &budget);
            },
            [this] {
              Account::Reading const now = account.read();
              require(now.closed ? now.granted == 0 : now.live() == 0, "nothing is live, but the reader saw otherwise");
            }};
  }
  void at_end() override { require(budget.available() == 5 && account.granted() == 7, "bytes were lost or doubled"); }
};
TEST(ReservationProtocol, ShowsAReaderOneMomentWhileABlockClosesAloneAndOpensAgain) { expect_holds<ReaderOfABlock>(); }

// Closing without a read-modify-write because nothing is live, though somebody else could allocate.
struct AloneByTheBalance : Block {
  AloneByTheBalance() : Block(2, 0) {}
  Threads threads() override {
    return {[this] {
              if (auto const unspent = account.close_alone()) { budget.credit(*unspent); }
            },
            [this] {
              if (account.try_take(2).result == Take::Ok) { account.credit(2); }
            }};
  }
  void at_end() override { require(budget.available() == 5 && account.closed(), "bytes were lost or doubled"); }
};
TEST(ReservationDesign, TakingAnIdleReservationForASoleOwnersLosesBytes) { expect_fails<AloneByTheBalance>(); }

// -- preallocation ----------------------------------------------------------------------------------------------------

struct Preallocated : Scenario {
  enum State { Open, Rebuilding, Closed };
  Account budget{0, nullptr};
  Account account{4, &budget};
  Mutex lock;
  int state{Open};  // these two under the lock
  int live{0};
  int memory{1};  // whether it has its memory
  int users{0};   // who are using it
  int given_back{0};
  Atomic<int> elsewhere{0};
  Preallocated() { (void)account.try_take(4); }

  template <class Section>
  auto locked(Section const& section) {
    BasicMutexLock<Mutex> const guard{lock};
    return section();
  }
  bool close_carver() {
    return locked([this] { return std::exchange(state, Closed) == Open && live == 0; });
  }
  bool begin_rebuild() {
    return locked([this] {
      if (state != Open || live != 0) { return false; }
      state = Rebuilding;
      return true;
    });
  }
  void end_rebuild() {
    (void)locked([this] { return state = Open; });
  }
  void give_memory_back() {
    require(users == 0 && live == 0, "given back under somebody's hands");
    require(memory == 1, "given back twice");
    memory = 0;
  }
  void undraw_all() {
    if (std::int64_t const drawn = account.read().live(); drawn != 0) { account.credit(drawn); }
  }
  void finish() {
    give_memory_back();
    ++given_back;
    undraw_all();
    if (std::int64_t const unspent = account.close_and_take_unspent(); unspent != 0) { budget.credit(unspent); }
  }
  void close() {
    if (close_carver()) { finish(); }
  }
  void allocate_and_free() {
    for (;;) {
      int const found = locked([this] {
        if (state == Open) { ++live; }
        return state;
      });
      if (found == Closed) { return; }
      if (found == Open) { break; }
      Atomics::wait_until([this] { return state != Rebuilding; });
    }
    use();
    if (locked([this] { return --live == 0 && state == Closed; })) { finish(); }
  }
  void use() {
    ++users;
    require(memory == 1, "used without its memory");
    (void)elsewhere.load();  // others may go on here
    require(memory == 1, "its memory went meanwhile");
    --users;
  }
  std::uint64_t plain_state() const override {
    return static_cast<std::uint64_t>(memory + 2 * given_back + 8 * users + 64 * live + 512 * state);
  }
};

struct PreallocatedCloses : Preallocated {
  Threads threads() override {
    return {[this] {
              close();
              close();
            },
            [this] { allocate_and_free(); }, [this] { allocate_and_free(); }};
  }
  void at_end() override {
    require(given_back == 1 && memory == 0, "not given back once");
    require(budget.available() == 4 && account.granted() == 0, "bytes were lost or doubled");
  }
};
TEST(ReservationProtocol, GivesPreallocatedMemoryBackOnceWithNobodyInside) { expect_holds<PreallocatedCloses>(); }

struct PreallocatedRebuilds : Preallocated {
  Threads threads() override {
    return {[this] {
              if (begin_rebuild()) {
                give_memory_back();
                undraw_all();
                account.grow(1);
                memory = 1;
                (void)account.try_take(account.available());
                end_rebuild();
              }
              close();
            },
            [this] { allocate_and_free(); }};
  }
  void at_end() override {
    require(given_back == 1 && memory == 0, "not given back once");
    require(budget.available() >= 4 && account.granted() == 0, "bytes were lost or doubled");
  }
};
TEST(ReservationProtocol, RebuildsPreallocatedMemoryWithNobodyInside) { expect_holds<PreallocatedRebuilds>(); }

// Two words instead of one: whether it is closed, and how many are inside.
struct CountBesideTheClosedBit : Preallocated {
  Atomic<int> inside{0};
  Atomic<int> closed{0};
  Threads threads() override {
    return {[this] {
              closed.store(1);
              if (inside.load() == 0) { finish(); }
            },
            [this] {
              if (closed.load() != 0) { return; }
              inside.fetch_add(1);
              use();
              if (inside.fetch_sub(1) == 1 && closed.load() != 0) { finish(); }
            }};
  }
};
TEST(ReservationDesign, CountingThoseInsideBesideTheClosedBitFails) { expect_fails<CountBesideTheClosedBit>(); }

// -- the ledger's references ------------------------------------------------------------------------------------------

struct References : Scenario {
  static constexpr std::int64_t not_yet_together = std::int64_t{1} << 40;
  struct Cache {
    Mutex lock;
    std::int64_t references{0};
    bool together{false};
  };
  Cache caches[2];
  Atomic<std::int64_t> together{0};
  int ended{0};

  Cache& here() { return caches[Atomics::core() & 1U]; }
  void add() {
    require(ended == 0, "referred to after its end");
    Cache& cache = here();
    BasicMutexLock<Mutex> lock{cache.lock};
    if (cache.together) {
      together.fetch_add(1);
    } else {
      ++cache.references;
    }
  }
  void drop() {
    require(ended == 0, "referred to after its end");
    {
      Cache& cache = here();
      BasicMutexLock<Mutex> lock{cache.lock};
      if (!cache.together) {
        --cache.references;
        return;
      }
    }
    if (together.fetch_sub(1) == 1) { require(ended++ == 0, "ended twice"); }
  }
  virtual void bring_together() {
    together.store(not_yet_together);
    std::int64_t sum = 0;
    for (Cache& cache : caches) {
      BasicMutexLock<Mutex> lock{cache.lock};
      cache.together = true;
      sum += cache.references;
    }
    together.fetch_add(sum - not_yet_together);
  }
  std::uint64_t plain_state() const override {
    std::uint64_t state = static_cast<std::uint64_t>(ended);
    for (Cache const& cache : caches) {
      state = interleaving::mix(state, static_cast<std::uint64_t>(cache.references * 2 + (cache.together ? 1 : 0)));
    }
    return state;
  }
  void at_end() override { require(ended == 1, "did not end"); }
};

// The last handle goes; blocks that were taken on one core come back on another.
struct LastHandleGoes : References {
  LastHandleGoes() {
    caches[0].references = 1;  // the handle's
    caches[1].references = 2;  // two blocks'
  }
  Threads threads() override {
    return {[this] {
              bring_together();
              drop();
            },
            [this] {
              add();
              drop();
              drop();
            },
            [this] { drop(); }};
  }
};
TEST(ReservationProtocol, EndsALedgerOnceAfterItsLastReference) { expect_holds<LastHandleGoes>(); }

struct TogetherFromNothing : LastHandleGoes {
  void bring_together() override {
    for (Cache& cache : caches) {
      BasicMutexLock<Mutex> lock{cache.lock};
      cache.together = true;
      together.fetch_add(cache.references);
    }
  }
};
TEST(ReservationDesign, BringingCountsTogetherOneByOneEndsALedgerTooEarly) { expect_fails<TogetherFromNothing>(); }

}  // namespace
}  // namespace earmark::detail::explored
