// SPDX-License-Identifier: Apache-2.0
// A whole program in C++: fits a line through eight points, four on each of two devices, as the README's C program
// does.
#include <cohort/cohort.hpp>
#include <cstdio>

int main() {
  using namespace cohort;
  const Symbol fc = Symbol::create("FullyConnected", "fc", {{"num_hidden", 1}});
  const Symbol net = Symbol::create("LinearRegressionOutput", "fit", {}, {fc});
  const NDArray x = NDArray::from_host({-4.f, -3.f, -2.f, -1.f, 1.f, 2.f, 3.f, 4.f}, {8, 1});
  const NDArray y = NDArray::from_host({-9.f, -7.f, -5.f, -3.f, 1.f, 3.f, 5.f, 7.f}, {8, 1});
  Group group(net, {"cpu(0)", "cpu(1)"}, {{"fc_data", {8, 1}}}, {{"fit_label", {8, 1}}});
  Optimizer sgd("sgd", {{"learning_rate", 0.01}});
  for (int i = 0; i < 200; ++i) {
    group.forward({x}, {y}, true);
    group.backward();
    group.update(sgd);
  }
  const Params params = group.copy_params();
  std::printf("y = %.2f x %+.2f\n", double(params.arg.array("fc_weight").read<float>()[0]),
              double(params.arg.array("fc_bias").read<float>()[0]));
}
