// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// What an adaptor tells about itself: counters per label, reports, leaks, call stacks and traces.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "earmark/core/log_sink.hpp"
#include "earmark/core/trace_ring.hpp"
#include "earmark/memory/memory_report.hpp"
#include "earmark/testing/manual_clock.hpp"
#include "memory/asked.hpp"
#include "memory/watched_adaptor.hpp"

namespace earmark {
namespace {

using namespace std::chrono_literals;

std::map<std::string, LabelCounters> by_label(HostReservationAwareResourceAdaptor const& adaptor) {
  std::map<std::string, LabelCounters> labels;
  for (LabelCounters& label : adaptor.label_counters()) { labels[label.label] = label; }
  return labels;
}

void allocate_and_free(HostMemoryReservation const& reservation, std::size_t bytes) {
  auto resource = reservation.resource();
  resource.deallocate_sync(resource.allocate_sync(bytes, 64), bytes, 64);
}

TEST(LabelCounting, SumsOverAllReservationsOfALabelThatEverWere) {
  WatchedHost host{8192};
  HostMemoryReservation open = host.adaptor.reserve(1024, {.label = "scan"});
  for (int i = 0; i < 3; ++i) { allocate_and_free(host.adaptor.reserve(512, {.label = "scan"}), 256); }
  allocate_and_free(open, 1000);
  HostMemoryReservation closed = host.adaptor.reserve(512, {.label = "join"});
  auto resource = closed.resource();
  void* const pointer = resource.allocate_sync(64, 64);
  closed.close();
  auto labels = by_label(host.adaptor);
  EXPECT_EQ(labels["scan"].granted, 1024);
  EXPECT_EQ(labels["scan"].live, 0);
  EXPECT_EQ(labels["scan"].reserved_total, 4);
  EXPECT_EQ(labels["scan"].allocation_count, 4);
  EXPECT_EQ(labels["scan"].total_allocated, 3 * 256 + 1024);
  EXPECT_EQ(labels["scan"].peak, 1024);
  EXPECT_EQ(labels["join"].granted, 64);
  EXPECT_EQ(labels["join"].live, 64);
  EXPECT_EQ(labels["join"].reserved_total, 1);
  resource.deallocate_sync(pointer, 64, 64);
}

TEST(LabelCounting, CountsWaitsTheirTimesAndRefusals) {
  testing::ManualClock clock;
  WatchedHost host{1024, {.clock = &clock}};
  HostMemoryReservation all = host.adaptor.reserve(1024);
  std::stop_source stop;
  WaitOptions stoppable;
  stoppable.stop = stop.get_token();
  Asked served{host.adaptor, 512, {.label = "scan"}};
  Asked stopped{host.adaptor, 512, {.label = "scan"}, stoppable};
  clock.advance(3s);
  stop.request_stop();
  EXPECT_EQ(stopped.outcome(), Outcome::Aborted);
  clock.advance(1s);
  EXPECT_EQ(by_label(host.adaptor)["scan"].waits, 2);
  EXPECT_EQ(by_label(host.adaptor)["scan"].waited, 7s) << "with what still waits";
  all.close();
  EXPECT_THROW((void)host.adaptor.reserve(1024, {.label = "scan"}), ReservationRefused);
  auto const scan = by_label(host.adaptor)["scan"];
  EXPECT_EQ(scan.waits, 2);
  EXPECT_EQ(scan.waited, 7s);
  EXPECT_EQ(scan.refusals, 2);
}

TEST(LabelCounting, CountsNoWaitWhereNobodyHadToWait) {
  WatchedHost host{1024};
  (void)host.adaptor.reserve_blocking(512, {.label = "scan"});
  Asked{host.adaptor, 512, {.label = "scan"}}.drop();
  EXPECT_EQ(by_label(host.adaptor)["scan"].waits, 0);
  EXPECT_EQ(by_label(host.adaptor)["scan"].reserved_total, 2);
}

TEST(LabelCounting, IsExactAmongManyThreads) {
  WatchedHost host{1_MiB};
  HostMemoryReservation const shared = host.adaptor.reserve(64_KiB, {.label = "shared"});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        allocate_and_free(shared, 128);
        HostMemoryReservation const own = host.adaptor.reserve(256, {.label = i % 2 == 0 ? "even" : "odd"});
        allocate_and_free(own, 256);
        if (i % 100 == 0) { (void)host.adaptor.label_counters(); }
      }
    });
  }
  for (std::thread& thread : threads) { thread.join(); }
  auto labels = by_label(host.adaptor);
  EXPECT_EQ(labels["shared"].allocation_count, 4000);
  EXPECT_EQ(labels["shared"].total_allocated, 4000 * 128);
  EXPECT_EQ(labels["even"].reserved_total, 2000);
  EXPECT_EQ(labels["odd"].allocation_count, 2000);
  EXPECT_EQ(labels["odd"].total_allocated, 2000 * 256);
  EXPECT_EQ(host.adaptor.allocation_count(), 8000);
}

TEST(Reports, SayWhoHoldsWhoWaitsAndWhatWouldChangeIt) {
  WatchedHost host{4096};
  Consumer const query = host.adaptor.make_consumer("query 7", 2048);
  HostMemoryReservation const hash = host.adaptor.reserve(2048, {.label = "hash table", .consumer = &query});
  HostMemoryReservation const scan = host.adaptor.reserve(1024, {.label = "scan"});
  Asked const asked{host.adaptor, 3072, {.label = "sort"}};
  MemoryReport const report = host.adaptor.report();
  EXPECT_EQ(report.tier, "host");
  EXPECT_EQ(report.limit, 4096);
  EXPECT_EQ(report.committed, 3072);
  EXPECT_EQ(report.available, 1024);
  EXPECT_EQ(report.live, 0);
  EXPECT_EQ(report.pressure, 2048);
  EXPECT_EQ(report.peak_committed, 3072);
  EXPECT_EQ(report.reservations.size(), 2U);
  ASSERT_EQ(report.waiting.size(), 1U);
  EXPECT_EQ(report.waiting[0].label, "sort");
  EXPECT_FALSE(report.largest_hole.has_value());
  EXPECT_FALSE(report.advice().empty());
  std::string const text = report.to_text();
  for (char const* const part : {"host", "4096", "hash table", "scan", "sort", "query 7", "3072"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
  }
}

// What was leaked is named.
TEST(Outstanding, NamesWhatHoldsBytesAndNothingElse) {
  WatchedHost host{8192};
  EXPECT_TRUE(host.adaptor.outstanding().empty());
  HostMemoryReservation const open = host.adaptor.reserve(1024, {.label = "open"});
  std::optional<HostMemoryReservation> lost{host.adaptor.reserve(1024, {.label = "lost"})};
  auto resource = lost->resource();
  void* const pointer = resource.allocate_sync(100, 64);
  lost.reset();
  HostMemoryReservation done = host.adaptor.reserve(1024, {.label = "done"});
  done.close();
  auto outstanding = host.adaptor.outstanding();
  ASSERT_EQ(outstanding.size(), 2U);
  std::sort(outstanding.begin(), outstanding.end(), [](auto const& a, auto const& b) { return a.label < b.label; });
  EXPECT_EQ(outstanding[0].label, "lost");
  EXPECT_EQ(outstanding[0].granted, 128);
  EXPECT_EQ(outstanding[0].live, 128);
  EXPECT_EQ(outstanding[0].state, OutstandingReservation::State::Closed);
  EXPECT_FALSE(outstanding[0].reserved_at.has_value());
  EXPECT_EQ(outstanding[1].label, "open");
  EXPECT_EQ(outstanding[1].state, OutstandingReservation::State::Open);
  resource.deallocate_sync(pointer, 100, 64);
  EXPECT_EQ(host.adaptor.outstanding().size(), 1U);
}

[[gnu::noinline]] HostMemoryReservation reserve_in_a_named_place(HostReservationAwareResourceAdaptor& adaptor) {
  HostMemoryReservation reservation = adaptor.reserve(1024, {.label = "scan"});
  EXPECT_TRUE(reservation);  // not a tail call
  return reservation;
}

TEST(Outstanding, ShowsWhereReservationsWereMadeIfThatIsRecorded) {
  WatchedHost host{8192, {.call_stacks = CallStacks::Record}};
  HostMemoryReservation reservation = reserve_in_a_named_place(host.adaptor);
  auto const outstanding = host.adaptor.outstanding();
  ASSERT_EQ(outstanding.size(), 1U);
  ASSERT_TRUE(outstanding[0].reserved_at.has_value());
  EXPECT_NE(outstanding[0].reserved_at->to_text().find("reserve_in_a_named_place"), std::string::npos)
      << outstanding[0].reserved_at->to_text();
  HostMemoryReservation const part = reservation.split(512);
  EXPECT_EQ(host.adaptor.outstanding().size(), 2U);
}

class Lines final : public LogSink {
 public:
  Lines() : LogSink(LogLevel::Warning) {}
  std::vector<std::string> lines;

 private:
  void do_write(LogLevel, std::string_view text) noexcept override { lines.emplace_back(text); }
};

TEST(LeakLog, NamesWhatIsOutWhenTheLastHandleGoes) {
  Lines log;
  std::optional<HostMemoryReservation> leaked;
  {
    HostReservationAwareResourceAdaptor adaptor{HostMemoryResource{}, 8192, {.log = &log}};
    leaked = adaptor.reserve(1024, {.label = "forgotten"});
    HostReservationAwareResourceAdaptor const copy{adaptor};
  }
  ASSERT_EQ(log.lines.size(), 1U);
  EXPECT_NE(log.lines[0].find("forgotten"), std::string::npos) << log.lines[0];
  EXPECT_NE(log.lines[0].find("1024"), std::string::npos) << log.lines[0];
  leaked.reset();
  EXPECT_EQ(log.lines.size(), 1U);
}

TEST(LeakLog, IsSilentWhenNothingIsOut) {
  Lines log;
  {
    HostReservationAwareResourceAdaptor adaptor{HostMemoryResource{}, 8192, {.log = &log}};
    allocate_and_free(adaptor.reserve(1024), 512);
  }
  EXPECT_TRUE(log.lines.empty());
}

// -- traces ----------------------------------------------------------------------------------------------------------

struct Traced {
  TraceKind kind;
  std::string label;
  std::int64_t bytes;
  friend bool operator==(Traced const&, Traced const&) = default;
  friend void PrintTo(Traced const& event, std::ostream* out) {
    *out << to_string(event.kind) << ' ' << event.label << ' ' << event.bytes;
  }
};

std::vector<Traced> traced(TraceRing const& ring) {
  std::vector<Traced> events;
  for (TraceEvent const& event : ring.read().events) {
    events.push_back({event.kind, std::string{ring.text(event.label)}, event.bytes});
  }
  return events;
}

class Tracing : public ::testing::Test {
 protected:
  testing::ManualClock clock;
  TraceRing ring{{.events = 256}};
  WatchedHost host{4096, {.clock = &clock, .trace = &ring}};
  HostReservationAwareResourceAdaptor& adaptor{host.adaptor};
};

TEST_F(Tracing, KeepsTheLifeOfAReservation) {
  {
    HostMemoryReservation reservation = adaptor.reserve(1000, {.label = "scan"});
    clock.advance(1ns);
    allocate_and_free(reservation, 100);
    reservation.grow(64);
    HostMemoryReservation part = reservation.split(512);
    reservation.merge(std::move(part));
    (void)reservation.shrink_to_fit();
    EXPECT_THROW((void)reservation.resource().allocate_sync(64, 64), ReservationExhausted);
    reservation.grow(128);
    reservation.close();
  }
  EXPECT_EQ(traced(ring), (std::vector<Traced>{
                              {TraceKind::Reserve, "scan", 1024},
                              {TraceKind::Allocate, "scan", 128},
                              {TraceKind::Free, "scan", 128},
                              {TraceKind::Grow, "scan", 64},
                              {TraceKind::Reserve, "scan", 512},
                              {TraceKind::Split, "scan", 512},
                              {TraceKind::Merge, "scan", 512},
                              {TraceKind::Shrink, "scan", 1088},
                              {TraceKind::Exhausted, "scan", 64},
                              {TraceKind::Grow, "scan", 128},
                              {TraceKind::Close, "scan", 128},
                          }));
  auto const events = ring.read().events;
  EXPECT_EQ(ring.text(events[0].source), "host");
  EXPECT_NE(events[0].id, 0U);
  EXPECT_EQ(events[1].id, events[0].id);
  EXPECT_EQ(events[1].time - events[0].time, 1ns);
}

TEST_F(Tracing, KeepsWaitsRefusalsLimitsPressureAndAborts) {
  Consumer query = adaptor.make_consumer("query");
  HostMemoryReservation all = adaptor.reserve(4096, {.label = "all"});
  EXPECT_FALSE(adaptor.try_reserve(64, {.label = "refused"}));
  Asked const served{adaptor, 512, {.label = "served"}};
  Asked const aborted{adaptor, 512, {.label = "aborted", .consumer = &query}};
  query.abort();
  adaptor.set_limit(4096 + 512);
  HostMemoryReservation const over = adaptor.reserve(64, {.label = "over", .overbooking = AllowOverbooking::YES});
  auto const events = traced(ring);
  auto const has = [&](Traced const& event) { return std::find(events.begin(), events.end(), event) != events.end(); };
  EXPECT_TRUE(has({TraceKind::Refuse, "refused", 64}));
  EXPECT_TRUE(has({TraceKind::Wait, "served", 512}));
  EXPECT_TRUE(has({TraceKind::Pressure, "", 512}));
  EXPECT_TRUE(has({TraceKind::GiveUp, "aborted", 512}));
  EXPECT_TRUE(has({TraceKind::Abort, "query", 0}));
  EXPECT_TRUE(has({TraceKind::Limit, "", 4608}));
  EXPECT_TRUE(has({TraceKind::Grant, "served", 512}));
  EXPECT_TRUE(has({TraceKind::Pressure, "", 0}));
  EXPECT_TRUE(has({TraceKind::Overbook, "over", 64}));
}

TEST_F(Tracing, KeepsUnreservedAllocationsWithoutAReservation) {
  adaptor.deallocate_sync(adaptor.allocate_sync(100, 64), 100, 64);
  EXPECT_EQ(traced(ring), (std::vector<Traced>{{TraceKind::Allocate, "", 128}, {TraceKind::Free, "", 128}}));
  EXPECT_EQ(ring.read().events[0].id, 0U);
}

TEST_F(Tracing, KeepsWhatPreallocatedReservationsDo) {
  HostMemoryReservation const arena = adaptor.reserve(1024, {.label = "arena", .backing = Backing::Preallocated});
  allocate_and_free(arena, 256);
  EXPECT_EQ(traced(ring), (std::vector<Traced>{{TraceKind::Reserve, "arena", 1024},
                                               {TraceKind::Allocate, "arena", 256},
                                               {TraceKind::Free, "arena", 256}}));
}

}  // namespace
}  // namespace earmark
