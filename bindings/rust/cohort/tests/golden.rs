// SPDX-License-Identifier: Apache-2.0
//! Replays scenarios of tests/golden/group, which record results of MXNet 1.9.1, with the groups, metrics and optimizers of this
//! crate. tests/golden/README.md describes the format.
#[path = "support/json.rs"]
mod json;
#[path = "support/replay_executors.rs"]
mod replay_executors;
#[path = "support/replay_managers.rs"]
mod replay_managers;
mod support;

use cohort::*;
use json::Json;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use support::*;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/golden/group");

/// The result of a step.
enum Found {
    Nothing,
    Value(Json),
    Array(NDArray),
    List(Vec<Found>),
    Map(BTreeMap<String, Found>),
}

fn map(members: Vec<(&str, Found)>) -> Found {
    Found::Map(members.into_iter().map(|(key, value)| (key.to_string(), value)).collect())
}

fn number(value: usize) -> Found {
    Found::Value(Json::Number(value as f64))
}

fn text(value: &str) -> Found {
    Found::Value(Json::Text(value.to_string()))
}

fn list(values: Vec<Found>) -> Found {
    Found::List(values)
}

fn texts(values: Vec<String>) -> Found {
    list(values.iter().map(|value| text(value)).collect())
}

fn shape(values: &[usize]) -> Found {
    list(values.iter().map(|&value| number(value)).collect())
}

fn arrays(values: Vec<NDArray>) -> Found {
    list(values.into_iter().map(Found::Array).collect())
}

fn axes(values: Vec<Option<usize>>) -> Found {
    list(values.iter().map(|axis| axis.map_or(Found::Value(Json::Number(-1.0)), number)).collect())
}

fn by_name(values: Params) -> Found {
    Found::Map(values.into_iter().map(|(name, array)| (name, Found::Array(array))).collect())
}

fn dtype_named(name: &str) -> Dtype {
    match name {
        "float32" => Dtype::Float32,
        "float64" => Dtype::Float64,
        "float16" => Dtype::Float16,
        "uint8" => Dtype::Uint8,
        "int32" => Dtype::Int32,
        "int8" => Dtype::Int8,
        "int64" => Dtype::Int64,
        other => panic!("there is no dtype {}", other),
    }
}

fn name_of(dtype: Dtype) -> String {
    format!("{:?}", dtype).to_lowercase()
}

/// The error class for a word of a scenario.
fn kind_of(word: &str) -> ErrorKind {
    match word {
        "too_many_slices" | "empty_data_shapes" | "bad_grad_req" | "head_grad_required" | "no_such_output"
        | "count_mismatch" | "not_binary" | "bad_arguments" => ErrorKind::InvalidArgument,
        "unknown_input" | "unknown_parameter" | "missing_parameter" | "missing_argument" | "missing_target" => {
            ErrorKind::Name
        }
        "batch_size_mismatch"
        | "shape_mismatch"
        | "incomplete_shapes"
        | "unspecified_shape_changed"
        | "up_sizing_not_allowed" => ErrorKind::Shape,
        "type_mismatch" => ErrorKind::Dtype,
        "not_supported" => ErrorKind::Unsupported,
        "already_bound" | "not_for_training" | "inputs_need_grad_false" | "no_labels" => ErrorKind::State,
        other => panic!("there is no error class {}", other),
    }
}

pub(crate) struct Bound {
    group: Group,
    num_devices: usize,
    for_training: bool,
}

/// An executor, and the names that its monitor saw.
type Watched = (Executor, Arc<Mutex<Vec<String>>>);

/// The objects of a scenario, by name.
struct Scenario {
    folder: PathBuf,
    head: Json,
    files: BTreeMap<String, BTreeMap<String, NDArray>>,
    groups: BTreeMap<String, Bound>,
    metrics: BTreeMap<String, Metric>,
    optimizers: BTreeMap<String, (Optimizer, Update)>,
    executors: BTreeMap<String, Watched>,
    managers: BTreeMap<String, replay_managers::Managed>,
    modules: BTreeMap<String, replay_managers::Module>,
    monitors: BTreeMap<String, Monitor>,
}

impl Scenario {
    fn read(folder: &Path) -> Scenario {
        let head = Json::parse(&std::fs::read_to_string(folder.join("scenario.json")).unwrap());
        let (files, groups, metrics, optimizers, executors) = Default::default();
        let (managers, modules, monitors) = Default::default();
        let folder = folder.into();
        Scenario { folder, head, files, groups, metrics, optimizers, executors, managers, modules, monitors }
    }

    /// Runs all steps; returns a line for each difference.
    fn run(mut self) -> Vec<String> {
        let mut failures = Vec::new();
        let steps = self.head.get("steps").items().to_vec();
        for (i, step) in steps.iter().enumerate() {
            let (place, expect) = (format!("step {} {}", i, step.get("op").text()), step.get("expect"));
            let error = expect.get("error");
            match self.step(step) {
                Err(found) if !error.is_null() => {
                    let kind = kind_of(error.get("class").text());
                    if found.kind() != kind {
                        failures.push(format!("{}: expected {:?}, found {:?}: {}", place, kind, found.kind(), found));
                    }
                }
                Err(found) => {
                    failures.push(format!("{}: {}", place, found));
                    return failures;
                }
                Ok(_) if !error.is_null() => failures.push(format!("{}: expected {:?}, found success", place, error)),
                Ok(found) if !expect.is_null() => {
                    let bound = |key| {
                        [step.get(key), self.head.get(key)]
                            .iter()
                            .find(|one| !one.is_null())
                            .map_or(0.0, |one| one.number())
                    };
                    let (rtol, atol) = (bound("rtol"), bound("atol"));
                    self.compare(expect, &found, &place, rtol, atol, &mut failures);
                }
                Ok(_) => (),
            }
        }
        failures
    }

    fn compare(
        &mut self,
        expected: &Json,
        found: &Found,
        what: &str,
        rtol: f64,
        atol: f64,
        failures: &mut Vec<String>,
    ) {
        match (expected, found) {
            (Json::Map(_), Found::Array(found)) if !expected.get("array").is_null() => {
                let atol = if expected.get("atol").is_null() { atol } else { expected.get("atol").number() };
                let wanted = self.array(expected).unwrap();
                let kinds = [&wanted, found].map(|one| (one.dtype().unwrap(), one.shape().unwrap()));
                if kinds[0] != kinds[1] {
                    failures.push(format!("{}: expected {:?}, found {:?}", what, kinds[0], kinds[1]));
                    return;
                }
                let [wanted, seen] =
                    [&wanted, found].map(|one| one.cast(Dtype::Float64).unwrap().to_vec::<f64>().unwrap());
                let wrong = wanted.iter().zip(&seen).filter(|(w, s)| !near_enough(**w, **s, rtol, atol)).count();
                if wrong > 0 {
                    failures.push(format!("{}: {} of {} wrong", what, wrong, seen.len()));
                }
            }
            (Json::Map(members), Found::Map(found)) => {
                for (key, value) in members {
                    match found.get(key) {
                        Some(found) => self.compare(value, found, &format!("{}.{}", what, key), rtol, atol, failures),
                        None => failures.push(format!("{}.{}: is not there", what, key)),
                    }
                }
            }
            (Json::List(items), Found::List(found)) if items.len() == found.len() => {
                for (i, (item, found)) in items.iter().zip(found).enumerate() {
                    self.compare(item, found, &format!("{}[{}]", what, i), rtol, atol, failures);
                }
            }
            (Json::Null, Found::Nothing) => (),
            (_, Found::Value(Json::Number(found))) => {
                let wanted = match expected {
                    Json::Number(number) => *number,
                    Json::Text(word) => word.parse().unwrap_or(f64::MAX),
                    _ => f64::MAX,
                };
                if !near_enough(wanted, *found, rtol, atol) {
                    failures.push(format!("{}: expected {:?}, found {}", what, expected, found));
                }
            }
            (_, Found::Value(found)) if found == expected => (),
            _ => failures.push(format!("{}: expected {:?}, found something else", what, expected)),
        }
    }

    // ---- what a scenario names

    fn path_of(&self, name: &str) -> String {
        let found = match name.strip_prefix('@') {
            None => self.folder.join(name),
            Some(name) => {
                let places =
                    self.folder.ancestors().flat_map(|above| [above.join(name), above.join("examples").join(name)]);
                let above = Path::new(FOLDER).join("../../..").join("examples").join(name);
                places.chain([above]).find(|place| place.exists()).expect("a file in the folders above")
            }
        };
        found.to_str().unwrap().to_string()
    }

    fn array(&mut self, reference: &Json) -> Result<NDArray> {
        let (key, name) = reference.get("array").text().split_once('/').unwrap();
        if !self.files.contains_key(key) {
            let path = self.path_of(self.head.get("files").get(key).text());
            self.files.insert(key.into(), load(&path)?.into_iter().collect());
        }
        let array = self.files[key].get(name).unwrap_or_else(|| panic!("file {} has no array {}", key, name));
        match reference.get("rows").items() {
            [begin, end] => array.slice(begin.number() as usize..end.number() as usize),
            _ => Ok(array.clone()),
        }
    }

    fn arrays(&mut self, references: &Json) -> Result<Vec<NDArray>> {
        references.items().iter().map(|one| self.array(one)).collect()
    }

    fn named(&mut self, references: &Json) -> Result<Params> {
        references.members().into_iter().map(|(name, one)| Ok((name.to_string(), self.array(one)?))).collect()
    }

    fn symbol(&self, step: &Json) -> Result<Symbol> {
        Symbol::load(&self.path_of(self.head.get("symbols").get(step.get("symbol").text()).text()))
    }

    fn group(&mut self, step: &Json) -> &mut Bound {
        if let Json::Text(name) = step.get("module") {
            return self.modules.get_mut(name).expect("a module of that name").bound();
        }
        self.groups.get_mut(step.get("group").text()).expect("a group of that name")
    }

    /// Calls a function with the group of a step, a manager's main one, and its number of devices.
    fn look<R>(&mut self, step: &Json, at: impl FnOnce(&Group, usize) -> Result<R>) -> Result<R> {
        if let Json::Text(name) = step.get("manager") {
            let managed = self.managers.get_mut(name).expect("a manager of that name");
            return at(&*managed.manager.main_group()?, managed.num_devices);
        }
        let bound = self.group(step);
        at(&bound.group, bound.num_devices)
    }

    fn metric(&mut self, step: &Json) -> Metric {
        self.metrics.remove(step.get("metric").text()).expect("a metric of that name")
    }

    fn step(&mut self, step: &Json) -> Result<Found> {
        match step.get("op").text() {
            "symbol_info" => {
                let symbol = self.symbol(step)?;
                let nodes = Json::parse(&symbol.to_json()?).get("nodes").items().len();
                Ok(map(vec![
                    ("arguments", texts(symbol.arguments()?)),
                    ("aux", texts(symbol.auxiliary_states()?)),
                    ("outputs", texts(symbol.outputs()?)),
                    ("num_nodes", number(nodes)),
                ]))
            }
            "split_slices" => {
                let workload: Vec<f64> = step.get("workload").items().iter().map(Json::number).collect();
                let found = split_slices(step.get("batch_size").number() as usize, &workload, rounding(step))?;
                Ok(map(vec![("slices", pairs(&found))]))
            }
            "create_group" => self.create_group(step),
            "bind" => {
                let (data, label) = (descs(step.get("data_shapes")), descs(step.get("label_shapes")));
                self.group(step).group.bind(&data, &label).map(|_| Found::Nothing)
            }
            "fill_grads" => {
                let (value, inputs) = (step.get("value").number(), step.get("inputs").truth(false));
                self.look(step, |group, num_devices| {
                    for device in 0..num_devices {
                        group.device_grads(device)?.values().try_for_each(|grad| grad.fill(value))?;
                        if inputs {
                            group.device_input_grads(device)?.iter().try_for_each(|grad| grad.fill(value))?;
                        }
                    }
                    Ok(Found::Nothing)
                })
            }
            "set_states" => self.set_states(step),
            "get_states" => self.look(step, |group, num_devices| {
                let found = if step.get("merge").truth(true) {
                    group.states()?.into_iter().map(Found::Array).collect()
                } else {
                    by_entry((0..num_devices).map(|device| group.device_states(device)).collect::<Result<_>>()?)
                };
                Ok(map(vec![("values", list(found))]))
            }),
            op if op.starts_with("exec_") => self.executor_step(step),
            op if op.contains("manager") => self.manager_step(step),
            op if op.contains("module") => self.module_step(step),
            op if op.contains("monitor") => self.monitor_step(step),
            "reshape" => {
                let (data, label) = (descs(step.get("data_shapes")), descs(step.get("label_shapes")));
                let group = &mut self.group(step).group;
                group.reshape(&data, &label)?;
                let size = group.batch_size()?;
                let mut found = vec![("batch_size", number(size.unwrap_or(0)))];
                if size.is_some() {
                    found.push(("slices", slices(group)?));
                }
                Ok(map(found))
            }
            "forward" => {
                let (data, label) = (self.arrays(step.get("data"))?, self.arrays(step.get("label"))?);
                let bound = self.group(step);
                let is_train = step.get("is_train").truth(bound.for_training);
                let (data, label): (Vec<_>, Vec<_>) = (data.iter().collect(), label.iter().collect());
                bound.group.forward(&data, &label, is_train).map(|_| Found::Nothing)
            }
            "forward_presliced" => {
                let mut devices =
                    |key| step.get(key).items().iter().map(|one| self.arrays(one)).collect::<Result<Vec<_>>>();
                let (data, label) = (devices("device_data")?, devices("device_label")?);
                let bound = self.group(step);
                let is_train = step.get("is_train").truth(bound.for_training);
                let data: Vec<Vec<_>> = data.iter().map(|device| device.iter().collect()).collect();
                let label: Vec<Vec<_>> = label.iter().map(|device| device.iter().collect()).collect();
                bound.group.forward_presliced(&data, &label, is_train).map(|_| Found::Nothing)
            }
            "backward" => {
                let grads = self.arrays(step.get("head_grads"))?;
                self.group(step).group.backward(&grads.iter().collect::<Vec<_>>()).map(|_| Found::Nothing)
            }
            "output_shapes" => {
                let shapes = self.group(step).group.output_shapes()?;
                let shapes = shapes.iter().map(|(name, lengths)| list(vec![text(name), shape(lengths)])).collect();
                Ok(map(vec![("shapes", list(shapes))]))
            }
            "get_outputs" | "get_input_grads" => self.outputs(step),
            "set_params" => {
                let (args, aux) = (self.named(step.get("arg"))?, self.named(step.get("aux"))?);
                let extra = step.get("allow_extra").truth(false);
                self.group(step).group.assign_params(&args, &aux, true, extra).map(|_| Found::Nothing)
            }
            "set_device_params" => {
                let (args, aux) = (self.named(step.get("arg"))?, self.named(step.get("aux"))?);
                let device = step.get("device").number() as usize;
                self.group(step).group.executor(device)?.copy_params_from(&args, &aux, false).map(|_| Found::Nothing)
            }
            "get_params" => self.get_params(step),
            "param_arrays" => self.values(step, |group, device| group.device_params(device)),
            "param_grads" => self.values(step, |group, device| group.device_grads(device)),
            "aux_arrays" => self.values(step, |group, device| group.device_aux(device)),
            "create_metric" => {
                let made = metric_of(step)?;
                self.metrics.insert(step.get("metric").text().into(), made);
                Ok(Found::Nothing)
            }
            "create_sgd" => self.create_sgd(step),
            "sgd_update" => {
                let (sgd, mode) =
                    self.optimizers.remove(step.get("optimizer").text()).expect("an optimizer of that name");
                if !step.get("learning_rate").is_null() {
                    sgd.set("learning_rate", step.get("learning_rate").number())?;
                }
                let done = match step.get("manager") {
                    Json::Text(name) => self.managers.get_mut(name).expect("a manager").manager.update(&sgd, mode),
                    _ => self.group(step).group.update(&sgd, mode),
                };
                self.optimizers.insert(step.get("optimizer").text().into(), (sgd, mode));
                done.map(|_| Found::Nothing)
            }
            _ => {
                let mut metric = self.metric(step);
                let done = self.metric_step(step, &mut metric);
                self.metrics.insert(step.get("metric").text().into(), metric);
                done
            }
        }
    }

    fn metric_step(&mut self, step: &Json, metric: &mut Metric) -> Result<Found> {
        let everything = step.get("global").truth(false);
        match step.get("op").text() {
            "update_metric" if step.get("pre_sliced").truth(false) => {
                let devices =
                    step.get("labels").items().iter().map(|one| self.arrays(one)).collect::<Result<Vec<_>>>()?;
                let labels: Vec<Vec<_>> = devices.iter().map(|device| device.iter().collect()).collect();
                self.group(step).group.update_metric_presliced(metric, &labels)?;
            }
            "update_metric" => {
                let labels = self.arrays(step.get("labels"))?;
                self.group(step).group.update_metric(metric, &labels.iter().collect::<Vec<_>>())?;
            }
            "metric_update" => {
                let (labels, preds) = (self.arrays(step.get("labels"))?, self.arrays(step.get("preds"))?);
                metric.update(&labels.iter().collect::<Vec<_>>(), &preds.iter().collect::<Vec<_>>())?;
            }
            "reset_metric" => {
                if step.get("local").truth(false) {
                    metric.reset_local()?;
                } else {
                    metric.reset()?;
                }
                return Ok(Found::Nothing);
            }
            _ => (),
        }
        figures(metric, everything)
    }

    fn create_group(&mut self, step: &Json) -> Result<Found> {
        let symbol = self.symbol(step)?;
        let (contexts, workload) = devices(step)?;
        let mut other = match step.get("shared_group") {
            Json::Text(name) => self.groups.remove(name).map(|bound| (name.clone(), bound)),
            _ => None,
        };
        let for_training = step.get("for_training").truth(true);
        let mut builder =
            Group::builder(&symbol).contexts(&contexts).workload(&workload).params(&step.get("param_names").texts());
        builder = builder.fixed_params(&step.get("fixed_param_names").texts()).rounding(rounding(step));
        builder = builder.states(&step.get("state_names").texts());
        if let Some((_, bound)) = &mut other {
            builder = builder.shared_group(&mut bound.group);
        }
        for desc in descs(step.get("data_shapes")) {
            builder = builder.data(desc);
        }
        for desc in descs(step.get("label_shapes")) {
            builder = builder.label(desc);
        }
        if !for_training {
            builder = builder.for_inference();
        }
        if step.get("inputs_need_grad").truth(false) {
            builder = builder.inputs_need_grad();
        }
        builder = match step.get("grad_req") {
            Json::Text(word) => builder.grad_req(GradReq::parse(word)?),
            Json::List(words) => builder
                .grad_req_list(&words.iter().map(|word| GradReq::parse(word.text())).collect::<Result<Vec<_>>>()?),
            Json::Map(words) => {
                let named: Vec<_> = words
                    .iter()
                    .map(|(name, word)| Ok((name.as_str(), GradReq::parse(word.text())?)))
                    .collect::<Result<_>>()?;
                builder.grad_reqs(&named)
            }
            _ => builder,
        };
        let made = builder.build();
        self.groups.extend(other);
        let mut group = made?;
        let (mut shapes, mut types, mut reqs) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
        for device in 0..contexts.len() {
            let executor = group.executor(device)?;
            let mut of_device = BTreeMap::new();
            for (name, array) in executor.args()? {
                types.insert(name.clone(), text(&name_of(array.dtype()?)));
                of_device.insert(name, shape(&array.shape()?));
            }
            shapes.push(Found::Map(of_device));
            reqs = executor.grad_reqs()?.into_iter().map(|(name, req)| (name, text(req.word()))).collect();
        }
        let labels = group.label_axes()?;
        let size = group.batch_size()?;
        let mut found = vec![
            ("batch_size", number(size.unwrap_or(0))),
            ("data_axes", axes(group.data_axes()?)),
            ("label_axes", if labels.is_empty() { Found::Nothing } else { axes(labels) }),
            ("output_axes", axes(group.output_axes()?)),
            ("grad_req", Found::Map(reqs)),
            ("arg_shapes", list(shapes)),
            ("arg_types", Found::Map(types)),
        ];
        if size.is_some() {
            found.push(("slices", slices(&group)?));
        }
        let bound = Bound { group, num_devices: contexts.len(), for_training };
        self.groups.insert(step.get("group").text().into(), bound);
        Ok(map(found))
    }

    fn outputs(&mut self, step: &Json) -> Result<Found> {
        let (bound, outputs) = (self.group(step), step.get("op").text() != "get_input_grads");
        let group = &bound.group;
        let mut found = Vec::new();
        if step.get("merge").truth(true) {
            found.extend((if outputs { group.outputs()? } else { group.input_grads()? }).into_iter().map(Found::Array));
        } else {
            let devices = (0..bound.num_devices)
                .map(|device| if outputs { group.device_outputs(device) } else { group.device_input_grads(device) })
                .collect::<Result<Vec<_>>>()?;
            found.extend(by_entry(devices));
        }
        let (begin, end) = (step.get("begin"), step.get("end"));
        let begin = if begin.is_null() { 0 } else { begin.number() as usize };
        let end = if end.is_null() { found.len() } else { end.number() as usize };
        if end > found.len() {
            group.output(end - 1)?;
        }
        Ok(map(vec![("values", list(found.into_iter().skip(begin).take(end - begin).collect()))]))
    }

    fn get_params(&mut self, step: &Json) -> Result<Found> {
        let (args, aux) = self.targets(step)?;
        self.group(step).group.params_into(&args, &aux)?;
        Ok(map(vec![("arg", by_name(args)), ("aux", by_name(aux))]))
    }

    /// Zeros as targets for the means, of the type that the step asks for; only of the names it gives.
    fn targets(&mut self, step: &Json) -> Result<(Params, Params)> {
        let (wanted, types) = (step.get("targets"), step.get("target_types"));
        let target = |arrays: BTreeMap<String, NDArray>| -> Result<Params> {
            let keep =
                arrays.into_iter().filter(|(name, _)| wanted.is_null() || wanted.texts().contains(&name.as_str()));
            keep.map(|(name, array)| {
                let dtype =
                    if types.get(&name).is_null() { array.dtype()? } else { dtype_named(types.get(&name).text()) };
                Ok((name, NDArray::zeros(&array.shape()?, dtype, &Context::cpu(0))?))
            })
            .collect()
        };
        self.look(step, |group, _| Ok((target(group.device_params(0)?)?, target(group.device_aux(0)?)?)))
    }

    fn set_states(&mut self, step: &Json) -> Result<Found> {
        let mut entries: Vec<Vec<NDArray>> =
            step.get("states").items().iter().map(|state| self.arrays(state)).collect::<Result<_>>()?;
        let bound = self.group(step);
        for index in step.get("from_outputs").items() {
            let of_device = |device| Ok(bound.group.device_outputs(device)?.swap_remove(index.number() as usize));
            entries.push((0..bound.num_devices).map(of_device).collect::<Result<_>>()?);
        }
        match step.get("value") {
            // Both at once cannot be expressed here: they are two functions.
            Json::Number(_) if !entries.is_empty() => Err(Error::new(ErrorKind::InvalidArgument, "both", "states")),
            Json::Number(value) => bound.group.fill_states(*value).map(|_| Found::Nothing),
            _ => {
                let states: Vec<Vec<&NDArray>> = entries.iter().map(|entry| entry.iter().collect()).collect();
                bound.group.set_states(&states).map(|_| Found::Nothing)
            }
        }
    }

    fn values(
        &mut self,
        step: &Json,
        of: impl Fn(&Group, usize) -> Result<BTreeMap<String, NDArray>>,
    ) -> Result<Found> {
        let (devices, params) = self.look(step, |group, num_devices| {
            let devices = (0..num_devices).map(|device| of(group, device)).collect::<Result<Vec<_>>>()?;
            Ok((devices, group.param_names()?))
        })?;
        let mut names: BTreeSet<String> = devices[0].keys().cloned().collect();
        if !step.get("names").is_null() {
            names = step.get("names").texts().into_iter().map(String::from).collect();
        } else if step.get("op").text() == "param_grads" {
            names.extend(params);
        }
        let entries = names.into_iter().map(|name| {
            let of_devices = devices
                .iter()
                .map(|device| device.get(&name).map_or(Found::Nothing, |array| Found::Array(array.clone())));
            let entry = list(of_devices.collect());
            (name, entry)
        });
        Ok(map(vec![("values", Found::Map(entries.collect()))]))
    }

    fn create_sgd(&mut self, step: &Json) -> Result<Found> {
        let keys = ["learning_rate", "momentum", "wd", "rescale_grad", "clip_gradient"];
        let given: Vec<_> = keys
            .iter()
            .filter(|key| !step.get(key).is_null())
            .map(|key| (*key, step.get(key).number().to_string()))
            .collect();
        let sgd = Optimizer::new("sgd", &given.iter().map(|(key, value)| (*key, value.as_str())).collect::<Vec<_>>())?;
        sgd.use_symbol(&self.symbol(step)?)?;
        let mode = match step.get("mode").text() {
            "on_store" => Update::OnStore,
            "per_device" => Update::PerDevice,
            _ => Update::NoStore,
        };
        let (first, names) = self.look(step, |group, _| Ok((group.device_params(0)?, group.param_names()?)))?;
        if mode == Update::OnStore && step.get("manager").is_null() {
            // The store starts from device 0's parameters, and copies them to all.
            self.group(step).group.assign_params(&first, &Params::new(), true, false)?;
        }
        let (mut lr, mut wd) = (BTreeMap::new(), BTreeMap::new());
        for name in names {
            let (lr_mult, wd_mult) = sgd.mult(&name)?;
            lr.insert(name.clone(), Found::Value(Json::Number(lr_mult)));
            wd.insert(
                name,
                if step.get("wd").truth(false) { Found::Value(Json::Number(wd_mult)) } else { Found::Nothing },
            );
        }
        self.optimizers.insert(step.get("optimizer").text().into(), (sgd, mode));
        Ok(map(vec![("lr_mult", Found::Map(lr)), ("wd_mult", Found::Map(wd))]))
    }
}

fn figures(metric: &Metric, everything: bool) -> Result<Found> {
    let values = if everything { metric.global_values()? } else { metric.values()? };
    let pairs = values.iter().map(|(name, value)| list(vec![text(name), Found::Value(Json::Number(*value))]));
    Ok(map(vec![("metric", list(pairs.collect()))]))
}

fn pairs(slices: &[Range<usize>]) -> Found {
    list(slices.iter().map(|rows| shape(&[rows.start, rows.end])).collect())
}

fn slices(group: &Group) -> Result<Found> {
    Ok(pairs(&group.slices()?))
}

/// From the arrays of each device to the devices' arrays of each entry.
fn by_entry(devices: Vec<Vec<NDArray>>) -> Vec<Found> {
    (0..devices[0].len()).map(|i| arrays(devices.iter().map(|device| device[i].clone()).collect())).collect()
}

fn rounding(step: &Json) -> Rounding {
    match step.get("rounding") {
        Json::Text(word) if word == "half_up" => Rounding::HalfUp,
        _ => Rounding::HalfEven,
    }
}

/// Contexts and workload of a step.
fn devices(step: &Json) -> Result<(Vec<Context>, Vec<f64>)> {
    let contexts = step.get("contexts").texts().iter().map(|one| Context::parse(one)).collect::<Result<_>>()?;
    Ok((contexts, step.get("workload").items().iter().map(Json::number).collect()))
}

fn descs(references: &Json) -> Vec<Desc> {
    let lengths =
        |one: &Json| one.get("shape").items().iter().map(|length| length.number() as usize).collect::<Vec<_>>();
    let made = references.items().iter().map(|one| {
        let desc = Desc::new(one.get("name").text(), &lengths(one));
        let desc = if one.get("dtype").is_null() { desc } else { desc.dtype(dtype_named(one.get("dtype").text())) };
        if one.get("layout").is_null() {
            desc
        } else {
            desc.layout(one.get("layout").text())
        }
    });
    made.collect()
}

fn metric_of(step: &Json) -> Result<Metric> {
    let (mut settings, mut labels, mut outputs) = (Vec::new(), Vec::new(), Vec::new());
    for (key, value) in step.get("args").members() {
        match (key, value) {
            ("label_names", Json::Text(one)) => labels = vec![one.as_str()],
            ("output_names", Json::Text(one)) => outputs = vec![one.as_str()],
            ("label_names", many) => labels = many.texts(),
            ("output_names", many) => outputs = many.texts(),
            (key, Json::Bool(yes)) => settings.push((key, if *yes { "True".to_string() } else { "False".to_string() })),
            (key, Json::Number(number)) => settings.push((key, number.to_string())),
            (_, Json::Null) => (),
            (key, Json::List(items)) => {
                let inside: Vec<_> = items.iter().map(|item| item.number().to_string()).collect();
                settings.push((key, format!("({})", inside.join(", "))));
            }
            (key, value) => settings.push((key, value.text().to_string())),
        }
    }
    let pairs: Vec<_> = settings.iter().map(|(key, value)| (*key, value.as_str())).collect();
    let mut metric = Metric::new(step.get("kind").text(), &pairs)?;
    if !labels.is_empty() || !outputs.is_empty() {
        metric.set_names(&labels, &outputs)?;
    }
    for child in step.get("children").items() {
        metric.add(metric_of(child)?)?;
    }
    Ok(metric)
}

fn near_enough(wanted: f64, found: f64, rtol: f64, atol: f64) -> bool {
    wanted == found || wanted.is_nan() && found.is_nan() || (found - wanted).abs() <= atol + rtol * wanted.abs()
}

#[test]
fn what_mxnet_computed_is_computed_here() {
    case(|| {
        let mut folders: Vec<_> =
            std::fs::read_dir(FOLDER).unwrap().map(|one| one.unwrap().path()).filter(|path| path.is_dir()).collect();
        folders.sort();
        let (mut replayed, mut wrong) = (0, Vec::new());
        for folder in folders {
            replayed += 1;
            let name = folder.file_name().unwrap().to_str().unwrap().to_string();
            wrong.extend(Scenario::read(&folder).run().into_iter().take(3).map(|line| format!("{}: {}", name, line)));
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert!(replayed >= 81, "replayed {} scenarios", replayed);
    });
}
