// SPDX-License-Identifier: Apache-2.0
#include "cuda/cuda_source.hpp"

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <mutex>
#include <vector>

#include "base/error.hpp"
#include "base/settings.hpp"
#include "cuda/cuda_source_headers.hpp"

// Not null if it is linked in. Declared here, so that its header is not required.
extern "C" __attribute__((weak)) int nvrtcVersion(int *major, int *minor);

namespace cohort {
namespace {

struct Program;  // _nvrtcProgram

struct Nvrtc {
  static constexpr int kSuccess = 0;
  int (*version)(int *major, int *minor);
  const char *(*error_string)(int result);
  int (*create)(Program **program, const char *source, const char *name, int num_headers, const char *const *headers,
                const char *const *names);
  int (*destroy)(Program **program);
  int (*compile)(Program *program, int num_options, const char *const *options);
  int (*code_size)(Program *program, size_t *bytes);
  int (*code)(Program *program, char *code);
  int (*log_size)(Program *program, size_t *bytes);
  int (*log)(Program *program, char *log);
};

// Prefers the library that the host has already loaded.
void *open_library(std::string *why) {
  Dl_info own{};
  if (nvrtcVersion && dladdr(reinterpret_cast<void *>(nvrtcVersion), &own) && own.dli_fname)
    return dlopen(own.dli_fname, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  const std::string file = "libnvrtc.so", versioned = text(file, '.', CUDART_VERSION / 1000);
  for (const int loaded : {RTLD_NOLOAD, 0}) {
    for (const std::string &name : {versioned, file}) {
      void *const library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE | loaded);
      if (library) return library;
    }
  }
  *why = text(versioned, " could not be loaded");
  return nullptr;
}

bool find_all(void *library, Nvrtc *nvrtc, std::string *why) {
  const auto find = [&](const char *name, auto *function) {
    void *const found = dlsym(library, name);
    if (!found && why->empty()) *why = text("NVRTC has no ", name);
    *function = reinterpret_cast<std::remove_reference_t<decltype(*function)>>(found);
  };
  find("nvrtcVersion", &nvrtc->version);
  find("nvrtcGetErrorString", &nvrtc->error_string);
  find("nvrtcCreateProgram", &nvrtc->create);
  find("nvrtcDestroyProgram", &nvrtc->destroy);
  find("nvrtcCompileProgram", &nvrtc->compile);
  find("nvrtcGetCUBINSize", &nvrtc->code_size);
  find("nvrtcGetCUBIN", &nvrtc->code);
  find("nvrtcGetProgramLogSize", &nvrtc->log_size);
  find("nvrtcGetProgramLog", &nvrtc->log);
  return why->empty();
}

const Nvrtc *find_nvrtc(std::string *why) {
  static std::mutex mutex;  // guards the variables below
  static const Nvrtc *known = nullptr;
  static std::string reason;
  const std::lock_guard<std::mutex> lock(mutex);
  if (!known && reason.empty()) {
    void *const library = open_library(&reason);
    Nvrtc found{};
    if (library && find_all(library, &found, &reason)) known = new Nvrtc(found);
  }
  *why = reason;
  return known;
}

uint64_t hash_of(const std::string &bytes) {  // FNV-1a
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : bytes) hash = (hash ^ uint8_t(c)) * 0x100000001b3u;
  return hash;
}

// A cached file of machine code. It begins with everything that the code was compiled from, and a hash of the code.
class CodeFile {
 public:
  CodeFile(const std::string &folder, const std::string &made_from) : made_from_(made_from) {
    if (folder.empty() || folder[0] != '/') return;
    char name[40];
    std::snprintf(name, sizeof name, "/cohort-%016llx.cubin", (unsigned long long)(hash_of(made_from)));
    path_ = folder + name;
  }
  std::string read() const {
    struct stat status;
    if (path_.empty() || stat(path_.c_str(), &status) != 0 || !S_ISREG(status.st_mode))
      return "";  // reading a pipe might never end
    std::ifstream file(path_, std::ios::binary);
    const std::string all((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    const size_t head = made_from_.size() + sizeof(uint64_t);
    if (all.size() <= head || all.compare(0, made_from_.size(), made_from_) != 0) return "";
    std::string code = all.substr(head);
    return all.substr(0, head) == head_of(code) ? code : "";
  }
  // Writes the whole file or none; after a failure the code is compiled again next time.
  void write(const std::string &code) const {
    if (path_.empty()) return;
    const std::string unfinished = text(path_, '.', getpid());
    std::ofstream file(unfinished, std::ios::binary);
    file << head_of(code) << code;
    file.close();
    if (!file || std::rename(unfinished.c_str(), path_.c_str()) != 0) std::remove(unfinished.c_str());
  }

 private:
  std::string head_of(const std::string &code) const {
    const uint64_t hash = hash_of(code);
    return made_from_ + std::string(reinterpret_cast<const char *>(&hash), sizeof hash);
  }
  const std::string made_from_;
  std::string path_;  // empty: no cache
};

class Compilation {
 public:
  Compilation(const Nvrtc &nvrtc, const std::string &source) : nvrtc_(nvrtc) {
    std::vector<const char *> names, texts;
    for (const SourceHeader &header : source_headers()) {
      names.push_back(header.name);
      texts.push_back(header.text);
    }
    created_ = nvrtc_.create(&program_, source.c_str(), "cohort.cu", int(names.size()), texts.data(), names.data());
  }
  ~Compilation() {
    if (created_ == Nvrtc::kSuccess) nvrtc_.destroy(&program_);
  }
  Compilation(const Compilation &) = delete;
  Compilation &operator=(const Compilation &) = delete;

  // Empty, and *why, if the compiler reports an error.
  std::string run(const std::vector<std::string> &options, std::string *why) {
    std::vector<const char *> words;
    for (const std::string &option : options) words.push_back(option.c_str());
    int result = created_;
    if (result == Nvrtc::kSuccess) result = nvrtc_.compile(program_, int(words.size()), words.data());
    if (result != Nvrtc::kSuccess) {
      *why = text("NVRTC: ", nvrtc_.error_string(result), ' ', log());
      return "";
    }
    size_t bytes = 0;
    std::string code;
    if (nvrtc_.code_size(program_, &bytes) == Nvrtc::kSuccess) code.resize(bytes);
    if (code.empty() || nvrtc_.code(program_, code.data()) != Nvrtc::kSuccess) {
      *why = "NVRTC returned no machine code";
      return "";
    }
    return code;
  }

 private:
  std::string log() const {
    size_t bytes = 0;
    if (created_ != Nvrtc::kSuccess || nvrtc_.log_size(program_, &bytes) != Nvrtc::kSuccess || bytes == 0) return "";
    std::string log(bytes, '\0');
    if (nvrtc_.log(program_, log.data()) != Nvrtc::kSuccess) return "";
    log.resize(std::min(log.find_last_not_of(std::string("\0\n ", 3)) + 1, size_t(400)));
    std::replace(log.begin(), log.end(), '\n', ' ');  // messages have one line
    return log;
  }
  const Nvrtc &nvrtc_;
  Program *program_ = nullptr;
  int created_;
};

}  // namespace

std::string compile_source(const std::string &source, int capability, std::string *why) {
  why->clear();
  const Nvrtc *const nvrtc = find_nvrtc(why);
  if (!nvrtc) return "";
  int major = 0, minor = 0;
  if (nvrtc->version(&major, &minor) != Nvrtc::kSuccess) {
    *why = "NVRTC returned no version";
    return "";
  }
  // The options of the other kernels: no contraction.
  const std::vector<std::string> options = {text("--gpu-architecture=sm_", capability), "--std=c++17", "--fmad=false",
                                            "--device-as-default-execution-space"};
  std::string made_from = text("NVRTC ", major, '.', minor, '\n');
  for (const std::string &option : options) made_from += option + '\n';
  for (const SourceHeader &header : source_headers()) made_from += text("// ", header.name, '\n', header.text);
  const CodeFile file(read_setting(kCudaCache), made_from + source);
  std::string code = file.read();
  if (!code.empty()) return code;
  code = Compilation(*nvrtc, source).run(options, why);
  if (!code.empty()) file.write(code);
  return code;
}

}  // namespace cohort
