// SPDX-License-Identifier: Apache-2.0
//! `Debug` of the objects that are handles: what they are, as far as it can be told without waiting.
use crate::executor::Executor;
use crate::group::{Group, GroupExecutor};
use crate::log::LogReceiver;
use crate::manager::{Manager, ManagerGroup};
use crate::monitor::Monitor;
use crate::tape::Tape;
use crate::trace::Trace;
use crate::training::{Initializer, Metric, Optimizer};
use std::fmt::{Debug, Formatter, Result};

/// A value, or the error that there is in its place.
fn shown<T: Debug + 'static>(found: crate::Result<T>) -> Box<dyn Debug> {
    match found {
        Ok(value) => Box::new(value),
        Err(error) => Box::new(error),
    }
}

macro_rules! debug {
    ($type:ty, $name:literal $(, $field:literal: $method:ident)*) => {
        impl Debug for $type {
            fn fmt(&self, f: &mut Formatter<'_>) -> Result {
                f.debug_struct($name)$(.field($field, &shown(self.$method())))*.finish_non_exhaustive()
            }
        }
    };
}

debug!(Executor, "Executor", "context": context, "symbol": symbol);
debug!(GroupExecutor<'_>, "GroupExecutor", "context": context);
debug!(Group, "Group", "contexts": contexts, "batch_size": batch_size, "data": data_shapes, "label": label_shapes);
debug!(ManagerGroup<'_>, "ManagerGroup", "contexts": contexts, "data": data_shapes);
debug!(Manager, "Manager", "buckets": buckets, "slices": slices);
debug!(Metric, "Metric", "values": values);
debug!(Monitor, "Monitor", "step": step);
debug!(Tape, "Tape", "is_recording": is_recording);
debug!(Initializer, "Initializer");
debug!(Trace, "Trace");
debug!(LogReceiver, "LogReceiver");

impl Debug for Optimizer {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let mut made = f.debug_struct("Optimizer");
        for key in ["learning_rate", "num_update"] {
            made.field(key, &shown(self.get(key)));
        }
        made.finish_non_exhaustive()
    }
}
