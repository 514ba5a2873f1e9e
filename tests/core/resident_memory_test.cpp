// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/core/resident_memory.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <thread>
#include <vector>

#include "earmark/core/bytes.hpp"

namespace earmark {
namespace {

constexpr std::int64_t slack = 4 << 20;  // the kernel's counters trail, and the test framework allocates

TEST(ProcResidentMemory, SeesMemoryComeAndGoAndRemembersThePeak) {
  ProcResidentMemory memory;
  auto const before = memory.current_bytes();
  EXPECT_GT(before, 0);
  constexpr auto size = 64_MiB;
  auto* const block = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(block, MAP_FAILED);
  std::memset(block, 1, size);
  auto const with_block = memory.current_bytes();
  ASSERT_EQ(::munmap(block, size), 0);
  auto const after = memory.current_bytes();
  EXPECT_NEAR(static_cast<double>(with_block - before), static_cast<double>(size), slack);
  EXPECT_NEAR(static_cast<double>(after), static_cast<double>(before), slack);
  EXPECT_GE(memory.peak_bytes(), with_block - slack);
}

TEST(ProcResidentMemory, AnswersManyThreadsAtOnce) {
  ProcResidentMemory memory;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 200; ++k) {
        EXPECT_GT(memory.current_bytes(), 0);
        EXPECT_GT(memory.peak_bytes(), 0);
      }
    });
  }
  for (auto& thread : threads) { thread.join(); }
}

class FakeResidentMemory final : public ResidentMemory {
 public:
  [[nodiscard]] std::int64_t current_bytes() override { return 1; }
  [[nodiscard]] std::int64_t peak_bytes() override { return 2; }
};

TEST(ResidentMemory, CanBeInjected) {
  FakeResidentMemory fake;
  ResidentMemory& memory = fake;
  EXPECT_EQ(memory.current_bytes() + memory.peak_bytes(), 3);
}

}  // namespace
}  // namespace earmark
