// SPDX-License-Identifier: Apache-2.0
#include "cuda/cuda_nccl.hpp"

#include <dlfcn.h>

#include <mutex>

#include "base/error.hpp"

// Not null if it is linked in, or if a library of the host brings it.
extern "C" __attribute__((weak)) int ncclGetVersion(int *version);

namespace cohort {
namespace {

constexpr char kFile[] = "libnccl.so.2";
constexpr int kLeastVersion = 21000;  // 2.10 has bfloat16

bool find_all(void *library, Nccl *nccl, std::string *why) {
  const auto find = [&](const char *name, auto *function) {
    void *const found = dlsym(library, name);
    if (!found && why->empty()) *why = text(kFile, " has no ", name);
    *function = reinterpret_cast<std::remove_reference_t<decltype(*function)>>(found);
  };
  find("ncclGetVersion", &nccl->get_version);
  find("ncclGetErrorString", &nccl->error_string);
  find("ncclCommInitAll", &nccl->comm_init_all);
  find("ncclCommDestroy", &nccl->comm_destroy);
  find("ncclCommAbort", &nccl->comm_abort);
  find("ncclCommGetAsyncError", &nccl->comm_get_async_error);
  find("ncclGroupStart", &nccl->group_start);
  find("ncclGroupEnd", &nccl->group_end);
  find("ncclAllReduce", &nccl->all_reduce);
  if (!why->empty()) return false;
  int version = 0;
  if (nccl->get_version(&version) == Nccl::kSuccess && version >= kLeastVersion) return true;
  *why = text(kFile, " is of version ", version, ", and must be of ", kLeastVersion, " or later");
  return false;
}

}  // namespace

const Nccl *find_nccl(std::string *why) {
  static std::mutex mutex;
  static const Nccl *known = nullptr;
  const std::lock_guard<std::mutex> lock(mutex);
  if (known) return known;
  why->clear();
  Dl_info own{};
  const bool is_there = ncclGetVersion && dladdr(reinterpret_cast<void *>(ncclGetVersion), &own) && own.dli_fname;
  void *const library = dlopen(is_there ? own.dli_fname : kFile, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!library) {
    const char *const reason = dlerror();
    *why = text(kFile, " could not be loaded: ", reason ? reason : "not found");
    return nullptr;
  }
  Nccl found{};
  if (find_all(library, &found, why)) known = new Nccl(found);
  return known;
}

int nccl_type(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFloat16:
      return 6;
    case Dtype::kFloat32:
      return 7;
    case Dtype::kFloat64:
      return 8;
    case Dtype::kBfloat16:
      return 9;
    default:
      return -1;
  }
}

}  // namespace cohort
