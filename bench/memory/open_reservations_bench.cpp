// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// M8: a million open reservations: what each needs, and what one more costs beside an adaptor that has none.
// M9: reserve + close where memory is scarce, so that every one of them goes through the one shared word, beside two
// atomic operations on a shared word.
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "earmark/core/bytes.hpp"
#include "earmark/core/resident_memory.hpp"
#include "earmark/memory/reservation_aware_resource_adaptor.hpp"
#include "measuring/race.hpp"
#include "measuring/report.hpp"
#include "memory/upstreams.hpp"

namespace earmark::bench {
namespace {

using measuring::Race;
using measuring::Report;

constexpr int million = 1'000'000;
constexpr std::size_t plenty = std::size_t{1} << 50;

void enter_reserves(Race& race, char const* name, ReservationAwareResourceAdaptor adaptor, std::size_t bytes) {
  race.enter(name, [adaptor, bytes](int, std::int64_t times) mutable {
    for (std::int64_t i = 0; i < times; ++i) {
      MemoryReservation reservation = adaptor.reserve(bytes);
      reservation.close();
    }
  });
}

void a_million(Report& report) {
  ReservationAwareResourceAdaptor empty{NoUpstream{}, plenty};
  ReservationAwareResourceAdaptor full{NoUpstream{}, plenty};
  std::vector<MemoryReservation> open(million);  // the handles are their owner's, and touched by now
  empty.reserve(1_KiB).close();                  // nor is the program itself counted, once it is in memory
  ProcResidentMemory resident;
  std::int64_t const before = resident.current_bytes();
  for (MemoryReservation& one : open) { one = full.reserve(1_KiB); }
  double const each = static_cast<double>(resident.current_bytes() - before) / million;
  report.print({.row = "M8",
                .what = "resident bytes of an open reservation, a million of them",
                .unit = "B",
                .value = each,
                .figure_case = "bytes each",
                .ceiling = 128.0});
  Race race{1, report.race()};
  enter_reserves(race, "none", empty, 1_KiB);
  enter_reserves(race, "a million", full, 1_KiB);
  auto const costs = race.run();
  report.print({.row = "M8",
                .what = "reserve + close beside a million open reservations",
                .unit = "ns",
                .value = costs.at("a million").median,
                .figure_case = "reserve + close",
                .peer = {{"beside none", costs.at("none").median}},
                .spread = costs.at("a million")});
}

void near_the_limit(Report& report, int threads) {
  // Just enough for every thread at once, which is far less than half of the limit: nothing is kept at hand for cores.
  ReservationAwareResourceAdaptor adaptor{NoUpstream{}, 1_GiB};
  MemoryReservation const most = adaptor.reserve(1_GiB - static_cast<std::size_t>(threads) * 1_MiB);
  struct alignas(128) Word {
    std::atomic<std::int64_t> bytes{0};
  };
  auto const word = std::make_shared<Word>();
  Race race{threads, report.race()};
  enter_reserves(race, "ours", adaptor, 1_MiB);
  race.enter("two atomic operations", [word](int, std::int64_t times) {
    for (std::int64_t i = 0; i < times; ++i) {
      word->bytes.fetch_add(1 << 20);
      word->bytes.fetch_sub(1 << 20);
    }
  });
  auto const costs = race.run();
  report.print({.row = "M9",
                .what = "reserve + close near the limit",
                .unit = "ns",
                .value = costs.at("ours").median,
                .figure_case = measuring::threads_case(threads),
                .peer = {{"two shared atomic operations", costs.at("two atomic operations").median}},
                .spread = costs.at("ours")});
}

}  // namespace
}  // namespace earmark::bench

int main(int argc, char** argv) {
  using namespace earmark;
  measuring::Report report{argc, argv};
  if (report.wants("M8")) { bench::a_million(report); }
  if (!report.wants("M9")) { return 0; }
  for (int const threads : measuring::thread_counts()) { bench::near_the_limit(report, threads); }
  for (int const threads : measuring::thread_counts_without_cores()) {
    report.print_skipped("M9", "cores", measuring::threads_case(threads));
  }
}
