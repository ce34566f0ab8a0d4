// SPDX-License-Identifier: Apache-2.0
// The devices in use. Finds and loads a backend from its own shared object.
#include "device/device.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "base/error.hpp"
#include "base/per_process.hpp"
#include "base/processors.hpp"
#include "base/settings.hpp"
#include "device/host_services.hpp"
#include "device/kernel_table.hpp"

#ifndef COHORT_BUILD_ID
#define COHORT_BUILD_ID "dev"
#endif

namespace cohort {
namespace {

constexpr const char *kGpuFile = "libcohort_cuda.so";

// The folder part of a path, or empty.
std::string folder_of(const std::string &path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash ? slash : 1);
}

std::string resolved(const std::string &path) {
  char whole[PATH_MAX];
  return realpath(path.c_str(), whole) ? whole : "";
}

// The file that contains this code: libcohort.so, or the program into which the library was linked.
std::string own_file() {
  static const char here = 0;
  Dl_info info{};
  if (dladdr(&here, &info) && info.dli_fname && info.dli_fname[0] == '/') return info.dli_fname;
  // Loaded by a relative path, which may mean another file by now; the process's memory map has the absolute path.
  const std::unique_ptr<FILE, int (*)(FILE *)> maps(std::fopen("/proc/self/maps", "re"), std::fclose);
  const auto address = reinterpret_cast<uintptr_t>(&here);
  char line[PATH_MAX + 128];
  while (maps && std::fgets(line, sizeof line, maps.get())) {
    unsigned long begin = 0, end = 0;
    int name = 0;
    if (std::sscanf(line, "%lx-%lx %*s %*s %*s %*s %n", &begin, &end, &name) < 2 || address < begin || address >= end) {
      continue;
    }
    const std::string rest = name ? line + name : "";
    return rest.substr(0, rest.find('\n'));
  }
  return "";
}

// Folders in which the backend's file may be, in search order; never the current directory.
std::vector<std::string> search_folders() {
  std::vector<std::string> folders;
  const auto add = [&](const std::string &folder) {
    if (!folder.empty() && folder[0] == '/') folders.push_back(folder);
  };
  const std::string path = read_setting(kBackendPath);
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find(':', begin), path.size());
    add(path.substr(begin, end - begin));
    begin = end + 1;
  }
  const std::string own = own_file();
  add(folder_of(own));
  add(folder_of(resolved(own)));
  return folders;
}

std::string find_backend_file(const char *file) {
  for (const std::string &folder : search_folders()) {
    const std::string path = folder + "/" + file;
    if (access(path.c_str(), F_OK) == 0) return path;
  }
  throw Error(Code::kDevice,
              text(file, " was not found beside libcohort.so or in ", kBackendPath.name,
                   "; the library's build makes it where it finds nvcc and cuBLASLt of the CUDA toolkit"));
}

BackendExports load_backend(const char *file) {
  const std::string path = find_backend_file(file);
  // Stays loaded until the process ends: its threads and destructors may run at any time.
  void *const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!handle) {
    const char *reason = dlerror();
    throw Error(Code::kDevice, text(file, " could not be loaded: ", reason ? reason : path.c_str()));
  }
  const auto entry = reinterpret_cast<BackendEntry>(dlsym(handle, "cohort_backend"));
  if (!entry) throw Error(Code::kDevice, text(path, " is not a Cohort backend: it has no symbol cohort_backend"));
  BackendExports exports{};
  if (const char *reason = entry(kBackendInterface, COHORT_BUILD_ID, &exports)) throw Error(Code::kDevice, reason);
  static const HostServices services{[] {
                                       return get_device(Context{DeviceType::kCpu, 0});
                                     },
                                     [](Device &cpu, StepSpec &spec) { return cpu.make_kernel(spec); }, log};
  if (const auto take = reinterpret_cast<TakeHostServices>(dlsym(handle, kHostServicesSymbol))) take(&services);
  if (!exports.create || !exports.count) {
    throw Error(Code::kDevice, text(path, " is not a Cohort backend: its cohort_backend returned null"));
  }
  return exports;
}

struct Queues {
  std::mutex mutex;  // protects alive
  std::vector<std::weak_ptr<Queue>> alive;
};

Queues &queues() { return per_process<Queues>(); }

struct Registry {
  std::mutex mutex;  // protects the two below; held while a device is created
  std::map<Context, std::weak_ptr<Device>> devices;
  std::unique_ptr<BackendExports> gpu;  // null until loaded; a failed load is tried again

  const BackendExports &load_gpu() {
    if (!gpu) gpu = std::make_unique<BackendExports>(load_backend(kGpuFile));
    return *gpu;
  }
};

Registry &registry() { return per_process<Registry>(); }

std::shared_ptr<Device> create_gpu(Registry &all, const Context &context) {
  const BackendExports &backend = all.load_gpu();
  const int count = backend.count();
  if (count <= 0) throw Error(Code::kDevice, "the CUDA driver finds no GPU");
  if (context.id >= count) {
    throw Error(Code::kDevice, count == 1 ? std::string("there is one GPU, gpu(0)")
                                          : text("there are ", count, " GPUs, gpu(0) to gpu(", count - 1, ")"));
  }
  return std::shared_ptr<Device>(backend.create(context.id));
}

}  // namespace

void register_queue(const std::shared_ptr<Queue> &queue) {
  Queues &all = queues();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.alive.erase(std::remove_if(all.alive.begin(), all.alive.end(), [](const auto &known) { return known.expired(); }),
                  all.alive.end());
  all.alive.push_back(queue);
}

void wait_for_all_queues() {
  std::vector<std::shared_ptr<Queue>> present;
  {
    const std::lock_guard<std::mutex> lock(queues().mutex);
    // In the loop below, an exception would drop a last reference while the mutex is locked.
    present.reserve(queues().alive.size());
    for (const auto &known : queues().alive) {
      if (auto queue = known.lock()) present.push_back(std::move(queue));
    }
  }
  std::string failures, subject;
  for (const auto &queue : present) queue->finish();
  for (const auto &queue : present) {
    try {
      queue->check();
    } catch (const Error &error) {
      if (failures.empty()) subject = error.subject();
      failures += (failures.empty() ? "" : "; ") + std::string(error.what());
    }
  }
  if (!failures.empty()) throw Error(Code::kExecution, failures, subject);
}

namespace {

// "(float32, int32) -> (float32)"
std::string types_of(const StepSpec &spec) {
  std::string all;
  for (const std::vector<TensorSpec> *list : {&spec.inputs, &spec.outputs}) {
    all += list == &spec.inputs ? "(" : " -> (";
    for (const TensorSpec &tensor : *list) {
      if (all.back() != '(') all += ", ";
      all += dtype_name(tensor.dtype);
      if (tensor.storage != StorageType::kDense) all += text(" ", storage_name(tensor.storage));
    }
    all += ")";
  }
  return all;
}

}  // namespace

std::shared_ptr<Memory> Device::allocate(size_t bytes) {
  for (int times = 0;; ++times) {
    try {
      MemoryAccount::Reservation reservation(account_, bytes);
      std::shared_ptr<Memory> memory = obtain(bytes);
      if (!memory) return memory;
      reservation.keep();
      memory->account_ = account_;
      return memory;
    } catch (const Error &error) {
      if (error.code() != Code::kOutOfMemory || !reclaim(times)) throw;
    }
  }
}

std::unique_ptr<Kernel> Device::make_kernel(StepSpec &spec, KernelChoice *choice, const Prepare &prepare) {
  spec.context = context();
  std::string refusals;
  const KernelEntry *entry = nullptr;
  while ((entry = kernels().find(spec, &refusals, entry))) {
    if (prepare) prepare(*entry, spec);
    if (std::unique_ptr<Kernel> kernel = construct(*entry, spec)) {
      if (choice) *choice = {entry->name(), refusals.substr(0, refusals.size() - std::min<size_t>(2, refusals.size()))};
      return kernel;
    }
    if (spec.refused.empty()) spec.refused = "has no implementation for these shapes and layouts";
    refusals += text(entry->name(), ": ", std::exchange(spec.refused, std::string()), "; ");
  }
  if (refusals.empty()) throw Error(Code::kUnsupported, text("operator ", spec.op, " has no kernel on ", context()));
  refusals.resize(refusals.size() - 2);
  throw Error(Code::kUnsupported,
              text("operator ", spec.op, " has no kernel on ", context(), " for ", types_of(spec), ": ", refusals),
              spec.op);
}

void run_on_caller(const Step &step) {
  try {
    const std::string fault = read_setting(kFault);
    if (!fault.empty() && std::strstr(step.label, ("'" + fault + "'").c_str())) {
      throw Error(Code::kExecution, text("made to fail by ", kFault.name));
    }
    step.kernel->run(step.args, {1, nullptr});
  } catch (const Error &e) {
    const Code code = e.code() == Code::kOutOfMemory ? e.code() : Code::kExecution;
    throw Error(code, text(step.label, ": ", e.what()), e.subject());
  }
}

std::shared_ptr<Device> get_device(const Context &asked) {
  make_context(int32_t(asked.type), asked.id);  // rejects what is not a context
  const bool gpu = asked.type == DeviceType::kGpu;
  // Pinned and shared host memory count as ordinary host memory here.
  const Context context{gpu ? DeviceType::kGpu : DeviceType::kCpu, asked.id};
  Registry &all = registry();
  const std::lock_guard<std::mutex> lock(all.mutex);
  std::weak_ptr<Device> &known = all.devices[context];
  if (std::shared_ptr<Device> device = known.lock()) return device;
  std::shared_ptr<Device> device;
  try {
    device = gpu ? create_gpu(all, context) : cpu_backend()(context.id);
  } catch (const Error &error) {
    const std::string name = text(context), what = error.what();
    throw Error(error.code(), what.compare(0, name.size(), name) == 0 ? what : name + ": " + what, name);
  }
  device->keep_account(memory_account(context));
  known = device;
  return device;
}

int count_devices(DeviceType type) {
  if (type != DeviceType::kGpu) return usable_processors();
  Registry &all = registry();
  const std::lock_guard<std::mutex> lock(all.mutex);
  try {
    return std::max(0, all.load_gpu().count());
  } catch (const Error &) {
    return 0;
  }
}

bool backend_available(DeviceType type, std::string *reason) {
  if (type != DeviceType::kGpu) return true;
  Registry &all = registry();
  const std::lock_guard<std::mutex> lock(all.mutex);
  try {
    if (all.load_gpu().count() > 0) return true;
    if (reason) *reason = "the CUDA driver finds no GPU";
  } catch (const Error &error) {
    if (reason) *reason = error.what();
  }
  return false;
}

}  // namespace cohort
