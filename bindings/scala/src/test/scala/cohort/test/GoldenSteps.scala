// SPDX-License-Identifier: Apache-2.0
package cohort.test

import scala.collection.mutable

import cohort._

/** The steps of scenarios, by the name in `op`. */
abstract class GoldenSteps {
  def array(reference: Any): NDArray
  def symbol(key: String): Symbol

  private val groups = mutable.Map.empty[String, DataParallelExecutorGroup]
  private val managers = mutable.Map.empty[String, DataParallelExecutorManager]
  private val modules = mutable.Map.empty[String, Module]
  private val metrics = mutable.Map.empty[String, EvalMetric]
  private val optimizers = mutable.Map.empty[String, (Optimizer, UpdateMode.UpdateMode)]
  private val monitors = mutable.Map.empty[String, Monitor]
  private val execs = mutable.Map.empty[String, Executor]
  private val seen = mutable.Map.empty[String, mutable.ArrayBuffer[String]]

  private def arrays(references: Any): IndexedSeq[NDArray] =
    if (references == null) null else references.asInstanceOf[Vector[Any]].map(array)

  private def named(references: Any): Map[String, NDArray] =
    if (references == null) Map.empty
    else references.asInstanceOf[Map[String, Any]].map { case (name, reference) => (name, array(reference)) }

  private def shape(lengths: Any): Shape = Shape(lengths.asInstanceOf[Vector[Double]].map(_.toInt))

  private def shapes(step: Step): Map[String, Shape] =
    step.map("shapes").map { case (name, lengths) => (name, shape(lengths)) }

  private def descs(references: Any): IndexedSeq[DataDesc] =
    if (references == null) null
    else
      references.asInstanceOf[Vector[Map[String, Any]]].map { reference =>
        val one = new Step(reference)
        DataDesc(one.text("name"), shape(one.get("shape")), DType.withName(one.textOr("dtype", "float32")),
          one.textOr("layout", "NCHW"))
      }

  private def types(step: Step, key: String): Map[String, DType.DType] =
    step.map(key).map { case (name, word) => (name, DType.withName(word.asInstanceOf[String])) }

  private def batch(step: Step): DataBatch = DataBatch(arrays(step.get("data")), arrays(step.get("label")))

  private def slices(found: Seq[(Int, Int)]): Map[String, Any] =
    if (found.isEmpty) Map.empty else Map("slices" -> found)

  /** The object of a step: a group, the main group of a manager, or the group of a module. */
  private def base(step: Step): GroupBase =
    if (step.has("group")) group(step)
    else if (step.has("module")) module(step).execGroup
    else manager(step).execgrp

  private def group(step: Step): DataParallelExecutorGroup = groups(step.text("group"))
  private def module(step: Step): Module = modules(step.text("module"))
  private def manager(step: Step): DataParallelExecutorManager = managers(step.text("manager"))
  private def metric(step: Step): EvalMetric = metrics(step.text("metric"))
  private def exec(step: Step): Executor = execs(step.text("exec"))
  private def contexts(step: Step): Array[Context] = step.texts("contexts").map(Context.parse).toArray

  private def workload(step: Step): IndexedSeq[Float] =
    if (step.has("workload")) step.list("workload").map(_.asInstanceOf[Double].toFloat) else null

  def run(step: Step): Any = step.text("op") match {
    case "symbol_info"          => symbolInfo(symbol(step.text("symbol")))
    case "split_slices"         => splitSlices(step)
    case "create_group"         => createGroup(step)
    case "bind"                 =>
      group(step).bindExec(descs(step.get("data_shapes")), Option(descs(step.get("label_shapes"))), rebind = false)
    case "reshape"              => reshape(step)
    case "forward"              => group(step).forward(batch(step), step.isTrain)
    case "forward_presliced"    => forwardPreSliced(step)
    case "backward"             => group(step).backward(Option(arrays(step.get("head_grads"))).map(_.toArray).orNull)
    case "output_shapes"        => Map("shapes" -> group(step).getOutputShapes)
    case "get_outputs"          => getOutputs(step)
    case "get_input_grads"      =>
      values(if (step.flag("merge")) group(step).getInputGradsMerged() else group(step).getInputGrads())
    case "set_params"           =>
      base(step).setParams(named(step.get("arg")), named(step.get("aux")), step.flag("allow_extra"))
    case "set_device_params"    =>
      base(step).execs(step.int("device")).copyParamsFrom(named(step.get("arg")), named(step.get("aux")))
    case "get_params"           => getParams(step)
    case "param_arrays"         => some(step, paramNames(step).zip(base(step).present(PARAMS)).toMap)
    case "param_grads"          => some(step, paramNames(step).zip(base(step).onDevices(GRADS)).toMap)
    case "aux_arrays"           => some(step, base(step).names(AUX).zip(base(step).present(AUX)).toMap)
    case "fill_grads"           => fillGrads(step)
    case "get_states"           =>
      values(if (step.flag("merge")) group(step).merged(STATES) else group(step).getStates())
    case "set_states"           => setStates(step)
    case "create_metric"        => metrics(step.text("metric")) = metricOf(step)
    case "get_metric"           => figures(metric(step), step.flag("global"))
    case "update_metric"        => updateMetric(step)
    case "metric_update"        =>
      metric(step).update(arrays(step.get("labels")), arrays(step.get("preds"))); figures(metric(step))
    case "reset_metric"         => if (step.flag("local")) metric(step).resetLocal() else metric(step).reset()
    case "create_sgd"           => createSgd(step)
    case "sgd_update"           => sgdUpdate(step)
    case "install_monitor"      => installMonitor(step)
    case "monitor_tic"          => monitors(step.text("monitor")).tic()
    case "monitor_toc"          => monitorToc(step)
    case "exec_simple_bind"     => execSimpleBind(step)
    case "exec_bind"            => execBind(step)
    case "exec_set"             => execSet(step)
    case "exec_copy_params"     =>
      exec(step).copyParamsFrom(named(step.get("arg")), named(step.get("aux")), step.flag("allow_extra"))
    case "exec_forward"         =>
      exec(step).forward(step.flag("is_train"), named(step.get("inputs"))); values(exec(step).outputs)
    case "exec_outputs"         => values(exec(step).outputs)
    case "exec_partial_forward" =>
      Map("step_left" -> exec(step).partialForward(step.flag("is_train"), step.int("step")))
    case "exec_backward"        => execBackward(step)
    case "exec_args"            => some(step, exec(step).argDict)
    case "exec_grads"           =>
      some(step, exec(step).argDict.keys.map(name => (name, exec(step).gradDict.get(name))).toMap)
    case "exec_aux"             => some(step, exec(step).auxDict)
    case "exec_reshape"         => execReshape(step)
    case "exec_set_monitor"     => execSetMonitor(step)
    case "exec_monitor_names"   => execMonitorNames(step)
    case "create_manager"       => createManager(step)
    case "manager_set_params"   => manager(step).setParams(named(step.get("arg")), named(step.get("aux")))
    case "manager_load_data_batch" => managerLoad(step)
    case "manager_forward"      => manager(step).forward(step.flag("is_train"))
    case "manager_backward"     => manager(step).backward()
    case "manager_outputs"      => values(manager(step).currExecgrp.get.outputs)
    case "manager_update_metric" => managerUpdateMetric(step)
    case "manager_copy_to"      => managerCopyTo(step)
    case "create_module"        => createModule(step)
    case "module_bind"          => moduleBind(step)
    case "module_set_params" =>
      module(step).setParams(named(step.get("arg")), named(step.get("aux")), step.flag("allow_missing"),
        step.flag("allow_extra"))
    case "module_get_params"    => val (args, aux) = module(step).getParams; Map("arg" -> args, "aux" -> aux)
    case "module_init_sgd"      => moduleInitSgd(step)
    case "module_forward"       =>
      module(step).forward(batch(step), step.isTrain); slices(module(step).execGroup.slices)
    case "module_backward"      => module(step).backward()
    case "module_update"        => module(step).update()
    case "module_get_outputs"   =>
      values(if (step.flag("merge", true)) module(step).getOutputsMerged() else module(step).getOutputs())
    case "module_update_metric" =>
      module(step).updateMetric(metric(step), arrays(step.get("labels"))); figures(metric(step))
  }

  private val PARAMS = abi.Constants.GroupList.PARAMS
  private val GRADS = abi.Constants.GroupList.GRADS
  private val STATES = abi.Constants.GroupList.STATES
  private val AUX = abi.Constants.GroupList.AUX

  private def values(found: Any): Map[String, Any] = Map("values" -> found)

  private def some(step: Step, all: Map[String, Any]): Map[String, Any] =
    values(if (step.has("names")) step.texts("names").map(name => (name, all(name))).toMap else all)

  private def paramNames(step: Step): Vector[String] = base(step).names(PARAMS)

  // ---- symbols and groups

  private def symbolInfo(symbol: Symbol): Any = Map(
    "arguments" -> symbol.listArguments(),
    "aux" -> symbol.listAuxiliaryStates(),
    "outputs" -> symbol.listOutputs(),
    "num_nodes" -> symbol.numNodes)

  private def splitSlices(step: Step): Any = slices(
    DataParallelExecutorGroup.splitInputSlice(step.int("batch_size"), workload(step),
      Rounding.withName(step.textOr("rounding", "half_even"))))

  private def createGroup(step: Step): Any = {
    val builder =
      new DataParallelExecutorGroup.Builder(symbol(step.text("symbol")), contexts(step), step.texts("param_names"))
      .setWorkLoadList(workload(step))
      .setDataShapes(descs(step.get("data_shapes")))
      .setLabelShapes(descs(step.get("label_shapes")))
      .setForTraining(step.flag("for_training", true))
      .setInputsNeedGrad(step.flag("inputs_need_grad"))
      .setSharedGroup(if (step.has("shared_group")) groups(step.text("shared_group")) else null)
      .setFixedParamNames(step.texts("fixed_param_names").toSet)
      .setStateNames(step.texts("state_names"))
      .setRounding(Rounding.withName(step.textOr("rounding", "half_even")))
    step.get("grad_req") match {
      case null           =>
      case word: String   => builder.setGradReq(word)
      case map: Map[_, _] => builder.setGradReq(map.asInstanceOf[Map[String, String]])
      case list           =>
        val words = list.asInstanceOf[Vector[String]]
        // The length of a wrong list must be what is refused.
        builder.setGradReq(words.indices.map(i => (builder.argNames.lift(i).getOrElse("more"), words(i))))
    }
    val group = builder.build()
    groups(step.text("group")) = group
    val args = group.execs.map(_.argDict)
    slices(group.slices) ++ Map(
      "batch_size" -> group.batchSize,
      "data_axes" -> group.dataLayouts,
      "label_axes" -> Some(group.labelLayouts).filter(_.nonEmpty),
      "output_axes" -> group.outputLayouts,
      "grad_req" -> group.gradReq,
      "arg_shapes" -> args.map(_.map { case (name, array) => (name, array.shape) }),
      "arg_types" -> args(0).map { case (name, array) => (name, array.dtype.toString) })
  }

  private def reshape(step: Step): Any = {
    group(step).reshape(descs(step.get("data_shapes")), Option(descs(step.get("label_shapes"))))
    slices(group(step).slices) ++ Map("batch_size" -> group(step).batchSize)
  }

  private def forwardPreSliced(step: Step): Any = {
    val data = step.list("device_data")
    val labels = if (step.has("device_label")) step.list("device_label") else data.map(_ => null)
    group(step).forwardPreSliced(data.indices.map(i => DataBatch(arrays(data(i)), arrays(labels(i)))), step.isTrain)
  }

  private def getOutputs(step: Step): Any = {
    val all: IndexedSeq[Any] = if (step.flag("merge")) group(step).getOutputsMerged() else group(step).getOutputs()
    val end = step.intOr("end", all.length)
    // Here the caller selects among the outputs.
    if (end > all.length) throw new InvalidArgumentException(s"there are ${all.length} outputs", "end")
    values(all.slice(step.intOr("begin", 0), end))
  }

  private def getParams(step: Step): Any = {
    val (args, aux) = targets(step, base(step))
    base(step).getParams(args, aux)
    Map("arg" -> args, "aux" -> aux)
  }

  /** Zeros as targets for the means, of the type that the step asks for; only of the names it gives. */
  private def targets(step: Step, group: GroupBase): (Map[String, NDArray], Map[String, NDArray]) = {
    def zeros(list: Int) = group
      .names(list)
      .zip(group.present(list))
      .collect {
        case (name, devices) if !step.has("targets") || step.texts("targets").contains(name) =>
          (name,
            NDArray.zeros(devices.head.shape, dtype = types(step, "target_types").getOrElse(name, devices.head.dtype)))
      }
      .toMap
    (zeros(PARAMS), zeros(AUX))
  }

  private def fillGrads(step: Step): Unit = {
    val inputs = if (step.flag("inputs")) group(step).inputGradArrays.flatten else Vector.empty
    for (array <- group(step).gradArrays.flatten.flatten ++ inputs) array.set(step.double("value").toFloat)
  }

  private def setStates(step: Step): Unit = {
    val states =
      if (step.has("from_outputs")) {
        val outputs = group(step).getOutputs()
        step.list("from_outputs").map(i => outputs(i.asInstanceOf[Double].toInt))
      } else if (step.has("states")) step.list("states").map(arrays)
      else null
    group(step).setStates(states, if (step.has("value")) Some(step.double("value")) else None)
  }

  // ---- metrics, updates, monitors

  private def metricOf(step: Step): EvalMetric = {
    def names(key: String): Vector[String] = step.map("args").getOrElse(key, null) match {
      case null         => Vector.empty
      case text: String => Vector(text)
      case list         => list.asInstanceOf[Vector[String]]
    }
    val settings = step.map("args").filter { case (key, _) => key != "label_names" && key != "output_names" }
    val made = EvalMetric(step.text("kind"), settings.map { case (key, value) => (key, plain(value)) }.toSeq: _*)
    if (names("label_names").nonEmpty || names("output_names").nonEmpty) made.setNames(names("label_names"),
      names("output_names"))
    if (step.has("children")) step.list("children")
      .foreach(child => made.add(metricOf(new Step(child.asInstanceOf[Map[String, Any]]))))
    made
  }

  /** A JSON number as it was written. */
  private def plain(value: Any): Any = value match {
    case number: Double if number == number.toLong => number.toLong
    case other                                     => other
  }

  private def figures(metric: EvalMetric, everything: Boolean = false): Any =
    Map("metric" -> (if (everything) metric.getGlobal else metric.get))

  private def updateMetric(step: Step): Any = {
    if (step.flag("pre_sliced")) base(step).updateMetricPreSliced(metric(step), step.list("labels").map(arrays))
    else base(step).updateMetric(metric(step), arrays(step.get("labels")))
    figures(metric(step))
  }

  private def managerUpdateMetric(step: Step): Any = {
    if (step.flag("pre_sliced")) manager(step).updateMetricPreSliced(metric(step), step.list("labels").map(arrays))
    else manager(step).updateMetric(metric(step), arrays(step.get("labels")))
    figures(metric(step))
  }

  private def sgdOf(step: Step): Optimizer = {
    val keys = Seq("learning_rate", "momentum", "wd", "rescale_grad", "clip_gradient")
    Optimizer("sgd", keys.map(key => (key, step.get(key))): _*)
  }

  private def createSgd(step: Step): Any = {
    val mode = Map("on_store" -> UpdateMode.OnStore, "per_device" -> UpdateMode.PerDevice,
      "no_store" -> UpdateMode.NoStore)(step.text("mode"))
    val sgd = sgdOf(step).useSymbol(symbol(step.text("symbol")))
    val names = paramNames(step)
    if (mode == UpdateMode.OnStore) // starts from device 0's parameters, and copies them to all
      base(step).setParams(names.zip(base(step).present(PARAMS).map(_.head)).toMap, null)
    optimizers(step.text("optimizer")) = (sgd, mode)
    val mults = names.map(name => (name, sgd.mult(name))).toMap
    Map(
      "lr_mult" -> mults.map { case (name, mult) => (name, mult._1) },
      "wd_mult" -> mults.map { case (name, mult) => (name, if (step.double("wd") == 0) None else Some(mult._2)) })
  }

  private def sgdUpdate(step: Step): Unit = {
    val (sgd, mode) = optimizers(step.text("optimizer"))
    if (step.has("learning_rate")) sgd.set("learning_rate", step.double("learning_rate"))
    if (step.has("manager")) manager(step).update(sgd, mode) else base(step).update(sgd, mode)
  }

  private def installMonitor(step: Step): Unit = {
    val monitor =
      new Monitor(step.intOr("interval", 1), null, step.textOr("pattern", ".*"), step.flag("sort"),
        step.flag("monitor_all"))
    if (step.has("exec")) monitor.install(exec(step))
    else if (step.has("manager")) manager(step).installMonitor(monitor)
    else group(step).installMonitor(monitor)
    monitors(step.text("monitor")) = monitor
  }

  private def monitorToc(step: Step): Any = {
    val report = monitors(step.text("monitor")).toc()
    Map(
      "names" -> report.map { case (number, name, _) => (number, name) },
      "entries" -> report.map { case (number, name, text) => (number, name, text.split("\t")(0)) })
  }

  // ---- executors

  private def kept(name: String, executor: Executor): Any = {
    execs(name) = executor
    val grads = executor.gradDict
    Map(
      "arg_shapes" -> executor.argDict.map { case (key, array) => (key, array.shape) },
      "arg_types" -> executor.argDict.map { case (key, array) => (key, array.dtype.toString) },
      "has_grad" -> executor.symbol.listArguments().filter(grads.contains),
      "aux_shapes" -> executor.auxDict.map { case (key, array) => (key, array.shape) },
      "output_shapes" -> executor.outputs.map(_.shape))
  }

  private def execSimpleBind(step: Step): Any = {
    val net = symbol(step.text("symbol"))
    val words = if (step.has("grad_req")) wordsOf(net, step) else null
    val shared = if (step.has("shared_exec")) execs(step.text("shared_exec")) else null
    kept(step.text("exec"),
      Executor.simpleBind(net, null, shapes(step), types(step, "types"), words, shared, step.texts("shared_arg_names")))
  }

  private def execBind(step: Step): Any = {
    def copies(key: String) = named(step.get(key)).map { case (name, array) => (name, array.copy()) }
    val net = symbol(step.text("symbol"))
    kept(step.text("exec"),
      Executor.bind(net, null, copies("args"), copies("args_grad"), wordsOf(net, step), copies("aux")))
  }

  private def wordsOf(net: Symbol, step: Step): Map[String, String] = step.get("grad_req") match {
    case map: Map[_, _]  => map.asInstanceOf[Map[String, String]]
    case list: Vector[_] => net.listArguments().zip(list.asInstanceOf[Vector[String]]).toMap
    case word            => net.listArguments().map(_ -> Option(word).fold("write")(_.toString)).toMap
  }

  private def execSet(step: Step): Unit = {
    val executor = exec(step)
    for ((key, arrays) <- Seq("arg" -> executor.argDict, "grad" -> executor.gradDict, "aux" -> executor.auxDict))
      for ((name, array) <- named(step.get(key))) array.copyTo(arrays(name))
  }

  private def execBackward(step: Step): Unit = step.get("head_grads") match {
    case map: Map[_, _] =>
      val grads = named(map)
      exec(step).backward(exec(step).symbol.listOutputs().map { name =>
        grads.getOrElse(name, throw new UnknownNameException(s"there is none for $name", name))
      }.toArray)
    case list => exec(step).backward(Option(arrays(list)).fold(Array.empty[NDArray])(_.toArray))
  }

  private def execReshape(step: Step): Any =
    kept(step.text("as"), exec(step).reshape(step.flag("partial_shaping"), step.flag("allow_up_sizing"), shapes(step)))

  private def execSetMonitor(step: Step): Unit = {
    val names = seen.getOrElseUpdate(step.text("exec"), mutable.ArrayBuffer.empty)
    exec(step).setMonitorCallback((name, _) => names += name, step.flag("monitor_all"))
  }

  private def execMonitorNames(step: Step): Any = {
    val found = seen(step.text("exec")).toVector
    seen(step.text("exec")).clear()
    Map("names" -> found)
  }

  // ---- managers and modules

  private def createManager(step: Step): Any = {
    val builder =
      new DataParallelExecutorManager.Builder(symbol(step.text("symbol")), contexts(step), step.texts("param_names"))
      .setBatchSize(step.int("batch_size"))
      .setDataShapes(descs(step.get("data_shapes")))
      .setLabelShapes(descs(step.get("label_shapes")))
      .setWorkLoadList(workload(step))
    if (step.has("buckets")) {
      val buckets = step.map("buckets")
      builder.setSymGen(
        key(step.get("default_bucket_key")),
        key => symbol(buckets.getOrElse(key.toString,
          throw new UnknownNameException(s"there is no bucket $key", key.toString)).toString))
    }
    managers(step.text("manager")) = builder.build()
    slices(manager(step).slices)
  }

  private def key(value: Any): AnyRef = if (value == null) null else plain(value).toString

  private def managerLoad(step: Step): Unit = manager(step).loadDataBatch(
    batch(step).copy(
      bucketKey = key(step.get("bucket_key")),
      provideData = descs(step.get("data_shapes")),
      provideLabel = descs(step.get("label_shapes"))))

  private def managerCopyTo(step: Step): Any = {
    val (args, aux) = targets(step, manager(step).execgrp)
    manager(step).copyTo(args, aux)
    Map("arg" -> args, "aux" -> aux)
  }

  private def createModule(step: Step): Any = {
    val made = new Module(symbol(step.text("symbol")), step.texts("data_names"), step.texts("label_names"),
      contexts(step), workload(step))
    modules(step.text("module")) = made
    Map("param_names" -> made.paramNames)
  }

  private def moduleBind(step: Step): Any = {
    module(step).bind(
      descs(step.get("data_shapes")),
      Option(descs(step.get("label_shapes"))),
      step.flag("for_training", true),
      step.flag("inputs_need_grad"),
      step.flag("force_rebind"))
    slices(module(step).execGroup.slices)
  }

  private def moduleInitSgd(step: Step): Any = {
    val sgd = sgdOf(step)
    module(step).initOptimizer(sgd)
    Map("rescale_grad" -> sgd.get("rescale_grad"), "update_on_kvstore" -> (module(step).execGroup.contexts.length > 1))
  }
}
