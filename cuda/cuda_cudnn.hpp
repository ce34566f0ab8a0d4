// SPDX-License-Identifier: Apache-2.0
// The part of cuDNN 9 that is used here: its backend interface, in which descriptors of a convolution lead to engines
// that compute it. cuDNN is loaded when it is first needed; neither the build nor a run requires it, and without it
// other kernels are used. Its functions and constants are declared here, so that its headers are not required either;
// tests/cudasim/test_cudnn_plans.cc compares the constants with the headers where these are installed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

struct CUstream_st;

namespace cohort {

struct CudnnHandle;      // cudnnContext
struct CudnnDescriptor;  // what a cudnnBackendDescriptor_t points to

struct Cudnn {
  enum Status : int {
    kSuccess = 0,
    kBadParameter = 2000,
    kNotSupported = 3000,
    kHostAllocationFailed = 4003,
    kDeviceAllocationFailed = 4004,
    kExecutionFailed = 5000,  // and above
  };
  enum DataType : int { kFloat = 0, kHalf = 2, kBfloat16 = 9 };
  enum ConvolutionMode : int { kCrossCorrelation = 1 };
  enum PointwiseMode : int { kAdd = 0, kRelu = 100 };
  enum NanPropagation : int { kPropagateNan = 1 };
  enum HeuristicMode : int { kFallback = 2, kModeA = 3 };  // fallback: further engines
  // Numerical notes of an engine; the ones that are not listed are reported by number.
  enum Note : int {
    kTensorCore = 0,
    kDownConvertInputs = 1,
    kReducedPrecisionReduction = 2,
    kNondeterministic = 4,
    kStrictNanPropagation = 9,
  };
  enum DescriptorType : int {
    kPointwise = 0,
    kConvolution = 1,
    kEngine = 2,
    kEngineConfig = 3,
    kHeuristics = 4,
    kExecutionPlan = 5,
    kForward = 10,
    kBackwardFilter = 11,
    kBackwardData = 12,
    kPointwiseOperation = 13,
    kOperationGraph = 15,
    kVariantPack = 16,
    kTensor = 17,
    kDeviceProperties = 38,  // from 9.8 on
  };
  enum AttributeType : int {
    kHandleType = 0,
    kDataTypeType = 1,
    kBooleanType = 2,
    kInt64Type = 3,
    kFloatType = 4,
    kPointerType = 6,
    kConvolutionModeType = 7,
    kHeuristicModeType = 8,
    kNanPropagationType = 10,
    kNoteType = 11,
    kPointwiseModeType = 14,
    kDescriptorType = 15,
    kCharType = 24,
  };
  enum Attribute : int {
    kPointwiseMode = 0,
    kPointwiseComputeType = 1,
    kPointwiseNanPropagation = 2,
    kConvolutionComputeType = 100,
    kConvolutionConvolutionMode = 101,
    kConvolutionDilations = 102,
    kConvolutionStrides = 103,
    kConvolutionPostPaddings = 104,
    kConvolutionPrePaddings = 105,
    kConvolutionNumAxes = 106,
    kHeuristicsMode = 200,
    kHeuristicsGraph = 201,
    kHeuristicsResults = 202,
    kHeuristicsDevice = 204,  // device properties, as all .._DEVICE
    kEngineConfigEngine = 300,
    kPlanHandle = 400,
    kPlanEngineConfig = 401,
    kPlanWorkspace = 402,
    kPlanDevice = 407,
    kForwardAlpha = 700,
    kForwardBeta = 701,
    kForwardConvolution = 702,
    kForwardFilters = 703,
    kForwardData = 704,
    kForwardResult = 705,
    kDataAlpha = 706,
    kDataBeta = 707,
    kDataConvolution = 708,
    kDataFilters = 709,
    kDataData = 710,
    kDataResult = 711,
    kFilterAlpha = 712,
    kFilterBeta = 713,
    kFilterConvolution = 714,
    kFilterFilters = 715,
    kFilterData = 716,
    kFilterResult = 717,
    kPointwiseDescriptor = 750,
    kPointwiseInput = 751,
    kPointwiseSecondInput = 752,
    kPointwiseOutput = 753,
    kGraphHandle = 800,
    kGraphOperations = 801,
    kTensorAlignment = 900,
    kTensorDataType = 901,
    kTensorDimensions = 902,
    kTensorStrides = 903,
    kTensorId = 906,
    kTensorIsVirtual = 907,
    kPackIds = 1000,
    kPackPointers = 1001,
    kPackWorkspace = 1003,
    kEngineIndex = 1301,
    kEngineNotes = 1303,
    kDeviceJson = 2702,
  };

  size_t (*get_version)();  // 92600: 9.26.0
  const char *(*error_string)(int status);
  void (*last_error_string)(char *message, size_t bytes);  // of this thread
  int (*create)(CudnnHandle **handle);                     // of the current device
  int (*set_stream)(CudnnHandle *handle, CUstream_st *stream);
  int (*create_descriptor)(int type, CudnnDescriptor **descriptor);
  int (*destroy_descriptor)(CudnnDescriptor *descriptor);
  int (*set_attribute)(CudnnDescriptor *descriptor, int name, int type, int64_t count, const void *elements);
  // Descriptors to be filled in must have been created by the caller.
  int (*get_attribute)(const CudnnDescriptor *descriptor, int name, int type, int64_t room, int64_t *count,
                       void *elements);
  int (*finalize)(CudnnDescriptor *descriptor);
  int (*execute)(CudnnHandle *handle, CudnnDescriptor *plan, CudnnDescriptor *pack);
};

// Null, and *why, if there is no usable one. Prefers the library that the host has already loaded.
const Cudnn *find_cudnn(std::string *why);

// "cuDNN: CUDNN_STATUS_BAD_PARAM in cudnnBackendFinalize: its last error string"
std::string cudnn_error(const Cudnn &cudnn, int status, const char *call);
// True if cuDNN refuses the request or cannot be used at all, so that another kernel may do it; false if memory or the
// device has failed.
bool is_cudnn_refusal(int status);
void check_cudnn(const Cudnn &cudnn, int status, const char *call);  // throws what cudnn_error() says

}  // namespace cohort
