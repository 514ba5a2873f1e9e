// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// M7: a request for the whole limit waits while small ones keep coming, each of which is ordered before it. In which
// place it is served: next after the ageing bound; by the rule "the smallest that fits first", never.
#include <cstdint>
#include <deque>
#include <set>
#include <string>
#include <utility>

#include "earmark/core/bytes.hpp"
#include "earmark/memory/reservation_aware_resource_adaptor.hpp"
#include "measuring/report.hpp"
#include "memory/upstreams.hpp"

namespace earmark::bench {
namespace {

constexpr int stream = 10'000;  // small requests
constexpr std::size_t small = 1_MiB;
constexpr std::size_t whole = 16 * small;

// Each step a small request comes, and the oldest small reservation goes. Returns: how many small requests that came
// after the large one were served before it; `stream` if it never was.
int served_before(WaitOptions const& small_ones) {
  ReservationAwareResourceAdaptor adaptor{NoUpstream{}, whole};
  std::deque<MemoryReservation> held;
  for (std::size_t i = 0; i < whole / small; ++i) { held.push_back(adaptor.reserve(small)); }
  bool large_served = false;
  int before = 0;
  adaptor.async_reserve(whole, [&](ReservationResult<MemoryReservation> const&) { large_served = true; });
  for (int step = 0; step < stream && !large_served; ++step) {
    adaptor.async_reserve(
        small,
        [&](ReservationResult<MemoryReservation> result) {
          if (!result) { return; }
          before += large_served ? 0 : 1;
          held.push_back(result.take());
        },
        {}, small_ones);
    if (!held.empty()) { held.pop_front(); }
  }
  int const result = large_served ? before : stream;
  adaptor.shutdown();
  return result;
}

// The same by the peer's rule: of those that fit, the smallest, and the oldest of these.
int served_before_by_smallest_first() {
  std::set<std::pair<std::size_t, int>> waiting{{whole, -1}};  // size, arrival
  std::size_t available = 0;
  std::size_t held = whole / small;
  int before = 0;
  for (int step = 0; step < stream; ++step) {
    waiting.emplace(small, step);
    if (held != 0) {
      --held;
      available += small;
    }
    while (!waiting.empty() && waiting.begin()->first <= available) {
      if (waiting.begin()->second < 0) { return before; }
      available -= waiting.begin()->first;
      waiting.erase(waiting.begin());
      ++held;
      ++before;
    }
  }
  return before;
}

void fairness(measuring::Report& report) {
  WaitOptions urgent;
  urgent.priority = 1;
  WaitOptions freeing;
  freeing.net_memory_delta = -static_cast<std::int64_t>(small);
  std::pair<char const*, WaitOptions> const cases[] = {{"small ones of the same rank", {}},
                                                       {"small ones of higher priority", urgent},
                                                       {"small ones that free", freeing}};
  double const bound = AdaptorOptions{}.overtakes_allowed;
  for (auto const& [name, wait] : cases) {
    report.print({.row = "M7",
                  .what = "place in which the largest request is served (ceiling: by the ageing bound)",
                  .unit = "",
                  .value = static_cast<double>(served_before(wait) + 1),
                  .figure_case = name,
                  .peer = {{"smallest first: not in 10,000", static_cast<double>(served_before_by_smallest_first())}},
                  .ceiling = bound + 1});
  }
}

}  // namespace
}  // namespace earmark::bench

int main(int argc, char** argv) {
  earmark::measuring::Report report{argc, argv};
  if (report.wants("M7")) { earmark::bench::fairness(report); }
}
