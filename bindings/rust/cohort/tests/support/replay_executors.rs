// SPDX-License-Identifier: Apache-2.0
//! Steps on executors, and monitors.
use super::*;

impl Scenario {
    fn executor(&mut self, step: &Json) -> &mut Executor {
        &mut self.executors.get_mut(step.get("exec").text()).expect("an executor of that name").0
    }

    fn keep_executor(&mut self, name: &Json, executor: Executor) -> Result<Found> {
        let shapes = |arrays: &Params| -> Result<Found> {
            let entries = arrays.iter().map(|(name, array)| Ok((name.clone(), shape(&array.shape()?))));
            Ok(Found::Map(entries.collect::<Result<_>>()?))
        };
        let (args, grads) = (executor.args()?, executor.grads()?);
        let types = args.iter().map(|(name, array)| Ok((name.clone(), text(&name_of(array.dtype()?)))));
        let has_grad = executor.symbol()?.arguments()?.into_iter().filter(|name| grads.contains_key(name)).collect();
        let outputs = executor.outputs()?.iter().map(|array| Ok(shape(&array.shape()?))).collect::<Result<_>>()?;
        let found = map(vec![
            ("arg_shapes", shapes(&args)?),
            ("arg_types", Found::Map(types.collect::<Result<_>>()?)),
            ("has_grad", texts(has_grad)),
            ("aux_shapes", shapes(&executor.aux()?)?),
            ("output_shapes", list(outputs)),
        ]);
        self.executors.insert(name.text().into(), (executor, Arc::default()));
        Ok(found)
    }

    pub(crate) fn executor_step(&mut self, step: &Json) -> Result<Found> {
        let of = |arrays: Params| Ok(map(vec![("values", some(arrays, step.get("names")))]));
        match step.get("op").text() {
            "exec_simple_bind" => {
                let symbol = self.symbol(step)?;
                let mut other = match step.get("shared_exec") {
                    Json::Text(name) => self.executors.remove(name).map(|kept| (name.clone(), kept)),
                    _ => None,
                };
                let mut builder = requests(Executor::builder(&symbol), step)?;
                for (name, lengths) in lengths(step) {
                    builder = builder.shape(name, &lengths);
                }
                for (name, word) in step.get("types").members() {
                    builder = builder.dtype(name, dtype_named(word.text()));
                }
                if let Some((_, (executor, _))) = &mut other {
                    builder = builder.share(executor, &step.get("shared_arg_names").texts());
                }
                let made = builder.allocate();
                self.executors.extend(other);
                self.keep_executor(step.get("exec"), made?)
            }
            "exec_bind" => {
                let mut copies = |key| -> Result<Params> {
                    let given = self.named(step.get(key))?;
                    given.into_iter().map(|(name, array)| Ok((name, array.copy(&Context::cpu(0))?))).collect()
                };
                let (args, grads, aux) = (copies("args")?, copies("args_grad")?, copies("aux")?);
                let symbol = self.symbol(step)?;
                let made = requests(Executor::builder(&symbol), step)?.bind(&args, &grads, &aux)?;
                self.keep_executor(step.get("exec"), made)
            }
            "exec_reshape" => {
                let (partial, up) =
                    (step.get("partial_shaping").truth(false), step.get("allow_up_sizing").truth(false));
                let shapes = lengths(step);
                let known: Vec<(&str, &[usize])> =
                    shapes.iter().map(|(name, shape)| (*name, shape.as_slice())).collect();
                let made = self.executor(step).reshaped(&known, partial, up)?;
                self.keep_executor(step.get("as"), made)
            }
            "exec_set" => {
                for (key, kind) in [("arg", 0), ("grad", 1), ("aux", 2)] {
                    for (name, array) in self.named(step.get(key))? {
                        let executor = self.executor(step);
                        let there = [executor.args()?, executor.grads()?, executor.aux()?];
                        array.copy_to(&there[kind][&name])?;
                    }
                }
                Ok(Found::Nothing)
            }
            "exec_copy_params" => {
                let (args, aux) = (self.named(step.get("arg"))?, self.named(step.get("aux"))?);
                let extra = step.get("allow_extra").truth(false);
                self.executor(step).copy_params_from(&args, &aux, extra).map(|_| Found::Nothing)
            }
            "exec_forward" => {
                let inputs = self.named(step.get("inputs"))?;
                let executor = self.executor(step);
                if !inputs.is_empty() {
                    let given: Vec<_> = inputs.iter().map(|(name, array)| (name.as_str(), array)).collect();
                    executor.set_inputs(&given)?;
                }
                let outputs = executor.forward(step.get("is_train").truth(false))?;
                Ok(map(vec![("values", arrays(outputs))]))
            }
            "exec_outputs" => Ok(map(vec![("values", arrays(self.executor(step).outputs()?))])),
            "exec_partial_forward" => {
                let (is_train, node) = (step.get("is_train").truth(false), step.get("step").number() as i32);
                Ok(map(vec![("step_left", number(self.executor(step).partial_forward(is_train, node)?))]))
            }
            "exec_backward" => {
                let given = step.get("head_grads");
                if let Json::Map(_) = given {
                    let grads = self.named(given)?;
                    return self.executor(step).backward_named(&grads).map(|_| Found::Nothing);
                }
                let grads = self.arrays(given)?;
                self.executor(step).backward(&grads.iter().collect::<Vec<_>>()).map(|_| Found::Nothing)
            }
            "exec_args" => of(self.executor(step).args()?),
            "exec_grads" => {
                let (executor, names) = (self.executor(step), step.get("names"));
                let all = Json::List(executor.symbol()?.arguments()?.into_iter().map(Json::Text).collect());
                Ok(map(vec![("values", some(executor.grads()?, if names.is_null() { &all } else { names }))]))
            }
            "exec_aux" => of(self.executor(step).aux()?),
            "exec_set_monitor" => {
                let (executor, names) = self.executors.get_mut(step.get("exec").text()).expect("an executor");
                let seen = names.clone();
                let see = move |name: &str, _: &NDArray| seen.lock().unwrap().push(name.to_string());
                let done = match step.get("monitor_all").truth(false) {
                    true => executor.set_monitor_all(see),
                    false => executor.set_monitor(see),
                };
                done.map(|_| Found::Nothing)
            }
            "exec_monitor_names" => {
                let names = &self.executors[step.get("exec").text()].1;
                Ok(map(vec![("names", texts(std::mem::take(&mut *names.lock().unwrap())))]))
            }
            other => panic!("there is no step {}", other),
        }
    }

    pub(crate) fn monitor_step(&mut self, step: &Json) -> Result<Found> {
        let name = step.get("monitor").text().to_string();
        match step.get("op").text() {
            "install_monitor" => {
                let interval = step.get("interval");
                let interval = if interval.is_null() { 1 } else { interval.number() as u32 };
                let mut builder = Monitor::builder(interval);
                if let Json::Text(pattern) = step.get("pattern") {
                    builder = builder.pattern(pattern);
                }
                if step.get("sort").truth(false) {
                    builder = builder.sort();
                }
                let mut monitor = builder.build()?;
                match (step.get("exec"), step.get("manager")) {
                    (Json::Text(_), _) => monitor.install_on_executor(self.executor(step))?,
                    (_, Json::Text(name)) => {
                        monitor.install_on_manager(&mut self.managers.get_mut(name).expect("a manager").manager)?
                    }
                    _ => monitor.install_on_group(&mut self.group(step).group)?,
                }
                self.monitors.insert(name, monitor);
                Ok(Found::Nothing)
            }
            "monitor_tic" => self.monitors.get_mut(&name).unwrap().tic().map(|_| Found::Nothing),
            "monitor_toc" => {
                let report = self.monitors.get_mut(&name).unwrap().toc()?;
                let step_of = |entry: &Entry| number(entry.step as usize);
                let value = |entry: &Entry| {
                    let word = entry.text.split('\t').next().unwrap();
                    word.parse().map_or_else(|_| text(word), |number| Found::Value(Json::Number(number)))
                };
                let names = report.iter().map(|one| list(vec![step_of(one), text(&one.name)])).collect();
                let entries = report.iter().map(|one| list(vec![step_of(one), text(&one.name), value(one)])).collect();
                Ok(map(vec![("names", list(names)), ("entries", list(entries))]))
            }
            other => panic!("there is no step {}", other),
        }
    }
}

fn lengths(step: &Json) -> Vec<(&str, Vec<usize>)> {
    let of = |shape: &Json| shape.items().iter().map(|length| length.number() as usize).collect();
    step.get("shapes").members().into_iter().map(|(name, shape)| (name, of(shape))).collect()
}

fn requests<'a>(builder: ExecutorBuilder<'a>, step: &Json) -> Result<ExecutorBuilder<'a>> {
    Ok(match step.get("grad_req") {
        Json::Text(word) => builder.grad_req(GradReq::parse(word)?),
        Json::List(words) => {
            builder.grad_req_list(&words.iter().map(|word| GradReq::parse(word.text())).collect::<Result<Vec<_>>>()?)
        }
        Json::Map(words) => {
            let named = words.iter().map(|(name, word)| Ok((name.as_str(), GradReq::parse(word.text())?)));
            builder.grad_reqs(&named.collect::<Result<Vec<_>>>()?)
        }
        _ => builder,
    })
}

/// The arrays that are asked for by name, and nothing for an unknown name; all without names.
fn some(arrays: Params, names: &Json) -> Found {
    if names.is_null() {
        return by_name(arrays);
    }
    let of = |name: &str| arrays.get(name).map_or(Found::Nothing, |array| Found::Array(array.clone()));
    Found::Map(names.texts().into_iter().map(|name| (name.to_string(), of(name))).collect())
}
