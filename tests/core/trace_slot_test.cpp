// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// The slot of a trace ring in every order of its steps, and designs that look as good and are not.
#include "core/trace_slot.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "memory/interleaving.hpp"

namespace earmark {
namespace {

using interleaving::Atomics;
using interleaving::explore;
using interleaving::Scenario;

using Slot = detail::TraceSlot<Atomics, 2>;
using Words = Slot::Words;

Words words_of(std::uint64_t ticket) { return {ticket + 100, ticket + 200}; }

// Some writers, each with its ticket, and a reader that asks for each.
template <class SlotType, std::uint64_t Writers, bool Reads>
struct WritersMeet : Scenario {
  SlotType slot;

  std::vector<std::function<void()>> threads() override {
    std::vector<std::function<void()>> result;
    for (std::uint64_t ticket = 0; ticket < Writers; ++ticket) {
      result.emplace_back([this, ticket] { slot.try_write(ticket, words_of(ticket)); });
    }
    if (Reads) {
      result.emplace_back([this] { read_all(); });
    }
    return result;
  }
  std::uint64_t read_all() {
    std::uint64_t found = 0;
    for (std::uint64_t ticket = 0; ticket < Writers; ++ticket) {
      Words words{};
      if (!slot.try_read(ticket, words)) { continue; }
      ++found;
      require(words == words_of(ticket), "an event is torn");
    }
    return found;
  }
  void at_end() override { require(read_all() == 1, "nothing whole is left"); }
};

template <class S>
void expect_to_hold() {
  auto const result = explore<S>();
  EXPECT_EQ(result.failure, "");
  EXPECT_TRUE(result.complete);
  EXPECT_GT(result.endings, 0U);
}

template <class S>
void expect_to_fail() {
  EXPECT_NE(explore<S>().failure, "") << "the search should have found the hole in this design";
}

TEST(TraceSlot, IsWholeWhenTwoWritersAndAReaderMeet) { expect_to_hold<WritersMeet<Slot, 2, true>>(); }
TEST(TraceSlot, IsWholeWhenThreeWritersMeet) { expect_to_hold<WritersMeet<Slot, 3, false>>(); }
TEST(TraceSlot, IsWholeWhenThreeWritersAndAReaderMeet) { expect_to_hold<WritersMeet<Slot, 3, true>>(); }

// What the designs below have in common.
struct PlainSlot {
  Atomics::Atomic<std::uint64_t> stamp{0};
  Atomics::Atomic<std::uint64_t> words[2]{};

  void store(std::uint64_t ticket, Words const& from) {
    for (std::size_t i = 0; i < from.size(); ++i) { words[i].store(from[i]); }
    stamp.store(2 * ticket + 2);
  }
  bool try_read(std::uint64_t ticket, Words& to) const {
    if (stamp.load() != 2 * ticket + 2) { return false; }
    for (std::size_t i = 0; i < to.size(); ++i) { to[i] = words[i].load(); }
    return stamp.load() == 2 * ticket + 2;
  }
};

struct ClaimsByStore : PlainSlot {
  void try_write(std::uint64_t ticket, Words const& from) {
    stamp.store(2 * ticket + 1);
    store(ticket, from);
  }
};

struct ClaimsOverAnOlderWriter : PlainSlot {
  void try_write(std::uint64_t ticket, Words const& from) {
    std::uint64_t seen = stamp.load();
    do {
      if (seen > 2 * ticket) { return; }
    } while (!stamp.compare_exchange_weak(seen, 2 * ticket + 1));
    store(ticket, from);
  }
};

struct ReadsWithoutASecondLook : Slot {
  bool try_read(std::uint64_t ticket, Words& words) const {
    Words second{};
    bool const was_whole = Slot::try_read(ticket, second);
    static_cast<void>(Slot::try_read(ticket, words));
    return was_whole;
  }
};

TEST(TraceSlot, WouldTearEventsIfWritersDidNotExcludeEachOther) {
  expect_to_fail<WritersMeet<ClaimsByStore, 2, true>>();
  expect_to_fail<WritersMeet<ClaimsByStore, 2, false>>();
}
TEST(TraceSlot, WouldTearEventsIfANewerWriterDidNotYield) {
  expect_to_fail<WritersMeet<ClaimsOverAnOlderWriter, 2, true>>();
}
TEST(TraceSlot, WouldTearEventsIfAReaderDidNotLookTwice) {
  expect_to_fail<WritersMeet<ReadsWithoutASecondLook, 2, true>>();
}

}  // namespace
}  // namespace earmark
