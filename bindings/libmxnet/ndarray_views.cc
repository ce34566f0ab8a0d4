// SPDX-License-Identifier: Apache-2.0
#include "ndarray_views.hpp"

#include <algorithm>

namespace cohort_mxnet {

namespace {

std::string text_of(const cohort::Shape &shape) { return cohort::Attr("", shape).value; }

int64_t product(const cohort::Shape &lengths) {
  int64_t result = 1;
  for (const int64_t length : lengths) {
    if (__builtin_mul_overflow(result, length, &result))
      fail("an array of more than 2^63 elements: " + text_of(lengths));
  }
  return result;
}

// The length that stands for -1, which has to divide `all`.
int64_t missing_length(int64_t all, int64_t others, const char *what) {
  if (others == 0 || all % others != 0)
    fail(std::string(what) + ": no length of the axis -1 gives " + std::to_string(all) + " elements");
  return all / others;
}

}  // namespace

std::shared_ptr<NDArray> view_of(const NDArray &original, cohort::NDArray array) {
  auto view = std::make_shared<NDArray>(std::move(array));
  view->origin = original.origin;
  view->is_detached = original.is_detached;
  view->is_part = original.is_part;
  return view;
}

std::shared_ptr<NDArray> part_of(const NDArray &original, cohort::NDArray array) {
  std::shared_ptr<NDArray> part = view_of(original, std::move(array));
  part->is_part = true;
  return part;
}

cohort::Shape resolve_shape(const cohort::Shape &source, const cohort::Shape &target, bool reverse) {
  cohort::Shape from = source, to = target;
  if (reverse) {
    std::reverse(from.begin(), from.end());
    std::reverse(to.begin(), to.end());
    // A split is written -4, a, b from the left; from the right it has become b, a, -4.
    for (size_t i = 2; i < to.size(); ++i)
      if (to[i] == -4) std::rotate(to.begin() + i - 2, to.begin() + i, to.begin() + i + 1);
  }
  const std::string what = "reshape of " + text_of(source) + " to " + text_of(target);
  cohort::Shape result;
  size_t next = 0;  // axis of `from`
  const auto take = [&] {
    if (next >= from.size()) fail(what + ": there is no axis " + std::to_string(next));
    return from[next++];
  };
  std::ptrdiff_t open = -1;  // place of -1 in the result
  for (size_t i = 0; i < to.size(); ++i) {
    switch (to[i]) {
      case 0:
        result.push_back(take());
        break;
      case -1:
        if (open >= 0) fail(what + ": -1 may stand there once");
        open = static_cast<std::ptrdiff_t>(result.size());
        result.push_back(1);
        ++next;
        break;
      case -2:
        while (next < from.size()) result.push_back(take());
        break;
      case -3: {
        const int64_t first = take();
        result.push_back(product({first, take()}));
        break;
      }
      case -4: {
        if (i + 2 >= to.size()) fail(what + ": -4 needs two lengths after it");
        const int64_t whole = take();
        int64_t first = to[++i], second = to[++i];
        if (first == -1 && second == -1) fail(what + ": one of the two lengths after -4 must be known");
        if (first == -1) first = missing_length(whole, second, what.c_str());
        if (second == -1) second = missing_length(whole, first, what.c_str());
        if (first < 0 || second < 0 || product({first, second}) != whole)
          fail(what + ": an axis of length " + std::to_string(whole) + " cannot be split like that");
        result.insert(result.end(), {first, second});
        break;
      }
      default:
        if (to[i] < 0) fail(what + ": expected lengths or -1 to -4, found " + std::to_string(to[i]));
        result.push_back(to[i]);
        ++next;
    }
  }
  if (open >= 0) result[static_cast<size_t>(open)] = missing_length(product(source), product(result), what.c_str());
  if (product(result) > product(source)) fail(what + ": the array has fewer elements");
  if (reverse) std::reverse(result.begin(), result.end());
  return result;
}

}  // namespace cohort_mxnet
