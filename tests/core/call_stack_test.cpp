// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/core/call_stack.hpp"

#include <gtest/gtest.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "core/elf_symbols.hpp"

// Every function that must be found does something after its call, or the call would be a jump and leave no frame.
#define EARMARK_NO_TAIL_CALL asm volatile("" ::: "memory")

namespace earmark {

[[gnu::noinline]] CallStack captured_by_a_known_function(std::size_t skip) {
  CallStack const stack = CallStack::capture(skip);
  EARMARK_NO_TAIL_CALL;
  return stack;
}

namespace {

[[gnu::noinline]] CallStack captured_under_a_static_function(std::size_t skip) {
  CallStack const stack = captured_by_a_known_function(skip);
  EARMARK_NO_TAIL_CALL;
  return stack;
}

[[gnu::noinline]] CallStack captured_at_depth(std::size_t depth) {
  CallStack const stack = depth == 0 ? CallStack::capture() : captured_at_depth(depth - 1);
  EARMARK_NO_TAIL_CALL;
  return stack;
}

std::vector<std::string> lines_of(std::string const& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t const end = text.find('\n', at);
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

bool contains(std::string const& text, std::string const& part) { return text.find(part) != std::string::npos; }

TEST(CallStack, NamesTheFunctionThatCapturedItFirst) {
  auto const lines = lines_of(captured_under_a_static_function(0).to_text());
  ASSERT_GE(lines.size(), 3U);
  EXPECT_TRUE(lines[0].starts_with(" 0: earmark::captured_by_a_known_function(unsigned long)+0x")) << lines[0];
  EXPECT_TRUE(contains(lines[0], " (core_call_stack_test+0x")) << lines[0];
  EXPECT_TRUE(lines[0].ends_with(")")) << lines[0];
}

TEST(CallStack, NamesStaticFunctionsToo) {
  auto const lines = lines_of(captured_under_a_static_function(0).to_text());
  ASSERT_GE(lines.size(), 2U);
  EXPECT_TRUE(contains(lines[1], "captured_under_a_static_function")) << lines[1];
}

TEST(CallStack, ReachesMain) {
  auto const lines = lines_of(CallStack::capture().to_text());
  EXPECT_TRUE(std::any_of(lines.begin(), lines.end(), [](auto const& line) { return contains(line, ": main+0x"); }));
}

TEST(CallStack, LeavesOutAsManyFramesAsItIsTold) {
  auto const lines = lines_of(captured_under_a_static_function(1).to_text());
  ASSERT_GE(lines.size(), 1U);
  EXPECT_TRUE(contains(lines[0], "captured_under_a_static_function")) << lines[0];
  EXPECT_TRUE(captured_under_a_static_function(1000).empty());
}

TEST(CallStack, KeepsTheInnermostFramesOfADeepStack) {
  CallStack const stack = captured_at_depth(100);
  EXPECT_EQ(stack.frames().size(), CallStack::most_frames);
  for (auto const& line : lines_of(stack.to_text())) { EXPECT_TRUE(contains(line, "captured_at_depth")) << line; }
}

TEST(CallStack, IsEqualToOneOfTheSamePlace) {
  std::vector<CallStack> stacks;
  for (int i = 0; i < 2; ++i) { stacks.push_back(captured_by_a_known_function(0)); }
  EXPECT_EQ(stacks[0], stacks[1]);
  EXPECT_NE(stacks[0], captured_under_a_static_function(0));
}

TEST(CallStack, NamesFunctionsOfSharedLibraries) {
  static CallStack inside;
  int values[]{2, 1};
  std::qsort(values, 2, sizeof(int), [](void const* a, void const* b) {
    inside = CallStack::capture();
    return *static_cast<int const*>(a) - *static_cast<int const*>(b);
  });
  auto const text = inside.to_text();
  EXPECT_TRUE(contains(text, "qsort")) << text;
  EXPECT_TRUE(contains(text, "(libc.so.6+0x")) << text;
}

TEST(CallStack, OfNothingIsEmpty) {
  EXPECT_TRUE(CallStack{}.empty());
  EXPECT_EQ(CallStack{}.to_text(), "");
}

TEST(CallStack, IsCapturedWithoutAllocation) {
  auto const before = mallinfo2().uordblks;
  CallStack const stack = captured_by_a_known_function(0);
  EXPECT_EQ(mallinfo2().uordblks, before);
  EXPECT_FALSE(stack.empty());
}

TEST(ElfSymbols, NamesNothingForWhatIsNoElfFile) {
  EXPECT_FALSE(detail::ElfSymbols{"/nowhere/at/all"}.find(1));
  EXPECT_FALSE(detail::ElfSymbols{"/"}.find(1));
  EXPECT_FALSE(detail::ElfSymbols{"/dev/zero"}.find(1));
  EXPECT_FALSE(detail::ElfSymbols{"/proc/self/status"}.find(1));
}

// Cuts and flips an ELF file at many places: it may name nothing, and must not read outside of what it has.
TEST(ElfSymbols, StandsFilesThatLieAboutThemselves) {
  std::ifstream program{"/proc/self/exe", std::ios::binary};
  std::string const whole{std::istreambuf_iterator<char>{program}, {}};
  auto const path = testing::TempDir() + "earmark_elf_" + std::to_string(::getpid());
  auto const try_file = [&](std::string const& bytes) {
    std::ofstream{path, std::ios::binary} << bytes;
    detail::ElfSymbols const symbols{path.c_str()};
    for (std::uintptr_t address = 0; address < (1U << 20); address += 4097) {
      if (auto const symbol = symbols.find(address)) { EXPECT_GE(std::string{symbol->name}.size(), 0U); }
    }
  };
  try_file(whole.substr(0, 1U << 16));
  for (std::size_t const size : {0U, 1U, 16U, 63U, 64U, 65U}) { try_file(whole.substr(0, size)); }
  // The last kilobytes hold the section headers.
  std::string changed = whole;
  for (std::size_t at = 0; at < 64; at += 3) {
    changed[at] = static_cast<char>(~changed[at]);
    try_file(changed);
    changed[at] = whole[at];
  }
  for (std::size_t at = whole.size() - 64 * 6; at < whole.size(); at += 17) {
    changed[at] = static_cast<char>(~changed[at]);
    try_file(changed);
    changed[at] = whole[at];
  }
  std::remove(path.c_str());
}

}  // namespace
}  // namespace earmark
