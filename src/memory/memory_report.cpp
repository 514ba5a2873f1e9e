// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/memory/memory_report.hpp"

#include <algorithm>
#include <functional>
#include <iterator>

#include "earmark/core/bytes.hpp"
#include "earmark/memory/budget.hpp"
#include "earmark/memory/errors.hpp"
#include "memory/text_table.hpp"

namespace earmark {
namespace {

using detail::bytes_text;
using detail::TextTable;

constexpr std::size_t most_rows = 10;

std::string named(std::string const& label) { return label.empty() ? "(no label)" : label; }
std::string quoted(std::string const& label) { return label.empty() ? "(no label)" : "'" + label + "'"; }

// Returns: copies of the entries, largest first; equals keep their order.
template <class T>
std::vector<T> largest_first(std::vector<T> entries, std::int64_t T::* size) {
  std::stable_sort(entries.begin(), entries.end(), [&](T const& a, T const& b) { return a.*size > b.*size; });
  return entries;
}

template <class T>
std::int64_t sum_of(std::span<T const> entries, std::int64_t T::* member) {
  std::int64_t sum = 0;
  for (T const& entry : entries) { sum += entry.*member; }
  return sum;
}

// Returns: nothing where there is no whole, or none that is bounded.
std::string percent(std::int64_t part, std::int64_t whole) {
  if (whole <= 0 || whole >= Budget::max_bytes) { return ""; }
  return std::to_string(
             static_cast<std::int64_t>(static_cast<double>(part) * 100.0 / static_cast<double>(whole) + 0.5)) +
         " %";
}

std::string headline(MemoryReport const& report) {
  std::string text = report.tier.empty() ? "memory" : report.tier + " memory";
  if (report.failed) {
    switch (report.failed->cause) {
      case FailureCause::LimitReached: return text + ": limit reached";
      case FailureCause::NeverFits: return text + ": request above the limit";
      case FailureCause::ReservationExhausted: return text + ": reservation exhausted";
      case FailureCause::Fragmented: return text + ": reservation fragmented";
      case FailureCause::UpstreamOutOfMemory: return text + ": upstream out of memory";
    }
  }
  if (report.available < 0) { return text + ": above its limit"; }
  if (!report.waiting.empty()) { return text + ": requests are waiting"; }
  return text;
}

std::string totals_of(MemoryReport const& report) {
  TextTable table{{TextTable::Left, TextTable::Right, TextTable::Right}};
  auto const row = [&](char const* name, std::int64_t bytes, std::string share = {}) {
    table.add({name, bytes_text(bytes), std::move(share)});
  };
  bool const is_bounded = report.limit < Budget::max_bytes;
  table.add({"limit", is_bounded ? bytes_text(report.limit) : "none", ""});
  row("committed", report.committed, percent(report.committed, report.limit));
  row("live", report.live, percent(report.live, report.limit));
  if (is_bounded) { row("available", report.available); }
  row("peak committed", report.peak_committed, percent(report.peak_committed, report.limit));
  if (report.spillable != 0) { row("spillable", report.spillable); }
  if (report.largest_hole) { row("largest hole", *report.largest_hole); }
  if (report.pressure != 0) { row("missing to the queue's head", report.pressure); }
  if (report.failed) {
    row("requested", report.failed->requested);
    row("short", report.failed->shortfall);
    if (report.failed->cause == FailureCause::Fragmented) { row("largest hole for it", report.failed->largest_hole); }
  }
  return table.to_text();
}

// Appends a heading and the rows of the first entries, and says how many more there are.
template <class T>
void append_section(std::string& text, char const* heading, TextTable table, std::vector<T> const& entries,
                    std::function<std::vector<std::string>(T const&)> const& row_of) {
  if (entries.empty()) { return; }
  std::size_t const shown = std::min(entries.size(), most_rows);
  for (std::size_t i = 0; i < shown; ++i) { table.add(row_of(entries[i])); }
  text.append("\n").append(heading).append("\n").append(table.to_text());
  if (shown < entries.size()) { text.append("  and " + std::to_string(entries.size() - shown) + " more\n"); }
}

void append_labels(std::string& text, MemoryReport const& report) {
  auto const labels = largest_first(report.labels, &LabelCounters::granted);
  TextTable held{{TextTable::Left, TextTable::Right, TextTable::Right, TextTable::Right, TextTable::Right}};
  held.add({"label", "granted", "of limit", "live", "peak of one"});
  append_section<LabelCounters>(text, "held, by label", std::move(held), labels, [&](LabelCounters const& label) {
    return std::vector<std::string>{named(label.label), bytes_text(label.granted), percent(label.granted, report.limit),
                                    bytes_text(label.live), bytes_text(label.peak)};
  });
  TextTable done{{TextTable::Left, TextTable::Right, TextTable::Right, TextTable::Right, TextTable::Right,
                  TextTable::Right, TextTable::Right}};
  done.add({"label", "reservations", "refused", "waits", "waited", "allocations", "allocated"});
  append_section<LabelCounters>(text, "so far, by label", std::move(done), labels, [](LabelCounters const& label) {
    return std::vector<std::string>{named(label.label),
                                    std::to_string(label.reserved_total),
                                    std::to_string(label.refusals),
                                    std::to_string(label.waits),
                                    detail::format_duration(label.waited),
                                    std::to_string(label.allocation_count),
                                    bytes_text(label.total_allocated)};
  });
}

char const* state_of(OutstandingReservation const& reservation) {
  return reservation.state == OutstandingReservation::State::Closed ? "closed" : "open";
}

void append_reservations(std::string& text, MemoryReport const& report) {
  TextTable table{{TextTable::Left, TextTable::Right, TextTable::Right, TextTable::Left}};
  table.add({"reservation", "granted", "live", "state"});
  append_section<OutstandingReservation>(
      text, "largest reservations", std::move(table),
      largest_first(report.reservations, &OutstandingReservation::granted), [](OutstandingReservation const& r) {
        return std::vector<std::string>{named(r.label), bytes_text(r.granted), bytes_text(r.live), state_of(r)};
      });
}

void append_waiting(std::string& text, MemoryReport const& report) {
  TextTable table{
      {TextTable::Left, TextTable::Right, TextTable::Right, TextTable::Right, TextTable::Right, TextTable::Right}};
  table.add({"request", "bytes", "priority", "net memory delta", "overtaken", "waited"});
  append_section<WaitingRequest>(text, "waiting, next first", std::move(table), report.waiting,
                                 [](WaitingRequest const& request) {
                                   return std::vector<std::string>{named(request.label),
                                                                   bytes_text(request.bytes),
                                                                   std::to_string(request.priority),
                                                                   bytes_text(request.net_memory_delta),
                                                                   std::to_string(request.overtaken),
                                                                   detail::format_duration(request.waited)};
                                 });
}

void append_consumers(std::string& text, MemoryReport const& report) {
  TextTable table{{TextTable::Left, TextTable::Right, TextTable::Right, TextTable::Right}};
  table.add({"consumer", "used", "of quota", "quota"});
  append_section<ConsumerUsage>(text, "quotas", std::move(table), largest_first(report.consumers, &ConsumerUsage::used),
                                [](ConsumerUsage const& consumer) {
                                  return std::vector<std::string>{named(consumer.name), bytes_text(consumer.used),
                                                                  percent(consumer.used, consumer.quota),
                                                                  bytes_text(consumer.quota)};
                                });
}

// The rules of `MemoryReport::advice`.
class Adviser {
 public:
  explicit Adviser(MemoryReport const& report) : report_(report) {}

  std::vector<std::string> advise() && {
    bool const tight = report_.failed || !report_.waiting.empty() || report_.available < 0;
    if (!tight) { return {}; }
    if (report_.failed) { explain(*report_.failed); }
    explain_deficit();
    explain_impossible();
    explain_quotas();
    if (is_about_the_limit()) {
      name_main_holder();
      name_unspent();
      name_orphans();
      if (report_.spillable > 0) { say(bytes_text(report_.spillable) + " can be spilled"); }
    }
    return std::move(lines_);
  }

 private:
  void say(std::string line) { lines_.push_back(std::move(line)); }

  [[nodiscard]] std::string setting() const {
    if (report_.failed && !report_.failed->setting.empty()) { return report_.failed->setting; }
    return report_.setting.empty() ? "the limit" : report_.setting;
  }

  // Whether more available bytes would help.
  [[nodiscard]] bool is_about_the_limit() const {
    return !report_.failed || report_.failed->cause == FailureCause::LimitReached ||
           report_.failed->cause == FailureCause::NeverFits;
  }

  // Bytes whose return would satisfy somebody.
  [[nodiscard]] std::int64_t missing() const {
    return std::max({report_.failed ? report_.failed->shortfall : 0, report_.pressure, -report_.available});
  }

  void explain(FailedRequest const& failed) {
    switch (failed.cause) {
      case FailureCause::LimitReached:
        return say("raise " + setting() + " by " + bytes_text(failed.shortfall) + ", or have as much given back");
      case FailureCause::NeverFits:
        return say("no waiting helps: raise " + setting() + " to " + bytes_text(failed.requested) +
                   ", or ask for less");
      case FailureCause::ReservationExhausted:
        return say("reserve " + bytes_text(failed.shortfall) +
                   " more, or let the reservation grow (ExhaustedPolicy::GrowOrRefuse)");
      case FailureCause::Fragmented:
        return say("enough is left in the reservation, but its largest hole has " + bytes_text(failed.largest_hole) +
                   ": allocate in fewer different sizes, reserve more, or allow FallbackPolicy::Upstream");
      case FailureCause::UpstreamOutOfMemory:
        return say(
            "the limit was not reached: somebody else uses the same memory, or the upstream is fragmented; lower " +
            setting() + " to what the upstream really has");
    }
  }

  void explain_deficit() {
    if (report_.available >= 0) { return; }
    say("overbooked by " + bytes_text(-report_.available) + ": nothing is granted before as much came back");
  }

  void explain_impossible() {
    for (WaitingRequest const& request : report_.waiting) {
      if (request.bytes <= report_.limit) { continue; }
      say(quoted(request.label) + " waits for " + bytes_text(request.bytes) + ", more than the limit: raise " +
          setting() + " to that, or ask for less");
    }
  }

  void explain_quotas() {
    for (ConsumerUsage const& consumer : report_.consumers) {
      bool const is_nearly_used = consumer.used >= consumer.quota - consumer.quota / 10;
      if (!is_nearly_used) { continue; }
      say("consumer " + quoted(consumer.name) + " has used " + bytes_text(consumer.used) + " of its quota of " +
          bytes_text(consumer.quota) + ": its requests wait for its own reservations, or for a larger quota");
    }
  }

  void name_main_holder() {
    auto const labels = largest_first(report_.labels, &LabelCounters::granted);
    if (labels.empty() || labels[0].granted == 0 || labels[0].granted < report_.committed - labels[0].granted) {
      return;
    }
    say(quoted(labels[0].label) + " holds " + percent(labels[0].granted, report_.committed) +
        " of what is committed (" + bytes_text(labels[0].granted) + ")");
  }

  void name_unspent() {
    std::vector<OutstandingReservation> open;
    std::copy_if(report_.reservations.begin(), report_.reservations.end(), std::back_inserter(open),
                 [](auto const& r) { return r.state == OutstandingReservation::State::Open && r.granted > r.live; });
    auto const unspent = [](OutstandingReservation const& r) { return r.granted - r.live; };
    auto const most = std::max_element(open.begin(), open.end(),
                                       [&](auto const& a, auto const& b) { return unspent(a) < unspent(b); });
    std::int64_t sum = 0;
    for (auto const& reservation : open) { sum += unspent(reservation); }
    if (most == open.end() || sum < missing()) { return; }
    say(bytes_text(sum) + " are set aside and not allocated, most of it by " + quoted(most->label) + " (" +
        bytes_text(unspent(*most)) + "): reserve less, or shrink_to_fit() when the need is known");
  }

  void name_orphans() {
    std::vector<OutstandingReservation> closed;
    std::copy_if(report_.reservations.begin(), report_.reservations.end(), std::back_inserter(closed),
                 [](auto const& r) { return r.state == OutstandingReservation::State::Closed; });
    std::int64_t const sum = sum_of<OutstandingReservation>(closed, &OutstandingReservation::live);
    if (closed.empty() || sum < missing()) { return; }
    auto const largest = largest_first(closed, &OutstandingReservation::live)[0];
    say(bytes_text(sum) + " are live in buffers whose reservation is closed, most of it of " + quoted(largest.label) +
        " (" + bytes_text(largest.live) + ")");
  }

  MemoryReport const& report_;
  std::vector<std::string> lines_;
};

std::string indented(std::string const& text, std::string_view indent) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t const end = std::min(text.find('\n', at), text.size() - 1);
    result.append(indent).append(text, at, end - at + 1);
    at = end + 1;
  }
  return result;
}

}  // namespace

FailedRequest failed_request(EarmarkError const& error) {
  ErrorFields const& fields = error.fields();
  FailedRequest failed{.requested = fields.requested,
                       .shortfall = fields.shortfall,
                       .largest_hole = fields.largest_hole,
                       .setting = std::string{fields.setting.view()}};
  if (dynamic_cast<ImpossibleRequest const*>(&error) != nullptr) {
    failed.cause = FailureCause::NeverFits;
  } else if (dynamic_cast<UpstreamOutOfMemory const*>(&error) != nullptr) {
    failed.cause = FailureCause::UpstreamOutOfMemory;
  } else if (dynamic_cast<ReservationExhausted const*>(&error) != nullptr) {
    failed.cause = fields.largest_hole > 0 ? FailureCause::Fragmented : FailureCause::ReservationExhausted;
  }
  return failed;
}

std::vector<std::string> MemoryReport::advice() const { return Adviser{*this}.advise(); }

std::string MemoryReport::to_text() const {
  std::string text = headline(*this) + "\n" + totals_of(*this);
  if (auto const lines = advice(); !lines.empty()) {
    text += "\nwhat to change\n";
    for (std::string const& line : lines) { text += "  - " + line + "\n"; }
  }
  append_waiting(text, *this);
  append_labels(text, *this);
  append_reservations(text, *this);
  append_consumers(text, *this);
  return text;
}

std::string leak_text(std::string_view tier, std::span<OutstandingReservation const> outstanding) {
  if (outstanding.empty()) { return {}; }
  std::string text{tier};
  text += tier.empty() ? "" : " ";
  text += "memory: " + std::to_string(outstanding.size());
  text += outstanding.size() == 1 ? " reservation still holds " : " reservations still hold ";
  text += bytes_text(sum_of(outstanding, &OutstandingReservation::granted));
  std::vector<OutstandingReservation> const copies(outstanding.begin(), outstanding.end());
  for (OutstandingReservation const& reservation : largest_first(copies, &OutstandingReservation::granted)) {
    text += "\n  " + named(reservation.label) + ": granted " + bytes_text(reservation.granted) + ", live " +
            bytes_text(reservation.live) + ", " + state_of(reservation);
    if (!reservation.reserved_at || reservation.reserved_at->empty()) { continue; }
    std::string frames = indented(reservation.reserved_at->to_text(), "      ");
    frames.pop_back();
    text += ", reserved at\n" + frames;
  }
  return text;
}

}  // namespace earmark
