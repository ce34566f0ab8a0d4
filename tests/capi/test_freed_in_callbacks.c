/* SPDX-License-Identifier: Apache-2.0 */
/* Callbacks free the handles of the call that they run in, as a garbage collector may when it sees no further use of
 * them: everything the call works on stays alive until it returns. */
#include "support/scale_op.h"

enum stage { kInfer, kCreate, kForward, kBackward, kNumStages };
enum { kMostHandles = 16 };

typedef struct {
  host scale;
  int stage, num_runs; /* the callback that frees everything, and how often it ran */
  size_t num_arrays;
  cohort_ndarray *arrays[kMostHandles], *others[kMostHandles];
  cohort_symbol *symbol;
  cohort_descs *descs;
  cohort_executor *executor;
  cohort_group *group;
  cohort_tape *tape;
} collector;

/* Frees all handles, then allocates memory of the same sizes and overwrites it. */
static void collect(collector *self, int stage) {
  size_t i;

  if (stage != self->stage || self->num_runs++ > 0) return;
  for (i = 0; i < self->num_arrays; ++i) cohort_ndarray_free(self->arrays[i]);
  cohort_symbol_free(self->symbol);
  cohort_descs_free(self->descs);
  cohort_executor_free(self->executor);
  cohort_group_free(self->group);
  cohort_tape_free(self->tape);
  for (i = 0; i < kMostHandles; ++i) self->others[i] = counted(SHAPE(7, 1, 3), 1000);
}

static int32_t infer(const char *const *keys, const char *const *values, size_t num_attrs, const cohort_descs *known,
                     cohort_descs *inputs, cohort_descs *aux, cohort_descs *outputs, void *user_data) {
  collect(user_data, kInfer);
  return scale_infer(keys, values, num_attrs, known, inputs, aux, outputs, &((collector *)user_data)->scale);
}

static int32_t create(const char *const *keys, const char *const *values, size_t num_attrs,
                      const cohort_context *context, void **out_state, void *user_data) {
  collect(user_data, kCreate);
  return scale_create(keys, values, num_attrs, context, out_state, &((collector *)user_data)->scale);
}

static int32_t run_forward(void *of, const cohort_arrays *inputs, const cohort_arrays *aux,
                           const cohort_arrays *outputs, cohort_bool is_train, void *user_data) {
  collect(user_data, kForward);
  return scale_forward(of, inputs, aux, outputs, is_train, &((collector *)user_data)->scale);
}

static int32_t run_backward(void *of, const cohort_arrays *head_grads, const cohort_arrays *inputs,
                            const cohort_arrays *aux, const cohort_arrays *outputs, const cohort_arrays *gradients,
                            void *user_data) {
  collect(user_data, kBackward);
  return scale_backward(of, head_grads, inputs, aux, outputs, gradients, &((collector *)user_data)->scale);
}

static void release(void *state, void *user_data) { scale_release(state, &((collector *)user_data)->scale); }
static void ended(void *user_data) { host_ended(&((collector *)user_data)->scale); }

static void start(collector *self) {
  cohort_custom_op op = COHORT_CUSTOM_OP_INIT;

  memset(self, 0, sizeof *self);
  self->stage = kNumStages;
  pthread_mutex_init(&self->scale.mutex, NULL);
  self->scale.caller = pthread_self();
  op.declare = scale_declare;
  op.infer_shape = infer;
  op.create = create;
  op.forward = run_forward;
  op.backward = run_backward;
  op.release = release;
  op.ended = ended;
  op.user_data = self;
  ok(cohort_custom_register("scale", &op));
}

/* Checks that the callback has run, and frees the rest. */
static void finish(collector *self) {
  size_t i;

  assert_true(self->num_runs > 0);
  for (i = 0; i < kMostHandles; ++i) cohort_ndarray_free(self->others[i]);
  end(&self->scale);
}

static cohort_ndarray *keep(collector *self, cohort_ndarray *array) { return self->arrays[self->num_arrays++] = array; }

static const char *const keys[] = {"op_type", "factor"}, *const values[] = {"scale", "3"};

static void arrays_of_an_operator_may_be_freed(void **state) {
  int stage;

  (void)state;
  for (stage = kInfer; stage <= kForward; ++stage) {
    collector self;
    cohort_ndarray *inputs[2], *given, *output = NULL;
    cohort_arrays *outputs = NULL;

    start(&self);
    inputs[0] = keep(&self, floats(SHAPE(2), FLOATS(4, 6)));
    inputs[1] = keep(&self, floats(SHAPE(1), FLOATS(0)));
    given = keep(&self, floats(SHAPE(2), FLOATS(0, 0)));
    self.stage = stage;
    ok(cohort_operator_invoke("Custom", keys, values, 2, inputs, 2, &given, 1, NULL, &outputs));
    ok(cohort_arrays_get(outputs, 0, &output));
    holds_free(output, 12, 18);
    cohort_arrays_free(outputs);
    finish(&self);
  }
}

static void a_tape_and_its_arrays_may_be_freed(void **state) {
  int stage;

  (void)state;
  for (stage = kInfer; stage < kNumStages; ++stage) {
    collector self;
    cohort_ndarray *inputs[2], *gradient = floats(SHAPE(2), FLOATS(0, 0)), *output = NULL;
    cohort_arrays *outputs = NULL;

    start(&self);
    inputs[0] = keep(&self, floats(SHAPE(2), FLOATS(4, 6)));
    inputs[1] = keep(&self, floats(SHAPE(1), FLOATS(0)));
    ok(cohort_tape_create(&self.tape));
    ok(cohort_tape_mark(self.tape, inputs, &gradient, NULL, 1));
    self.stage = stage;
    ok(cohort_tape_invoke(self.tape, "Custom", keys, values, 2, inputs, 2, NULL, 0, NULL, &outputs));
    ok(cohort_arrays_get(outputs, 0, &output));
    cohort_arrays_free(outputs);
    holds(output, 12, 18);
    if (stage == kBackward) {
      keep(&self, output);
      ok(cohort_tape_backward(self.tape, &output, NULL, 1, NULL));
      holds(gradient, 3, 3);
    } else {
      cohort_ndarray_free(output);
    }
    cohort_ndarray_free(gradient);
    finish(&self);
  }
}

static void what_is_bound_may_be_freed(void **state) {
  int stage, simple;

  (void)state;
  for (simple = 0; simple < 2; ++simple) {
    for (stage = kInfer; stage <= kCreate; ++stage) {
      collector self;
      cohort_executor *executor = NULL;

      start(&self);
      self.symbol = scale_node("3", variable("data"));
      self.stage = stage;
      if (simple) {
        self.descs = desc("data", SHAPE(2), NULL);
        ok(cohort_executor_simple_bind(self.symbol, NULL, self.descs, NULL, &executor));
      } else {
        cohort_ndarray *args[] = {keep(&self, floats(SHAPE(2), FLOATS(4, 6)))};
        cohort_ndarray *aux[] = {keep(&self, floats(SHAPE(1), FLOATS(0)))};

        ok(cohort_executor_bind(self.symbol, NULL, args, 1, NULL, NULL, aux, 1, NULL, &executor));
      }
      set_arg(executor, "data", 5, 7);
      ok(cohort_executor_forward(executor, 0));
      holds_free(output_of(executor, 0), 15, 21);
      cohort_executor_free(executor);
      finish(&self);
    }
  }
}

/* Frees the executor itself and its arguments; outputs that the caller holds live on. */
static void what_runs_may_be_freed(void **state) {
  int stage, of_group;

  (void)state;
  for (of_group = 0; of_group < 2; ++of_group) {
    for (stage = kCreate; stage < kNumStages; ++stage) {
      collector self;
      cohort_ndarray *head, *output, *gradient;

      start(&self);
      head = keep(&self, floats(SHAPE(2, 1), FLOATS(1, 10)));
      if (of_group) {
        cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;
        cohort_ndarray *data = keep(&self, floats(SHAPE(2, 1), FLOATS(5, 7)));

        options.inputs_need_grad = 1;
        self.group = bind_for_training(scale_node("3", variable("data")), 1, desc("data", SHAPE(2, 1), NULL), NULL,
                                       NO_NAMES, &options);
        output = device_array(self.group, COHORT_GROUP_OUTPUTS, 0, 0);
        gradient = device_array(self.group, COHORT_GROUP_INPUT_GRADS, 0, 0);
        self.stage = stage; /* inference has one node more */
        ok(cohort_group_forward(self.group, &data, 1, NULL, 0, stage != kCreate));
        if (stage == kBackward) ok(cohort_group_backward(self.group, &head, 1));
      } else {
        self.executor = simple_bind_with(scale_node("3", variable("data")), desc("data", SHAPE(2, 1), NULL), "write");
        set_arg(self.executor, "data", 5, 7);
        output = output_of(self.executor, 0);
        gradient = grad_of(self.executor, "data");
        self.stage = stage;
        ok(cohort_executor_forward(self.executor, stage != kCreate));
        if (stage == kBackward) ok(cohort_executor_backward(self.executor, &head, 1, 1));
      }
      holds_free(output, 15, 21);
      if (stage == kBackward) holds(gradient, 3, 30);
      cohort_ndarray_free(gradient);
      finish(&self);
    }
  }
}

static void the_arguments_of_a_group_may_be_freed(void **state) {
  int stage;

  (void)state;
  for (stage = kInfer; stage <= kCreate; ++stage) {
    collector self;
    cohort_group *group = NULL;

    start(&self);
    self.symbol = scale_node("3", variable("data"));
    self.descs = desc("data", SHAPE(2, 1), NULL);
    self.stage = stage;
    ok(cohort_group_create(self.symbol, test_contexts(), 2, self.descs, NULL, NULL, 0, 0, NULL, &group));
    forward(group, floats(SHAPE(2, 1), FLOATS(5, 7)), NULL, 0);
    holds_free(merged(group, COHORT_GROUP_OUTPUTS, 0), 15, 21);
    cohort_group_free(group);
    finish(&self);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(arrays_of_an_operator_may_be_freed),
      TEST(a_tape_and_its_arrays_may_be_freed),
      TEST(what_is_bound_may_be_freed),
      TEST(what_runs_may_be_freed),
      TEST(the_arguments_of_a_group_may_be_freed),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
