/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file cohort.hpp
 * The C interface as C++17 classes: owners of handles, errors as exceptions, vectors and spans for arrays and shapes.
 * Header only, over cohort.h alone; its parts are cpp_*.hpp, one for each kind of object. Each member names the C function that it calls; the comment of that function has
 * shapes, ranges and errors.
 *
 *   using namespace cohort;
 *   const Symbol fc = Symbol::create("FullyConnected", "fc", {{"num_hidden", 1}});
 *   const Symbol net = Symbol::create("LinearRegressionOutput", "fit", {}, {fc});
 *   Group group(net, {"cpu(0)", "cpu(1)"}, {{"fc_data", {8, 1}}}, {{"fit_label", {8, 1}}});
 *   Optimizer sgd("sgd", {{"learning_rate", 0.01}});
 *   group.forward({x}, {y}, true);
 *   group.backward();
 *   group.update(sgd);
 *
 * Ownership. An object owns one handle and frees it in its destructor. Objects can be moved, and destroyed in any order
 * on any thread: the library keeps what a handle uses. Copying an NDArray gives a second handle on the same array;
 * copying a Symbol gives a symbol of the same heads; the other classes cannot be copied. An object that was moved from, or
 * made without arguments where the class allows it, is empty: it converts to false, get() is null, and a member called on
 * it throws Error with COHORT_ERROR_INVALID_ARGUMENT. Lists (Arrays, Descs) made without arguments are lists without
 * entries. Text and vectors that members return are copies.
 *
 * Errors. A call that fails throws Error, with the code, message and subject of the C error; the object is as before the
 * call unless the C function says otherwise. Destructors do not throw.
 *
 * Threads. As cohort.h has it: one object is used by one thread at a time, by any thread.
 *
 * Callbacks are std::function objects. What a callback throws comes out of the call in which it ran, in place of an Error;
 * callbacks that run where no call can pass it on say so. The closure is kept as long as an object that it was given to, or
 * one made from that (a reshaped executor, a child of a metric); after that the library finds it gone: the callback then
 * does nothing, or refuses.
 *
 * Calling C functions directly: get() gives the handle; check(), make() and query() turn errors into exceptions.
 *
 * All names are in an inline namespace, so that they differ in object files from those inside libcohort.a.
 *
 * MXNet's mxnet::Executor, member by member:
 *
 *   Bind                     Executor::bind              SimpleBind            Executor::simple_bind
 *   Forward                  forward                     PartialForward        partial_forward, which returns step_left
 *   Backward                 backward                    Reshape               reshape
 *   outputs                  outputs                     in_arg_map            arg_map
 *   arg_grad_map             grad_map                    aux_state_map         aux_map
 *   SetMonitorCallback       set_monitor                 Print                 print, debug_text
 *   MonitorCallback          MonitorFunction             shared_exec           ExecutorOptions::shared_executor
 *   group2ctx                ExecutorOptions::group2ctx  shared_data_arrays    ExecutorOptions::shared_data
 *   grad_req_type            the argument grad_req       param_names           ExecutorOptions::shared_arg_names
 *   partial_shaping, allow_up_sizing, default_ctx, ctx_map                     ReshapeOptions
 */
#ifndef COHORT_COHORT_HPP
#define COHORT_COHORT_HPP

#include "cohort/cpp_arrays.hpp"
#include "cohort/cpp_base.hpp"
#include "cohort/cpp_custom.hpp"
#include "cohort/cpp_executors.hpp"
#include "cohort/cpp_groups.hpp"
#include "cohort/cpp_library.hpp"
#include "cohort/cpp_managers.hpp"
#include "cohort/cpp_monitors.hpp"
#include "cohort/cpp_operators.hpp"
#include "cohort/cpp_symbols.hpp"
#include "cohort/cpp_tapes.hpp"
#include "cohort/cpp_traces.hpp"
#include "cohort/cpp_training.hpp"

#endif /* COHORT_COHORT_HPP */
