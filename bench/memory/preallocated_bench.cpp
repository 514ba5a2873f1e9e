// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// M5: what a pair of allocate and free costs inside memory that was taken beforehand, each thread with its own: the
// last one freed again at once (1 KiB), and random sizes with 4,096 live. The addresses are made up and the marks never
// touch a device, so this is the cost of carving alone.
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "earmark/core/bytes.hpp"
#include "earmark/testing/manual_stream_events.hpp"
#include "measuring/race.hpp"
#include "measuring/report.hpp"
#include "memory/carved_resource.hpp"
#include "memory/random_sizes.hpp"
#include "memory/upstreams.hpp"

namespace earmark::bench {
namespace {

using measuring::Report;

constexpr char const* last_in_first_out = "pair in preallocated memory, last in first out";
constexpr char const* random_sizes = "pair in preallocated memory, random sizes";

std::string lock_alone(char const* what) { return std::string{what} + ", a lock alone"; }

std::span<std::byte> made_up_block(int thread) {
  auto const address = (std::uintptr_t{1} << 44) + (static_cast<std::uintptr_t>(thread) << 32);
  return {reinterpret_cast<std::byte*>(address), 1_GiB};
}

using Resources = std::shared_ptr<std::vector<AnyResource>>;

// A carved block a thread.
Resources blocks(int threads, StreamEvents& events) {
  auto all = std::make_shared<std::vector<AnyResource>>();
  for (int t = 0; t < threads; ++t) { all->emplace_back(CarvedResource{made_up_block(t), events}); }
  return all;
}
// What the program itself and a lock cost, without any carving.
Resources locks(int threads) {
  auto all = std::make_shared<std::vector<AnyResource>>();
  for (int t = 0; t < threads; ++t) { all->emplace_back(OneLock{}); }
  return all;
}

void enter_pairs(measuring::Race& race, std::string const& name, Resources const& own) {
  race.enter(name, [own](int thread, std::int64_t times) {
    allocate_and_free((*own)[static_cast<std::size_t>(thread)], stream_of(thread), times);
  });
}
void enter_random_sizes(measuring::Race& race, std::string const& name, Resources const& own) {
  auto const users = std::make_shared<std::vector<std::unique_ptr<RandomSizes>>>();
  for (int t = 0; AnyResource& mine : *own) { users->push_back(std::make_unique<RandomSizes>(mine, stream_of(t++))); }
  race.enter(
      name, [own, users](int thread, std::int64_t times) { (*users)[static_cast<std::size_t>(thread)]->pairs(times); });
}

// Beside a lock alone; and against the cost with one thread, which more threads should not raise.
void print_all_counts(Report& report) {
  std::map<std::string, double> of_one;
  for (int const threads : measuring::thread_counts()) {
    testing::ManualStreamEvents events;
    measuring::Race race{threads, report.race()};
    enter_pairs(race, last_in_first_out, blocks(threads, events));
    enter_pairs(race, lock_alone(last_in_first_out), locks(threads));
    enter_random_sizes(race, random_sizes, blocks(threads, events));
    enter_random_sizes(race, lock_alone(random_sizes), locks(threads));
    auto const costs = race.run();
    for (char const* const what : {last_in_first_out, random_sizes}) {
      measuring::Figure figure{.row = "M5",
                               .what = what,
                               .unit = "ns",
                               .value = costs.at(what).median,
                               .figure_case = measuring::threads_case(threads),
                               .peer = {{"a lock alone", costs.at(lock_alone(what)).median}},
                               .spread = costs.at(what)};
      if (threads == 1) {
        of_one[what] = figure.value;
      } else {
        figure.ceiling = of_one[what];
      }
      report.print(figure);
    }
  }
  for (int const threads : measuring::thread_counts_without_cores()) {
    report.print_skipped("M5", "cores", measuring::threads_case(threads));
  }
}

}  // namespace
}  // namespace earmark::bench

int main(int argc, char** argv) {
  earmark::measuring::Report report{argc, argv};
  if (report.wants("M5")) { earmark::bench::print_all_counts(report); }
}
