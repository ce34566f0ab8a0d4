// SPDX-License-Identifier: Apache-2.0
//! Monitors: statistics of a network's arrays while it runs, every few batches.
use crate::arrays::Arrays;
use crate::error::{c_text, check, guarded, text, Result};
use crate::executor::Executor;
use crate::group::Group;
use crate::manager::Manager;
use crate::ndarray::NDArray;
use crate::shared_lock::LockedHandle;
use cohort_sys as sys;
use std::fmt;
use std::os::raw::{c_char, c_void};
use std::ptr::{null, null_mut};

type Filter = Box<dyn FnMut(&str) -> bool + Send>;
type Statistic = Box<dyn FnMut(&NDArray) -> Result<Vec<NDArray>> + Send>;

unsafe extern "C" fn filter(name: *const c_char, user_data: *mut c_void) -> i32 {
    let mut chosen = false;
    let failed = guarded(|| {
        chosen = (*(user_data as *mut Filter))(&text(name));
        Ok(())
    });
    if failed != 0 {
        -1
    } else {
        chosen.into()
    }
}

unsafe extern "C" fn statistic(
    array: *mut sys::cohort_ndarray,
    values: *mut sys::cohort_arrays,
    user_data: *mut c_void,
) -> i32 {
    guarded(|| {
        let found = (*(user_data as *mut Statistic))(&NDArray::share(array)?)?;
        Arrays::fill(values, &found.into_iter().map(Some).collect::<Vec<_>>())
    })
}

/// An entry of a monitor's report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The batch, counted from 1.
    pub step: i64,
    /// The name of the array.
    pub name: String,
    /// The statistic's values, each followed by a tab.
    pub text: String,
}

/// The settings of a monitor.
pub struct MonitorBuilder {
    interval: i64,
    pattern: String,
    sort: bool,
    monitor_all: bool,
    filter: Option<Filter>,
    statistic: Option<Statistic>,
    stop_if_not_finite: bool,
}

impl fmt::Debug for MonitorBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut made = f.debug_struct("MonitorBuilder");
        made.field("interval", &self.interval).field("pattern", &self.pattern).field("sort", &self.sort);
        made.field("monitor_all", &self.monitor_all).field("stop_if_not_finite", &self.stop_if_not_finite);
        made.finish_non_exhaustive()
    }
}

impl MonitorBuilder {
    /// A regular expression (RE2's) that names have to match from their start; the default is all names.
    pub fn pattern(mut self, pattern: &str) -> Self {
        self.pattern = pattern.into();
        self
    }

    /// A function that selects the names, instead of a pattern.
    pub fn filter(mut self, function: impl FnMut(&str) -> bool + Send + 'static) -> Self {
        self.filter = Some(Box::new(function));
        self
    }

    /// A function of the arrays, instead of the norm divided by the root of the size.
    pub fn statistic(mut self, function: impl FnMut(&NDArray) -> Result<Vec<NDArray>> + Send + 'static) -> Self {
        self.statistic = Some(Box::new(function));
        self
    }

    /// Sorts entries by name, instead of by execution order.
    pub fn sort(mut self) -> Self {
        self.sort = true;
        self
    }

    /// The inputs of operators, too.
    pub fn monitor_all(mut self) -> Self {
        self.monitor_all = true;
        self
    }

    /// A pass fails at the first output or gradient with an infinity or a NaN, and the error names it, whatever the pattern says.
    pub fn stop_if_not_finite(mut self) -> Self {
        self.stop_if_not_finite = true;
        self
    }

    /// Creates the monitor.
    pub fn build(self) -> Result<Monitor> {
        let pattern = c_text(&self.pattern, "pattern")?;
        let (mut filter_box, mut statistic_box) = (self.filter.map(Box::new), self.statistic.map(Box::new));
        // SAFETY: all zeros is a valid value, the defaults.
        let mut options: sys::cohort_monitor_options = unsafe { std::mem::zeroed() };
        options.struct_size = std::mem::size_of_val(&options);
        options.pattern = pattern.as_ptr();
        options.sort = self.sort.into();
        options.monitor_all = self.monitor_all.into();
        options.stop_if_not_finite = self.stop_if_not_finite.into();
        if let Some(function) = &mut filter_box {
            options.filter = Some(filter);
            options.filter_user_data = &mut **function as *mut Filter as *mut c_void;
        }
        if let Some(function) = &mut statistic_box {
            options.statistic = Some(statistic);
            options.statistic_user_data = &mut **function as *mut Statistic as *mut c_void;
        }
        let mut raw = null_mut();
        check(unsafe { sys::cohort_monitor_create(self.interval, &options, &mut raw) })?;
        Ok(Monitor { raw, _filter: filter_box, _statistic: statistic_box })
    }
}

/// Reports a statistic of arrays while networks run: [`Monitor::tic`] before a batch, [`Monitor::toc`] after it. Threads that use
/// a monitor, or an object it is installed on, are serialised.
///
/// ```
/// use cohort::{Context, Executor, GradReq, Monitor, Op, Symbol};
///
/// # fn main() -> cohort::Result<()> {
/// let net = Op::new("exp").input(&Symbol::variable("x")?).name("e").build()?;
/// let mut executor = Executor::simple_bind(&net, &Context::cpu(0), &[("x", &[2])], GradReq::Null)?;
/// let mut monitor = Monitor::builder(1).build()?;
/// monitor.install_on_executor(&mut executor)?;
/// monitor.tic()?;
/// executor.forward(false)?;
/// let found: Vec<_> = monitor.toc()?.into_iter().map(|entry| (entry.name, entry.text)).collect();
/// assert_eq!(found[0], ("e_output".to_string(), "1\t".to_string()));
/// # Ok(())
/// # }
/// ```
pub struct Monitor {
    raw: *mut sys::cohort_monitor,
    _filter: Option<Box<Filter>>, // both outlive the handle
    _statistic: Option<Box<Statistic>>,
}

// SAFETY: any thread may use a handle, one at a time; the functions are Send.
unsafe impl Send for Monitor {}

impl Drop for Monitor {
    fn drop(&mut self) {
        unsafe { sys::cohort_monitor_free(*self.at()) }
    }
}

impl Monitor {
    /// Starts a monitor that reports the first of each so many batches.
    pub fn builder(interval: u32) -> MonitorBuilder {
        MonitorBuilder {
            interval: interval.into(),
            pattern: String::new(),
            sort: false,
            monitor_all: false,
            filter: None,
            statistic: None,
            stop_if_not_finite: false,
        }
    }

    fn at(&self) -> LockedHandle<sys::cohort_monitor> {
        LockedHandle::new(self.raw, true)
    }

    /// Watches an executor.
    pub fn install_on_executor(&mut self, executor: &mut Executor) -> Result<()> {
        executor.tied = true;
        check(unsafe { sys::cohort_monitor_install_on_executor(*self.at(), *executor.at()) })
    }

    /// Watches every device of a group.
    pub fn install_on_group(&mut self, group: &mut Group) -> Result<()> {
        group.tied = true;
        check(unsafe { sys::cohort_monitor_install_on_group(*self.at(), *group.at()) })
    }

    /// Watches the main group of a manager without buckets.
    pub fn install_on_manager(&mut self, manager: &mut Manager) -> Result<()> {
        manager.tied = true;
        check(unsafe { sys::cohort_monitor_install_on_manager(*self.at(), *manager.at()) })
    }

    /// Begins a batch.
    pub fn tic(&mut self) -> Result<()> {
        check(unsafe { sys::cohort_monitor_tic(*self.at()) })
    }

    /// Ends a batch; returns its entries.
    pub fn toc(&mut self) -> Result<Vec<Entry>> {
        let (at, mut num) = (self.at(), 0);
        check(unsafe { sys::cohort_monitor_toc(*at, &mut num) })?;
        (0..num)
            .map(|i| {
                let (mut step, mut name, mut words) = (0, null(), null());
                check(unsafe { sys::cohort_monitor_entry(*at, i, &mut step, &mut name, &mut words) })?;
                Ok(unsafe { Entry { step, name: text(name), text: text(words) } })
            })
            .collect()
    }

    /// The statistic's values for an entry of the latest [`Monitor::toc`].
    pub fn values(&self, index: usize) -> Result<Vec<NDArray>> {
        let found = Arrays::out(|out| unsafe { sys::cohort_monitor_values(*self.at(), index, out) })?;
        Ok(found.list()?.into_iter().flatten().collect())
    }

    /// The number of batches begun.
    pub fn step(&self) -> Result<i64> {
        let mut step = 0;
        check(unsafe { sys::cohort_monitor_step(*self.at(), &mut step) })?;
        Ok(step)
    }
}
