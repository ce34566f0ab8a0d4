// SPDX-License-Identifier: Apache-2.0
#include "cuda/cuda_cudnn.hpp"

#include <dlfcn.h>

#include <mutex>
#include <type_traits>

#include "base/error.hpp"

// Not null if it is linked in, or if a library of the host brings it.
extern "C" __attribute__((weak)) size_t cudnnGetVersion();

namespace cohort {
namespace {

constexpr char kFile[] = "libcudnn.so.9";
constexpr size_t kLeastVersion = 90000;

bool find_all(void *library, Cudnn *cudnn, std::string *why) {
  const auto find = [&](const char *name, auto *function) {
    void *const found = dlsym(library, name);
    if (!found && why->empty()) *why = text(kFile, " has no ", name);
    *function = reinterpret_cast<std::remove_reference_t<decltype(*function)>>(found);
  };
  find("cudnnGetVersion", &cudnn->get_version);
  find("cudnnGetErrorString", &cudnn->error_string);
  find("cudnnGetLastErrorString", &cudnn->last_error_string);
  find("cudnnCreate", &cudnn->create);
  find("cudnnSetStream", &cudnn->set_stream);
  find("cudnnBackendCreateDescriptor", &cudnn->create_descriptor);
  find("cudnnBackendDestroyDescriptor", &cudnn->destroy_descriptor);
  find("cudnnBackendSetAttribute", &cudnn->set_attribute);
  find("cudnnBackendGetAttribute", &cudnn->get_attribute);
  find("cudnnBackendFinalize", &cudnn->finalize);
  find("cudnnBackendExecute", &cudnn->execute);
  if (!why->empty()) return false;
  const size_t version = cudnn->get_version();
  if (version >= kLeastVersion) return true;
  *why = text(kFile, " is of version ", version, ", and must be of ", kLeastVersion, " or later");
  return false;
}

}  // namespace

const Cudnn *find_cudnn(std::string *why) {
  static std::mutex mutex;  // guards the variables below
  static const Cudnn *known = nullptr;
  static std::string reason;  // why there is none; the search is not repeated
  const std::lock_guard<std::mutex> lock(mutex);
  if (!known && reason.empty()) {
    Dl_info own{};
    const bool is_there = cudnnGetVersion && dladdr(reinterpret_cast<void *>(cudnnGetVersion), &own) && own.dli_fname;
    // dlopen() by this name also finds a library that the host has loaded from another folder.
    void *const library = dlopen(is_there ? own.dli_fname : kFile, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    Cudnn found{};
    if (!library) {
      const char *const said = dlerror();
      reason = text(kFile, " could not be loaded: ", said ? said : "not found");
    } else if (find_all(library, &found, &reason)) {
      known = new Cudnn(found);
    }
  }
  if (!known) *why = reason;
  return known;
}

std::string cudnn_error(const Cudnn &cudnn, int status, const char *call) {
  char said[512] = "";
  cudnn.last_error_string(said, sizeof said);
  said[sizeof said - 1] = 0;
  std::string message = text("cuDNN: ", cudnn.error_string(status), " in ", call);
  if (*said) message += text(": ", said);
  for (char &c : message) {
    if (c == '\n') c = ' ';
  }
  return message;
}

static bool is_lack_of_memory(int status) {
  return status == Cudnn::kHostAllocationFailed || status == Cudnn::kDeviceAllocationFailed;
}

bool is_cudnn_refusal(int status) {
  return status != Cudnn::kSuccess && status < Cudnn::kExecutionFailed && !is_lack_of_memory(status);
}

void check_cudnn(const Cudnn &cudnn, int status, const char *call) {
  if (status == Cudnn::kSuccess) return;
  const Code code = is_lack_of_memory(status) ? Code::kOutOfMemory : Code::kDevice;
  throw Error(code, cudnn_error(cudnn, status, call), "cudnn");
}

}  // namespace cohort
