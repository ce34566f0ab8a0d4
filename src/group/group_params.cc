// SPDX-License-Identifier: Apache-2.0
// Copies parameters, auxiliary states and states to and from the devices (contract sections 6 and 8).
#include <algorithm>
#include <atomic>
#include <exception>
#include <map>
#include <set>
#include <thread>
#include <unordered_map>

#include "base/error.hpp"
#include "base/names.hpp"
#include "base/processors.hpp"
#include "base/signals.hpp"
#include "device/trace.hpp"
#include "device/working_queue.hpp"
#include "group/group_impl.hpp"

namespace cohort {
namespace {

struct ParamCopy {
  const NDArray *source;
  bool is_aux;
  size_t index;
};

const NDArray &target_of(const Executor &exec, const ParamCopy &copy) {
  return (copy.is_aux ? exec.aux() : exec.args())[copy.index];
}

// Jobs that copy on the host, run in order. If there is much to copy, and no job writes memory that another one uses,
// they run in parallel, once nothing else uses any of it.
class CopyJobs {
 public:
  void reads(const NDArray &source) { add(source, kReaders); }
  void writes(const NDArray &target, size_t job) { add(target, job); }

  // Calls job(i) for each, until one fails.
  template <typename Job>
  void run(size_t num_jobs, Job &&job) {
    const size_t num_threads = threads_for(num_jobs);
    if (num_threads < 2) {
      for (size_t i = 0; i < num_jobs; ++i) job(i);
      return;
    }
    for (const Piece &piece : pieces_) {
      if (piece.owner == kReaders)
        piece.array.wait();
      else
        piece.array.wait_to_write();
    }
    std::vector<std::exception_ptr> failures(num_jobs);
    std::atomic<size_t> next{0};
    const auto work = [&] {
      for (size_t i = next++; i < num_jobs; i = next++) {
        try {
          job(i);
        } catch (...) {
          failures[i] = std::current_exception();
          next = num_jobs;
        }
      }
    };
    std::vector<std::thread> threads;
    threads.reserve(num_threads);
    try {
      const SignalsBlocked there;
      while (threads.size() + 1 < num_threads) threads.emplace_back(work);
    } catch (const std::exception &) {  // no thread or memory left: the threads that were started do all jobs
    }
    work();
    for (std::thread &thread : threads) thread.join();
    for (const std::exception_ptr &failure : failures) {
      if (failure) std::rethrow_exception(failure);
    }
  }

 private:
  static constexpr size_t kReaders = SIZE_MAX;
  static constexpr size_t kMuch = size_t(4) << 20;  // bytes; copying so many takes much longer than starting a thread
  struct Piece {
    NDArray array;
    AddressRange range;
    const Hazards *block;
    size_t owner;
  };

  void add(const NDArray &array, size_t owner) {
    on_host_ &= array.context().on_host();
    bytes_ += array.bytes();
    if (array.bytes() > 0) pieces_.push_back({array, array.range(), &array.storage()->hazards(), owner});
  }

  size_t threads_for(size_t num_jobs) const {
    if (num_jobs < 2 || bytes_ < 2 * kMuch || !on_host_) return 1;
    // A callback on a queue must not wait for work behind it. And a recording keeps a row for each thread that ever
    // ran.
    if (working_queue || process_trace().on() || !are_apart()) return 1;
    return std::min({num_jobs, bytes_ / kMuch, size_t(usable_processors())});
  }

  // Whether all jobs write different blocks, and blocks that overlap in memory belong to one job. A block allows one
  // writer at a time, even for different parts of it.
  bool are_apart() const {
    std::unordered_map<const Hazards *, size_t> writers;
    for (const Piece &piece : pieces_) {
      if (piece.owner != kReaders && writers.emplace(piece.block, piece.owner).first->second != piece.owner)
        return false;
    }
    std::vector<const Piece *> sorted;
    for (const Piece &piece : pieces_) {
      if (piece.owner == kReaders && writers.count(piece.block)) return false;
      sorted.push_back(&piece);
    }
    std::sort(sorted.begin(), sorted.end(),
              [](const Piece *a, const Piece *b) { return a->range.begin < b->range.begin; });
    const Piece *farthest = nullptr;  // the one so far that ends last
    for (const Piece *piece : sorted) {
      if (farthest && piece->owner != farthest->owner && piece->range.overlaps(farthest->range)) return false;
      if (!farthest || piece->range.end > farthest->range.end) farthest = piece;
    }
    return true;
  }

  std::vector<Piece> pieces_;
  size_t bytes_ = 0;
  bool on_host_ = true;
};

void check_shape(const std::string &name, const Shape &expected, const Shape &found) {
  if (found == expected) return;
  throw Error(Code::kShape, text("'", name, "': expected shape ", expected, ", found ", found), name);
}

// Sums in float64, and takes elements that are equal on all devices as they are: copies that no update has changed are
// saved with all their bits.
void write_mean_on_host(const std::vector<NDArray> &arrays, const NDArray &mean) {
  constexpr int64_t kElements = 1024;  // at a time, so that sums stay in the nearest cache
  std::vector<NDArray> hosts;
  for (const NDArray &array : arrays) hosts.push_back(array.on_host());
  const Dtype from = arrays[0].dtype(), to = mean.dtype();
  const double num = double(arrays.size());
  double first[kElements], sums[kElements], values[kElements];
  bool equal[kElements];
  const auto read = [&](const NDArray &host, int64_t begin, int64_t count, double *numbers) {
    const char *const source = static_cast<const char *>(host.data()) + size_t(begin) * dtype_size(from);
    cast_elements(source, from, numbers, Dtype::kFloat64, count);
  };
  for (int64_t begin = 0; begin < mean.size(); begin += kElements) {
    const int64_t count = std::min(kElements, mean.size() - begin);
    read(hosts[0], begin, count, first);
    std::copy_n(first, count, sums);
    std::fill_n(equal, count, true);
    for (size_t d = 1; d < hosts.size(); ++d) {
      read(hosts[d], begin, count, values);
      for (int64_t i = 0; i < count; ++i) {
        sums[i] += values[i];
        equal[i] &= values[i] == first[i];
      }
    }
    for (int64_t i = 0; i < count; ++i) sums[i] = equal[i] ? first[i] : sums[i] / num;
    cast_elements(sums, Dtype::kFloat64, static_cast<char *>(mean.data()) + size_t(begin) * dtype_size(to), to, count);
  }
}

// Mean of integers, rounded toward zero; computed without float64, which is exact only for integers up to 2^53.
NDArray whole_mean_of(const std::vector<NDArray> &arrays) {
  const NDArray mean = NDArray::create(arrays[0].shape(), Dtype::kInt64, Context());
  std::vector<__int128> sums(size_t(mean.size()), 0);
  for (const NDArray &array : arrays) {
    const NDArray host = array.on_host();
    const int64_t *const from = host.data_as<int64_t>();
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += from[i];
  }
  for (size_t i = 0; i < sums.size(); ++i) mean.data_as<int64_t>()[i] = int64_t(sums[i] / __int128(arrays.size()));
  return mean;
}

// PRM-08: the mean is cast last; that of integers that stay integers is exact.
void write_mean(const std::vector<NDArray> &arrays, const NDArray &target) {
  for (const NDArray &array : arrays) array.wait();
  const WorkSpan span(SpanKind::kCopy, "mean of copies", double(arrays[0].bytes() * (arrays.size() + 1)));
  if (arrays[0].dtype() == Dtype::kInt64 && target.dtype() == Dtype::kInt64)
    return target.copy_from(whole_mean_of(arrays));
  const bool in_place = target.context().on_host() && std::none_of(arrays.begin(), arrays.end(), [&](const NDArray &a) {
                          return a.range().overlaps(target.range());
                        });
  if (in_place) target.wait_to_write();
  const NDArray mean = in_place ? target : NDArray::create(target.shape(), target.dtype(), Context(), false);
  write_mean_on_host(arrays, mean);
  if (in_place) {
    target.written();
  } else {
    target.copy_from(mean);
  }
}

}  // namespace

void Group::set_params(const NamedArrays &args, const NamedArrays *aux, bool allow_extra) {
  const Executor &front = *impl_->current_binding->execs[0];
  std::vector<ParamCopy> copies;
  const auto collect = [&](const NamedArrays &arrays, bool is_aux) {
    for (const auto &entry : arrays) {
      const int index = is_aux ? front.aux_index(entry.first) : front.arg_index(entry.first);
      if (index < 0 && allow_extra) continue;
      if (index < 0) {
        throw Error(Code::kName,
                    text("'", entry.first, "' is not among the ", is_aux ? "auxiliary states" : "arguments",
                         nearest_words(is_aux ? impl_->aux_names : impl_->arg_names, entry.first)),
                    entry.first);
      }
      if (!entry.second) throw Error(Code::kInvalidArgument, text("'", entry.first, "' has no array"), entry.first);
      for (const auto &exec : impl_->current_binding->execs) {
        check_shape(entry.first, (is_aux ? exec->aux() : exec->args())[size_t(index)].shape(), entry.second.shape());
      }
      with_array_name(is_aux ? "auxiliary state" : "argument", entry.first, [&] { entry.second.check_known(); });
      copies.push_back({&entry.second, is_aux, size_t(index)});
    }
  };
  collect(args, false);
  if (aux) collect(*aux, true);
  const auto &execs = impl_->current_binding->execs;
  CopyJobs jobs;
  for (const ParamCopy &copy : copies) {
    jobs.reads(*copy.source);
    for (size_t d = 0; d < execs.size(); ++d) jobs.writes(target_of(*execs[d], copy), d);
  }
  jobs.run(execs.size(), [&](size_t d) {
    for (const ParamCopy &copy : copies) target_of(*execs[d], copy).copy_from(*copy.source);
  });
}

DataDescs Group::missing_params(const NamedArrays &args, const NamedArrays *aux, bool allow_missing) const {
  DataDescs missing;
  const auto collect = [&](GroupList list, const NamedArrays *given) {
    std::set<std::string> names;
    for (size_t i = 0; given && i < given->size(); ++i) names.insert((*given)[i].first);
    for (size_t i = 0; i < num_arrays(list); ++i) {
      if (names.count(name(list, i))) continue;
      const NDArray left = array(list, i, 0);
      missing.push_back({name(list, i), left.shape(), left.dtype(), ""});
    }
  };
  collect(GroupList::kParams, &args);
  collect(GroupList::kAux, aux);
  if (!missing.empty() && !allow_missing) {
    std::string all;
    for (const DataDesc &desc : missing) all += (all.empty() ? "'" : ", '") + desc.name + "'";
    throw Error(Code::kName, text("parameters: expected all, found none called ", all), missing[0].name);
  }
  return missing;
}

void Group::get_params(const NamedArrays &args, const NamedArrays *aux) const {
  std::vector<std::pair<const NDArray *, std::vector<NDArray>>> means;  // target, devices' arrays
  const auto collect = [&](GroupList list, const NamedArrays *targets, const char *what) {
    for (size_t i = 0; i < num_arrays(list); ++i) {
      const std::string &wanted = name(list, i);
      const NDArray *target = nullptr;
      for (size_t t = 0; targets && t < targets->size(); ++t)
        if ((*targets)[t].first == wanted) target = &(*targets)[t].second;
      if (!target || !*target) throw Error(Code::kName, text(what, " '", wanted, "' has no target"), wanted);
      std::vector<NDArray> sources;
      for (size_t d = 0; d < num_devices(); ++d) sources.push_back(array(list, i, d));
      check_same_shape(wanted, sources);
      check_shape(wanted, sources[0].shape(), target->shape());
      means.emplace_back(target, std::move(sources));
    }
  };
  collect(GroupList::kParams, &args, "parameter");
  collect(GroupList::kAux, aux, "auxiliary state");
  CopyJobs jobs;
  for (size_t i = 0; i < means.size(); ++i) {
    for (const NDArray &source : means[i].second) jobs.reads(source);
    jobs.writes(*means[i].first, i);
  }
  jobs.run(means.size(), [&](size_t i) {
    const auto &[target, sources] = means[i];
    if (sources.size() == 1)
      target->copy_from(sources[0]);
    else
      write_mean(sources, *target);
  });
}

void Group::copy_params(NamedArrays *args, NamedArrays *aux) const {
  const auto make = [&](GroupList list) {
    NamedArrays made;
    for (size_t i = 0; i < num_arrays(list); ++i) {
      const NDArray front = array(list, i, 0);
      made.emplace_back(name(list, i), NDArray::create(front.shape(), front.dtype(), Context()));
    }
    return made;
  };
  NamedArrays new_args = make(GroupList::kParams), new_aux = make(GroupList::kAux);
  get_params(new_args, &new_aux);
  *args = std::move(new_args);
  *aux = std::move(new_aux);
}

// ---- what training goes on from -------------------------------------------------------------------------------------

const std::shared_ptr<const TrainingSource> &Group::Impl::source_for_optimizer() {
  if (training_source) return training_source;
  auto source = std::make_shared<TrainingSource>();
  source->bucket = options.bucket;
  for (const auto &exec : current_binding->execs) {
    source->random.push_back(exec->stream_access());
    if (!options.keep_device_aux) continue;
    NamedArrays &aux = source->aux.emplace_back();
    for (size_t i = 0; i < aux_names.size(); ++i) aux.emplace_back(aux_names[i], exec->aux()[i]);
  }
  training_source = source;
  return training_source;
}

std::vector<RandomPositions> Group::random_state() const {
  impl_->check_idle("random_state");
  std::vector<RandomPositions> devices;
  for (const auto &exec : impl_->current_binding->execs) devices.push_back(exec->stream_access().positions());
  return devices;
}

void Group::set_random_state(std::vector<RandomPositions> devices) {
  impl_->check_idle("set_random_state");
  const auto &execs = impl_->current_binding->execs;
  if (devices.empty())
    throw Error(Code::kInvalidArgument, "random state: expected that of one device or more, found none", "data");
  while (devices.size() < execs.size()) {
    RandomPositions &own = devices.emplace_back(execs[devices.size()]->stream_access().positions());
    for (size_t i = 0; i < own.size() && i < devices[0].size(); ++i) own[i].draws = devices[0][i].draws;
  }
  for (size_t d = 0; d < execs.size(); ++d) execs[d]->stream_access().check(devices[d]);
  for (size_t d = 0; d < execs.size(); ++d) execs[d]->stream_access().set(devices[d]);
}

void Group::resume(Optimizer &optimizer) {
  Impl &self = *impl_;
  self.check_idle("resume");
  const TrainingState *const loaded = optimizer.loaded_training();
  if (!loaded) return;
  const bool sets_aux = self.options.keep_device_aux && !loaded->aux.empty();
  std::vector<std::pair<NDArray, const NDArray *>> copies;
  if (sets_aux && loaded->aux.size() != num_devices()) {
    throw Error(Code::kInvalidArgument,
                text("resume: expected auxiliary states of ", num_devices(), " devices, found those of ",
                     loaded->aux.size(), ", which these states were saved with"),
                "keep_device_aux");
  }
  for (size_t d = 0; sets_aux && d < num_devices(); ++d) {
    for (const auto &[name, array] : loaded->aux[d]) {
      const int index = executor(d)->aux_index(name);
      if (index < 0) throw Error(Code::kName, text("resume: '", name, "' is not among the auxiliary states"), name);
      copies.emplace_back(executor(d)->aux()[size_t(index)], &array);
      check_shape(name, copies.back().first.shape(), array.shape());
    }
  }
  const auto random = loaded->random.find(self.options.bucket);
  if (random != loaded->random.end()) set_random_state(random->second);
  for (const auto &[to, from] : copies) to.copy_from(*from);
  if (!self.loss_scale) return;
  if (const LossScaleState *const state = optimizer.take_loaded_loss_scale()) self.loss_scale->state() = *state;
}

void Group::set_states(const std::vector<std::vector<NDArray>> *states, const double *value) {
  if ((states != nullptr) == (value != nullptr)) {
    throw Error(Code::kInvalidArgument,
                text("set_states: expected either states or a value, found ", states ? "both" : "neither"), "states");
  }
  const size_t num_states = num_arrays(GroupList::kStates);
  if (value) {
    for (size_t s = 0; s < num_states; ++s)
      for (size_t d = 0; d < num_devices(); ++d) array(GroupList::kStates, s, d).fill(*value);
    return;
  }
  if (states->size() != num_states) {
    throw Error(Code::kInvalidArgument,
                text("set_states: the group has ", num_states, " states, found ", states->size()), "states");
  }
  for (size_t s = 0; s < num_states; ++s) {
    const std::string &state = name(GroupList::kStates, s);
    if ((*states)[s].size() != num_devices()) {
      throw Error(Code::kInvalidArgument,
                  text("num_devices: expected ", count_of(num_devices(), "array"), " of state '", state,
                       "', one per context, found ", (*states)[s].size()),
                  state);
    }
    for (size_t d = 0; d < num_devices(); ++d) {
      if (!(*states)[s][d]) throw Error(Code::kInvalidArgument, text("state '", state, "' has no array"), state);
      check_shape(state, array(GroupList::kStates, s, d).shape(), (*states)[s][d].shape());
    }
  }
  for (size_t s = 0; s < num_states; ++s) {
    for (size_t d = 0; d < num_devices(); ++d) {
      impl_->current_binding->execs[d]->load(impl_->state_args[s], (*states)[s][d]);
    }
  }
}

}  // namespace cohort
