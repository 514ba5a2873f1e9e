// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "earmark/memory/reservation_scope.hpp"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <rmm/mr/per_device_resource.hpp>
#include <utility>

#include "memory/owner_map.hpp"

namespace earmark {
namespace {

// Global by nature, as RMM's table of device resources is; see the header.
constinit thread_local ReservationScope const* innermost = nullptr;
std::atomic<int> installed_dispatchers{0};

// RMM's table of resources ends with the process, perhaps before a dispatcher in static storage does, and RMM's own
// flag for that may rise later still. An object made after the table ends before it.
std::atomic<bool> rmm_table_ended{false};
struct EndsBeforeRmmsTable {
  ~EndsBeforeRmmsTable() { rmm_table_ended.store(true, std::memory_order_relaxed); }
};

// No scope counts while one's reservation is being asked: what an upstream takes from the current device resource is
// not the caller's.
class NoScope {
 public:
  NoScope() noexcept : suspended_(std::exchange(innermost, nullptr)) {}
  ~NoScope() { innermost = suspended_; }
  NoScope(NoScope const&) = delete;
  NoScope& operator=(NoScope const&) = delete;

 private:
  ReservationScope const* suspended_;
};

[[noreturn]] void end_program(char const* message) noexcept {
  std::fprintf(stderr, "earmark: %s\n", message);
  std::abort();
}

}  // namespace

namespace detail {

class DispatchState {
 public:
  using Former = cuda::mr::any_resource<device_accessible>;
  explicit DispatchState(Former former) : former_(std::move(former)) {}

  // `allocate_from(resource)` allocates `bytes` from whichever resource it is given.
  template <class AllocateFrom>
  [[nodiscard]] void* allocate(std::size_t bytes, AllocateFrom const& allocate_from) {
    ReservationScope const* const scope = innermost;
    if (scope == nullptr || bytes == 0 || !active_.load(std::memory_order_relaxed)) { return allocate_from(former_); }
    auto entry = std::make_unique<OwnerMap::Entry>(scope->resource());
    void* block = nullptr;
    {
      NoScope const asking;
      block = allocate_from(entry->owner);
    }
    owners_.insert(std::move(entry), block);
    return block;
  }
  template <class FreeTo>
  void deallocate(void* block, FreeTo const& free_to) noexcept {
    std::unique_ptr<OwnerMap::Entry> const entry = owners_.take(block);
    if (entry == nullptr) { return free_to(former_); }
    free_to(entry->owner);
  }

  void stop() noexcept { active_.store(false, std::memory_order_relaxed); }
  [[nodiscard]] std::int64_t live_blocks() const noexcept { return owners_.live(); }

 private:
  Former former_;
  OwnerMap owners_;
  std::atomic<bool> active_{true};
};

}  // namespace detail

namespace {

// What RMM's table and buffers hold.
class DispatchResource {
 public:
  using default_queries = cuda::mr::properties_list<device_accessible>;

  explicit DispatchResource(std::shared_ptr<detail::DispatchState> state) noexcept : state_(std::move(state)) {}
  DispatchResource(DispatchResource const&) noexcept = default;
  // Copies: CCCL may go on using a resource that was moved from.
  DispatchResource(DispatchResource&& other) noexcept : state_(other.state_) {}
  DispatchResource& operator=(DispatchResource other) noexcept {
    state_.swap(other.state_);
    return *this;
  }
  ~DispatchResource() = default;

  [[nodiscard]] void* allocate(cuda::stream_ref stream, std::size_t bytes, std::size_t alignment) {
    return state_->allocate(bytes, [&](auto& resource) { return resource.allocate(stream, bytes, alignment); });
  }
  void deallocate(cuda::stream_ref stream, void* block, std::size_t bytes, std::size_t alignment) noexcept {
    state_->deallocate(block, [&](auto& resource) { resource.deallocate(stream, block, bytes, alignment); });
  }
  [[nodiscard]] void* allocate_sync(std::size_t bytes, std::size_t alignment) {
    return state_->allocate(bytes, [&](auto& resource) { return resource.allocate_sync(bytes, alignment); });
  }
  void deallocate_sync(void* block, std::size_t bytes, std::size_t alignment) noexcept {
    state_->deallocate(block, [&](auto& resource) { resource.deallocate_sync(block, bytes, alignment); });
  }

  [[nodiscard]] friend bool operator==(DispatchResource const& a, DispatchResource const& b) noexcept {
    return a.state_ == b.state_;
  }
  [[maybe_unused]] friend constexpr void get_property(DispatchResource const&, device_accessible) noexcept {}

 private:
  std::shared_ptr<detail::DispatchState> state_;  // shared: buffers outlive the dispatcher
};

static_assert(cuda::mr::resource_with<DispatchResource, device_accessible>);

}  // namespace

NoScopeDispatcher::NoScopeDispatcher()
    : std::logic_error("a ReservationScope needs install_scope_dispatcher(device): without it, it has no effect") {
  fields_.tier.assign("device");
  fields_.setting.assign("install_scope_dispatcher(device)");
}

ScopeDispatcher install_scope_dispatcher(rmm::cuda_device_id device) {
  ScopeDispatcher::Former former{rmm::mr::get_per_device_resource_ref(device)};
  static EndsBeforeRmmsTable const witness;
  auto state = std::make_shared<detail::DispatchState>(former);
  rmm::mr::set_per_device_resource(device, DispatchResource{state});
  installed_dispatchers.fetch_add(1, std::memory_order_relaxed);
  return ScopeDispatcher{device, std::move(state), std::move(former)};
}

ScopeDispatcher::ScopeDispatcher(rmm::cuda_device_id device, std::shared_ptr<detail::DispatchState> state,
                                 Former former) noexcept
    : device_(device), state_(std::move(state)), former_(std::move(former)) {}

ScopeDispatcher::ScopeDispatcher(ScopeDispatcher&& other) noexcept
    : device_(other.device_), state_(std::move(other.state_)), former_(std::move(other.former_)) {}

ScopeDispatcher& ScopeDispatcher::operator=(ScopeDispatcher&& other) noexcept {
  ScopeDispatcher taken{std::move(other)};  // first: assigning to itself must keep what it has
  remove();
  device_ = taken.device_;
  state_ = std::move(taken.state_);
  former_ = std::move(taken.former_);
  return *this;
}

ScopeDispatcher::~ScopeDispatcher() { remove(); }

void ScopeDispatcher::remove() noexcept {
  std::shared_ptr<detail::DispatchState> const state = std::move(state_);
  if (state == nullptr) { return; }
  state->stop();
  if (!rmm_table_ended.load(std::memory_order_relaxed) &&
      rmm::mr::get_per_device_resource_ref(device_) == DispatchResource{state}) {
    rmm::mr::set_per_device_resource(device_, std::move(*former_));
  }
  former_.reset();
  installed_dispatchers.fetch_sub(1, std::memory_order_relaxed);
}

std::int64_t ScopeDispatcher::live_blocks() const noexcept { return state_ == nullptr ? 0 : state_->live_blocks(); }

ReservationScope::ReservationScope(Resource resource)
    : resource_(std::move(resource)), outer_(innermost), home_(&innermost) {
  if (installed_dispatchers.load(std::memory_order_relaxed) == 0) { throw NoScopeDispatcher(); }
  innermost = this;
}

ReservationScope::~ReservationScope() {
  if (home_ != &innermost) {
    end_program("a ReservationScope ended on another thread than it began on; a scope must not span a co_await");
  }
  if (innermost != this) { end_program("a ReservationScope ended before a scope inside it, or after its thread"); }
  innermost = outer_;
}

bool in_reservation_scope() noexcept { return innermost != nullptr; }

}  // namespace earmark
