// SPDX-License-Identifier: Apache-2.0
// Gradients of convolutions in groups of few channels, for which oneDNN (2.6) only has reference loops: groups of
// four channels in blocks of four, and windows larger than the image or dilated over one channel each. Those take a
// hundred to a thousand times as long as the forward pass. Used by the kernels of Convolution and of Deconvolution.
#pragma once

#include <memory>

#include "cpu/dnnl_kernel.hpp"
#include "cpu/op/plain_convolution.hpp"

namespace cohort {

// The sizes of a convolution whose data and result lie in runs of channels; the weight is row-major.
struct GroupedSizes {
  ConvolutionSizes s;
  ChannelRuns data, result;
};

// Empty if channels are not contiguous.
std::optional<ChannelRuns> channel_runs(const dnn::Desc &desc);

// Every element is one sum in a fixed order, so that results do not depend on the number of threads.
class GroupedGradients {
 public:
  // Null if these loops do not apply: the channels of a group are neither one nor a multiple of four, or not
  // contiguous.
  static std::unique_ptr<GroupedGradients> make(const ConvolutionSizes &sizes, Dtype dtype, const dnn::Desc &data,
                                                const dnn::Desc &result);

  // Whether these loops take less time than the implementation that oneDNN has chosen.
  template <typename Pd>
  bool suits(const Pd &pd) const {
    return dnn::is_reference(pd) || (depthwise_ && std::strstr(pd.impl_info_str(), "dw") == nullptr);
  }
  bool has_data_gradient() const;  // needs one channel per group, and a window that is not huge
  void of_data(const void *head, const void *weight, void *gradient, const Lane &lane) const;
  void of_weight(const void *head, const void *data, void *gradient, const Lane &lane) const;
  // Sums of each channel of an array that lies like the result or, `of_data`, like the data.
  void of_bias(bool of_data, const void *values, void *sums, const Lane &lane) const {
    sum_channels(sizes_.s, of_data ? sizes_.data : sizes_.result, dtype_, of_data, values, sums, lane);
  }

 private:
  GroupedGradients(const GroupedSizes &sizes, Dtype dtype) : sizes_(sizes), dtype_(dtype) {
    depthwise_ = sizes.s.in_channels == 1 && sizes.s.out_channels == 1;
  }

  const GroupedSizes sizes_;
  const Dtype dtype_;
  bool depthwise_;
};

}  // namespace cohort
