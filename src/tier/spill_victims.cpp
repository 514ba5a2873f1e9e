// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "spill_victims.hpp"

#include <algorithm>
#include <iterator>
#include <tuple>

namespace earmark::detail {
namespace {

auto order_of(SpillCandidate const& candidate) noexcept {
  return std::tuple{candidate.rank.priority, candidate.just_restored, -candidate.rank.distance};
}

}  // namespace

std::vector<SpillCandidate> choose_victims(std::vector<SpillCandidate> candidates, std::int64_t bytes) {
  std::erase_if(candidates, [](SpillCandidate const& each) { return each.bytes <= 0; });
  std::stable_sort(candidates.begin(), candidates.end(), [](SpillCandidate const& a, SpillCandidate const& b) {
    return std::tuple_cat(order_of(a), std::tuple{a.bytes}) < std::tuple_cat(order_of(b), std::tuple{b.bytes});
  });
  std::vector<SpillCandidate> chosen;
  std::int64_t missing = bytes;
  for (auto group = candidates.begin(); group != candidates.end() && missing > 0;) {
    auto end = std::find_if(group, candidates.end(),
                            [&](SpillCandidate const& each) { return order_of(each) != order_of(*group); });
    auto const next = end;
    while (group != end && missing > 0) {
      auto pick = std::find_if(group, end, [&](SpillCandidate const& each) { return each.bytes >= missing; });
      if (pick == end) { pick = std::prev(end); }
      chosen.push_back(*pick);
      missing -= pick->bytes;
      std::rotate(pick, pick + 1, end);
      --end;
    }
    group = next;
  }
  return chosen;
}

}  // namespace earmark::detail
