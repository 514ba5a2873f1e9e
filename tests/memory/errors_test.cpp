// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/memory/errors.hpp"

#include <gtest/gtest.h>

#include <concepts>
#include <exception>
#include <new>
#include <rmm/device_buffer.hpp>
#include <string>
#include <string_view>

#include "memory/watched_adaptor.hpp"

namespace earmark {
namespace {

template <class Error>
concept is_out_of_memory =
    std::derived_from<Error, rmm::out_of_memory> && std::derived_from<Error, std::bad_alloc> &&
    std::derived_from<Error, EarmarkError> && std::is_convertible_v<Error const*, std::exception const*>;

static_assert(is_out_of_memory<ReservationRefused> && is_out_of_memory<ImpossibleRequest>);
static_assert(is_out_of_memory<ReservationExhausted> && is_out_of_memory<ReservationClosed>);
static_assert(is_out_of_memory<UpstreamOutOfMemory>);
static_assert(std::derived_from<ImpossibleRequest, ReservationRefused>);

// Runs `failing` and returns what it threw.
template <class Error, class Failing>
ErrorFields fields_of(Failing const& failing, std::string* text = nullptr) {
  try {
    failing();
  }
  catch (Error const& error) {
    if (text != nullptr) { *text = error.what(); }
    return error.fields();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

TEST(MemoryErrors, CarryTheNumbersOfARefusedReservation) {
  WatchedDevice device{4_KiB};
  MemoryReservation const scan = device.adaptor.reserve(1_KiB, {.label = "scan"});
  MemoryReservation const join = device.adaptor.reserve(2_KiB, {.label = "join"});
  rmm::device_buffer const live{256, default_stream(), scan};
  std::string text;
  ErrorFields const fields = fields_of<ReservationRefused>([&] { (void)device.adaptor.reserve(2_KiB); }, &text);
  EXPECT_EQ(fields.tier.view(), "device");
  EXPECT_EQ(fields.limit, 4096);
  EXPECT_EQ(fields.committed, 3072);
  EXPECT_EQ(fields.live, 256);
  EXPECT_EQ(fields.requested, 2048);
  EXPECT_EQ(fields.shortfall, 1024);
  EXPECT_EQ(fields.holders[0].label.view(), "join");
  EXPECT_EQ(fields.holders[0].granted_bytes, 2048);
  EXPECT_EQ(fields.holders[1].label.view(), "scan");
  EXPECT_EQ(fields.holders[1].granted_bytes, 1024);
  EXPECT_EQ(fields.holders[2].granted_bytes, 0);
  EXPECT_FALSE(fields.setting.empty());
  EXPECT_NE(text.find("join: 2048 B"), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with("requested 2048 B, short 1024 B, live 256 B, committed 3072 B, limit 4096 B")) << text;
}

TEST(MemoryErrors, CarryTheNumbersOfAnExhaustedReservation) {
  WatchedHost host{4_KiB};
  HostMemoryReservation reservation = host.adaptor.reserve(1_KiB, {.label = "sort"});
  auto resource = reservation.resource();
  void* const pointer = resource.allocate_sync(512, 64);
  ErrorFields const fields = fields_of<ReservationExhausted>([&] { (void)resource.allocate_sync(1000, 64); });
  resource.deallocate_sync(pointer, 512, 64);
  EXPECT_EQ(fields.tier.view(), "host");
  EXPECT_EQ(fields.requested, 1024);
  EXPECT_EQ(fields.shortfall, 512);
  EXPECT_EQ(fields.live, 512);
  EXPECT_EQ(fields.committed, 1024);
}

TEST(MemoryErrors, SayWhatWouldChangeTheOutcome) {
  WatchedDevice device{1_KiB};
  MemoryReservation fixed = device.adaptor.reserve(256);
  MemoryReservation growing = device.adaptor.reserve(256, {.exhausted = ExhaustedPolicy::GrowOrRefuse});
  auto const too_much = [](MemoryReservation const& from) { rmm::device_buffer{1_MiB, default_stream(), from}; };
  std::string_view const size = "the reservation's size, or ExhaustedPolicy::GrowOrRefuse";
  EXPECT_EQ(fields_of<ReservationExhausted>([&] { too_much(fixed); }).setting.view(), size);
  EXPECT_EQ(fields_of<ReservationExhausted>([&] { too_much(growing); }).setting.view(), "the adaptor's limit");
  EXPECT_EQ(fields_of<ImpossibleRequest>([&] { (void)device.adaptor.reserve(1_MiB); }).setting.view(),
            "the adaptor's limit");
  EXPECT_EQ(fields_of<ReservationRefused>([&] { (void)device.adaptor.reserve(1_KiB); }).setting.view(),
            "the adaptor's limit, or AllowOverbooking::YES");
}

TEST(MemoryErrors, OfANestedAdaptorNameTheReservationThatIsShort) {
  WatchedHost host{1_KiB};
  HostMemoryReservation const lender = host.adaptor.reserve(256);
  HostReservationAwareResourceAdaptor nested{lender, 1_KiB};
  HostMemoryReservation const held = nested.reserve(192);
  ErrorFields const refused = fields_of<ReservationRefused>([&] { (void)nested.reserve(128); });
  EXPECT_EQ(refused.setting.view(), "the reservation it stands on");
  EXPECT_EQ(refused.shortfall, 64);
  ErrorFields const exhausted = fields_of<ReservationExhausted>([&] { (void)nested.allocate_sync(128, 64); });
  EXPECT_EQ(exhausted.setting.view(), "the reservation it stands on");
  EXPECT_EQ(exhausted.shortfall, 64);
  nested.set_limit(192);
  ErrorFields const limited = fields_of<ReservationRefused>([&] { (void)nested.reserve(128); });
  EXPECT_EQ(limited.setting.view(), "the adaptor's limit, or AllowOverbooking::YES");
  EXPECT_EQ(limited.shortfall, 128);
}

TEST(MemoryErrors, CountWhatALenderCouldGrowBy) {
  WatchedHost host{1_KiB};
  HostMemoryReservation const lender = host.adaptor.reserve(256, {.exhausted = ExhaustedPolicy::GrowOrRefuse});
  HostMemoryReservation const other = host.adaptor.reserve(512);
  HostReservationAwareResourceAdaptor nested{lender, 2_KiB};
  ErrorFields const refused = fields_of<ReservationRefused>([&] { (void)nested.reserve(576); });
  EXPECT_EQ(refused.setting.view(), "the reservation it stands on");
  EXPECT_EQ(refused.shortfall, 64) << "256 are in it, and 256 in the adaptor that it came from";
  HostMemoryReservation growing = nested.reserve(64, {.exhausted = ExhaustedPolicy::GrowOrRefuse});
  ErrorFields const exhausted = fields_of<ReservationExhausted>([&] { (void)growing.resource().allocate_sync(1_KiB); });
  EXPECT_EQ(exhausted.setting.view(), "the reservation it stands on");
}

TEST(MemoryErrors, OfAConsumerSayHowMuchTheAdaptorIsShortOf) {
  WatchedHost host{1_KiB};
  Consumer const query = host.adaptor.make_consumer("query", 512);
  HostMemoryReservation const other = host.adaptor.reserve(832);
  ErrorFields const refused =
      fields_of<ReservationRefused>([&] { (void)host.adaptor.reserve(256, {.consumer = &query}); });
  EXPECT_EQ(refused.setting.view(), "the adaptor's limit, or AllowOverbooking::YES");
  EXPECT_EQ(refused.shortfall, 64);
}

TEST(MemoryErrors, NameTheCauseOfAnUpstreamFailure) {
  WatchedDevice device{1_MiB};
  MemoryReservation const reservation = device.adaptor.reserve(1_KiB);
  device.faults.fail_allocation(0, testing::Fails::Always);
  std::string text;
  ErrorFields const fields =
      fields_of<UpstreamOutOfMemory>([&] { rmm::device_buffer{512, default_stream(), reservation}; }, &text);
  EXPECT_NE(text.find("std::bad_alloc"), std::string::npos) << text;
  EXPECT_EQ(fields.requested, 512);
  EXPECT_EQ(fields.shortfall, 0) << "the ledger had it";
}

TEST(MemoryErrors, CanBeCaughtAsAnyOfTheirBases) {
  WatchedDevice device{1_KiB};
  auto const refused = [&] { (void)device.adaptor.reserve(1_MiB); };
  EXPECT_THROW(refused(), rmm::out_of_memory);
  EXPECT_THROW(refused(), rmm::bad_alloc);
  EXPECT_THROW(refused(), std::bad_alloc);
  EXPECT_THROW(refused(), std::exception);
  EXPECT_THROW(refused(), EarmarkError);
}

TEST(MemoryErrors, SurviveBeingCopied) {
  ErrorFields fields;
  fields.tier.assign("host");
  fields.requested = 7;
  ReservationExhausted const original{fields};
  ReservationExhausted const copy = original;
  EXPECT_STREQ(copy.what(), original.what());
  EXPECT_EQ(copy.fields().requested, 7);
}

TEST(MemoryErrors, EndInTheValuesHoweverLongTheNames) {
  ErrorFields fields;
  fields.tier.assign(std::string(20, 't'));
  for (Holder& holder : fields.holders) {
    holder.label.assign(std::string(60, 'x'));
    holder.granted_bytes = INT64_MAX;
  }
  fields.setting.assign(std::string(80, 'y'));
  fields.requested = fields.shortfall = fields.live = fields.committed = fields.limit = INT64_MIN;
  UpstreamOutOfMemory const error{fields, std::string(200, 'z')};
  EXPECT_TRUE(std::string_view{error.what()}.ends_with("limit -9223372036854775808 B")) << error.what();
}

}  // namespace
}  // namespace earmark
