// SPDX-License-Identifier: Apache-2.0
//! Steps on managers, and on modules: a network with one group, which follows the shapes of its batches.
use super::*;

pub struct Managed {
    pub manager: Manager,
    pub num_devices: usize,
}

pub struct Module {
    symbol: Symbol,
    contexts: Vec<Context>,
    workload: Vec<f64>,
    params: Vec<String>,
    shapes: (Vec<Desc>, Vec<Desc>),
    bound: Option<Bound>,
    sgd: Option<Optimizer>,
    is_set: bool,
}

impl Module {
    pub(crate) fn bound(&mut self) -> &mut Bound {
        self.bound.as_mut().expect("the module is bound")
    }
}

impl Scenario {
    fn manager(&mut self, step: &Json) -> &mut Manager {
        &mut self.managers.get_mut(step.get("manager").text()).expect("a manager of that name").manager
    }

    fn create_manager(&mut self, step: &Json) -> Result<Found> {
        let (symbol, (contexts, workload)) = (self.symbol(step)?, devices(step)?);
        let mut builder = Manager::builder(&symbol, step.get("batch_size").number() as usize)
            .contexts(&contexts)
            .workload(&workload)
            .params(&step.get("param_names").texts());
        builder = descs(step.get("data_shapes")).into_iter().fold(builder, |builder, desc| builder.data(desc));
        builder = descs(step.get("label_shapes")).into_iter().fold(builder, |builder, desc| builder.label(desc));
        if !step.get("buckets").is_null() {
            let path = |key: &Json| self.path_of(self.head.get("symbols").get(key.text()).text());
            let buckets = step.get("buckets").members().into_iter().map(|(key, name)| (key.to_string(), path(name)));
            let paths: BTreeMap<String, String> = buckets.collect();
            builder = builder.default_bucket(&key_of(step.get("default_bucket_key"))).bucket_symbols(move |key| {
                let unknown = || Error::new(ErrorKind::Name, format!("there is no bucket {}", key), key);
                Symbol::load(paths.get(key).ok_or_else(unknown)?)
            });
        }
        let manager = builder.build()?;
        let found = map(vec![("slices", pairs(&manager.slices()?))]);
        let managed = Managed { manager, num_devices: contexts.len() };
        self.managers.insert(step.get("manager").text().into(), managed);
        Ok(found)
    }

    pub(crate) fn manager_step(&mut self, step: &Json) -> Result<Found> {
        match step.get("op").text() {
            "create_manager" => self.create_manager(step),
            "manager_set_params" => {
                let (args, aux) = (self.named(step.get("arg"))?, self.named(step.get("aux"))?);
                self.manager(step).set_params(&args, &aux).map(|_| Found::Nothing)
            }
            "manager_load_data_batch" => {
                let (data, label) = (self.arrays(step.get("data"))?, self.arrays(step.get("label"))?);
                let (data, label): (Vec<_>, Vec<_>) = (data.iter().collect(), label.iter().collect());
                let (data_descs, label_descs) = (descs(step.get("data_shapes")), descs(step.get("label_shapes")));
                let manager = self.manager(step);
                match step.get("bucket_key") {
                    Json::Null => manager.load(&data, &label),
                    key => manager.load_bucket(&key_of(key), &data, &label, &data_descs, &label_descs),
                }
                .map(|_| Found::Nothing)
            }
            "manager_forward" => self.manager(step).forward(step.get("is_train").truth(false)).map(|_| Found::Nothing),
            "manager_backward" => self.manager(step).backward().map(|_| Found::Nothing),
            "manager_outputs" => {
                let managed = self.managers.get_mut(step.get("manager").text()).expect("a manager");
                let group = managed.manager.current_group()?;
                let devices =
                    (0..managed.num_devices).map(|device| group.device_outputs(device)).collect::<Result<_>>()?;
                Ok(map(vec![("values", list(by_entry(devices)))]))
            }
            "manager_update_metric" => {
                let mut metric = self.metric(step);
                let done = if step.get("pre_sliced").truth(false) {
                    let devices: Vec<Vec<NDArray>> =
                        step.get("labels").items().iter().map(|one| self.arrays(one)).collect::<Result<_>>()?;
                    let labels: Vec<Vec<_>> = devices.iter().map(|device| device.iter().collect()).collect();
                    self.manager(step).update_metric_presliced(&mut metric, &labels)
                } else {
                    let labels = self.arrays(step.get("labels"))?;
                    self.manager(step).update_metric(&mut metric, &labels.iter().collect::<Vec<_>>())
                };
                let found = figures(&metric, false);
                self.metrics.insert(step.get("metric").text().into(), metric);
                done.and(found)
            }
            "manager_copy_to" => {
                let (args, aux) = self.targets(step)?;
                self.manager(step).copy_to(&args, &aux)?;
                Ok(map(vec![("arg", by_name(args)), ("aux", by_name(aux))]))
            }
            other => panic!("there is no step {}", other),
        }
    }

    fn module(&mut self, step: &Json) -> &mut Module {
        self.modules.get_mut(step.get("module").text()).expect("a module of that name")
    }

    fn module_bind(&mut self, step: &Json) -> Result<Found> {
        let module = self.module(step);
        if module.bound.is_none() || step.get("force_rebind").truth(false) {
            let shapes = (descs(step.get("data_shapes")), descs(step.get("label_shapes")));
            let params: Vec<&str> = module.params.iter().map(String::as_str).collect();
            let mut builder = Group::builder(&module.symbol).contexts(&module.contexts).workload(&module.workload);
            builder = builder.params(&params).rounding(Rounding::HalfEven);
            builder = shapes.0.iter().cloned().fold(builder, |builder, desc| builder.data(desc));
            builder = shapes.1.iter().cloned().fold(builder, |builder, desc| builder.label(desc));
            let for_training = step.get("for_training").truth(true);
            let mut group = if for_training { builder } else { builder.for_inference() }.build()?;
            if module.is_set {
                let (args, aux) = module.bound().group.params()?;
                group.set_params(&args, &aux)?;
            }
            module.bound = Some(Bound { group, num_devices: module.contexts.len(), for_training });
            module.shapes = shapes;
        }
        Ok(map(vec![("slices", slices(&module.bound().group)?)]))
    }

    pub(crate) fn module_step(&mut self, step: &Json) -> Result<Found> {
        match step.get("op").text() {
            "create_module" => {
                let (symbol, (contexts, workload)) = (self.symbol(step)?, devices(step)?);
                let mut inputs = step.get("data_names").texts();
                inputs.extend(step.get("label_names").texts());
                let params: Vec<_> =
                    symbol.arguments()?.into_iter().filter(|name| !inputs.contains(&name.as_str())).collect();
                let found = map(vec![("param_names", texts(params.clone()))]);
                let (shapes, bound, sgd) = Default::default();
                let made = Module { symbol, contexts, workload, params, shapes, bound, sgd, is_set: false };
                self.modules.insert(step.get("module").text().into(), made);
                Ok(found)
            }
            "module_bind" => self.module_bind(step),
            "module_set_params" => {
                let (args, aux) = (self.named(step.get("arg"))?, self.named(step.get("aux"))?);
                let (missing, extra) = (step.get("allow_missing").truth(false), step.get("allow_extra").truth(false));
                let module = self.module(step);
                module.bound().group.assign_params(&args, &aux, missing, extra)?;
                module.is_set = true;
                Ok(Found::Nothing)
            }
            "module_get_params" => {
                let (args, aux) = self.module(step).bound().group.params()?;
                Ok(map(vec![("arg", by_name(args)), ("aux", by_name(aux))]))
            }
            "module_init_sgd" => {
                let module = self.module(step);
                let rescale = 1.0 / module.bound().group.batch_size()?.expect("a batch") as f64;
                let keys = ["learning_rate", "momentum", "wd"].map(|key| (key, step.get(key).number().to_string()));
                let mut with: Vec<_> = keys.iter().map(|(key, value)| (*key, value.as_str())).collect();
                let rescale_text = rescale.to_string();
                with.push(("rescale_grad", &rescale_text));
                let sgd = Optimizer::new("sgd", &with)?;
                sgd.use_symbol(&module.symbol)?;
                module.sgd = Some(sgd);
                let on_store = Found::Value(Json::Bool(module.contexts.len() > 1));
                Ok(map(vec![("rescale_grad", Found::Value(Json::Number(rescale))), ("update_on_kvstore", on_store)]))
            }
            "module_forward" => {
                let (data, label) = (self.arrays(step.get("data"))?, self.arrays(step.get("label"))?);
                let module = self.module(step);
                let wanted = (like(&module.shapes.0, &data)?, like(&module.shapes.1, &label)?);
                let for_training = module.bound().for_training;
                if wanted != module.shapes {
                    module.bound().group.reshape(&wanted.0, &wanted.1)?;
                    module.shapes = wanted;
                }
                let is_train = step.get("is_train").truth(for_training);
                let group = &mut module.bound().group;
                group.forward(&data.iter().collect::<Vec<_>>(), &label.iter().collect::<Vec<_>>(), is_train)?;
                Ok(map(vec![("slices", slices(group)?)]))
            }
            "module_backward" => self.module(step).bound().group.backward(&[]).map(|_| Found::Nothing),
            "module_update" => {
                let module = self.module(step);
                let sgd = module.sgd.take().expect("an optimizer");
                let done = module.bound().group.update(&sgd, Update::OnStore);
                module.sgd = Some(sgd);
                done.map(|_| Found::Nothing)
            }
            "module_get_outputs" => self.outputs(step),
            "module_update_metric" => {
                let (mut metric, labels) = (self.metric(step), self.arrays(step.get("labels"))?);
                let group = &mut self.module(step).bound().group;
                group.update_metric(&mut metric, &labels.iter().collect::<Vec<_>>())?;
                let found = figures(&metric, false);
                self.metrics.insert(step.get("metric").text().into(), metric);
                found
            }
            other => panic!("there is no step {}", other),
        }
    }
}

/// A key in a scenario: text or a number.
fn key_of(key: &Json) -> String {
    match key {
        Json::Number(number) => number.to_string(),
        other => other.text().to_string(),
    }
}

/// Descriptors with the same names for the given arrays.
fn like(descs: &[Desc], arrays: &[NDArray]) -> Result<Vec<Desc>> {
    descs.iter().zip(arrays).map(|(desc, array)| Ok(desc.clone().shape(&array.shape()?))).collect()
}
