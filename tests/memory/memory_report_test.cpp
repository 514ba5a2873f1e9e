// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/memory/memory_report.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "earmark/memory/budget.hpp"
#include "earmark/memory/errors.hpp"
#include "memory/text_table.hpp"

namespace earmark {
namespace {

using namespace std::chrono_literals;
using State = OutstandingReservation::State;

constexpr std::int64_t mib = 1 << 20;

OutstandingReservation reservation(std::string label, std::int64_t granted, std::int64_t live,
                                   State state = State::Open) {
  OutstandingReservation result;
  result.label = std::move(label);
  result.granted = granted;
  result.live = live;
  result.state = state;
  return result;
}

MemoryReport host_of_8_mib() {
  MemoryReport report;
  report.tier = "host";
  report.limit = 8 * mib;
  return report;
}

std::string all(std::vector<std::string> const& lines) {
  std::string text;
  for (auto const& line : lines) { text += line + "\n"; }
  return text;
}

TEST(MemoryReport, OfAnUnusedAdaptorIsShort) {
  MemoryReport report = host_of_8_mib();
  report.available = 8 * mib;
  EXPECT_TRUE(report.advice().empty());
  EXPECT_EQ(report.to_text(), R"(host memory
  limit           8388608 B (8 MiB)
  committed                     0 B  0 %
  live                          0 B  0 %
  available       8388608 B (8 MiB)
  peak committed                0 B  0 %
)");
}

TEST(MemoryReport, ShowsHoldersWaitersAndQuotasInTablesThatLineUp) {
  MemoryReport report = host_of_8_mib();
  report.committed = 7 * mib;
  report.live = 5 * mib;
  report.available = mib;
  report.peak_committed = 8 * mib;
  report.pressure = mib;
  report.spillable = 512;
  report.largest_hole = 1536;
  report.setting = "--memory";
  report.labels = {{"join", mib, mib, mib, 3, 9, 10 * mib, 1, 1500us, 2},
                   {"scan", 6 * mib, 4 * mib, 3 * mib, 2, 5, 5 * mib, 0, 0ns, 0}};
  report.reservations = {reservation("join", mib, mib, State::Closed), reservation("scan", 4 * mib, 3 * mib),
                         reservation("", 2 * mib, mib)};
  report.waiting = {{"sort", 2 * mib, 5, -mib, 3, 12'345ms}};
  report.consumers = {{"query 7", 4 * mib, 4 * mib}, {"query 8", 4 * mib, mib}};
  EXPECT_EQ(report.to_text(), R"(host memory: requests are waiting
  limit                        8388608 B (8 MiB)
  committed                    7340032 B (7 MiB)   88 %
  live                         5242880 B (5 MiB)   63 %
  available                    1048576 B (1 MiB)
  peak committed               8388608 B (8 MiB)  100 %
  spillable                                512 B
  largest hole                  1536 B (1.5 KiB)
  missing to the queue's head  1048576 B (1 MiB)

what to change
  - consumer 'query 7' has used 4194304 B (4 MiB) of its quota of 4194304 B (4 MiB): its requests wait for its own reservations, or for a larger quota
  - 'scan' holds 86 % of what is committed (6291456 B (6 MiB))
  - 2097152 B (2 MiB) are set aside and not allocated, most of it by 'scan' (1048576 B (1 MiB)): reserve less, or shrink_to_fit() when the need is known
  - 1048576 B (1 MiB) are live in buffers whose reservation is closed, most of it of 'join' (1048576 B (1 MiB))
  - 512 B can be spilled

waiting, next first
  request              bytes  priority     net memory delta  overtaken   waited
  sort     2097152 B (2 MiB)         5  -1048576 B (-1 MiB)          3  12.34 s

held, by label
  label            granted  of limit               live        peak of one
  scan   6291456 B (6 MiB)      75 %  4194304 B (4 MiB)  3145728 B (3 MiB)
  join   1048576 B (1 MiB)      13 %  1048576 B (1 MiB)  1048576 B (1 MiB)

so far, by label
  label  reservations  refused  waits  waited  allocations            allocated
  scan              2        0      0     0 s            5    5242880 B (5 MiB)
  join              3        2      1  1.5 ms            9  10485760 B (10 MiB)

largest reservations
  reservation            granted               live  state
  scan         4194304 B (4 MiB)  3145728 B (3 MiB)  open
  (no label)   2097152 B (2 MiB)  1048576 B (1 MiB)  open
  join         1048576 B (1 MiB)  1048576 B (1 MiB)  closed

quotas
  consumer               used  of quota              quota
  query 7   4194304 B (4 MiB)     100 %  4194304 B (4 MiB)
  query 8   1048576 B (1 MiB)      25 %  4194304 B (4 MiB)
)");
}

TEST(MemoryReport, SaysWhereThereIsNoLimit) {
  MemoryReport report;
  report.tier = "disk";
  report.limit = Budget::max_bytes;
  report.committed = mib;
  report.available = Budget::max_bytes - mib;
  report.labels = {{.label = "spill", .granted = mib, .reserved_total = 1}};
  EXPECT_EQ(report.to_text(), R"(disk memory
  limit                        none
  committed       1048576 B (1 MiB)
  live                          0 B
  peak committed                0 B

held, by label
  label            granted  of limit  live  peak of one
  spill  1048576 B (1 MiB)             0 B          0 B

so far, by label
  label  reservations  refused  waits  waited  allocations  allocated
  spill             1        0      0     0 s            0        0 B
)");
}

TEST(MemoryReport, ShowsTheTenLargestAndCountsTheRest) {
  MemoryReport report = host_of_8_mib();
  for (int i = 0; i < 13; ++i) { report.reservations.push_back(reservation("r" + std::to_string(i), i + 1, 0)); }
  auto const text = report.to_text();
  EXPECT_NE(text.find("\n  r12             13 B   0 B  open\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\n  r3               4 B   0 B  open\n  and 3 more\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("  r2 "), std::string::npos) << text;
}

TEST(MemoryReport, LetsNoLabelBreakARow) {
  MemoryReport report = host_of_8_mib();
  report.reservations = {reservation("two\nlines\t\x7f", 1, 1), reservation("Größe", 2, 1)};
  auto const text = report.to_text();
  EXPECT_NE(text.find("  Größe            2 B   1 B  open\n  two?lines??      1 B   1 B  open\n"), std::string::npos)
      << text;
}

TEST(MemoryReport, SeparatesALimitThatIsReachedFromOneThatIsTooSmall) {
  MemoryReport report = host_of_8_mib();
  report.committed = 7 * mib;
  report.available = mib;
  report.setting = "--memory";
  report.failed = FailedRequest{.requested = 3 * mib, .shortfall = 2 * mib};
  EXPECT_EQ(report.to_text(), R"(host memory: limit reached
  limit           8388608 B (8 MiB)
  committed       7340032 B (7 MiB)  88 %
  live                          0 B   0 %
  available       1048576 B (1 MiB)
  peak committed                0 B   0 %
  requested       3145728 B (3 MiB)
  short           2097152 B (2 MiB)

what to change
  - raise --memory by 2097152 B (2 MiB), or have as much given back
)");
  report.failed->cause = FailureCause::NeverFits;
  report.failed->requested = 9 * mib;
  EXPECT_TRUE(report.to_text().starts_with("host memory: request above the limit\n"));
  EXPECT_EQ(all(report.advice()), "no waiting helps: raise --memory to 9437184 B (9 MiB), or ask for less\n");
}

TEST(MemoryReport, SeparatesAFragmentedReservationFromAnExhaustedOne) {
  MemoryReport report = host_of_8_mib();
  report.available = 8 * mib;
  report.labels = {{.label = "scan", .granted = mib}};
  report.failed = FailedRequest{.cause = FailureCause::ReservationExhausted, .requested = 100, .shortfall = 64};
  EXPECT_TRUE(report.to_text().starts_with("host memory: reservation exhausted\n"));
  EXPECT_EQ(all(report.advice()), "reserve 64 B more, or let the reservation grow (ExhaustedPolicy::GrowOrRefuse)\n");
  report.failed = FailedRequest{.cause = FailureCause::Fragmented, .requested = 4096, .largest_hole = 1024};
  auto const text = report.to_text();
  EXPECT_TRUE(text.starts_with("host memory: reservation fragmented\n")) << text;
  EXPECT_NE(text.find("  largest hole for it     1024 B (1 KiB)\n"), std::string::npos) << text;
  EXPECT_EQ(all(report.advice()),
            "enough is left in the reservation, but its largest hole has 1024 B (1 KiB): allocate in fewer different "
            "sizes, reserve more, or allow FallbackPolicy::Upstream\n");
}

TEST(MemoryReport, DoesNotBlameTheLimitWhenTheUpstreamIsOutOfMemory) {
  MemoryReport report = host_of_8_mib();
  report.available = 7 * mib;
  report.labels = {{.label = "scan", .granted = mib}};
  report.failed = FailedRequest{.cause = FailureCause::UpstreamOutOfMemory, .requested = mib};
  EXPECT_TRUE(report.to_text().starts_with("host memory: upstream out of memory\n"));
  EXPECT_EQ(all(report.advice()),
            "the limit was not reached: somebody else uses the same memory, or the upstream is fragmented; lower the "
            "limit to what the upstream really has\n");
}

TEST(MemoryReport, SaysByHowMuchItIsOverbooked) {
  MemoryReport report = host_of_8_mib();
  report.committed = 9 * mib;
  report.available = -mib;
  report.labels = {{.label = "scan", .granted = 5 * mib}, {.label = "join", .granted = 4 * mib}};
  EXPECT_TRUE(report.to_text().starts_with("host memory: above its limit\n"));
  EXPECT_EQ(all(report.advice()),
            "overbooked by 1048576 B (1 MiB): nothing is granted before as much came back\n"
            "'scan' holds 56 % of what is committed (5242880 B (5 MiB))\n");
}

TEST(MemoryReport, NamesWaitersThatCanNeverBeGranted) {
  MemoryReport report = host_of_8_mib();
  report.available = 8 * mib;
  report.pressure = mib;
  report.waiting = {{.label = "join", .bytes = 9 * mib}, {.label = "scan", .bytes = 8 * mib}};
  EXPECT_EQ(all(report.advice()),
            "'join' waits for 9437184 B (9 MiB), more than the limit: raise the limit to that, or ask for less\n");
}

TEST(MemoryReport, NamesNoHolderWhereNobodyHoldsMostOfIt) {
  MemoryReport report = host_of_8_mib();
  report.committed = 8 * mib;
  report.labels = {
      {.label = "a", .granted = 3 * mib}, {.label = "b", .granted = 3 * mib}, {.label = "c", .granted = 2 * mib}};
  report.waiting = {{.label = "d", .bytes = mib}};
  report.pressure = mib;
  EXPECT_TRUE(report.advice().empty());
}

TEST(MemoryReport, CallsUnspentBytesOutOnlyWhereTheyWouldHelp) {
  MemoryReport report = host_of_8_mib();
  report.committed = 8 * mib;
  report.reservations = {reservation("a", 4 * mib, 3 * mib), reservation("b", 4 * mib, 4 * mib)};
  report.failed = FailedRequest{.requested = 2 * mib, .shortfall = 2 * mib};
  EXPECT_EQ(report.advice().size(), 1U);
  report.failed->shortfall = mib;
  EXPECT_EQ(
      all(report.advice()),
      "raise the limit by 1048576 B (1 MiB), or have as much given back\n"
      "1048576 B (1 MiB) are set aside and not allocated, most of it by 'a' (1048576 B (1 MiB)): reserve less, or "
      "shrink_to_fit() when the need is known\n");
}

TEST(MemoryReport, StandsNumbersAtTheirEnds) {
  MemoryReport report;
  report.limit = INT64_MAX;
  report.committed = INT64_MAX;
  report.available = -INT64_MAX;
  report.labels = {{.label = "a", .granted = INT64_MAX, .waited = std::chrono::nanoseconds::max()}};
  report.waiting = {{.label = "b", .bytes = INT64_MAX, .net_memory_delta = INT64_MIN}};
  EXPECT_NE(report.to_text().find("9223372036.85 s"), std::string::npos);
  report.limit = 0;
  EXPECT_FALSE(report.to_text().empty());
}

TEST(FailedRequest, TakesItsCauseFromTheError) {
  ErrorFields fields;
  fields.requested = 4096;
  fields.shortfall = 1024;
  fields.setting = FixedText<63>{"--memory"};
  EXPECT_EQ(failed_request(ReservationRefused{fields}).cause, FailureCause::LimitReached);
  EXPECT_EQ(failed_request(ImpossibleRequest{fields}).cause, FailureCause::NeverFits);
  EXPECT_EQ(failed_request(ReservationExhausted{fields}).cause, FailureCause::ReservationExhausted);
  EXPECT_EQ((failed_request(UpstreamOutOfMemory{fields, "cause"}).cause), FailureCause::UpstreamOutOfMemory);
  auto const refused = failed_request(ReservationRefused{fields});
  EXPECT_EQ(refused.requested, 4096);
  EXPECT_EQ(refused.shortfall, 1024);
  EXPECT_EQ(refused.setting, "--memory");
  fields.largest_hole = 512;
  auto const fragmented = failed_request(ReservationExhausted{fields});
  EXPECT_EQ(fragmented.cause, FailureCause::Fragmented);
  EXPECT_EQ(fragmented.largest_hole, 512);
}

TEST(LeakText, IsEmptyWhenNothingIsOutstanding) { EXPECT_EQ(leak_text("host", {}), ""); }

TEST(LeakText, NamesEachReservationThatIsLeft) {
  std::vector const left{reservation("", 64, 64, State::Closed), reservation("scan", 2048, 1024)};
  EXPECT_EQ(leak_text("host", left),
            "host memory: 2 reservations still hold 2112 B (2.06 KiB)\n"
            "  scan: granted 2048 B (2 KiB), live 1024 B (1 KiB), open\n"
            "  (no label): granted 64 B, live 64 B, closed");
  EXPECT_EQ(leak_text("", std::span{left}.first(1)),
            "memory: 1 reservation still holds 64 B\n"
            "  (no label): granted 64 B, live 64 B, closed");
}

TEST(LeakText, SaysWhoMadeTheReservationWhereThatWasRecorded) {
  std::vector left{reservation("scan", 2048, 1024), reservation("join", 1024, 1024)};
  left[0].reserved_at = CallStack::capture();
  std::istringstream lines{leak_text("host", left)};
  std::string line;
  std::getline(lines, line);
  std::getline(lines, line);
  EXPECT_EQ(line, "  scan: granted 2048 B (2 KiB), live 1024 B (1 KiB), open, reserved at");
  std::getline(lines, line);
  EXPECT_TRUE(line.starts_with("       0: ")) << line;
  EXPECT_NE(line.find("SaysWhoMadeTheReservationWhereThatWasRecorded"), std::string::npos) << line;
  std::string last;
  while (std::getline(lines, line)) { last = line; }
  EXPECT_EQ(last, "  join: granted 1024 B (1 KiB), live 1024 B (1 KiB), open");
}

TEST(FormatDuration, UsesTheLargestUnitThatFits) {
  EXPECT_EQ(detail::format_duration(0ns), "0 s");
  EXPECT_EQ(detail::format_duration(-5ns), "0 s");
  EXPECT_EQ(detail::format_duration(999ns), "999 ns");
  EXPECT_EQ(detail::format_duration(1234ns), "1.23 us");
  EXPECT_EQ(detail::format_duration(1'500'000ns), "1.5 ms");
  EXPECT_EQ(detail::format_duration(90s), "90 s");
  EXPECT_EQ(detail::format_duration(1'050ms), "1.05 s");
}

}  // namespace
}  // namespace earmark
