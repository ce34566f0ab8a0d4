// SPDX-License-Identifier: Apache-2.0
// MXKVStore*: stores of one process. Values that are pushed under a key are summed over the devices in the order of the
// list; the host's updater, or else the sum itself, changes the stored value.
#include <algorithm>
#include <cctype>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "mxnet/c_api.h"
#include "ndarray_handle.hpp"

namespace cohort_mxnet {
namespace {

// How the host names values: always by numbers, or always by text.
enum class KeyType { kUndecided, kNumber, kText };

struct KeyList {
  KeyList(uint32_t count, const int *list) : type(KeyType::kNumber), num(count), numbers(list) {
    if (num != 0) required(list, "keys");
  }
  KeyList(uint32_t count, const char **list) : type(KeyType::kText), num(count), texts(list) {
    if (num != 0) required(list, "keys");
    for (uint32_t i = 0; i < num; ++i) required(list[i], "a key");
  }
  KeyType type;
  uint32_t num;
  const int *numbers = nullptr;
  const char *const *texts = nullptr;
};

struct Updater {
  MXKVStoreUpdater *by_number = nullptr;
  MXKVStoreStrUpdater *by_text = nullptr;
  void *handle = nullptr;

  explicit operator bool() const { return by_number || by_text; }
};

std::string checked_type(const char *type) {
  static const char *const kKnown[] = {"local", "device", "local_update_cpu", "local_allreduce_cpu",
                                       "local_allreduce_device"};
  std::string name = &required(type, "type");
  for (char &c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  std::string known;
  for (const char *const each : kKnown) {
    if (name == each) return name;
    known += std::string(known.empty() ? "" : ", ") + each;
  }
  fail("expected a kvstore of one process (" + known + "), found '" + name + "'");
}

// The sum in the order of the arrays, on the first one's context.
cohort::NDArray sum_of(const std::vector<cohort::NDArray> &arrays) {
  const cohort::Context context = arrays[0].context();
  if (arrays.size() == 1) return arrays[0].copy(context);
  std::vector<cohort::NDArray> here;
  for (const cohort::NDArray &array : arrays) {
    if (array.shape() != arrays[0].shape())
      fail("values that are pushed under one key have shapes " + cohort::Attr("", arrays[0].shape()).value + " and " +
           cohort::Attr("", array.shape()).value);
    cohort::NDArray local = array.dtype() == arrays[0].dtype() ? array : array.cast(arrays[0].dtype());
    here.push_back(local.context() == context ? std::move(local) : local.copy(context));
  }
  return cohort::invoke("add_n", here, {{"num_args", here.size()}})[0];
}

class KVStore : public Object {
 public:
  static constexpr Kind kKind = Kind::kKVStore;
  static constexpr const char *kName = "a kvstore";

  explicit KVStore(const char *type) : Object(kKind), type(checked_type(type)) {}

  void init(const KeyList &keys, void *const *values) {
    const std::vector<std::shared_ptr<NDArray>> arrays = ndarrays(values, keys.num);
    const std::lock_guard<std::mutex> lock(mutex_);
    check_type(keys);
    // All are checked first, so that an error leaves the store as it was.
    std::map<std::string, cohort::NDArray> made;
    for (uint32_t i = 0; i < keys.num; ++i) {
      const std::string name = name_of(keys, i);
      if (ids_.count(name)) fail("key " + name + " is in the store already");
      if (!made.emplace(name, arrays[i]->array().copy(cohort::Context())).second)
        fail("key " + name + " is given twice");
    }
    for (uint32_t i = 0; i < keys.num; ++i) {
      const std::string name = name_of(keys, i);
      const int64_t id = keys.type == KeyType::kNumber ? keys.numbers[i] : static_cast<int64_t>(ids_.size());
      ids_.emplace(name, id);
      values_[id] = {name, std::move(made[name])};
    }
    if (keys.num != 0) key_type_ = keys.type;
  }

  void push(const KeyList &keys, void *const *values) {
    for (const auto &[id, positions] : grouped(keys)) {
      std::vector<cohort::NDArray> arrays;
      for (const uint32_t position : positions) arrays.push_back(ndarray(values[position])->array());
      push_one(id, arrays);
    }
  }

  void pull(const KeyList &keys, void *const *outs) {
    for (const auto &[id, positions] : grouped(keys)) {
      for (const uint32_t position : positions) {
        const std::shared_ptr<NDArray> out = ndarray(outs[position]);
        const std::lock_guard<std::mutex> lock(mutex_);
        const Stored &stored = values_.at(id);
        if (out->is_none()) {
          out->set_array(stored.value.copy(stored.value.context()));
          continue;
        }
        cohort::NDArray &target = out->array();
        if (target.shape() != stored.value.shape())
          fail("key " + stored.name + ": expected an array of shape " + cohort::Attr("", stored.value.shape()).value +
               ", found " + cohort::Attr("", target.shape()).value);
        stored.value.copy_to(target);
      }
    }
  }

  void set_updater(const Updater &updater) {
    const std::lock_guard<std::mutex> lock(mutex_);
    updater_ = updater;
  }

  const std::string type;

 private:
  struct Stored {
    std::string name;  // the key as text
    cohort::NDArray value;
  };

  static std::string name_of(const KeyList &keys, uint32_t i) {
    return keys.type == KeyType::kNumber ? std::to_string(keys.numbers[i]) : keys.texts[i];
  }

  void check_type(const KeyList &keys) const {
    if (key_type_ != KeyType::kUndecided && key_type_ != keys.type && keys.num != 0)
      fail(key_type_ == KeyType::kNumber ? "expected keys that are numbers, as before, found text"
                                         : "expected keys that are text, as before, found numbers");
  }

  // Where the list has each key, in the order of the numbers, or in that in which text came into the store.
  std::map<int64_t, std::vector<uint32_t>> grouped(const KeyList &keys) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    check_type(keys);
    std::map<int64_t, std::vector<uint32_t>> groups;
    for (uint32_t i = 0; i < keys.num; ++i) {
      const std::string name = name_of(keys, i);
      const auto found = ids_.find(name);
      if (found == ids_.end()) fail("key " + name + " is not in the store: it needs init first");
      groups[found->second].push_back(i);
    }
    return groups;
  }

  void push_one(int64_t id, const std::vector<cohort::NDArray> &arrays) {
    cohort::NDArray sum, stored;
    Updater updater;
    KeyType key_type;
    std::string name;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      sum = sum_of(arrays);
      Stored &entry = values_.at(id);
      if (!updater_) {
        entry.value = std::move(sum);
        return;
      }
      // The updater works where the sum is.
      if (sum.context().device_type == COHORT_DEVICE_GPU && entry.value.context().device_type != COHORT_DEVICE_GPU)
        entry.value = entry.value.copy(sum.context());
      updater = updater_;
      key_type = key_type_;
      stored = entry.value;
      name = entry.name;
    }
    // Nothing is locked while the host's code runs. It owns the handles.
    NewHandles handles;
    handles.add(std::make_shared<NDArray>(std::move(sum)));
    handles.add(std::make_shared<NDArray>(std::move(stored)));
    const std::vector<void *> given = handles.release();
    if (updater.by_text && key_type == KeyType::kText) {
      updater.by_text(name.c_str(), given[0], given[1], updater.handle);
    } else if (updater.by_number) {
      updater.by_number(static_cast<int>(id), given[0], given[1], updater.handle);
    } else {
      for (void *handle : given) free_handle<NDArray>(handle);
      fail("the updater takes keys that are text, found key " + name);
    }
  }

  mutable std::mutex mutex_;  // guards all below, and the arrays
  KeyType key_type_ = KeyType::kUndecided;
  std::unordered_map<std::string, int64_t> ids_;
  std::map<int64_t, Stored> values_;
  Updater updater_;
};

template <typename Body>
int with(KVStoreHandle handle, Body body) {
  return guarded([&] { body(*from_handle<KVStore>(handle)); });
}

// Calls a member of the store with keys and the arrays that belong to them.
template <typename Key>
int call(KVStoreHandle handle, void (KVStore::*member)(const KeyList &, void *const *), uint32_t num, Key keys,
         NDArrayHandle *vals) {
  return with(handle, [&](KVStore &store) {
    const KeyList list(num, keys);
    if (num != 0) required(vals, "vals");
    (store.*member)(list, vals);
  });
}

// Changes the store by `change` (init or push), then pulls.
template <typename Key>
int change_and_pull(KVStoreHandle handle, void (KVStore::*change)(const KeyList &, void *const *), uint32_t num_vals,
                    Key value_keys, uint32_t num_outs, Key out_keys, NDArrayHandle *vals, NDArrayHandle *outs) {
  return with(handle, [&](KVStore &store) {
    const KeyList changed(num_vals, value_keys), pulled(num_outs, out_keys);
    if (num_vals != 0) required(vals, "vals");
    if (num_outs != 0) required(outs, "outs");
    (store.*change)(changed, vals);
    store.pull(pulled, outs);
  });
}

template <typename T>
int answer(T *out, const char *name, T value) {
  return guarded([&] { required(out, name) = value; });
}

template <typename T>
int answer_for(KVStoreHandle handle, T *out, const char *name, T value) {
  return with(handle, [&](KVStore &) { required(out, name) = value; });
}

int refuse_dense(KVStoreHandle handle) {
  return with(handle, [](KVStore &) { fail("expected row_sparse arrays, found dense ones"); });
}

}  // namespace
}  // namespace cohort_mxnet

using namespace cohort_mxnet;

extern "C" {

int MXKVStoreCreate(const char *type, KVStoreHandle *out) {
  return guarded([&] {
    required(out, "out");
    *out = publish(std::make_shared<KVStore>(type));
  });
}

int MXKVStoreFree(KVStoreHandle handle) {
  return guarded([&] { free_handle<KVStore>(handle); });
}

int MXKVStoreInit(KVStoreHandle handle, uint32_t num, const int *keys, NDArrayHandle *vals) {
  return call(handle, &KVStore::init, num, keys, vals);
}

int MXKVStoreInitEx(KVStoreHandle handle, uint32_t num, const char **keys, NDArrayHandle *vals) {
  return call(handle, &KVStore::init, num, keys, vals);
}

int MXKVStorePush(KVStoreHandle handle, uint32_t num, const int *keys, NDArrayHandle *vals, int) {
  return call(handle, &KVStore::push, num, keys, vals);
}

int MXKVStorePushEx(KVStoreHandle handle, uint32_t num, const char **keys, NDArrayHandle *vals, int) {
  return call(handle, &KVStore::push, num, keys, vals);
}

int MXKVStorePullWithSparse(KVStoreHandle handle, uint32_t num, const int *keys, NDArrayHandle *vals, int, bool) {
  return call(handle, &KVStore::pull, num, keys, vals);
}

int MXKVStorePullWithSparseEx(KVStoreHandle handle, uint32_t num, const char **keys, NDArrayHandle *vals, int, bool) {
  return call(handle, &KVStore::pull, num, keys, vals);
}

int MXKVStorePull(KVStoreHandle handle, uint32_t num, const int *keys, NDArrayHandle *vals, int) {
  return call(handle, &KVStore::pull, num, keys, vals);
}

int MXKVStorePullEx(KVStoreHandle handle, uint32_t num, const char **keys, NDArrayHandle *vals, int) {
  return call(handle, &KVStore::pull, num, keys, vals);
}

int MXKVStorePullRowSparse(KVStoreHandle handle, uint32_t, const int *, NDArrayHandle *, const NDArrayHandle *, int) {
  return refuse_dense(handle);
}

int MXKVStorePullRowSparseEx(KVStoreHandle handle, uint32_t, const char **, NDArrayHandle *, const NDArrayHandle *,
                             int) {
  return refuse_dense(handle);
}

int MXKVStoreBroadcast(KVStoreHandle handle, mx_uint vnum, const int *vkeys, mx_uint onum, const int *okeys,
                       NDArrayHandle *vals, NDArrayHandle *outs, int) {
  return change_and_pull(handle, &KVStore::init, vnum, vkeys, onum, okeys, vals, outs);
}

int MXKVStoreBroadcastEx(KVStoreHandle handle, mx_uint vnum, const char **vkeys, mx_uint onum, const char **okeys,
                         NDArrayHandle *vals, NDArrayHandle *outs, int) {
  return change_and_pull(handle, &KVStore::init, vnum, vkeys, onum, okeys, vals, outs);
}

int MXKVStorePushPull(KVStoreHandle handle, mx_uint vnum, const int *vkeys, mx_uint onum, const int *okeys,
                      NDArrayHandle *vals, NDArrayHandle *outs, int) {
  return change_and_pull(handle, &KVStore::push, vnum, vkeys, onum, okeys, vals, outs);
}

int MXKVStorePushPullEx(KVStoreHandle handle, mx_uint vnum, const char **vkeys, mx_uint onum, const char **okeys,
                        NDArrayHandle *vals, NDArrayHandle *outs, int) {
  return change_and_pull(handle, &KVStore::push, vnum, vkeys, onum, okeys, vals, outs);
}

int MXKVStoreSetUpdater(KVStoreHandle handle, MXKVStoreUpdater updater, void *updater_handle) {
  return with(handle, [&](KVStore &store) { store.set_updater({updater, nullptr, updater_handle}); });
}

int MXKVStoreSetUpdaterEx(KVStoreHandle handle, MXKVStoreUpdater updater, MXKVStoreStrUpdater str_updater,
                          void *updater_handle) {
  return with(handle, [&](KVStore &store) { store.set_updater({updater, str_updater, updater_handle}); });
}

int MXKVStoreGetType(KVStoreHandle handle, const char **type) {
  return with(handle, [&](KVStore &store) { required(type, "type") = store.type.c_str(); });
}

int MXKVStoreSetGradientCompression(KVStoreHandle handle, uint32_t num_params, const char **keys, const char **vals) {
  return with(handle, [&](KVStore &) {
    if (num_params != 0) required(keys, "keys"), required(vals, "vals");
    for (uint32_t i = 0; i < num_params; ++i) {
      if (std::string(&required(keys[i], "a key")) != "type") continue;
      const std::string kind = &required(vals[i], "a value");
      if (kind != "none") fail("gradient compression '" + kind + "' is not implemented in Cohort");
    }
  });
}

int MXKVStoreGetRank(KVStoreHandle handle, int *ret) { return answer_for(handle, ret, "ret", 0); }
int MXKVStoreGetGroupSize(KVStoreHandle handle, int *ret) { return answer_for(handle, ret, "ret", 1); }
int MXKVStoreIsWorkerNode(int *ret) { return answer(ret, "ret", 1); }
int MXKVStoreIsServerNode(int *ret) { return answer(ret, "ret", 0); }
int MXKVStoreIsSchedulerNode(int *ret) { return answer(ret, "ret", 0); }

int MXKVStoreGetNumDeadNode(KVStoreHandle handle, const int, int *number, const int) {
  return answer_for(handle, number, "number", 0);
}

// A store of one process has nobody to wait for, and no server that would take commands.
int MXKVStoreBarrier(KVStoreHandle handle) {
  return with(handle, [](KVStore &) {});
}

int MXKVStoreSetBarrierBeforeExit(KVStoreHandle handle, const int) {
  return with(handle, [](KVStore &) {});
}

int MXKVStoreSendCommmandToServers(KVStoreHandle handle, int, const char *) {
  return with(handle, [](KVStore &) {});
}

}  // extern "C"
