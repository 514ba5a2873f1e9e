// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
//
// M1 to M4: what reservations cost, beside RMM's adaptors, RapidsMPF where this program is built with it, and the
// cheapest accounting there could be (one atomic a thread). A pair is allocate + deallocate of 1 KiB over an upstream
// that does nothing.
#include <cstdint>
#include <map>
#include <memory>
#include <rmm/mr/limiting_resource_adaptor.hpp>
#include <rmm/mr/statistics_resource_adaptor.hpp>
#include <rmm/mr/tracking_resource_adaptor.hpp>
#include <string>
#include <utility>
#include <vector>

#include "earmark/core/bytes.hpp"
#include "earmark/memory/reservation_aware_resource_adaptor.hpp"
#include "measuring/race.hpp"
#include "measuring/report.hpp"
#include "memory/rapidsmpf_peer.hpp"
#include "memory/upstreams.hpp"

namespace earmark::bench {
namespace {

using measuring::Cost;
using measuring::Race;
using measuring::Report;
using measuring::threads_case;
using Costs = std::map<std::string, Cost>;

constexpr char const* own = "own reservation";
constexpr char const* shared = "shared reservation";
constexpr char const* shared_and_split = "shared reservation, split";
constexpr char const* one_atomic = "one atomic per thread";
constexpr char const* limiting = "RMM limiting";
constexpr char const* reserve_and_close = "reserve + close";
constexpr std::size_t plenty = std::size_t{1} << 50;

// -- Pairs ------------------------------------------------------------------------------------------------------------

void enter_pairs(Race& race, char const* name, AnyResource resource) {
  race.enter(name, [resource = std::make_shared<AnyResource>(std::move(resource))](int thread, std::int64_t times) {
    allocate_and_free(*resource, stream_of(thread), times);
  });
}

// One resource a thread. Behind a pointer: a body is copied, a reservation is not.
template <class Resource>
void enter_own_pairs(Race& race, char const* name, std::shared_ptr<std::vector<Resource>> resources) {
  race.enter(name, [resources](int thread, std::int64_t times) {
    allocate_and_free((*resources)[static_cast<std::size_t>(thread)], stream_of(thread), times);
  });
}

void enter_reservations(Race& race, int threads) {
  ReservationAwareResourceAdaptor adaptor{NoUpstream{}, plenty};
  auto const owned = std::make_shared<std::vector<MemoryReservation>>();
  auto const parts = std::make_shared<std::vector<MemoryReservation>>();
  MemoryReservation whole = adaptor.reserve(16_MiB, {.label = "split"});
  for (int t = 0; t < threads; ++t) {
    owned->push_back(adaptor.reserve(1_MiB, {.label = "own"}));
    parts->push_back(whole.split(1_MiB));
  }
  enter_own_pairs(race, own, owned);
  enter_own_pairs(race, shared_and_split, parts);
  race.enter(shared,
             [reservation = std::make_shared<MemoryReservation>(adaptor.reserve(16_MiB, {.label = "shared"}))](
                 int thread, std::int64_t times) { allocate_and_free(*reservation, stream_of(thread), times); });
}

Costs pairs(int threads, measuring::RaceOptions options) {
  Race race{threads, options};
  enter_reservations(race, threads);
  auto const atomics = std::make_shared<std::vector<OneAtomic>>();
  for (int t = 0; t < threads; ++t) { atomics->emplace_back(AnyResource{NoUpstream{}}); }
  enter_own_pairs(race, one_atomic, atomics);
  enter_pairs(race, "bare upstream", NoUpstream{});
  enter_pairs(race, limiting, rmm::mr::limiting_resource_adaptor{NoUpstream{}, plenty});
  enter_pairs(race, "RMM statistics", rmm::mr::statistics_resource_adaptor{NoUpstream{}});
  enter_pairs(race, "RMM tracking", rmm::mr::tracking_resource_adaptor{NoUpstream{}, false});
  enter_rapidsmpf_pairs(race);
  return race.run();
}

// A line for each peer in the race.
void print_beside_peers(Report& report, measuring::Figure figure, Costs const& costs) {
  std::string const which = figure.figure_case;
  for (char const* const peer : {limiting, "RMM statistics", "RMM tracking", rapidsmpf_device_mr,
                                 rapidsmpf_reserve_stubbed, rapidsmpf_reserve}) {
    auto const found = costs.find(peer);
    if (found == costs.end()) { continue; }
    figure.figure_case = which + ", " + peer;
    figure.peer = {peer, found->second.median};
    report.print(figure);
  }
}

measuring::Figure figure_of(Costs const& costs, char const* contestant) {
  Cost const& cost = costs.at(contestant);
  return {.unit = "ns", .value = cost.median, .spread = cost};
}

void print_own(Report& report, int threads, Costs const& costs) {
  auto figure = figure_of(costs, own);
  figure.row = threads == 1 ? "M1" : "M2";
  figure.what = "pair inside an own reservation";
  figure.figure_case = threads_case(threads);
  figure.ceiling = costs.at(one_atomic).median;
  print_beside_peers(report, figure, costs);
}

void print_shared(Report& report, int threads, Costs const& costs) {
  for (char const* const contestant : {shared, shared_and_split}) {
    auto figure = figure_of(costs, contestant);
    figure.row = "M3";
    figure.what = contestant == shared ? "pair, all threads sharing one reservation" : "pair, one split off per thread";
    figure.figure_case = threads_case(threads) + (contestant == shared ? "" : ", split");
    figure.peer = {limiting, costs.at(limiting).median};
    report.print(figure);
  }
}

// How much dearer a pair is with many threads than with one.
void print_flatness(Report& report, int threads, double cost, double cost_of_one) {
  report.print({.row = "M2",
                .what = "pair inside an own reservation, many threads against one",
                .unit = "ns",
                .value = cost,
                .figure_case = threads_case(threads) + " against 1",
                .ceiling = cost_of_one});
}

void pairs_for_all_counts(Report& report) {
  double cost_of_one = 0;
  for (int const threads : measuring::thread_counts()) {
    bool const wanted =
        threads == 1 ? report.wants("M1") || report.wants("M2") : report.wants("M2") || report.wants("M3");
    if (!wanted) { continue; }
    Costs const costs = pairs(threads, report.race());
    if (threads == 1) { cost_of_one = costs.at(own).median; }
    if (report.wants(threads == 1 ? "M1" : "M2")) { print_own(report, threads, costs); }
    if (threads == 1) { continue; }
    if (report.wants("M2")) { print_flatness(report, threads, costs.at(own).median, cost_of_one); }
    if (report.wants("M3")) { print_shared(report, threads, costs); }
  }
}

// -- Reserve + close --------------------------------------------------------------------------------------------------

void reserves(Report& report, int threads) {
  Race race{threads, report.race()};
  ReservationAwareResourceAdaptor adaptor{NoUpstream{}, plenty};
  race.enter(reserve_and_close, [adaptor](int, std::int64_t times) mutable {
    for (std::int64_t i = 0; i < times; ++i) {
      MemoryReservation reservation = adaptor.reserve(1_MiB);
      reservation.close();
    }
  });
  enter_rapidsmpf_reserves(race);
  Costs const costs = race.run();
  auto figure = figure_of(costs, reserve_and_close);
  figure.row = "M4";
  figure.what = reserve_and_close;
  figure.figure_case = threads_case(threads);
  costs.size() == 1 ? report.print(figure) : print_beside_peers(report, figure, costs);
}

void skip_counts_without_cores(Report& report, char const* row) {
  if (!report.wants(row)) { return; }
  for (int const threads : measuring::thread_counts_without_cores()) {
    report.print_skipped(row, "cores", threads_case(threads));
  }
}

}  // namespace
}  // namespace earmark::bench

int main(int argc, char** argv) {
  using namespace earmark;
  measuring::Report report{argc, argv};
  bench::pairs_for_all_counts(report);
  if (report.wants("M4")) {
    for (int const threads : measuring::thread_counts()) { bench::reserves(report, threads); }
  }
  for (char const* const row : {"M2", "M3", "M4"}) { bench::skip_counts_without_cores(report, row); }
}
