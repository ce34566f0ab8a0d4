// SPDX-License-Identifier: Apache-2.0
// Objects polled by a background thread while any are registered.
#pragma once

#include <memory>

namespace cohort {

class Pollable {
 public:
  virtual ~Pollable() = default;
  virtual bool poll() = 0;          // false: unregister it
  virtual void finish() const = 0;  // waits for the work that is pending now
};

void start_polling(const std::shared_ptr<Pollable> &what);
// Waits until the objects registered now have finished and have been polled since; false: none is registered.
bool finish_polled();

}  // namespace cohort
