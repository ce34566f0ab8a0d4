// SPDX-License-Identifier: Apache-2.0
// Failures of a GPU on the simulated runtime: errors name the device and the work, unwritten arrays are marked,
// everything can still be freed; and the error of an unusable driver. Each device breaks once, and the others keep
// working.
#include <cohort/cohort.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/settings.hpp"
#include "cuda_control.hpp"
#include "executor/invoke.hpp"
#include "group/group.hpp"
#include "support/unit.hpp"

using namespace cohort;

namespace {

const auto seed_anew = CONTROL(cudasim_seed);  // before the first use of a device
const auto fail_call = CONTROL(cudasim_fail_call);
const auto num_objects = CONTROL(cudasim_num_objects);
const auto num_replays = CONTROL(cudasim_num_replays);
const Context kCpu, kGpu0{DeviceType::kGpu, 0}, kGpu1{DeviceType::kGpu, 1}, kGpu2{DeviceType::kGpu, 2},
    kGpu3{DeviceType::kGpu, 3};

void replay(bool wanted) { setenv(kCudaGraphs.name, wanted ? "1" : "0", 1); }

constexpr int64_t kBatch = 6, kInputs = 5, kClasses = 3;

Symbol layer(const std::string &op, const AttrMap &attrs, const std::string &name, const Symbol &input) {
  return Symbol::create(op, attrs, name, {}, {input});
}

// one -> norm -> two -> softmax
Symbol network() {
  Symbol net = layer("FullyConnected", {{"num_hidden", "7"}}, "one", Symbol::variable("data"));
  net = layer("BatchNorm", {{"fix_gamma", "0"}}, "norm", net).output(0);
  net = layer("FullyConnected", {{"num_hidden", std::to_string(kClasses)}}, "two", net);
  return Symbol::create("SoftmaxOutput", {}, "softmax", {}, {net});
}

std::shared_ptr<Group> group_on(const Context &context) {
  GroupOptions options;
  options.contexts = {context};
  options.all_params = true;
  options.num_threads = 1;
  const auto group =
      Group::create(network(), {{"data", Shape{kBatch, kInputs}}}, {{"softmax_label", Shape{kBatch}}}, options);
  NamedArrays params;
  for (size_t i = 0; i < group->num_arrays(GroupList::kParams); ++i) {
    const NDArray array = NDArray::create(group->array(GroupList::kParams, i, 0).shape(), Dtype::kFloat32, kCpu);
    array.fill_uniform(-0.5, 0.5, 7 + i);
    params.emplace_back(group->name(GroupList::kParams, i), array);
  }
  group->set_params(params, nullptr, true);
  return group;
}

std::shared_ptr<Optimizer> sgd() { return Optimizer::create("sgd", {{"learning_rate", "0.1"}, {"momentum", "0.9"}}); }

void forward(Group &group) {
  const NDArray data = NDArray::create(Shape{kBatch, kInputs}, Dtype::kFloat32, kCpu);
  const NDArray label = NDArray::create(Shape{kBatch}, Dtype::kFloat32, kCpu);
  data.fill_uniform(-1, 1, 3);
  label.fill(1);
  group.forward({data}, {label}, 1);
}

void step(Group &group, const std::shared_ptr<Optimizer> &optimizer) {
  forward(group);
  group.backward({});
  group.update(optimizer, UpdateMode::kNoStore);
}

template <typename Fn>
std::string error_of(const Fn &fn, Code *code = nullptr) {
  try {
    fn();
  } catch (const Error &error) {
    if (code) *code = error.code();
    return error.what();
  }
  return "";
}

bool has(const std::string &text, const std::string &part) { return text.find(part) != std::string::npos; }

void check_has(const std::string &text, const std::string &part) {
  if (!has(text, part)) unit::fail(__FILE__, __LINE__, "'" + text + "' has no '" + part + "'");
}

// Names a node, a parameter, an operator or a copy; events between queues belong to none.
bool says_whose(const std::string &error) {
  for (const char *whose : {"'", "operator ", "copy", "wait", "in cudaEvent"})
    if (has(error, whose)) return true;
  return false;
}

// Leaves only a little memory free on a device.
struct Full {
  explicit Full(const Context &context, size_t room = 1) : context(context) {
    release_invoked();
    wait_until_released();
    memory_account(context).set_limit(memory_account(context).counts().used + room);
  }
  ~Full() { memory_account(context).set_limit(0); }
  const Context context;
};

// Reads every array: unwritten ones give an error.
size_t num_marked(const Group &group, GroupList list) {
  size_t count = 0;
  for (size_t i = 0; i < group.num_arrays(list); ++i) count += group.array(list, i, 0).failed() ? 1 : 0;
  return count;
}

}  // namespace

// ---- errors

// Fails every call in turn, in passes that run step by step, are recorded, and are replayed, and in the calls around
// them.
TEST(whichever_call_fails_the_error_names_the_device_and_the_work) {
  seed_anew(2);
  for (const bool replays : {false, true}) {
    replay(replays);
    for (const int num_before : {0, 2, 3}) {  // then the program is new, recorded, or replayed
      int num_errors = 0;
      for (uint64_t nth = 1; nth < 60; ++nth) {
        const auto group = group_on(kGpu1);
        const auto optimizer = sgd();
        const NDArray x = NDArray::create(Shape{4}, Dtype::kFloat32, kGpu1), y = x.copy_to(kGpu1);
        invoke("square", {}, {x}, {}, kGpu1);
        for (int i = 0; i < num_before; ++i) step(*group, optimizer);
        group->wait();
        fail_call(nth, nth % 2 ? 2 : 999);  // cudaErrorMemoryAllocation, cudaErrorUnknown
        const std::string error = error_of([&] {
          step(*group, optimizer);
          const NDArray z = invoke("square", {}, {x}, {}, kGpu1)[0];
          z.copy_from(y);
          z.wait();
          group->wait();
        });
        fail_call(0, 0);
        try {
          group->wait();
        } catch (const Error &) {  // errors after the first one
        }
        if (error.empty()) continue;
        ++num_errors;
        check_has(error, "gpu(1)");
        if (!says_whose(error)) unit::fail(__FILE__, __LINE__, "nobody is named in: " + error);
      }
      CHECK(num_errors > 10);
    }
  }
  replay(true);
  CONTROL(cudasim_reports)();
}

// Which step of a graph has failed is not known: the message names what is.
TEST(a_fault_in_a_replayed_graph_names_the_device_the_pass_and_its_first_and_last_step) {
  for (const bool replays : {true, false}) {
    const Context where = replays ? kGpu3 : kGpu2;
    replay(replays);
    seed_anew(2);
    const auto group = group_on(where), other = group_on(kGpu0);
    const auto optimizer = sgd(), of_other = sgd();
    for (int i = 0; i < 4; ++i) step(*group, optimizer);
    group->wait();
    const uint64_t before = num_replays();
    CONTROL(cudasim_stop_device)(where.id, 1);  // no work runs before it breaks
    step(*group, optimizer);
    CHECK_EQ(num_replays() - before, replays ? 3u : 0u);
    const NDArray beside = NDArray::create(Shape{4}, Dtype::kFloat32, kGpu0);
    CONTROL(cudasim_break_device)(where.id);
    CONTROL(cudasim_stop_device)(where.id, 0);
    const std::string name = text(where), error = error_of([&] { group->wait(); });
    check_has(error, "CUDA: an illegal memory access was encountered on " + name + ", in ");
    check_has(error, "forward (FullyConnected 'one' to SoftmaxOutput 'softmax'), backward (");
    check_has(error, "), update (sgd 'two_weight' to sgd 'one_bias') or other work of that device");
    // All its outputs are marked.
    CHECK_EQ(num_marked(*group, GroupList::kOutputs), 1u);
    CHECK_EQ(num_marked(*group, GroupList::kParams), group->num_arrays(GroupList::kParams));
    CHECK_EQ(num_marked(*group, GroupList::kGrads), group->num_arrays(GroupList::kGrads));
    CHECK_EQ(num_marked(*group, GroupList::kAux), group->num_arrays(GroupList::kAux));
    const NDArray output = group->array(GroupList::kOutputs, 0, 0);
    check_has(error_of([&] { output.copy_to(kCpu).wait(); }), name);
    // Later calls give the error; calls on other devices do not.
    for (int i = 0; i < 2; ++i) {
      const std::string later = error_of([&] {
        forward(*group);
        group->wait();
      });
      check_has(later, name);
    }
    check_has(error_of([&] { NDArray::create(Shape{4}, Dtype::kFloat32, where); }), name);
    check_has(error_of([&] { group_on(where); }), name);
    step(*other, of_other);
    other->wait();
    CHECK_EQ(num_marked(*other, GroupList::kParams), 0u);
    beside.fill(1);
    beside.wait();
  }
  replay(true);
  CONTROL(cudasim_reports)();
}

TEST(out_of_memory_errors_name_the_device_the_amount_and_the_purpose) {
  seed_anew(2);
  const NDArray kept = NDArray::create(Shape{1000}, Dtype::kFloat32, kGpu0);
  Code code = Code::kInternal;
  {
    const Full full(kGpu0);
    const std::string bound = error_of([] { group_on(kGpu0); }, &code);
    CHECK(code == Code::kOutOfMemory);
    check_has(bound, "output 'softmax_output': gpu(0): no room for 72 bytes within the limit of ");
    const std::string applied = error_of([&] { invoke("square", {}, {kept}, {}, kGpu0); }, &code);
    CHECK(code == Code::kOutOfMemory);
    check_has(applied, "operator square: gpu(0): no room for 4000 bytes");
  }
  {
    const Full full(kGpu0, 100);  // enough for the outputs
    check_has(error_of([] { group_on(kGpu0); }), "shared array 'data': gpu(0): no room for 120 bytes");
  }
  {
    const Full full(kGpu0, 300);
    check_has(error_of([] { group_on(kGpu0); }), "'one_weight': gpu(0): no room for 140 bytes");
  }
  // Memory for all arrays of an executor, but not for the values between its nodes.
  const Symbol net = layer("softmax", {}, "after", layer("softmax", {}, "before", Symbol::variable("x")));
  const std::vector<NDArray> args{NDArray::create(Shape{100, 10}, Dtype::kFloat32, kGpu0)};
  ExecutorOptions options;
  options.context = kGpu0;
  options.outputs = {NDArray::create(Shape{100, 10}, Dtype::kFloat32, kGpu0)};
  const auto bind = [&] {
    Executor::bind(net, args, std::vector<NDArray>(1), {GradReq::kNull}, {}, options)->forward(false);
  };
  {
    const Full full(kGpu0);
    const std::string error = error_of(bind, &code);
    CHECK(code == Code::kOutOfMemory);
    check_has(error, "memory for intermediate values: gpu(0): no room for ");
    check_has(error, "the largest step is softmax 'before', with ");
  }
  bind();
  // Memory that the device itself allocates.
  const size_t in_use = CONTROL(cudasim_bytes_in_use)(0);
  CONTROL(cudasim_set_memory)(in_use + 2000);
  const std::string device = error_of([&] { invoke("square", {}, {kept}, {}, kGpu0); }, &code);
  CONTROL(cudasim_set_memory)(size_t(1) << 30);
  CHECK(code == Code::kOutOfMemory);
  check_has(device, "operator square: gpu(0): no memory for 4000 bytes; ");
}

// By a queued copy and by an operator, before and after the failure of the device is detected.
TEST(outputs_of_failed_work_are_marked_and_every_handle_can_be_freed) {
  if (!std::getenv("COHORT_TEST_BROKEN")) {  // breaks a device that other tests use
    for (const char *seed : {"2", "3", "4"})
      CHECK(passes_again_with(std::string("COHORT_TEST_BROKEN=1 CUDASIM_SEED=") + seed, __func__));
    return;
  }
  const auto ok = [](cohort_error *error) {
    const std::string what = error ? cohort_error_message(error) : "";
    cohort_error_free(error);
    if (!what.empty()) unit::fail(__FILE__, __LINE__, what);
  };
  const cohort_context gpu{COHORT_DEVICE_GPU, 0};
  const int64_t shape[] = {4, 5};
  const float numbers[20] = {1, 2, 3};
  const char *const units = "num_hidden", *const three = "3", *const params[] = {"fc_weight", "fc_bias"};
  cohort_symbol *net = nullptr;
  cohort_descs *data = nullptr;
  cohort_group *group = nullptr;
  cohort_executor *executor = nullptr;
  cohort_optimizer *optimizer = nullptr;
  cohort_ndarray *batch = nullptr, *there = nullptr, *copied = nullptr, *weight = nullptr, *merged = nullptr;
  ok(cohort_symbol_create("FullyConnected", "fc", &units, &three, 1, nullptr, nullptr, 0, &net));
  ok(cohort_descs_create(&data));
  ok(cohort_descs_add(data, "fc_data", shape, 2, COHORT_DTYPE_FLOAT32, nullptr));
  ok(cohort_group_create(net, &gpu, 1, data, nullptr, params, 2, 1, nullptr, &group));
  ok(cohort_optimizer_create("sgd", nullptr, nullptr, 0, &optimizer));
  ok(cohort_ndarray_from_host(numbers, sizeof numbers, shape, 2, COHORT_DTYPE_FLOAT32, nullptr, &batch));
  ok(cohort_ndarray_copy(batch, &gpu, &there));
  ok(cohort_ndarray_zeros(shape, 2, COHORT_DTYPE_FLOAT32, &gpu, &copied));
  const NDArray here = NDArray::create(Shape{4, 5}, Dtype::kFloat32, kCpu), on_gpu = here.copy_to(kGpu0);
  const NDArray squared = NDArray::create(Shape{4, 5}, Dtype::kFloat32, kGpu0);
  on_gpu.wait();
  const int64_t head_shape[] = {4, 3};
  cohort_ndarray *head = nullptr;
  ok(cohort_ndarray_zeros(head_shape, 2, COHORT_DTYPE_FLOAT32, &gpu, &head));
  const auto pass = [&] {
    cohort_error *error = cohort_group_forward(group, &batch, 1, nullptr, 0, 1);
    if (!error) error = cohort_group_backward(group, &head, 1);
    if (!error) error = cohort_group_update(group, optimizer, COHORT_UPDATE_NO_STORE);
    return error;
  };
  for (int i = 0; i < 4; ++i) ok(pass());
  ok(cohort_group_wait(group));
  CONTROL(cudasim_stop_device)(0, 1);
  ok(pass());
  ok(cohort_ndarray_copy_to(there, copied));
  invoke("square", {}, {on_gpu}, {squared}, kGpu0);
  CONTROL(cudasim_break_device)(0);
  CONTROL(cudasim_stop_device)(0, 0);
  const auto fails = [](cohort_error *error) {
    if (!error) unit::fail(__FILE__, __LINE__, "there is no error");
    check_has(cohort_error_message(error), "gpu(0)");
    cohort_error_free(error);
  };
  float back[20];
  fails(cohort_ndarray_read(copied, back, sizeof back));
  CHECK_THROWS(squared.wait(), Error, "gpu(0)");
  fails(cohort_group_wait(group));
  ok(cohort_group_array(group, COHORT_GROUP_PARAMS, 0, 0, &weight));
  fails(cohort_ndarray_read(weight, back, 15 * sizeof(float)));
  cohort_error *read = cohort_group_merged(group, COHORT_GROUP_OUTPUTS, 0, &merged);
  if (!read) read = cohort_ndarray_read(merged, back, 12 * sizeof(float));
  fails(read);
  ok(cohort_group_executor(group, 0, &executor));
  cohort_error *const again = pass();
  if (again) {
    check_has(cohort_error_message(again), "gpu(0)");
    cohort_error_free(again);
  } else {
    fails(cohort_group_wait(group));
  }
  cohort_group_free(group);
  cohort_executor_free(executor);
  cohort_optimizer_free(optimizer);
  cohort_descs_free(data);
  cohort_symbol_free(net);
  for (cohort_ndarray *array : {batch, there, copied, weight, merged, head}) cohort_ndarray_free(array);
  CHECK_EQ(cohort_live_handles(), size_t(0));
}

// ---- events

// Counts streams, graphs and events alive; events of finished work are reused.
TEST(events_are_used_again_and_stay_few_however_many_steps_there_are) {
  replay(true);
  for (const uint64_t seed : {2, 3}) {
    seed_anew(seed);
    const auto one = group_on(kGpu0), two = group_on(kGpu1);
    const auto of_one = sgd(), of_two = sgd();
    const NDArray a = NDArray::create(Shape{64}, Dtype::kFloat32, kGpu0), b = a.copy_to(kGpu1);
    const auto steps = [&](int count, int between_waits) {
      for (int i = 0; i < count; ++i) {
        step(*one, of_one);
        step(*two, of_two);
        b.copy_from(a);  // from queue to queue
        a.copy_from(invoke("square", {}, {b}, {}, kGpu1)[0]);
        if (i % between_waits == between_waits - 1) one->wait(), two->wait(), a.wait();
      }
    };
    steps(60, 30);  // more at once than later, independent of the progress of the queues
    wait_until_released();
    const int before = num_objects();
    steps(unit::kSanitized ? 100 : 1000, 10);
    wait_until_released();
    CHECK(num_objects() <= before);
  }
  CHECK_EQ(std::string(CONTROL(cudasim_reports)()), std::string());
}

// A stream that waits for a released event waits for its record at the time of the call, although the handle has been
// reused by then.
TEST(a_reused_event_still_blocks_streams_that_wait_for_its_earlier_record) {
  for (uint64_t seed = 0; seed < 8; ++seed) {
    seed_anew(seed);
    const std::shared_ptr<Device> device = get_device(kGpu0);
    const std::shared_ptr<Queue> first = device->create_queue(QueueOptions()),
                                 second = device->create_queue(QueueOptions()),
                                 third = device->create_queue(QueueOptions());
    const std::shared_ptr<Memory> there = device->allocate(1 << 16);
    for (int i = 0; i < 20; ++i) {
      const auto from = std::make_shared<std::vector<char>>(1 << 16, char('a' + i));
      const auto to = std::make_shared<std::vector<char>>(1 << 16);
      first->copy(there->data(), from->data(), from->size(), from);
      second->wait(first->record());  // releases the event at once
      for (int k = 0; k < 8; ++k) third->record();
      second->copy(to->data(), there->data(), to->size(), to);
      first->wait(second->record());
      for (int k = 0; k < 8; ++k) third->record();
      second->sync();
      CHECK(*to == *from);
    }
    first->sync();
  }
}

// ---- unusable drivers

// Runs in processes of their own, with the setting in their environment.
TEST(a_driver_that_is_too_old_is_reported_at_the_first_context_and_all_else_works) {
  if (!std::getenv("CUDASIM_DRIVER")) {
    CHECK(passes_again_with("CUDASIM_DRIVER=12040", __func__));
    CHECK(passes_again_with("CUDASIM_DRIVER=0", __func__));
    return;
  }
  const bool none = std::string(std::getenv("CUDASIM_DRIVER")) == "0";
  const std::string why =
      none ? "there is no CUDA driver" : "the CUDA driver is too old: it supports CUDA 12.4, and must support ";
  for (int i = 0; i < 2; ++i) {
    Code code = Code::kInternal;
    check_has(error_of([] { NDArray::create(Shape{4}, Dtype::kFloat32, kGpu0); }, &code), "gpu(0): " + why);
    CHECK(code == Code::kDevice);
    check_has(error_of([] { group_on(kGpu1); }), "gpu(1): " + why);
    CHECK_EQ(count_devices(DeviceType::kGpu), 0);
    std::string reason;
    CHECK(!backend_available(DeviceType::kGpu, &reason));
    check_has(reason, why);
    const auto group = group_on(kCpu);
    step(*group, sgd());
    group->wait();
    CHECK_EQ(num_marked(*group, GroupList::kParams), 0u);
  }
}

UNIT_MAIN()
