// SPDX-License-Identifier: Apache-2.0
#include "cpu/dnnl_kernel.hpp"

#include <oneapi/dnnl/dnnl_debug.h>

#include <algorithm>
#include <numeric>

namespace cohort::dnn {
namespace {

// Never destroyed: kernels in other static objects may be destroyed later.
struct Runtime {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
};

const Runtime &runtime() {
  static const Runtime *const shared = std::make_unique<Runtime>().release();
  return *shared;
}

}  // namespace

const dnnl::engine &engine() { return runtime().engine; }

// ---- layouts -------------------------------------------------------------------------------------------------------

bool type_known(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFloat32:
    case Dtype::kBfloat16:
    case Dtype::kInt32:
    case Dtype::kInt8:
    case Dtype::kUint8:
      return true;
    default:
      return false;
  }
}

memory::data_type type_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFloat32:
      return memory::data_type::f32;
    case Dtype::kBfloat16:
      return memory::data_type::bf16;
    case Dtype::kInt32:
      return memory::data_type::s32;
    case Dtype::kInt8:
      return memory::data_type::s8;
    case Dtype::kUint8:
      return memory::data_type::u8;
    default:
      throw Error(Code::kDtype, text("oneDNN has no element type for ", dtype));
  }
}

Dims dims_of(const Shape &shape) { return shape.rank() == 0 ? Dims{1} : Dims(shape.begin(), shape.end()); }

Desc ordered(const Dims &dims, Dtype dtype, const Dims &axes) {
  Dims strides(dims.size());
  int64_t stride = 1;
  for (size_t i = axes.size(); i-- > 0;) {
    strides[size_t(axes[i])] = stride;
    stride *= std::max<int64_t>(dims[size_t(axes[i])], 1);
  }
  return Desc(dims, type_of(dtype), strides);
}

Desc row_major(const Dims &dims, Dtype dtype) {
  Dims axes(dims.size());
  std::iota(axes.begin(), axes.end(), 0);
  return ordered(dims, dtype, axes);
}

Desc channels_last(const Dims &dims, Dtype dtype) {
  Dims axes{0};
  for (size_t i = 2; i < dims.size(); ++i) axes.push_back(int64_t(i));
  axes.push_back(1);
  return ordered(dims, dtype, axes);
}

Desc channels_in_blocks(const Dims &dims, Dtype dtype, int64_t block) {
  using Tag = memory::format_tag;
  static const Tag kTags[][3] = {{Tag::nCw8c, Tag::nChw8c, Tag::nCdhw8c}, {Tag::nCw16c, Tag::nChw16c, Tag::nCdhw16c}};
  return Desc(dims, type_of(dtype), kTags[block == 16][dims.size() - 3]);
}

Desc any_of(const Dims &dims, Dtype dtype) { return Desc(dims, type_of(dtype), memory::format_tag::any); }

Desc desc_of(const TensorSpec &tensor) {
  if (tensor.layout) return static_cast<const DnnlLayout &>(*tensor.layout).desc();
  return row_major(dims_of(tensor.shape), tensor.dtype);
}

bool same_bytes(const Desc &a, const Desc &b) {
  if (a == b) return true;
  const Blocking x = blocking_of(a), y = blocking_of(b);
  if (!x.blocked || !y.blocked || x.dims != y.dims || x.padded_dims != y.padded_dims || x.offset != y.offset ||
      x.inner_blocks != y.inner_blocks || x.inner_axes != y.inner_axes || type_in(a) != type_in(b) ||
      a.get_size() != b.get_size()) {
    return false;
  }
  Dims outer = x.padded_dims;
  for (size_t i = 0; i < x.inner_blocks.size(); ++i) outer[size_t(x.inner_axes[i])] /= x.inner_blocks[i];
  for (size_t i = 0; i < outer.size(); ++i) {
    if (outer[i] > 1 && x.strides[i] != y.strides[i]) return false;
  }
  return true;
}

bool is_padded(const Desc &desc) {
  const Blocking b = blocking_of(desc);
  return b.dims != b.padded_dims;
}

bool is_channels_last(const Desc &desc) {
  const Blocking b = blocking_of(desc);
  return b.blocked && b.dims.size() >= 3 && b.inner_blocks.empty() && b.strides[1] == 1;
}

std::shared_ptr<const Layout> layout_of(const Desc &desc, const Desc &plain) {
  if (same_bytes(desc, plain)) return nullptr;
  return std::make_shared<DnnlLayout>(desc, plain);
}

bool DnnlLayout::equals(const Layout &other) const {
  const auto &layout = static_cast<const DnnlLayout &>(other);
  return same_bytes(desc_, layout.desc_) && same_bytes(plain_, layout.plain_);
}

std::string DnnlLayout::describe() const {
  const Blocking b = blocking_of(desc_);
  if (!b.blocked) return "opaque";
  std::vector<size_t> order(b.dims.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::stable_sort(order.begin(), order.end(), [&](size_t i, size_t j) { return b.strides[i] > b.strides[j]; });
  std::string name;
  for (size_t axis : order) {
    const bool split = std::find(b.inner_axes.begin(), b.inner_axes.end(), int64_t(axis)) != b.inner_axes.end();
    name += char((split ? 'A' : 'a') + char(axis));
  }
  for (size_t i = 0; i < b.inner_blocks.size(); ++i) {
    name += std::to_string(b.inner_blocks[i]) + char('a' + char(b.inner_axes[i]));
  }
  return name;
}

// ---- calls ---------------------------------------------------------------------------------------------------------

primitive_attr attributes() {
  primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

primitive_attr attributes(const dnnl::post_ops &post) {
  primitive_attr attr = attributes();
  attr.set_post_ops(post);
  return attr;
}

void fail(dnnl_status_t status, const std::string &what) {
  if (status == dnnl_out_of_memory) throw Error(Code::kOutOfMemory, text(what, ": oneDNN ran out of memory"));
  throw Error(Code::kExecution, text(what, ": oneDNN failed with ", dnnl_status2str(status)));
}

DnnlCall::DnnlCall(const_dnnl_primitive_desc_t pd, const Desc &scratchpad, std::string what,
                   std::vector<DnnlArg> operands, size_t *scratch_bytes)
    : what_(std::move(what)) {
  if (!is_empty(scratchpad)) {
    if (!scratch_bytes) throw Error(Code::kInternal, text(what_, ": oneDNN asks for scratch memory"));
    operands.push_back(
        {DNNL_ARG_SCRATCHPAD, scratchpad, BufferRef::scratch(book(*scratch_bytes, scratchpad.get_size()))});
  }
  operands_ = std::move(operands);
  try {
    primitive_ = dnnl::primitive(pd);
  } catch (const dnnl::error &e) {
    fail(e.status, what_);
  }
  bindings_ = std::make_unique<ObjectPool<Binding>>();
  bindings_->release(make_binding());
}

std::unique_ptr<DnnlCall::Binding> DnnlCall::make_binding() const {
  auto made = std::make_unique<Binding>();
  try {
    for (const DnnlArg &operand : operands_) {
      made->objects.push_back(memory(operand.desc, engine(), DNNL_MEMORY_NONE));
      made->args.push_back({operand.arg, made->objects.back().get()});
    }
  } catch (const dnnl::error &e) {
    fail(e.status, what_);
  }
  made->bound.assign(operands_.size(), nullptr);
  return made;
}

void DnnlCall::run(const Args &args) const {
  std::unique_ptr<Binding> binding = bindings_->acquire();
  if (!binding) binding = make_binding();
  for (size_t i = 0; i < operands_.size(); ++i) {
    void *const data = operands_[i].buffer.find(args);
    if (data == binding->bound[i]) continue;
    COHORT_DNN_CHECK(dnnl_memory_set_data_handle(binding->objects[i].get(), data), what_);
    binding->bound[i] = data;
  }
  COHORT_DNN_CHECK(
      dnnl_primitive_execute(primitive_.get(), runtime().stream.get(), int(binding->args.size()), binding->args.data()),
      what_);
  bindings_->release(std::move(binding));
}

std::string name_of(const StepSpec &spec) {
  std::string name = spec.op;
  for (const TensorSpec &input : spec.inputs) name += text(" ", input.shape);
  return name;
}

// Measured: entering a parallel region costs about as much as these amounts of work on one thread.
int threads_for_work(const StepSpec &spec, double operations) { return operations < 2e5 ? 1 : spec.num_threads; }
int threads_for_elements(const StepSpec &spec, double elements) { return elements < 16384 ? 1 : spec.num_threads; }

bool has_bfloat16_units() {
  constexpr auto kUnits = unsigned(dnnl::cpu_isa::avx512_core_bf16);  // a bit mask of instruction sets
  static const bool found = (unsigned(dnnl::get_effective_cpu_isa()) & kUnits) == kUnits;
  return found;
}

std::string refuses_layer(const StepSpec &spec) {
  bool empty = false;
  for (const TensorSpec &input : spec.inputs) empty = empty || input.shape.size() == 0;
  for (size_t i = 0; i < spec.outputs.size(); ++i) {
    const bool wanted = i >= spec.wanted.size() || spec.wanted[i];
    empty = empty || (wanted && spec.outputs[i].shape.size() == 0);
  }
  if (empty) return "takes no array without elements";
  const bool narrow = !spec.inputs.empty() && spec.inputs[0].dtype == Dtype::kBfloat16;
  return narrow && !has_bfloat16_units() ? "this processor has no units for bfloat16" : "";
}

}  // namespace cohort::dnn
