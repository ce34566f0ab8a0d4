// SPDX-License-Identifier: Apache-2.0
// Which signals threads of the library's own take.
#pragma once

#include <pthread.h>
#include <signal.h>

namespace cohort {

// Threads that begin while it lives, and those that they begin, take no signals but faults: the host's handlers have no
// business there.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT}) sigdelset(&all, signal);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked &) = delete;
  SignalsBlocked &operator=(const SignalsBlocked &) = delete;

 private:
  sigset_t before_;
};

}  // namespace cohort
