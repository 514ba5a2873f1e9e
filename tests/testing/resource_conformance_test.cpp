// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// The suite of resources itself: a sound resource passes, and each of its checks fails for a resource with the fault
// that it is there for.
#include "earmark/testing/resource_conformance.hpp"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <utility>

#include "earmark/memory/host_memory_resource.hpp"
#include "earmark/testing/faulty_resource.hpp"

namespace earmark::testing {
namespace {

enum class Fault : std::uint8_t {
  None,
  IgnoresAlignment,
  HandsOutTheSameBytesTwice,
  AsksForZeroBytes,
  ServesOddAlignments,
  CopiesDiffer,
  ForgetsWhenMovedTo,
  HasNoBound,
  AsksBeforeItRefuses,
  KeepsTheChargeOfAFailure,
  FreesWithAnotherSize,
  LosesAFree,
  CountsCarelessly,
};

alignas(4096) std::byte shared_bytes[4096];

constexpr std::size_t bound = std::size_t{4} << 20;

// A small resource with a bound and a counter, sound but for one fault.
template <Fault fault>
class Suspect {
 public:
  using Upstream = FaultyResource<HostMemoryResource>;
  struct Counter {
    std::atomic<std::int64_t> used{0};
  };
  Suspect(Upstream upstream, std::shared_ptr<Counter> counter)
      : upstream_(std::move(upstream)), counter_(std::move(counter)) {}
  Suspect(Suspect const& other) : upstream_(other.upstream_), counter_(other.counter_) {
    if (fault == Fault::CopiesDiffer) { counter_ = std::make_shared<Counter>(); }
  }
  Suspect& operator=(Suspect const& other) {
    if (fault == Fault::ForgetsWhenMovedTo) { counter_ = std::make_shared<Counter>(); }
    if (fault != Fault::ForgetsWhenMovedTo) { counter_ = other.counter_; }
    return *this;
  }

  void* allocate_sync(std::size_t bytes, std::size_t alignment) {
    if (bytes == 0 && fault != Fault::AsksForZeroBytes) { return nullptr; }
    if (fault == Fault::IgnoresAlignment) { alignment = 1; }
    if (fault == Fault::ServesOddAlignments) { alignment = 64; }
    if (fault == Fault::AsksBeforeItRefuses) { upstream_.deallocate_sync(upstream_.allocate_sync(64, 64), 64, 64); }
    if (fault == Fault::HandsOutTheSameBytesTwice && bytes <= sizeof(shared_bytes)) { return shared_bytes; }
    take(bytes);
    try {
      return upstream_.allocate_sync(bytes, alignment);
    }
    catch (...) {
      if (fault != Fault::KeepsTheChargeOfAFailure) { counter_->used -= signed_of(bytes); }
      throw;
    }
  }
  void deallocate_sync(void* pointer, std::size_t bytes, std::size_t alignment) noexcept {
    if (bytes == 0 && fault != Fault::AsksForZeroBytes) { return; }
    if (fault == Fault::IgnoresAlignment) { alignment = 1; }
    if (fault == Fault::ServesOddAlignments) { alignment = 64; }
    if (fault == Fault::HandsOutTheSameBytesTwice && bytes <= sizeof(shared_bytes)) { return; }
    std::size_t const freed = fault == Fault::FreesWithAnotherSize && bytes == 1000 ? 999 : bytes;
    upstream_.deallocate_sync(pointer, freed, alignment);
    if (fault == Fault::LosesAFree && bytes == 257) { return; }
    counter_->used -= signed_of(bytes);
  }
  bool operator==(Suspect const& other) const { return counter_ == other.counter_; }
  friend constexpr void get_property(Suspect const&, host_accessible) noexcept {}

 private:
  static std::int64_t signed_of(std::size_t bytes) { return static_cast<std::int64_t>(bytes); }
  void take(std::size_t bytes) {
    if (fault == Fault::CountsCarelessly) {  // two threads read the same value
      std::int64_t const before = counter_->used;
      std::this_thread::yield();
      counter_->used = before + signed_of(bytes);
      return;
    }
    std::int64_t before = counter_->used;
    do {
      if (fault == Fault::HasNoBound) { continue; }
      if (bytes > bound - static_cast<std::size_t>(before)) { throw rmm::out_of_memory{"full"}; }
    } while (!counter_->used.compare_exchange_weak(before, before + signed_of(bytes)));
  }
  Upstream upstream_;
  std::shared_ptr<Counter> counter_;
};

template <Fault fault>
struct SubjectWith : ResourceSubject {
  using Resource = Suspect<fault>;
  using Properties = cuda::mr::properties_list<host_accessible>;
  static constexpr Forms forms = Forms::SynchronousOnly;
  static constexpr OddAlignments odd_alignments = OddAlignments::Refused;
  static constexpr std::size_t capacity = bound;
  std::shared_ptr<typename Resource::Counter> counter = std::make_shared<typename Resource::Counter>();
  Resource resource() { return {FaultyResource{HostMemoryResource{}, faults}, counter}; }
  std::int64_t used() { return counter->used; }
};

using Sound = SubjectWith<Fault::None>;
INSTANTIATE_TYPED_TEST_SUITE_P(Sound, ResourceConformance, Sound);

// How many failures `check` reports.
template <class Check>
int failures_of(Check const& check) {
  ::testing::TestPartResultArray results;
  {
    ::testing::ScopedFakeTestPartResultReporter const caught{
        ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ALL_THREADS, &results};
    check();
  }
  int failures = 0;
  for (int i = 0; i < results.size(); ++i) { failures += results.GetTestPartResult(i).failed() ? 1 : 0; }
  return failures;
}

TEST(ResourceConformanceItself, SeesMisalignedBlocks) {
  EXPECT_GT(failures_of(conformance::serves_every_size_at_every_alignment<SubjectWith<Fault::IgnoresAlignment>>), 0);
}
TEST(ResourceConformanceItself, SeesBlocksThatOverlap) {
  using Subject = SubjectWith<Fault::HandsOutTheSameBytesTwice>;
  EXPECT_GT(failures_of(conformance::serves_every_size_at_every_alignment<Subject>), 0);
}
TEST(ResourceConformanceItself, SeesZeroBytesReachTheUpstream) {
  EXPECT_GT(failures_of(conformance::serves_zero_bytes_for_nothing<SubjectWith<Fault::AsksForZeroBytes>>), 0);
}
TEST(ResourceConformanceItself, SeesOddAlignmentsServed) {
  using Subject = SubjectWith<Fault::ServesOddAlignments>;
  EXPECT_GT(failures_of(conformance::refuses_alignments_that_are_no_power_of_two<Subject>), 0);
}
TEST(ResourceConformanceItself, SeesCopiesThatDiffer) {
  using Subject = SubjectWith<Fault::CopiesDiffer>;
  EXPECT_GT(failures_of(conformance::makes_equal_copies_that_free_each_others_blocks<Subject>), 0);
}
TEST(ResourceConformanceItself, SeesAssignmentThatForgets) {
  using Subject = SubjectWith<Fault::ForgetsWhenMovedTo>;
  EXPECT_GT(failures_of(conformance::keeps_the_laws_of_copying_moving_and_swapping<Subject>), 0);
}
TEST(ResourceConformanceItself, SeesABoundThatIsNone) {
  using Subject = SubjectWith<Fault::HasNoBound>;
  EXPECT_GT(failures_of(conformance::refuses_what_is_above_its_capacity_before_the_upstream_is_asked<Subject>), 0);
}
TEST(ResourceConformanceItself, SeesAnUpstreamThatIsAskedInVain) {
  using Subject = SubjectWith<Fault::AsksBeforeItRefuses>;
  EXPECT_GT(failures_of(conformance::refuses_what_is_above_its_capacity_before_the_upstream_is_asked<Subject>), 0);
}
TEST(ResourceConformanceItself, SeesAChargeKeptAfterAFailure) {
  using Subject = SubjectWith<Fault::KeepsTheChargeOfAFailure>;
  EXPECT_GT(failures_of(conformance::loses_nothing_whichever_upstream_allocation_fails<Subject>), 0);
}
TEST(ResourceConformanceItself, SeesFreesWithAnotherSize) {
  using Subject = SubjectWith<Fault::FreesWithAnotherSize>;
  EXPECT_GT(failures_of(conformance::outlives_what_it_came_from_through_a_copy<Subject>), 0);
}
TEST(ResourceConformanceItself, SeesAFreeThatIsNotCounted) {
  using Subject = SubjectWith<Fault::LosesAFree>;
  EXPECT_GT(failures_of(conformance::takes_frees_on_other_threads<Subject>), 0);
}
TEST(ResourceConformanceItself, SeesCountersThatThreadsOverwrite) {
  using Subject = SubjectWith<Fault::CountsCarelessly>;
  EXPECT_GT(failures_of(conformance::serves_many_threads_at_once<Subject>), 0);
}
TEST(ResourceConformanceItself, FindsNothingWhereNothingIsWrong) {
  EXPECT_EQ(failures_of(conformance::serves_every_size_at_every_alignment<Sound>), 0);
  EXPECT_EQ(failures_of(conformance::loses_nothing_whichever_upstream_allocation_fails<Sound>), 0);
  EXPECT_EQ(failures_of(conformance::serves_many_threads_at_once<Sound>), 0);
}

}  // namespace
}  // namespace earmark::testing
