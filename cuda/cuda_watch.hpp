// SPDX-License-Identifier: Apache-2.0
// What somebody has to look at from time to time: a thread does, as long as there is something.
#pragma once

#include <memory>

namespace cohort {

class Watched {
 public:
  virtual ~Watched() = default;
  virtual bool look() = 0;          // false: not any more, until it is watched again
  virtual void finish() const = 0;  // waits for what is going on now
};

void watch(const std::shared_ptr<Watched> &what);
// Waits until what is watched now has finished and has been looked at since; false: there is nothing.
bool finish_watched();

}  // namespace cohort
