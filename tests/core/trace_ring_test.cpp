// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/core/trace_ring.hpp"

#include <gtest/gtest.h>
#include <malloc.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <thread>
#include <vector>

namespace earmark {
namespace {

Clock::time_point at(std::int64_t nanoseconds) { return Clock::time_point{Clock::duration{nanoseconds}}; }

std::vector<std::uint64_t> ids_of(TraceRing::Reading const& reading) {
  std::vector<std::uint64_t> ids;
  for (TraceEvent const& event : reading.events) { ids.push_back(event.id); }
  return ids;
}

TEST(TraceRing, GivesBackWhatWasWritten) {
  TraceRing ring;
  ring.write({.time = at(INT64_MAX),
              .kind = TraceKind::Abort,
              .source = ring.label("host"),
              .label = ring.label("scan"),
              .id = UINT64_MAX,
              .bytes = INT64_MIN,
              .after = -1});
  auto const reading = ring.read();
  ASSERT_EQ(reading.events.size(), 1U);
  TraceEvent const& event = reading.events[0];
  EXPECT_EQ(event.time, at(INT64_MAX));
  EXPECT_EQ(event.kind, TraceKind::Abort);
  EXPECT_EQ(ring.text(event.source), "host");
  EXPECT_EQ(ring.text(event.label), "scan");
  EXPECT_EQ(event.id, UINT64_MAX);
  EXPECT_EQ(event.bytes, INT64_MIN);
  EXPECT_EQ(event.after, -1);
  EXPECT_EQ(event.thread, static_cast<std::uint32_t>(::gettid()));
  EXPECT_EQ(reading.written, 1U);
  EXPECT_EQ(reading.lost, 0U);
}

TEST(TraceRing, IsEmptyAtFirst) {
  auto const reading = TraceRing{}.read();
  EXPECT_TRUE(reading.events.empty());
  EXPECT_EQ(reading.written, 0U);
  EXPECT_EQ(reading.lost, 0U);
}

TEST(TraceRing, OverwritesTheOldestAndSaysHowManyWereLost) {
  TraceRing ring{{.events = 4}};
  for (std::uint64_t id = 0; id < 11; ++id) { ring.write({.id = id}); }
  auto const reading = ring.read();
  EXPECT_EQ(ids_of(reading), (std::vector<std::uint64_t>{7, 8, 9, 10}));
  EXPECT_EQ(reading.written, 11U);
  EXPECT_EQ(reading.lost, 7U);
}

TEST(TraceRing, RoundsItsSizeUp) {
  EXPECT_EQ((TraceRing{{.events = 0}}.capacity()), 1U);
  EXPECT_EQ((TraceRing{{.events = 5}}.capacity()), 8U);
  EXPECT_EQ((TraceRing{{.events = 5, .lanes = 3}}.lanes()), 4U);
  EXPECT_EQ((TraceRing{{.events = 5, .lanes = 3}}.capacity()), 8U);
  EXPECT_EQ((TraceRing{{.events = 1, .lanes = 16}}.capacity()), 16U);
}

TEST(TraceRing, RefusesSizesThatNobodyMeans) {
  EXPECT_THROW((TraceRing{{.events = SIZE_MAX}}), std::invalid_argument);
  EXPECT_THROW((TraceRing{{.events = 1, .lanes = SIZE_MAX}}), std::invalid_argument);
}

TEST(TraceRing, OrdersByTimeAndThenAsWritten) {
  TraceRing ring{{.events = 8}};
  ring.write({.time = at(5), .id = 1});
  ring.write({.time = at(3), .id = 2});
  ring.write({.time = at(5), .id = 3});
  ring.write({.time = at(3), .id = 4});
  EXPECT_EQ(ids_of(ring.read()), (std::vector<std::uint64_t>{2, 4, 1, 3}));
}

TEST(TraceRing, IsWrittenWithoutAllocation) {
  TraceRing ring{{.events = 64}};
  auto const before = mallinfo2().uordblks;
  for (std::uint64_t id = 0; id < 200; ++id) { ring.write({.id = id}); }
  EXPECT_EQ(mallinfo2().uordblks, before);
}

TEST(TraceRing, GivesOneTextOneLabel) {
  TraceRing ring;
  TraceLabel const scan = ring.label("scan");
  EXPECT_NE(scan, ring.label("join"));
  EXPECT_EQ(scan, ring.label("scan"));
  EXPECT_EQ(ring.label(""), TraceLabel::None);
  EXPECT_EQ(ring.text(TraceLabel::None), "");
  EXPECT_EQ(ring.text(static_cast<TraceLabel>(12345)), "");
}

TEST(TraceRing, BoundsItsLabels) {
  TraceRing ring;
  TraceLabel last{};
  for (std::size_t i = 0; i < TraceRing::most_labels + 100; ++i) { last = ring.label("label " + std::to_string(i)); }
  EXPECT_EQ(ring.text(last), "(other)");
  EXPECT_LT(static_cast<std::size_t>(last), TraceRing::most_labels);
  EXPECT_EQ(ring.text(ring.label("label 0")), "label 0");
}

TEST(TraceRing, NamesEveryKindDifferently) {
  std::set<std::string_view> names;
  int kinds = 0;
  for (int number = 0; number < 32; ++number) {
    auto const name = to_string(static_cast<TraceKind>(number));
    if (name != "unknown") {
      ++kinds;
      names.insert(name);
    }
  }
  EXPECT_EQ(kinds, 18);
  EXPECT_EQ(names.size(), 18U);
}

// One thread, any capacity, any times: a deque that forgets at its front is the model.
RC_GTEST_PROP(TraceRing, IsADequeThatForgets, ()) {
  auto const capacity_bits = *rc::gen::inRange<std::size_t>(0, 6);
  auto const times = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 20));
  TraceRing ring{{.events = std::size_t{1} << capacity_bits}};
  std::deque<TraceEvent> model;
  for (std::size_t i = 0; i < times.size(); ++i) {
    TraceEvent const event{.time = at(times[i]), .id = i, .bytes = times[i]};
    ring.write(event);
    model.push_back(event);
    if (model.size() > ring.capacity()) { model.pop_front(); }
    if (*rc::gen::inRange(0, 8) != 0 && i + 1 != times.size()) { continue; }
    auto sorted = model;
    std::stable_sort(sorted.begin(), sorted.end(), [](auto const& a, auto const& b) { return a.time < b.time; });
    auto const reading = ring.read();
    RC_ASSERT(reading.written == i + 1);
    RC_ASSERT(reading.lost == i + 1 - model.size());
    RC_ASSERT(std::equal(sorted.begin(), sorted.end(), reading.events.begin(), reading.events.end(),
                         [](auto const& a, auto const& b) { return a.id == b.id && a.bytes == b.bytes; }));
  }
}

// Every word of an event says the same number, so that a torn one shows.
TraceEvent marked(std::uint64_t writer, std::uint64_t number) {
  std::uint64_t const mark = writer << 32 | number;
  return {.time = at(static_cast<std::int64_t>(number)),
          .kind = static_cast<TraceKind>(mark % 251),
          .source = static_cast<TraceLabel>(mark * 3 & 0xffff'ffffU),
          .label = static_cast<TraceLabel>(mark * 7 & 0xffff'ffffU),
          .id = mark,
          .bytes = static_cast<std::int64_t>(~mark),
          .after = static_cast<std::int64_t>(mark * 31)};
}

bool is_whole(TraceEvent const& event) {
  TraceEvent const expected = marked(event.id >> 32, event.id & 0xffff'ffffU);
  return event.time == expected.time && event.kind == expected.kind && event.source == expected.source &&
         event.label == expected.label && event.bytes == expected.bytes && event.after == expected.after;
}

// Whole events, none twice, and each writer's in its own order, by thread.
void check_reading(TraceRing::Reading const& reading, std::size_t capacity) {
  EXPECT_LE(reading.events.size(), capacity);
  EXPECT_EQ(reading.written, reading.events.size() + reading.lost);
  std::map<std::uint64_t, std::uint64_t> next;
  std::map<std::uint64_t, std::uint32_t> thread;
  for (TraceEvent const& event : reading.events) {
    ASSERT_TRUE(is_whole(event)) << event.id;
    std::uint64_t const writer = event.id >> 32;
    std::uint64_t const number = event.id & 0xffff'ffffU;
    ASSERT_GE(number, next[writer]);
    next[writer] = number + 1;
    ASSERT_EQ(thread.try_emplace(writer, event.thread).first->second, event.thread);
  }
}

void write_and_read_at_once(TraceRing& ring, std::uint64_t writers, std::uint64_t each) {
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (std::uint64_t writer = 0; writer < writers; ++writer) {
    threads.emplace_back([&ring, writer, each] {
      for (std::uint64_t number = 0; number < each; ++number) { ring.write(marked(writer, number)); }
    });
  }
  std::thread reader{[&] {
    do { check_reading(ring.read(), ring.capacity()); } while (!done.load());
  }};
  for (auto& thread : threads) { thread.join(); }
  done = true;
  reader.join();
  auto const reading = ring.read();
  check_reading(reading, ring.capacity());
  EXPECT_EQ(reading.written, writers * each);
}

TEST(TraceRing, GivesWholeEventsWhileWritersGoRoundAndRound) {
  // A tiny ring is lapped all the time, also in the middle of a write.
  for (std::size_t const events : {1U, 2U, 8U, 256U}) {
    TraceRing ring{{.events = events}};
    write_and_read_at_once(ring, 4, 50'000);
  }
}

TEST(TraceRing, GivesWholeEventsFromLanesToo) {
  TraceRing ring{{.events = 64, .lanes = 4}};
  write_and_read_at_once(ring, 6, 50'000);
}

TEST(TraceRing, LosesNothingThatFits) {
  TraceRing ring{{.events = 1 << 16}};
  write_and_read_at_once(ring, 4, 16'000);
  auto const reading = ring.read();
  EXPECT_EQ(reading.events.size(), 64'000U);
  EXPECT_EQ(reading.lost, 0U);
}

TEST(TraceRing, KeepsLabelsWhileOthersAreAdded) {
  TraceRing ring;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&ring] {
      for (int i = 0; i < 200; ++i) {
        auto const text = "label " + std::to_string(i);
        TraceLabel const label = ring.label(text);
        ring.write({.label = label});
        EXPECT_EQ(ring.text(label), text);
      }
    });
  }
  for (auto& thread : threads) { thread.join(); }
}

}  // namespace
}  // namespace earmark
