// SPDX-License-Identifier: Apache-2.0
// Blocks signals in the library's own threads.
#pragma once

#include <pthread.h>
#include <signal.h>

namespace cohort {

// While it lives, threads that the calling thread starts, directly or indirectly, receive no signals except faults, so
// that the host's signal handlers never run on them.
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
