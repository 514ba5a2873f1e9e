// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/memory/budget.hpp"

#include <algorithm>
#include <thread>

#include "earmark/memory/errors.hpp"
#include "earmark/memory/waiting.hpp"

namespace earmark {

Budget::Budget(std::size_t limit, Tracking tracking)
    : core_(clamp(limit), tracking == Tracking::Exact ? 0 : std::thread::hardware_concurrency(),
            AdaptorOptions{}.overtakes_allowed) {}

bool Budget::try_take(std::size_t bytes) noexcept {
  if (bytes > static_cast<std::size_t>(max_bytes)) { return false; }
  return core_.take(static_cast<std::int64_t>(bytes), detail::Pass::No).result == detail::Take::Ok;
}

bool Budget::take_anyway(std::size_t bytes) noexcept {
  if (bytes > static_cast<std::size_t>(max_bytes)) { return false; }
  return core_.take_anyway(static_cast<std::int64_t>(bytes)).result == detail::Take::Ok;
}

void Budget::take_blocking(std::size_t bytes, WaitOptions const& wait) {
  auto const fits = bytes <= static_cast<std::size_t>(max_bytes);
  auto const wanted = fits ? static_cast<std::int64_t>(bytes) : max_bytes;
  detail::Taken taken{detail::Take::Impossible};
  if (fits) { taken = detail::wait_blocking({wanted, core_}, wait, SteadyClock{}); }
  if (taken.result == detail::Take::Ok) { return; }
  auto const now = core_.read();
  ErrorFields fields;
  fields.limit = now.limit;
  fields.committed = now.committed;
  fields.requested = wanted;
  fields.shortfall = std::max<std::int64_t>(wanted - std::max<std::int64_t>(now.limit - now.committed, 0), 0);
  fields.setting.assign("the budget's limit");
  if (taken.result == detail::Take::Aborted) { throw ReservationAborted(fields); }
  if (taken.result == detail::Take::Impossible) { throw ImpossibleRequest(fields); }
  throw ReservationRefused(fields);
}

}  // namespace earmark
