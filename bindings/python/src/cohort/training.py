# SPDX-License-Identifier: Apache-2.0
"""Training in one call: :func:`fit`, with callbacks that report progress."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from ._library import describe, to_int
from .context import cpu
from .errors import InvalidArgumentError
from .executor_group import DataParallelExecutorGroup
from .initializer import Initializer, Uniform
from .io import DataDesc
from .metric import EvalMetric, create as create_metric, figures_of
from .ndarray import NDArray
from .optimizer import Optimizer, create as create_optimizer
from .symbol import Symbol


class Progress:
    """The argument of callbacks.

    Attributes:
        group: the :class:`DataParallelExecutorGroup` that is trained
        optimizer: the :class:`Optimizer` that updates it
        num_epoch: the number of epochs asked for
        epoch: the present one, from 0
        batch: the present one of this epoch, from 0
        train: metrics of the training data by name; of this epoch at its end, until then of the epoch before
        eval: metrics of the evaluation data by name, at the end of an epoch
        stopped: whether :meth:`stop` was called
    """

    def __init__(self, group: DataParallelExecutorGroup, optimizer: Optimizer, num_epoch: int) -> None:
        self.group, self.optimizer, self.num_epoch = group, optimizer, num_epoch
        self.epoch = 0
        self.batch = 0
        self.train: Dict[str, float] = {}
        self.eval: Dict[str, float] = {}
        self.stopped = False

    def stop(self) -> None:
        """Ends training after the current batch."""
        self.stopped = True


class Callback:
    """Callbacks for more than the end of each epoch. A plain function is called at the end of epochs only."""

    def on_batch_end(self, progress: Progress) -> None:
        """After each batch; ``progress.train`` is that of the epoch before."""

    def on_epoch_end(self, progress: Progress) -> None:
        """After each epoch, with the metrics of both data sets."""


class Fitted:
    """The result of training. It is closed with ``close()``, or at the end of ``with``.

    Attributes:
        group: the :class:`DataParallelExecutorGroup` that was trained, and can be trained further
        optimizer: the :class:`Optimizer` that updated it
        history: for each epoch a dict of metrics: "train-accuracy", "eval-accuracy", ...
    """

    def __init__(self, group: DataParallelExecutorGroup, optimizer: Optimizer, history: List[Dict[str, float]]) -> None:
        self.group, self.optimizer, self.history = group, optimizer, history

    def get_params(self) -> Tuple[Dict[str, NDArray], Dict[str, NDArray]]:
        """Parameters and auxiliary states by name, as means over the devices."""
        return self.group.copy_params()

    def close(self) -> None:
        """Frees group and optimizer."""
        self.group.close()
        self.optimizer.close()

    def __enter__(self) -> "Fitted":
        return self

    def __exit__(self, *reason: Any) -> None:
        self.close()


def fit(
    symbol: Symbol,
    train_data: Any,
    eval_data: Any = None,
    eval_metric: Any = "acc",
    optimizer: Any = "sgd",
    optimizer_params: Optional[Mapping[str, Any]] = None,
    initializer: Optional[Initializer] = None,
    arg_params: Optional[Mapping[str, Any]] = None,
    aux_params: Optional[Mapping[str, Any]] = None,
    allow_missing: bool = False,
    num_epoch: int = 1,
    contexts: Any = None,
    workload: Optional[Sequence[float]] = None,
    fixed_param_names: Optional[Sequence[str]] = None,
    callbacks: Sequence[Any] = (),
    logger: Any = None,
    seed: int = 0,
    compute_dtype: Any = "float32",
    *,
    float32_names: Any = None,
    narrow_names: Any = None,
    loss_scale: float = 0,
    loss_scale_window: int = 0,
    backward_once: bool = False,
    gradient_sum_dtype: Any = "float32",
    num_threads: int = 0,
    tf32: bool = False,
    recompute: bool = False,
    keep_device_aux: bool = False,
    allow_extra: bool = False,
) -> Fitted:
    """Trains a network on an iterator such as :class:`cohort.NDArrayIter`. Batches may be of several lengths.

    ``callbacks`` are functions of a :class:`Progress`, called at the end of each epoch, or :class:`Callback` objects.
    Parameters that are not given (with ``allow_missing``), or all, are filled by the initializer; those that the
    network does not have are errors, or ignored with ``allow_extra``. ``rescale_grad`` is 1
    / batch size unless ``optimizer_params`` contains it. Precision, ``loss_scale``, ``gradient_sum_dtype``,
    ``backward_once``, ``recompute``, ``tf32`` and ``keep_device_aux`` are those of :class:`DataParallelExecutorGroup`.

    If ``optimizer`` is one that has loaded states, training goes on from ``arg_params`` and ``aux_params`` as it would
    have when they were saved, with the same bits; on several devices set ``keep_device_aux`` in both calls for that.
    """
    epochs = to_int(num_epoch, "num_epoch", 0, 2**31 - 1)
    told = [_to_callback(callback) for callback in callbacks]
    where = [cpu()] if contexts is None else contexts
    group = DataParallelExecutorGroup(
        symbol,
        where,
        workload,
        train_data.provide_data,
        train_data.provide_label,
        None,
        True,
        False,
        logger=logger,
        fixed_param_names=fixed_param_names,
        seed=seed,
        compute_dtype=compute_dtype,
        float32_names=float32_names,
        narrow_names=narrow_names,
        loss_scale=loss_scale,
        loss_scale_window=loss_scale_window,
        backward_once=backward_once,
        gradient_sum_dtype=gradient_sum_dtype,
        num_threads=num_threads,
        tf32=tf32,
        recompute=recompute,
        keep_device_aux=keep_device_aux,
        strict_names=True,
    )
    try:
        if arg_params is None or allow_missing:
            group.init_params(Uniform(seed=seed) if initializer is None else initializer)
        if arg_params is not None:
            group.assign_params(arg_params, aux_params, allow_missing, allow_extra)
        settings: Dict[str, Any] = {"rescale_grad": 1.0 / (group.batch_size or 1), **dict(optimizer_params or {})}
        rule = create_optimizer(optimizer, **settings) if isinstance(optimizer, str) else create_optimizer(optimizer)
        rule.use_symbol(symbol)
        group.resume(rule)
        metric = create_metric(eval_metric)
        progress = Progress(group, rule, epochs)
        history: List[Dict[str, float]] = []
        for progress.epoch in range(epochs):
            _run_epoch(train_data, metric, progress, told)
            figures = {"train-" + name: value for name, value in progress.train.items()}
            if eval_data is not None:
                progress.eval = score(group, eval_data, metric)
                figures.update({"eval-" + name: value for name, value in progress.eval.items()})
            history.append(figures)
            for callback in told:
                callback.on_epoch_end(progress)
            if progress.stopped:
                break
        return Fitted(group, rule, history)
    except BaseException:
        group.close()
        raise


def _run_epoch(train_data: Any, metric: EvalMetric, progress: Progress, told: Sequence[Callback]) -> None:
    metric.reset()
    for progress.batch, batch in enumerate(train_data):
        _follow(progress.group, batch)
        progress.group.forward(batch, is_train=True)
        progress.group.backward()
        progress.group.update(progress.optimizer)
        progress.group.update_metric(metric, batch.label)
        for callback in told:
            callback.on_batch_end(progress)
        if progress.stopped:
            break
    progress.train = figures_of(metric)


def _follow(group: DataParallelExecutorGroup, batch: Any) -> None:
    """Reshapes a group to batches of another length, which evaluation data may have."""

    def descs_of(bound: Optional[List[DataDesc]], arrays: Any) -> List[DataDesc]:
        given = [] if arrays is None else [arrays] if hasattr(arrays, "shape") else list(arrays)
        if len(given) != len(bound or []):
            return bound or []  # forward reports the error
        return [
            DataDesc(
                desc.name, np.shape(array) if not hasattr(array, "shape") else array.shape, desc.dtype, desc.layout
            )
            for desc, array in zip(bound or [], given)
        ]

    now = group.data_shapes, group.label_shapes
    data, label = descs_of(now[0], getattr(batch, "data", None)), descs_of(now[1], getattr(batch, "label", None))
    if data != now[0] or label != (now[1] or []):
        group.reshape(data, label or None)


def score(group: DataParallelExecutorGroup, data: Any, metric: Any = "acc") -> Dict[str, float]:
    """Metrics of a group on other data, whose batches may be of another length; samples that only pad a batch count as
    well."""
    measured = create_metric(metric)
    measured.reset()
    for batch in data:
        _follow(group, batch)
        group.forward(batch, is_train=False)
        group.update_metric(measured, batch.label)
    return figures_of(measured)


class _AtEpochs(Callback):
    def __init__(self, function: Callable[[Progress], Any]) -> None:
        self.function = function

    def on_epoch_end(self, progress: Progress) -> None:
        self.function(progress)


def _to_callback(value: Any) -> Callback:
    if isinstance(value, Callback):
        return value
    if not callable(value):
        raise InvalidArgumentError(f"callbacks: expected functions, found {describe(value)}", "callbacks")
    return _AtEpochs(value)
