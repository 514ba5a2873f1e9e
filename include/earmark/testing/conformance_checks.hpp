// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// The checks of `resource_conformance.hpp`, one function each: `conformance::serves_zero_bytes_for_nothing<Subject>()`
// reports what is wrong to googletest. Call them directly to run one, or to see that one fails.
// Thread safety: one at a time; some start threads and join them.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <optional>
#include <random>
#include <rmm/error.hpp>
#include <thread>
#include <utility>
#include <vector>

#include "earmark/core/thread_annotations.hpp"
#include "earmark/testing/conformance_caller.hpp"
#include "earmark/testing/resource_subject.hpp"

namespace earmark::testing::conformance {

template <class Resource, class... P>
void has_exactly(cuda::mr::properties_list<P...>) {
  EXPECT_TRUE((cuda::has_property<Resource, P> && ...));
  EXPECT_EQ((cuda::has_property<Resource, device_accessible>), (earmark::detail::contains_v<device_accessible, P...>));
  EXPECT_EQ((cuda::has_property<Resource, host_accessible>), (earmark::detail::contains_v<host_accessible, P...>));
}

template <class Subject>
void has_the_concepts_and_properties_it_claims() {
  using Resource = typename Subject::Resource;
  static_assert(std::copyable<Resource> && std::equality_comparable<Resource>);
  static_assert(cuda::mr::synchronous_resource<Resource>);
  if constexpr (Subject::forms != Forms::SynchronousOnly) { static_assert(cuda::mr::resource<Resource>); }
  if constexpr (!std::is_void_v<typename Subject::Properties>) {
    has_exactly<Resource>(typename Subject::Properties{});
  }
}

template <class Subject>
void serves_every_size_at_every_alignment() {
  Subject subject;
  Caller<Subject> caller{subject};
  Balance<Subject> balance{subject};
  for (Form const form : forms_of<Subject>()) {
    for (std::size_t alignment = 1; alignment <= Subject::largest_alignment; alignment *= 2) {
      std::vector<Block> blocks;
      for (std::size_t bytes :
           std::array<std::size_t, 12>{1, 63, 64, 65, 255, 256, 257, 4095, 4096, 4097, 65'536, Subject::largest}) {
        blocks.push_back(caller.allocate(bytes, alignment, form));
      }
      caller.free(blocks);
    }
  }
  balance.expect_unchanged("after all blocks were freed");
}

template <class Subject>
void serves_zero_bytes_for_nothing() {
  Subject subject;
  Caller<Subject> caller{subject};
  Balance<Subject> balance{subject};
  std::int64_t const asked = subject.faults.allocations();
  for (Form const form : forms_of<Subject>()) {
    std::vector<Block> blocks;
    for (int i = 0; i < 3; ++i) { blocks.push_back(caller.allocate(0, 256, form)); }
    balance.expect_unchanged("with blocks of no bytes");
    caller.free(blocks);
  }
  balance.expect_unchanged("after blocks of no bytes were freed");
  if constexpr (Subject::zero_bytes == ZeroBytes::StayAway) { EXPECT_EQ(subject.faults.allocations(), asked); }
}

template <class Subject>
void refuses_alignments_that_are_no_power_of_two() {
  Subject subject;
  Caller<Subject> caller{subject};
  Balance<Subject> balance{subject};
  for (Form const form : forms_of<Subject>()) {
    for (std::size_t const bytes : {std::size_t{100}, Subject::largest}) {
      for (std::size_t const alignment : {std::size_t{0}, std::size_t{3}, std::size_t{24}, std::size_t{4095}}) {
        try {
          caller.free(caller.allocate(bytes, alignment, form));
          ADD_FAILURE() << bytes << " bytes were served at an alignment of " << alignment;
        }
        catch (std::exception const&) {
        }
      }
    }
  }
  balance.expect_unchanged("after refusals");
}

template <class Subject>
void makes_equal_copies_that_free_each_others_blocks() {
  Subject subject;
  Caller<Subject> first{subject};
  Balance<Subject> balance{subject};
  for (Form const form : forms_of<Subject>()) {
    Caller<Subject> second = first;
    EXPECT_TRUE(first.resource() == second.resource());
    EXPECT_FALSE(first.resource() != second.resource());
    second.free(first.allocate(1000, 64, form));
    first.free(second.allocate(1000, 64, form));
  }
  balance.expect_unchanged("after copies freed each other's blocks");
}

template <class Subject>
void keeps_the_laws_of_copying_moving_and_swapping() {
  using Resource = typename Subject::Resource;
  Subject subject;
  Caller<Subject> caller{subject};
  Balance<Subject> balance{subject};
  Form const form = forms_of<Subject>().front();
  {
    Resource const original = subject.resource();
    Resource copy = original;
    Resource moved = std::move(copy);
    EXPECT_TRUE(moved == original);
    copy = original;  // whatever it was left as, it can be given a value again
    EXPECT_TRUE(copy == original);
    copy = std::move(moved);
    EXPECT_TRUE(copy == original);
    Resource& same = copy;
    copy = same;
    EXPECT_TRUE(copy == original) << "assigned to itself";
    moved = original;
    using std::swap;
    swap(copy, moved);
    EXPECT_TRUE(copy == original && moved == original);
    if constexpr (Subject::moved_from == MovedFrom::Usable) {
      copy = std::move(same);
      EXPECT_TRUE(copy == original) << "moved to itself";
    }
  }
  Caller<Subject> taken = std::move(caller);
  taken.free(taken.allocate(1000, 64, form));
  if constexpr (Subject::moved_from == MovedFrom::Usable) { caller.free(caller.allocate(1000, 64, form)); }
  balance.expect_unchanged("after moves");
}

// Allocates blocks of 4 KiB until the resource refuses, which it must do within its capacity.
template <class Subject>
[[nodiscard]] std::vector<Block> fill(Caller<Subject>& caller, Form form) {
  std::vector<Block> blocks;
  try {
    while (blocks.size() <= Subject::capacity / 4096) { blocks.push_back(caller.allocate(4096, 64, form)); }
    ADD_FAILURE() << "it served more than its capacity";
  }
  catch (rmm::out_of_memory const&) {
  }
  return blocks;
}

template <class Subject>
void refuses_what_is_above_its_capacity_before_the_upstream_is_asked() {
  Subject subject;
  Caller<Subject> caller{subject};
  Balance<Subject> balance{subject};
  subject.faults.fail_allocation(0, Fails::Always);  // it shows if the upstream is asked
  std::size_t const top = std::size_t{1} << 63;
  for (Form const form : forms_of<Subject>()) {
    for (std::size_t const bytes :
         {Subject::capacity + 1, Subject::capacity * 2, std::size_t{1} << 60, top - 1, top, SIZE_MAX - 255, SIZE_MAX}) {
      EXPECT_THROW((void)caller.allocate(bytes, 64, form), rmm::out_of_memory) << bytes;
    }
  }
  EXPECT_EQ(subject.faults.failures(), 0) << "the upstream was asked for what the resource cannot serve";
  balance.expect_unchanged("after refusals");
  subject.faults.fail_none();
  for (Form const form : forms_of<Subject>()) {
    std::vector<Block> blocks = fill(caller, form);
    caller.free(blocks);
    balance.expect_unchanged("after it was filled and emptied");
  }
}

template <class Subject>
void loses_nothing_whichever_upstream_allocation_fails() {
  constexpr int give_up = 1000;
  for (int n = 0; n < give_up; ++n) {
    Subject subject;
    Caller<Subject> caller{subject};
    Balance<Subject> balance{subject};
    std::int64_t const failures = subject.faults.failures();
    subject.faults.fail_allocation(n, Fails::Once);
    std::vector<Block> blocks;
    for (Form const form : forms_of<Subject>()) {
      for (std::size_t const bytes : {std::size_t{100}, std::size_t{5000}, Subject::largest}) {
        std::int64_t const used = subject.used();
        try {
          blocks.push_back(caller.allocate(bytes, 64, form));
        }
        catch (std::bad_alloc const&) {
          EXPECT_EQ(subject.used(), used) << "with upstream allocation " << n << " failing";
        }
      }
    }
    subject.faults.fail_none();
    caller.free(blocks);
    balance.expect_unchanged("after an upstream failure");
    if (subject.faults.failures() == failures || ::testing::Test::HasFailure()) { return; }
  }
  ADD_FAILURE() << "there was always another upstream allocation";
}

template <class Subject>
void takes_frees_on_other_threads() {
  Subject subject;
  Caller<Subject> caller{subject};
  Balance<Subject> balance{subject};
  std::vector<Block> blocks;
  for (Form const form : forms_of<Subject>()) {
    for (std::size_t const bytes : {std::size_t{1}, std::size_t{257}, std::size_t{70'000}}) {
      blocks.push_back(caller.allocate(bytes, 256, form));
    }
  }
  std::thread{[copy = caller, &blocks]() mutable { copy.free(blocks); }}.join();
  balance.expect_unchanged("after another thread freed");
}

// Where threads leave blocks for one another.
class Exchange {
 public:
  void put(Block const& block) {
    MutexLock lock{mutex_};
    blocks_.push_back(block);
  }
  [[nodiscard]] std::optional<Block> take() {
    MutexLock lock{mutex_};
    if (blocks_.empty()) { return std::nullopt; }
    Block const block = blocks_.back();
    blocks_.pop_back();
    return block;
  }

 private:
  Mutex mutex_;
  std::vector<Block> blocks_ EARMARK_GUARDED_BY(mutex_);
};

template <class Subject>
void serves_many_threads_at_once() {
  constexpr unsigned threads = 16;
  constexpr int rounds = 150;
  Subject subject;
  Caller<Subject> caller{subject};
  Balance<Subject> balance{subject};
  Exchange exchange;
  std::vector<std::thread> running;
  for (unsigned seed = 1; seed <= threads; ++seed) {
    running.emplace_back([seed, &exchange, own = caller]() mutable {
      std::minstd_rand random{seed};
      std::vector<Form> const forms = forms_of<Subject>();
      for (int i = 0; i < rounds; ++i) {
        std::size_t const bytes = i % 16 == 0 ? 0 : random() % 2000;
        try {
          exchange.put(own.allocate(bytes, std::size_t{1} << random() % 9, forms[random() % forms.size()]));
        }
        catch (std::bad_alloc const&) {  // a full resource may refuse; what counts is that nothing is lost
        }
        if (i % 3 == 0) { continue; }
        if (std::optional<Block> const block = exchange.take()) { own.free(*block); }
      }
    });
  }
  for (std::thread& thread : running) { thread.join(); }
  while (std::optional<Block> const block = exchange.take()) { caller.free(*block); }
  balance.expect_unchanged("after many threads");
}

template <class Subject>
void outlives_what_it_came_from_through_a_copy() {
  std::optional<Subject> subject;
  subject.emplace();
  FaultControl const faults = subject->faults;
  std::optional<Caller<Subject>> caller;
  caller.emplace(*subject);
  std::vector<Block> blocks;
  for (Form const form : forms_of<Subject>()) { blocks.push_back(caller->allocate(1000, 64, form)); }
  subject.reset();
  caller->free(blocks);
  caller.reset();
  EXPECT_EQ(faults.live_bytes(), 0);
  EXPECT_EQ(faults.wrong_deallocations(), 0);
}

}  // namespace earmark::testing::conformance
