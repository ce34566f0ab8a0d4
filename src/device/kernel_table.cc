// SPDX-License-Identifier: Apache-2.0
#include "device/kernel_table.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace cohort {

const char *storage_name(StorageType storage) {
  switch (storage) {
    case StorageType::kDense:
      return "dense";
    case StorageType::kRowSparse:
      return "row_sparse";
    case StorageType::kCsr:
      break;
  }
  return "csr";
}

std::string DtypeSet::text() const {
  std::vector<const char *> names;
  for (int32_t code = 0; code < 32; ++code) {
    if (has(Dtype(code))) names.push_back(dtype_name(Dtype(code)));
  }
  std::string all;
  for (size_t i = 0; i < names.size(); ++i) {
    all += (i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + std::string(names[i]);
  }
  return all;
}

// ---- the arguments of one kernel ------------------------------------------------------------------------------------

KernelEntry &KernelEntry::storages(std::initializer_list<StorageType> set) {
  storages_ = 0;
  for (StorageType storage : set) storages_ |= 1u << unsigned(storage);
  return *this;
}

KernelEntry &KernelEntry::fuses(std::initializer_list<PostOp::Kind> kinds) {
  for (PostOp::Kind kind : kinds) fuses_ |= 1u << unsigned(kind);
  return *this;
}

std::string KernelEntry::dtype_refusal(const StepSpec &spec) const {
  if (dtypes_.empty()) return "";
  const auto check = [this](const TensorSpec &tensor, const char *kind, size_t index) {
    if (dtypes_.has(tensor.dtype)) return std::string();
    return text("expected ", dtypes_.text(), " for ", kind, ' ', index, ", found ", tensor.dtype);
  };
  if (typed_ == Typed::kFirstInput) return spec.inputs.empty() ? "" : check(spec.inputs[0], "input", 0);
  if (typed_ == Typed::kFirstOutput) return spec.outputs.empty() ? "" : check(spec.outputs[0], "output", 0);
  const TensorSpec *first = nullptr;
  for (const std::vector<TensorSpec> *list : {&spec.inputs, &spec.outputs}) {
    const bool outputs = list == &spec.outputs;
    for (size_t i = 0; i < list->size(); ++i) {
      if (outputs && i < spec.wanted.size() && !spec.wanted[i]) continue;
      const TensorSpec &tensor = (*list)[i];
      std::string why = check(tensor, outputs ? "output" : "input", i);
      if (!why.empty()) return why;
      if (!first) first = &tensor;
      if (tensor.dtype != first->dtype) return text("expected one type, found ", first->dtype, " and ", tensor.dtype);
    }
  }
  return "";
}

std::string KernelEntry::post_refusal(const StepSpec &spec) const {
  for (const PostOp &post : spec.post) {
    if (fuses_ >> unsigned(post.kind) & 1u) continue;
    return post.kind == PostOp::Kind::kSum ? "cannot fuse a sum" : "cannot fuse an activation";
  }
  return "";
}

std::string KernelEntry::refusal(const StepSpec &spec) const {
  for (const std::vector<TensorSpec> *list : {&spec.inputs, &spec.outputs}) {
    for (const TensorSpec &tensor : *list) {
      if (!(storages_ >> unsigned(tensor.storage) & 1u)) {
        return text("does not take ", storage_name(tensor.storage), " arrays");
      }
    }
  }
  std::string why = dtype_refusal(spec);
  if (why.empty() && !spec.post.empty()) why = post_refusal(spec);
  if (why.empty() && condition_) why = condition_(spec);
  return why;
}

// ---- the table ------------------------------------------------------------------------------------------------------

KernelEntry &KernelTable::add(std::string op, KernelFactory make) {
  entries_.emplace_back(std::move(op), make);
  return entries_.back();
}

void KernelTable::build_index() const {
  by_op_.clear();
  for (const KernelEntry &entry : entries_) {
    std::vector<const KernelEntry *> &list = by_op_[entry.op()];
    for (const KernelEntry *known : list) {
      if (known->name() == entry.name())
        duplicates_ += text(duplicates_.empty() ? "" : ", ", entry.op(), " '", entry.name(), "'");
    }
    list.push_back(&entry);
  }
  for (auto &item : by_op_) {
    std::stable_sort(item.second.begin(), item.second.end(),
                     [](const KernelEntry *a, const KernelEntry *b) { return a->preference() > b->preference(); });
  }
}

std::vector<std::string> KernelTable::operators() const {
  std::call_once(once_, [this] { build_index(); });
  std::vector<std::string> names;
  for (const auto &entry : by_op_) names.push_back(entry.first);
  std::sort(names.begin(), names.end());
  return names;
}

const std::vector<const KernelEntry *> &KernelTable::candidates(const std::string &op) const {
  std::call_once(once_, [this] { build_index(); });
  if (!duplicates_.empty()) throw Error(Code::kInternal, text("kernels are registered twice: ", duplicates_));
  static const std::vector<const KernelEntry *> none;
  const auto found = by_op_.find(op);
  return found == by_op_.end() ? none : found->second;
}

const KernelEntry *KernelTable::find(const StepSpec &spec, std::string *refusals, const KernelEntry *after) const {
  const std::vector<const KernelEntry *> &list = candidates(spec.op);
  auto at = list.begin();
  if (after) at = std::find(list.begin(), list.end(), after) + 1;
  for (; at != list.end(); ++at) {
    const std::string why = (*at)->refusal(spec);
    if (why.empty()) return *at;
    if (refusals) *refusals += text((*at)->name(), ": ", why, "; ");
  }
  return nullptr;
}

}  // namespace cohort
