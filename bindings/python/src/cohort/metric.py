# SPDX-License-Identifier: Apache-2.0
"""Metrics: figures accumulated from labels and predictions."""

from __future__ import annotations

from ctypes import byref, c_char_p, c_double
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple, Union

import numpy as np

from . import _abi
from ._library import (
    Callback,
    Handle,
    attributes,
    describe,
    from_text,
    handle_of,
    lib,
    out_handle,
    out_int,
    pointers,
    texts,
    to_bool,
    to_dict,
    to_list,
    to_size,
    to_text,
)
from .errors import InvalidArgumentError
from .ndarray import Arrays, NDArray, arrays_of, lent

Figures = Tuple[Union[str, List[str]], Union[float, List[float]]]


class EvalMetric(Handle):
    """A metric, created by :func:`create`.

    >>> from cohort import metric, nd
    >>> accuracy = metric.create("acc")
    >>> accuracy.update([nd.array([0, 1])], [nd.array([[0.9, 0.1], [0.8, 0.2]])])
    >>> accuracy.get()
    ('accuracy', 0.5)
    """

    _free_name = "cohort_metric_free"

    def update(self, labels: Any, preds: Any) -> None:
        """Adds labels and predictions, pair by pair."""
        label, pred = arrays_of(labels, "labels"), arrays_of(preds, "preds")
        self._call(lib.cohort_metric_update, pointers(label, "labels"), len(label), pointers(pred, "preds"), len(pred))

    def update_dict(self, label: Mapping[str, Any], pred: Mapping[str, Any]) -> None:
        """The same by name."""
        labels, preds = Arrays.of(label, "label"), Arrays.of(pred, "pred")
        self._call(lib.cohort_metric_update_named, labels.handle, preds.handle)

    def add(self, metric: Any, **kwargs: Any) -> "EvalMetric":
        """Appends a metric to a composite one."""
        child = create(metric, **kwargs)
        self._call(lib.cohort_metric_add, child.handle)
        self._lock.callbacks.extend(child._lock.callbacks)  # the composite calls them from now on
        return self

    def get_metric(self, index: int) -> "EvalMetric":
        """A child of a composite metric."""
        number = to_size(index, "index")
        child = self._out(lambda f, handle: out_handle(f, handle, number), lib.cohort_metric_child)
        return EvalMetric._adopt(child, self._lock)  # it may call the composite's functions

    def set_names(self, label_names: Any = None, output_names: Any = None) -> "EvalMetric":
        """Chooses the labels and outputs that the metric uses, if they are given by name."""
        labels, outputs = to_list(label_names, "label_names"), to_list(output_names, "output_names")
        self._call(
            lib.cohort_metric_set_names,
            texts(labels, "label_names"),
            len(labels),
            texts(outputs, "output_names"),
            len(outputs),
        )
        return self

    def reset(self) -> None:
        self._call(lib.cohort_metric_reset)

    def reset_local(self) -> None:
        """Resets the local values, and keeps the global ones."""
        self._call(lib.cohort_metric_reset_local)

    def _figures(self, everything: bool) -> List[Tuple[str, float]]:
        found = []
        with self._lock:
            for i in range(out_int(lib.cohort_metric_num_values, self.handle)):
                name, value = c_char_p(), c_double()
                lib.cohort_metric_value(self.handle, i, int(everything), byref(name), byref(value))
                found.append((from_text(name.value), value.value))
        return found

    def get(self) -> Figures:
        """Name and value; for several, a list of each."""
        return _one_or_all(self._figures(False))

    def get_global(self) -> Figures:
        return _one_or_all(self._figures(True))

    def _counters(self) -> Tuple[float, float]:
        total, num = c_double(), c_double()
        self._call(lib.cohort_metric_counters, 0, 0, byref(total), byref(num))
        return total.value, num.value

    @property
    def sum_metric(self) -> float:
        return self._counters()[0]

    @property
    def num_inst(self) -> float:
        return self._counters()[1]

    def get_name_value(self) -> List[Tuple[str, float]]:
        return self._figures(False)


def _one_or_all(figures: List[Tuple[str, float]]) -> Figures:
    if len(figures) == 1:
        return figures[0]
    return [name for name, _ in figures], [value for _, value in figures]


def create(metric: Any, *, label_names: Any = None, output_names: Any = None, **kwargs: Any) -> EvalMetric:
    """A metric by name, from a function ``(label, pred) -> value`` over NumPy arrays, or from a list of these.

    An object with ``update(labels, preds)``, and for :func:`cohort.fit` ``reset()`` and ``get_name_value()``, is used
    as it is.
    """
    if isinstance(metric, EvalMetric) or _is_own(metric) and not isinstance(metric, Mapping):
        return metric
    if isinstance(metric, (list, tuple)):
        made = create("composite", **kwargs)
        for child in metric:
            made.add(child)
        return made
    if callable(metric) and not isinstance(metric, str):
        return np_metric(metric, **kwargs)
    keys = attributes(kwargs, "metric")
    made = EvalMetric._adopt(out_handle(lib.cohort_metric_create, to_text(metric, "metric"), *keys))
    return made.set_names(label_names, output_names) if label_names or output_names else made


def np_metric(
    function: Callable[[np.ndarray, np.ndarray], Any], name: Optional[str] = None, allow_extra_outputs: bool = False
) -> EvalMetric:
    """A metric from a function of a label and a prediction, which returns a value, or a sum and a count."""

    def count(labels: List[NDArray], preds: List[NDArray]) -> Tuple[float, float]:
        total, num = 0.0, 0.0
        for label, pred in zip(labels, preds):
            found = function(label.asnumpy(), pred.asnumpy())
            part, of = found if isinstance(found, tuple) else (found, 1)
            total, num = total + float(part), num + float(of)
        return total, num

    if not callable(function):
        raise InvalidArgumentError(f"metric: expected a function, found {describe(function)}", "metric")
    extra = to_bool(allow_extra_outputs, "allow_extra_outputs")
    called = f"custom({getattr(function, '__name__', 'custom')})" if name is None else name
    return _of_function(count, called, extra)


def _of_function(
    function: Callable[[List[NDArray], List[NDArray]], Tuple[float, float]], name: str, allow_extra_outputs: int
) -> EvalMetric:
    """A metric from a function of the labels and predictions of an update, which returns a sum and a count."""

    def run(labels: Any, num_labels: int, preds: Any, num_preds: int, out_sum: Any, out_num: Any) -> int:
        given = [lent(labels[i]) for i in range(num_labels)], [lent(preds[i]) for i in range(num_preds)]
        out_sum[0], out_num[0] = function(*given)
        return 0

    callback = Callback(_abi.cohort_metric_fn, run)
    made = EvalMetric._adopt(
        out_handle(
            lib.cohort_metric_create_custom,
            to_text(name, "name"),
            callback.pointer,
            callback.number,
            allow_extra_outputs,
        )
    )
    made._lock.callbacks.append(callback)
    return made


def _is_own(metric: Any) -> bool:
    """Whether it is a metric of the program's own: any object with ``update(labels, preds)``."""
    return not isinstance(metric, (EvalMetric, type)) and callable(getattr(metric, "update", None))


def metric_of(metric: Any) -> EvalMetric:
    """The metric for groups and managers to update: a Metric itself, or one that calls the program's own object."""
    if not _is_own(metric):
        handle_of(metric, EvalMetric, "metric")
        return metric

    def update(labels: List[NDArray], preds: List[NDArray]) -> Tuple[float, float]:
        metric.update(labels, preds)
        return 0, 0

    return _of_function(update, type(metric).__name__, 1)


def figures_of(metric: EvalMetric) -> Dict[str, float]:
    return to_dict(dict(metric.get_name_value()), "metric")
