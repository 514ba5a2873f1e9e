// Copyright (c) 2026 The Earmark authors
// SPDX-License-Identifier: Apache-2.0
#include "stop_signals.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>

namespace earmark::cli {
namespace {

[[nodiscard]] bool is_ignored(int signal) {
  struct sigaction action{};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

[[nodiscard]] sigset_t block_stop_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (int const signal : {SIGINT, SIGTERM}) {
    // A shell starts background jobs with SIGINT ignored; a job that is told to stop stops all the same.
    std::signal(signal, SIG_DFL);
    sigaddset(&signals, signal);
  }
  if (!is_ignored(SIGHUP)) { sigaddset(&signals, SIGHUP); }
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

[[nodiscard]] int checked(int descriptor, char const* what) {
  if (descriptor < 0) { throw std::system_error(errno, std::generic_category(), what); }
  return descriptor;
}

}  // namespace

StopSignals::StopSignals(std::stop_source source) : source_(std::move(source)) {
  auto const signals = block_stop_signals();
  signals_ = checked(::signalfd(-1, &signals, SFD_CLOEXEC), "signalfd");
  done_ = checked(::eventfd(0, EFD_CLOEXEC), "eventfd");
  watcher_ = std::thread{[this] { watch(); }};
}

StopSignals::~StopSignals() {
  ::eventfd_write(done_, 1);
  watcher_.join();
  ::close(done_);
  ::close(signals_);
}

void StopSignals::watch() {
  for (;;) {
    std::array<pollfd, 2> ready{{{signals_, POLLIN, 0}, {done_, POLLIN, 0}}};
    if (::poll(ready.data(), ready.size(), -1) < 0) { continue; }
    if (ready[1].revents != 0) { return; }
    signalfd_siginfo signal{};
    if (::read(signals_, &signal, sizeof signal) != sizeof signal) { continue; }
    auto none = StopCause::None;
    cause_.compare_exchange_strong(none, signal.ssi_signo == SIGINT ? StopCause::Interrupt : StopCause::Terminate);
    source_.request_stop();
  }
}

}  // namespace earmark::cli
