// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "ops/page_sizes.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

namespace earmark::detail {
namespace {

std::vector<std::byte> bytes_of(std::initializer_list<int> values) {
  std::vector<std::byte> bytes;
  for (int const value : values) { bytes.push_back(static_cast<std::byte>(value)); }
  return bytes;
}

// type = 0 (a data page), 300 bytes decompressed, 200 compressed, a nested header with a boolean and an integer.
std::vector<std::byte> a_page_header() {
  return bytes_of({0x15, 0x00, 0x15, 0xd8, 0x04, 0x15, 0x90, 0x03, 0x2c, 0x15, 0x14, 0x11, 0x00, 0x00});
}

TEST(PageHeader, GivesBothSizesAndItsOwn) {
  auto bytes = a_page_header();
  std::size_t const size = bytes.size();
  bytes.resize(size + 100);  // the page itself
  auto const header = parse_page_header(bytes);
  ASSERT_TRUE(header);
  EXPECT_EQ(header->uncompressed_bytes, 300);
  EXPECT_EQ(header->compressed_bytes, 200);
  EXPECT_EQ(header->header_bytes, static_cast<std::int64_t>(size));
}

TEST(PageHeader, IsRefusedWhereverItIsCutShort) {
  auto const bytes = a_page_header();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(parse_page_header(std::span(bytes).first(size))) << size;
  }
}

TEST(PageHeader, IsRefusedWithoutSizesOrWithNegativeOnes) {
  EXPECT_FALSE(parse_page_header(bytes_of({0x15, 0x00, 0x00})));
  EXPECT_FALSE(parse_page_header(bytes_of({0x15, 0x00, 0x15, 0x01, 0x15, 0x02, 0x00})));
}

TEST(PageHeader, OfAnyBytesEndsWithoutReadingBeyondThem) {
  std::uint32_t state = 1;
  for (int round = 0; round < 20'000; ++round) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(round % 64));
    for (std::byte& byte : bytes) {
      state = state * 1'664'525 + 1'013'904'223;
      byte = static_cast<std::byte>(state >> 24);
    }
    if (auto const header = parse_page_header(bytes)) {
      EXPECT_LE(header->header_bytes, static_cast<std::int64_t>(bytes.size()));
      EXPECT_GE(header->compressed_bytes, 0);
    }
  }
}

// Nested lists as deep as one likes must not end the stack.
TEST(PageHeader, OfDeeplyNestedBytesIsRefused) {
  std::vector<std::byte> const bytes(100'000, std::byte{0x1c});
  EXPECT_FALSE(parse_page_header(bytes));
}

}  // namespace
}  // namespace earmark::detail
