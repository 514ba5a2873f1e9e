// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// How `BasicBudget` decides a take: a root by its cores' slack and its word, a consumer or a nested one together with
// what it stands on. Internal; include basic_budget.hpp.
#pragma once

#include <atomic>
#include <cstdint>

#include "earmark/memory/basic_budget.hpp"

namespace earmark::detail {

template <class Atomics>
Taken BasicBudget<Atomics>::take_quietly(std::int64_t bytes, Pass pass) noexcept {
  if (bytes == 0) { return {Take::Ok, Account::available()}; }  // nothing is always there, even in a deficit
  if (parent_ == nullptr && lender_ == nullptr) [[likely]] { return take_from_root(bytes, pass); }
  if (parent_ != nullptr) {
    return take_within(bytes, Take::QuotaShort, [&] { return parent_->take_quietly(bytes, pass); });
  }
  if (pass == Pass::No && somebody_waits()) { return {Take::Queue, Account::available()}; }
  return take_within(bytes, Take::Short, [&] { return lender_->take(bytes); });
}

template <class Atomics>
Taken BasicBudget<Atomics>::take_anyway_quietly(std::int64_t bytes) noexcept {
  if (parent_ == nullptr && lender_ == nullptr) {
    Lock lock{word_mutex_};
    freeze();  // what cores have at hand is no deficit
    return note(Account::take_anyway(bytes));
  }
  Lock lock{charge_mutex_};
  Taken const theirs = parent_ != nullptr ? parent_->take_anyway_quietly(bytes) : lender_->take_anyway(bytes);
  if (theirs.result != Take::Ok) { return theirs; }
  Taken const mine = note(Account::take_anyway(bytes));
  return parent_ != nullptr ? theirs : mine;
}

template <class Atomics>
Taken BasicBudget<Atomics>::take_up_to_quietly(std::int64_t bytes, std::int64_t at_least, std::int64_t granule,
                                               std::int64_t& taken) noexcept {
  if (parent_ != nullptr) {
    return take_up_to_within(bytes, at_least, granule, taken, Take::QuotaShort, [&](std::int64_t quota) {
      return parent_->take_up_to_quietly(quota, at_least, granule, taken);
    });
  }
  if (somebody_waits()) { return {Take::Queue, Account::available()}; }
  if (lender_ != nullptr) {
    return take_up_to_within(bytes, at_least, granule, taken, Take::Short,
                             [&](std::int64_t quota) { return lender_->take_up_to(quota, at_least, granule, taken); });
  }
  Lock lock{word_mutex_};
  freeze();
  return note(Account::take_up_to(bytes, at_least, granule, taken));
}

template <class Atomics>
Taken BasicBudget<Atomics>::take_from_root(std::int64_t bytes, Pass pass) noexcept {
  std::uint32_t const epoch = slack_.epoch();
  if (Slack::thawed(epoch) && slack_.take(bytes)) { return {Take::Ok, 0}; }
  return take_past_slack(epoch, bytes, pass);
}

template <class Atomics>
Taken BasicBudget<Atomics>::take_past_slack(std::uint32_t epoch, std::int64_t bytes, Pass pass) noexcept {
  Taken const taken = take_from_word(bytes, pass);
  if (taken.result == Take::Short && !(Slack::frozen(epoch) && slack_.epoch() == epoch)) {
    Lock lock{word_mutex_};
    freeze();
    return note(take_from_word(bytes, pass));
  }
  if (taken.contended) { thaw_if_plentiful(taken.available); }
  return note_since(epoch, taken);
}

template <class Atomics>
Taken BasicBudget<Atomics>::take_from_word(std::int64_t bytes, Pass pass) noexcept {
  Taken const taken = Account::try_take(bytes, pass);
  // The bit is set for those who stand on this budget, too; nobody waits for them.
  if (taken.result == Take::Queue && !somebody_waits()) { return Account::try_take(bytes); }
  return taken;
}

template <class Atomics>
template <class TakeTheirs>
Taken BasicBudget<Atomics>::take_within(std::int64_t bytes, Take when_short, TakeTheirs const& take_theirs) noexcept {
  Lock lock{charge_mutex_};
  Taken mine = Account::try_take(bytes);
  if (mine.result != Take::Ok) {
    mine.result = mine.result == Take::Short ? when_short : mine.result;
    if (lender_ != nullptr && lender_->account().closed()) { mine.result = Take::Closed; }  // it never gets better
    return mine;
  }
  Taken const theirs = take_theirs();
  if (theirs.result == Take::Ok) {
    note(mine);
    return parent_ != nullptr ? theirs : mine;
  }
  Account::adjust(bytes);
  return theirs;
}

template <class Atomics>
template <class TakeTheirs>
Taken BasicBudget<Atomics>::take_up_to_within(std::int64_t bytes, std::int64_t at_least, std::int64_t granule,
                                              std::int64_t& taken, Take when_short,
                                              TakeTheirs const& take_theirs) noexcept {
  Lock lock{charge_mutex_};
  Taken mine = Account::take_up_to(bytes, at_least, granule, taken);
  if (mine.result != Take::Ok) {
    mine.result = mine.result == Take::Short ? when_short : mine.result;
    return mine;
  }
  std::int64_t const quota = taken;
  Taken const theirs = take_theirs(quota);
  std::int64_t const unused = theirs.result == Take::Ok ? quota - taken : quota;
  Account::adjust(unused);
  if (theirs.result != Take::Ok) { return theirs; }
  Taken const both = note({Take::Ok, mine.available + unused});
  return parent_ != nullptr ? theirs : both;
}

template <class Atomics>
Taken BasicBudget<Atomics>::note_since(std::uint32_t epoch, Taken const& taken) noexcept {
  if (taken.result != Take::Ok) { return taken; }
  std::int64_t const committed = limit() - taken.available;
  if (!Slack::changing(epoch) && slack_.epoch() == epoch) [[likely]] {
    raise(peak_, committed);
  } else {  // that may have been a new limit and an old word
    Lock lock{word_mutex_};
    raise(peak_, limit() - Account::available());
  }
  return taken;
}

}  // namespace earmark::detail
