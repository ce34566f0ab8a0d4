// SPDX-License-Identifier: Apache-2.0
// How the kernel of a step is found: candidates in order of preference, the reasons of those that refuse, and no kernel
// is created before one is chosen. No name of a kernel or operator is registered twice.
#include <string>

#include "base/error.hpp"
#include "device/kernel_table.hpp"
#include "op/activation.hpp"
#include "op/op.hpp"
#include "op/update.hpp"
#include "support/lone_kernel.hpp"
#include "support/unit.hpp"

using namespace cohort;

namespace {

int made = 0;

class Nothing final : public Kernel {
 public:
  void run(const Args &, const Lane &) const override {}
};

std::unique_ptr<Kernel> make(StepSpec &) {
  ++made;
  return std::make_unique<Nothing>();
}
std::unique_ptr<Kernel> decline(StepSpec &) { return nullptr; }

// A device with the kernels that a test gives it.
class OwnDevice final : public Device {
 public:
  OwnDevice() : Device(Context()) {}
  KernelTable table;
  std::shared_ptr<Memory> obtain(size_t) override { return nullptr; }
  std::shared_ptr<Queue> create_queue(const QueueOptions &) override { return nullptr; }
  const KernelTable &kernels() const override { return table; }
  std::unique_ptr<Kernel> make_reorder(const TensorSpec &, const TensorSpec &, int) override { return nullptr; }

 protected:
  std::unique_ptr<Kernel> construct(const KernelEntry &entry, StepSpec &spec) override {
    return call_factory(entry, spec);
  }
};

TensorSpec tensor(Dtype dtype, StorageType storage = StorageType::kDense) {
  TensorSpec spec;
  spec.shape = Shape{2, 3};
  spec.dtype = dtype;
  spec.storage = storage;
  return spec;
}

StepSpec step(const std::string &op, std::vector<TensorSpec> inputs, std::vector<TensorSpec> outputs) {
  StepSpec spec;
  spec.op = op;
  spec.inputs = std::move(inputs);
  spec.outputs = std::move(outputs);
  spec.wanted.assign(spec.outputs.size(), true);
  return spec;
}

StepSpec step(Dtype dtype) { return step("op", {tensor(dtype), tensor(dtype)}, {tensor(dtype)}); }

std::string refusal(const KernelEntry &entry, const StepSpec &spec) { return entry.refusal(spec); }

template <typename Fn>
std::string message_of(Code code, Fn &&fn) {
  try {
    fn();
  } catch (const Error &error) {
    CHECK(error.code() == code);
    return error.what();
  }
  return "";
}

}  // namespace

TEST(the_first_candidate_that_takes_a_step_is_found) {
  KernelTable table;
  table.add("op", make).dtypes(kFloatTypes);
  table.add("op", make).named("fast").dtypes({Dtype::kFloat32}).preference(1);
  table.add("op", make).named("last").preference(-1);
  CHECK_EQ(table.find(step(Dtype::kFloat32))->name(), std::string("fast"));
  CHECK_EQ(table.find(step(Dtype::kFloat16))->name(), std::string("plain"));
  std::string refusals;
  const KernelEntry *found = table.find(step(Dtype::kInt8), &refusals);
  CHECK_EQ(found->name(), std::string("last"));
  CHECK_EQ(refusals, std::string("fast: expected float32 for input 0, found int8; plain: expected float32, float64, "
                                 "float16 or bfloat16 for input 0, found int8; "));
  CHECK(table.find(step(Dtype::kInt8), nullptr, found) == nullptr);
  CHECK(table.find(step("other", {}, {})) == nullptr);
  CHECK_EQ(made, 0);
}

TEST(kernels_say_what_they_take) {
  KernelTable table;
  KernelEntry &any = table.add("op", make);
  CHECK_EQ(refusal(any, step(Dtype::kBool)), std::string());
  CHECK_EQ(refusal(any, step("op", {tensor(Dtype::kInt8)}, {tensor(Dtype::kInt8, StorageType::kCsr)})),
           std::string("does not take csr arrays"));
  any.storages({StorageType::kRowSparse, StorageType::kCsr});
  CHECK_EQ(refusal(any, step(Dtype::kBool)), std::string("does not take dense arrays"));

  const StepSpec mixed = step("op", {tensor(Dtype::kFloat32), tensor(Dtype::kInt32)}, {tensor(Dtype::kFloat64)});
  KernelEntry &typed = table.add("op", make).dtypes({Dtype::kFloat32});
  CHECK_EQ(refusal(typed, mixed), std::string());
  typed.output_dtypes({Dtype::kFloat32});
  CHECK_EQ(refusal(typed, mixed), std::string("expected float32 for output 0, found float64"));
  typed.one_dtype(kWideFloatTypes);
  CHECK_EQ(refusal(typed, mixed), std::string("expected float32 or float64 for input 1, found int32"));
  StepSpec two = step("op", {tensor(Dtype::kFloat32)}, {tensor(Dtype::kFloat64)});
  CHECK_EQ(refusal(typed, two), std::string("expected one type, found float32 and float64"));
  two.wanted[0] = false;
  CHECK_EQ(refusal(typed, two), std::string());

  StepSpec fused = step(Dtype::kFloat32);
  fused.post = {{PostOp::Kind::kSum, 0}, {PostOp::Kind::kActivation, ActivationAttrs::kRelu}};
  KernelEntry &plain = table.add("op", make);
  CHECK_EQ(refusal(plain, fused), std::string("cannot fuse a sum"));
  plain.fuses({PostOp::Kind::kSum});
  CHECK_EQ(refusal(plain, fused), std::string("cannot fuse an activation"));
  plain.fuses({PostOp::Kind::kActivation});
  CHECK_EQ(refusal(plain, fused), std::string());
  plain.when([](const StepSpec &spec) { return text("dislikes ", spec.op); });
  CHECK_EQ(refusal(plain, fused), std::string("dislikes op"));
}

TEST(a_candidate_that_declines_is_followed_by_the_next) {
  OwnDevice device;
  device.table.add("op", decline).named("vendor");
  device.table.add("op", make).dtypes({Dtype::kFloat32});
  StepSpec good = step(Dtype::kFloat32), bad = step(Dtype::kInt32), none = step("other", {}, {});
  KernelChoice choice;
  std::string asked;
  made = 0;
  CHECK(device.make_kernel(good, &choice, [&](const KernelEntry &entry, StepSpec &) { asked += entry.name() + " "; }));
  CHECK_EQ(made, 1);
  CHECK_EQ(asked, std::string("vendor plain "));
  CHECK_EQ(choice.name, std::string("plain"));
  CHECK_EQ(choice.refusals, std::string("vendor: has no implementation for these shapes and layouts"));
  CHECK_EQ(
      message_of(Code::kUnsupported, [&] { device.make_kernel(bad); }),
      std::string("operator op has no kernel on cpu(0) for (int32, int32) -> (int32): vendor: has no "
                  "implementation for these shapes and layouts; plain: expected float32 for input 0, found int32"));
  CHECK_EQ(message_of(Code::kUnsupported, [&] { device.make_kernel(none); }),
           std::string("operator other has no kernel on cpu(0)"));
}

TEST(a_backend_is_asked_for_types_before_anything_is_made) {
  const Op &op = get_op("Convolution");
  const Attrs attrs = op.parse({{"kernel", "(3, 3)"}, {"num_filter", "4"}});
  const auto taken_by = [&](Dtype dtype, std::string *refusals) {
    Shapes in{Shape{1, 2, 8, 8}, Shape(), Shape()}, out{Shape()};
    op.infer_shape(attrs, in, out);
    StepSpec spec = step("Convolution", {}, {});
    spec.attrs = attrs.pointer();
    for (const Shape &shape : in) spec.inputs.push_back({shape, dtype, nullptr});
    spec.outputs = {{out[0], dtype, nullptr}};
    const KernelEntry *entry = cpu_kernels().find(spec, refusals);
    return entry ? entry->name() : "none";
  };
  std::string why;
  CHECK_EQ(taken_by(Dtype::kFloat32, &why), std::string("onednn"));
  CHECK_EQ(why, std::string());
  CHECK_EQ(taken_by(Dtype::kFloat16, &why), std::string("float32"));
  CHECK_EQ(why, std::string("onednn: expected float32 or bfloat16 for input 0, found float16; "));
  CHECK_EQ(taken_by(Dtype::kInt32, nullptr), std::string("none"));
}

TEST(a_name_that_is_registered_twice_is_an_error_at_the_first_use) {
  KernelTable table;
  table.add("twin", make);
  table.add("twin", make).named("other");
  table.add("once", make);
  table.add("twin", make);
  for (int i = 0; i < 2; ++i) {
    CHECK_EQ(message_of(Code::kInternal, [&] { table.find(step("once", {}, {})); }),
             std::string("kernels are registered twice: twin 'plain'"));
  }

  OpRegistry ops;
  ops.add(Op()).name = "first";
  Op &second = ops.add(Op());
  second.name = "second";
  second.aliases = {"other", "first"};
  for (int i = 0; i < 2; ++i) {
    CHECK_EQ(message_of(Code::kInternal, [&] { ops.find("other"); }),
             std::string("operators are registered twice: first"));
  }
}

TEST(nothing_is_registered_twice) {
  CHECK(cpu_kernels().candidates("_copy").size() == 1);
  CHECK(find_op("_copy") != nullptr);
  for (const Op *op : list_ops()) CHECK(find_op(op->name) == op);
}

// Settings that an optimizer changes from step to step are arguments of the run; attributes stay as they were parsed.
TEST(numbers_of_a_run_go_before_attributes) {
  const Attrs attrs = get_op("sgd_update").parse({{"lr", "0.5"}});
  StepSpec spec = step("sgd_update", {tensor(Dtype::kFloat32), tensor(Dtype::kFloat32)}, {tensor(Dtype::kFloat32)});
  spec.attrs = attrs.pointer();
  const auto kernel = unit::make_kernel(spec);
  float weight[6] = {1, 1, 1, 1, 1, 1}, grad[6] = {1, 2, 3, 4, 5, 6}, result[6];
  void *inputs[] = {weight, grad}, *outputs[] = {result};
  Args args;
  args.inputs = inputs;
  args.outputs = outputs;
  unit::run_kernel(*kernel, args, 1);
  CHECK_EQ(result[5], -2.0f);
  UpdateNumbers<double> numbers;
  for (double lr : {1.0, 0.25}) {
    numbers.lr = lr;
    args.numbers = &numbers;
    unit::run_kernel(*kernel, args, 1);
    CHECK_EQ(result[5], float(1 - 6 * lr));
  }
  CHECK_EQ(attrs.get<SgdAttrs>().lr, 0.5f);
}

UNIT_MAIN()
