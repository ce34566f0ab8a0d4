// SPDX-License-Identifier: Apache-2.0
// Made from bindings/abi.json by bindings/tools/abi.pl; not to be edited.
package cohort.abi;

import com.sun.jna.Pointer;
import java.nio.Buffer;

/** The functions of cohort/optimizer.h; errors are addresses of cohort_error, 0 is success. */
public final class CohortOptimizer {
    private CohortOptimizer() {
    }

    static {
        Loader.register(CohortOptimizer.class);
    }

    /**
     * Makes an optimizer.
     *
     * For all: learning_rate; wd, weight decay (0); rescale_grad, which gradients are multiplied by (1); clip_gradient, the
     * largest absolute value that they may have after that (none; 0 is none, too); begin_num_update (0); multi_precision, a
     * float32 copy of float16 and bfloat16 parameters ("False"). Gradients are sums over the batch unless the loss says
     * otherwise: the caller then sets rescale_grad to 1 / batch size. learning_rate is 0.01 unless said otherwise. Then:
     *
     *   "sgd"           momentum 0; MXNet's older name for it, "ccsgd", is taken, too
     *   "nag"           momentum 0
     *   "adam"          learning_rate 0.001, beta1 0.9, beta2 0.999, epsilon 1e-8
     *   "adamw"         the same; weight decay apart from the gradient
     *   "adamax"        learning_rate 0.002, beta1 0.9, beta2 0.999; scales by the largest recent gradients. An element
     *                   whose gradients have all been 0 stays as it is
     *   "nadam"         learning_rate 0.001, beta1 0.9, beta2 0.999, epsilon 1e-8, schedule_decay 0.004; Adam with
     *                   Nesterov's momentum, which grows with the updates of a parameter
     *   "adadelta"      rho 0.9, epsilon 1e-5; ignores the learning rate; weight decay apart from the gradient
     *   "rmsprop"       learning_rate 0.001, gamma1 0.9, gamma2 0.9, epsilon 1e-8, centered 0, clip_weights none
     *   "adagrad"       epsilon 1e-7, which MXNet spells eps here: both are taken, for all optimizers
     *   "groupadagrad"  epsilon 1e-5; adagrad with one history for each row of a parameter, however many axes it has. wd is
     *                   0
     *   "ftrl"          learning_rate 0.1, lamda1 0.01, beta 1
     *   "ftml"          beta1 0.6, beta2 0.999, epsilon 1e-8
     *   "signum"        momentum 0.9, wd_lh 0; uses only the sign of the gradient
     *   "dcasgd"        momentum 0, lamda 0.04; SGD that compensates delay with the square of the gradient
     *   "lamb"          learning_rate 0.001, beta1 0.9, beta2 0.999, epsilon 1e-6, lower_bound none, upper_bound none,
     *                   bias_correction 1; Adam with a rate for each parameter that follows from the norm of the parameter,
     *                   which the bounds limit, and that of its step
     *   "lars"          momentum 0, eta 0.001, epsilon 0, momentum_correction 1; SGD with a rate for each parameter that
     *                   follows from the norms of the parameter and its gradient, except for names that end in gamma, beta
     *                   or bias; its momentum follows changes of the rate. Parameters that end in `_gamma` do not decay
     *   "lbsgd"         momentum 0, warmup_strategy "linear", warmup_epochs 5, batch_scale 1, updates_per_epoch 32,
     *                   begin_epoch 0, num_epochs 60 (of no effect); SGD for large batches: batch_scale gradients make one
     *                   step. With "linear", "power2" and "sqrt" its rate grows to batch_scale times the learning rate;
     *                   with "lars" it follows from the norms of parameter and gradient. The learning rate is that of a
     *                   schedule before the update. cohort_optimizer_get() and _set() give a strategy as its index among
     *                   these four, 0 to 3
     *   "sgld"          seed 0; Langevin dynamics: half a step plus normal noise of variance learning_rate. The seed, the
     *                   parameter's name and its number of updates choose the noise: it is the same on every device and in
     *                   every run
     *   "test"          adds the gradient, times rescale_grad
     *
     * "sgd", "adam" and "lars" take MXNet's lazy_update as well, which is for sparse gradients and has no effect here.
     * Returns: NULL, or COHORT_ERROR_NAME (no such optimizer or setting), COHORT_ERROR_INVALID_ARGUMENT (a value).
     * @param name In any case of letters.
     * @param keys Settings as text, in MXNet's names: "0.01", "True".
     */
    public static native long cohort_optimizer_create(String name, Pointer keys, Pointer values, long num_attrs, long[] out_optimizer);

    /**
     * Frees a handle; NULL does nothing.
     * @param optimizer may be NULL.
     */
    public static native void cohort_optimizer_free(long optimizer);

    /**
     * Reads a setting as a number: any key that cohort_optimizer_create() takes, and "num_update", the number of updates of
     * the parameter updated most often. "learning_rate" is the rate that the next update will use. A limit that is not set
     * is -1, whichever number of 0 or below switched it off: clip_gradient, clip_weights, lower_bound, upper_bound. Unknown:
     * COHORT_ERROR_NAME.
     */
    public static native long cohort_optimizer_get(long optimizer, String key, double[] out_value);

    /**
     * Reads states and counts that the same kind of optimizer saved. They go to the parameters' contexts at the next
     * update. What belongs to a group goes there by cohort_group_resume() or cohort_manager_resume().
     * Returns: NULL, or COHORT_ERROR_IO, or COHORT_ERROR_FORMAT: damaged, or from another kind of optimizer. Nothing changes
     *   then.
     */
    public static native long cohort_optimizer_load_states(long optimizer, String path);

    /** As cohort_optimizer_load_states(), from `bytes` bytes of memory, which are not kept. */
    public static native long cohort_optimizer_load_states_memory(long optimizer, Buffer data, long bytes);

    /**
     * The loss scale of the group that this optimizer updated last, as cohort_group_loss_scale() gives it. It is saved with
     * the states. After states are loaded, cohort_group_resume() sets it; without that call the next group that is updated
     * uses it from its next backward pass on.
     * @param out_scale may be NULL. 1, and the others 0, if there is none.
     * @param out_num_good may be NULL.
     * @param out_num_skipped may be NULL.
     */
    public static native long cohort_optimizer_loss_scale(long optimizer, double[] out_scale, int[] out_num_good, long[] out_num_skipped);

    /**
     * The multipliers that hold for a parameter. Not set: learning rate 1; weight decay 1 for names that end in `_weight`
     * or `_gamma` ("lars": in `_weight`), else 0.
     * @param out_lr_mult may be NULL.
     * @param out_wd_mult may be NULL.
     */
    public static native long cohort_optimizer_mult(long optimizer, String param, double[] out_lr_mult, double[] out_wd_mult);

    /**
     * Writes states and counts to a file, whole or not at all, so that training can go on later exactly as it would have.
     * With them goes what else the group that it updated last, or all buckets of a manager, go on from: the state of random
     * operators at this call, the loss scale and, with keep_device_aux of its options, the auxiliary states of each device.
     * Not saved: settings, multipliers and the schedule of the optimizer, and gradients to which a backward pass adds. Waits
     * for the states and the work that draws random numbers. COHORT_ERROR_IO names the file.
     */
    public static native long cohort_optimizer_save_states(long optimizer, String path);

    /**
     * As cohort_optimizer_save_states(), into memory.
     * @param out_data may be NULL. NULL: only the size is wanted.
     */
    public static native long cohort_optimizer_save_states_memory(long optimizer, Buffer out_data, long capacity, long[] out_bytes);

    /**
     * Changes a setting from the next update on: any key that cohort_optimizer_create() takes with a number.
     * Returns: NULL, or COHORT_ERROR_NAME; COHORT_ERROR_STATE for "learning_rate" while a schedule decides it.
     */
    public static native long cohort_optimizer_set(long optimizer, String key, double value);

    /**
     * Lets a schedule decide the learning rate from the number of updates, starting from the current learning rate.
     *
     * For all: warmup_steps (0), warmup_begin_lr (0), warmup_mode ("linear" or "constant"). Then:
     *
     *   "constant"
     *   "factor"       every `step` updates times `factor` (1), not below stop_factor_lr (1e-8)
     *   "multifactor"  times `factor` (1) at each of the updates in `step`, "(100, 200)"
     *   "poly"         from base to final_lr (0) over max_update updates with power `pwr` (2)
     *   "cosine"       from base to final_lr (0) over max_update updates
     * @param name may be NULL. NULL: no schedule; the learning rate stays as it is.
     */
    public static native long cohort_optimizer_set_lr_schedule(long optimizer, String name, Pointer keys, Pointer values, long num_attrs);

    /** Sets the multipliers of a parameter's learning rate and weight decay. Negative: as if not set. */
    public static native long cohort_optimizer_set_mult(long optimizer, String param, double lr_mult, double wd_mult);

    /**
     * Updates one parameter from its gradient. Queued.
     * Returns: NULL, or COHORT_ERROR_SHAPE, COHORT_ERROR_DTYPE, COHORT_ERROR_DEVICE, or COHORT_ERROR_EXECUTION if an array
     *   that it reads is known to be bad; then the update is not counted, and the optimizer gets no states for it. If the
     *   update fails later, weight and states are
     *   bad until they are written again, the states by cohort_optimizer_load_states().
     * @param param The parameter's name, under which states, counts and multipliers are kept.
     * @param copy The index of this copy of the parameter: each copy has states of its own. 0 for the only one.
     * @param weight The parameter; written.
     * @param grad Its gradient: of the same shape, dtype and context.
     */
    public static native long cohort_optimizer_update(long optimizer, String param, long copy, long weight, long grad);

    /**
     * Takes the multipliers of a symbol's variables: their `__lr_mult__` and `__wd_mult__`. Multipliers set by
     * cohort_optimizer_set_mult() override them.
     */
    public static native long cohort_optimizer_use_symbol(long optimizer, long symbol);
}
