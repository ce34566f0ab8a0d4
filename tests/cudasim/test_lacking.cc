// SPDX-License-Identifier: Apache-2.0
// lacking.tsv lists exactly the operators that have kernels on the CPU but not on CUDA, one line each with element
// types and the reason. `make lacking` writes the list.
#include <fstream>
#include <iostream>
#include <map>
#include <set>

#include "device/device.hpp"
#include "device/kernel_table.hpp"
#include "support/unit.hpp"

using namespace cohort;

namespace {

constexpr char kFile[] = "tests/cudasim/lacking.tsv";
constexpr char kHead[] =
    "# Operators with kernels on the CPU and none in cuda/, the element types, and why. test_lacking.cc holds the list "
    "to\n"
    "# the truth, `make lacking` writes it anew, and simulated runs of golden cases skip those that meet a line of "
    "it.\n";
constexpr char kUsualReason[] = "not written yet";
constexpr Dtype kDtypes[] = {Dtype::kFloat32, Dtype::kFloat64, Dtype::kFloat16, Dtype::kBfloat16, Dtype::kUint8,
                             Dtype::kInt8,    Dtype::kInt32,   Dtype::kInt64,   Dtype::kBool};

bool has(const KernelTable &table, const std::string &op, Dtype dtype) {
  for (const KernelEntry *entry : table.candidates(op))
    if (entry->takes(dtype)) return true;
  return false;
}

// By operator: "all", or the types without a CUDA kernel.
std::map<std::string, std::string> find_lacking() {
  const std::shared_ptr<Device> gpu = get_device(Context{DeviceType::kGpu, 0});
  std::map<std::string, std::string> lacking;
  for (const std::string &op : cpu_kernels().operators()) {
    if (op.rfind("_shape_", 0) == 0) continue;  // the host computes shapes from values for all devices
    std::string types;
    bool any = false;
    for (const Dtype dtype : kDtypes) {
      any = any || has(gpu->kernels(), op, dtype);
      if (!has(cpu_kernels(), op, dtype) || has(gpu->kernels(), op, dtype)) continue;
      types += (types.empty() ? "" : " ") + std::string(dtype_name(dtype));
    }
    if (!types.empty()) lacking[op] = any ? types : "all";
  }
  return lacking;
}

struct Line {
  std::string types, reason;
};

std::map<std::string, Line> read_lines() {
  std::ifstream file(kFile);
  if (!file) throw std::runtime_error(std::string(kFile) + " cannot be read; run this where it is");
  std::map<std::string, Line> lines;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    const size_t first = line.find('\t'), second = line.find('\t', first + 1);
    if (second == std::string::npos) throw std::runtime_error(std::string(kFile) + ": '" + line + "' has no reason");
    lines[line.substr(0, first)] = {line.substr(first + 1, second - first - 1), line.substr(second + 1)};
  }
  return lines;
}

}  // namespace

TEST(what_cuda_lacks_is_listed_with_its_reason_and_nothing_else_is) {
  const std::map<std::string, std::string> lacking = find_lacking();
  const std::map<std::string, Line> lines = read_lines();
  std::string wrong;
  for (const auto &[op, types] : lacking) {
    const auto line = lines.find(op);
    if (line == lines.end() || line->second.types != types || line->second.reason.empty())
      wrong += op + " lacks " + types + "; ";
  }
  for (const auto &line : lines)
    if (!lacking.count(line.first)) wrong += line.first + " does not lack " + line.second.types + " any more; ";
  if (!wrong.empty()) unit::fail(kFile, 1, wrong + "write it anew with `make lacking`");
}

// Includes kernels that plans on the CPU never use.
TEST(cuda_has_no_kernel_for_an_operator_that_the_cpu_does_not_know) {
  const std::vector<std::string> known = cpu_kernels().operators();
  const std::set<std::string> names(known.begin(), known.end());
  const std::shared_ptr<Device> gpu = get_device(Context{DeviceType::kGpu, 0});
  for (const std::string &op : gpu->kernels().operators()) {
    if (!names.count(op)) unit::fail(__FILE__, __LINE__, op + " has a kernel on a GPU alone");
  }
}

int main(int argc, char **argv) {
  if (argc != 2 || std::string(argv[1]) != "--list") return unit::run_all(argc, argv);
  const std::map<std::string, Line> lines = read_lines();
  std::cout << kHead;
  for (const auto &[op, types] : find_lacking()) {
    const auto line = lines.find(op);
    std::cout << op << '\t' << types << '\t' << (line == lines.end() ? kUsualReason : line->second.reason) << '\n';
  }
  return 0;
}
