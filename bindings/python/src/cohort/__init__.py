# SPDX-License-Identifier: Apache-2.0
"""Data-parallel training and inference on libcohort, with the classes of MXNet's Python interface.

>>> import cohort
>>> cohort.nd.array([1, 2, 3]).asnumpy()
array([1., 2., 3.], dtype=float32)
"""

from . import _abi, autograd, executor_group, executor_manager, initializer, metric, model, operator, optimizer, random
from . import ndarray as nd
from . import symbol as sym
from ._library import has_feature, live_handles, version, wait_all
from .context import Context, DeviceMemory, cpu, gpu, num_gpus
from .errors import (
    CohortError,
    DeviceError,
    DtypeError,
    ExecutionError,
    FileError,
    FormatError,
    InternalError,
    InvalidArgumentError,
    OutOfMemoryError,
    ShapeError,
    StateError,
    UnknownNameError,
    UnsupportedError,
)
from .executor import Executor
from .executor_manager import DataParallelExecutorManager
from .io import DataBatch, DataDesc, NDArrayIter
from .logging_ import LogReceiver
from .model import Predictor, load_checkpoint, save_checkpoint
from .monitor import Monitor
from .ndarray import NDArray
from .precision import Calibration, LossScale
from .symbol import Symbol
from .trace import Trace
from .training import Callback, Fitted, Progress, fit, score

init = initializer

__version__ = _abi.VERSION

__all__ = [
    "Calibration",
    "Callback",
    "CohortError",
    "Context",
    "DataBatch",
    "DataDesc",
    "DataParallelExecutorManager",
    "DeviceError",
    "DeviceMemory",
    "DtypeError",
    "ExecutionError",
    "Executor",
    "FileError",
    "Fitted",
    "FormatError",
    "InternalError",
    "InvalidArgumentError",
    "LogReceiver",
    "LossScale",
    "Monitor",
    "NDArray",
    "NDArrayIter",
    "OutOfMemoryError",
    "Predictor",
    "Progress",
    "ShapeError",
    "StateError",
    "Symbol",
    "UnknownNameError",
    "UnsupportedError",
    "autograd",
    "cpu",
    "executor_group",
    "executor_manager",
    "fit",
    "gpu",
    "has_feature",
    "init",
    "initializer",
    "live_handles",
    "load_checkpoint",
    "metric",
    "model",
    "nd",
    "num_gpus",
    "operator",
    "optimizer",
    "random",
    "save_checkpoint",
    "score",
    "sym",
    "version",
    "wait_all",
]
