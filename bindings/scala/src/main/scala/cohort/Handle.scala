// SPDX-License-Identifier: Apache-2.0
package cohort

import java.util.concurrent.atomic.{AtomicBoolean, AtomicInteger}

import scala.collection.mutable

/** An object that a scope closes. */
private[cohort] trait Closing {
  def isClosed: Boolean
  def run(): Unit
}

/** A resource that is freed once: after close() and after the last call that uses it. [[Garbage]] runs it, too. */
private[cohort] final class Cell(val address: Long, release: Long => Unit) extends Runnable with Closing {
  private val uses = new AtomicInteger(1) // the number of calls that use it, plus one for the owner
  private val closed = new AtomicBoolean

  def isClosed: Boolean = closed.get

  def acquire(): Boolean = {
    var found = uses.get
    while (found > 0 && !closed.get) {
      if (uses.compareAndSet(found, found + 1)) return true
      found = uses.get
    }
    false
  }

  def drop(): Unit = if (uses.decrementAndGet() == 0) Native.free(() => release(address))

  override def run(): Unit = if (closed.compareAndSet(false, true)) drop()
}

/** Objects that share memory, which one call at a time may use; and the callbacks that they call, which live as long
  * as one of them.
  */
private[cohort] final class Family {
  private var kept = List.empty[AnyRef]
  private var enteredAt = -1 // how many callbacks were running when the present call began

  /** Runs one call after another. A callback may not use the object that calls it, unless `inside` says so. */
  def enter[A](inside: Boolean, who: String)(call: => A): A = synchronized {
    val (before, depth) = (enteredAt, Native.depth)
    if (before >= 0 && depth > before && !inside)
      throw new StateException(s"this $who is in the call that this callback belongs to", who)
    enteredAt = depth
    try call
    finally enteredAt = before
  }

  def keep(what: AnyRef): Unit = synchronized { kept ::= what }

  def forget(what: AnyRef): Unit = synchronized { kept = kept.filterNot(_ eq what) }
}

/** An object of the library. It is freed by `close()`, at the end of a [[Scope]], or when nothing refers to it any
  * more.
  *
  * Any thread may use it; calls of several threads wait for each other, those on other objects do not. Any use of a
  * closed object throws [[StateException]]; a call that is running when it is closed completes.
  */
abstract class Handle private[cohort] (address: Long, release: Long => Unit, private[cohort] val family: Family)
    extends AutoCloseable {
  private[cohort] val cell = new Cell(address, release)
  Garbage.watch(this, cell)
  Scope.note(cell)

  /** Whether it has been closed. */
  final def isClosed: Boolean = cell.isClosed

  /** Frees it now, after waiting for a call of another thread that uses it. Closing again does nothing. */
  final override def close(): Unit = family.synchronized(cell.run())

  /** MXNet's name for it. */
  final def dispose(): Unit = close()

  /** Calls with the object's C handle; nobody else uses its family meanwhile. */
  private[cohort] final def use[A](call: Long => A): A =
    family.enter(inside = false, getClass.getSimpleName)(hold(call))

  /** The same, also from the object's own callbacks. */
  private[cohort] final def useInside[A](call: Long => A): A =
    family.enter(inside = true, getClass.getSimpleName)(hold(call))

  /** The same for an argument: others may use it, too. */
  private[cohort] final def hold[A](call: Long => A): A = {
    if (!cell.acquire()) {
      val name = getClass.getSimpleName
      throw new StateException(s"this $name has been closed", name)
    }
    try call(cell.address)
    finally cell.drop()
  }

  private[cohort] final def run(call: Long => Long): Unit = use(handle => Native.check(call(handle)))
}

private[cohort] object Handle {
  /** Addresses of a list for the duration of a call; null stands for no array. */
  def addresses[A](handles: Iterable[Handle], what: String, nulls: Boolean = false)(call: Array[Long] => A): A = {
    val list = Native.needed(handles, what).toArray
    val made = new Array[Long](list.length)
    var held = 0
    try {
      while (held < list.length) {
        val one = list(held)
        if (one == null && !nulls) Native.refuse(s"$what: found null at $held", what)
        if (one != null) {
          if (!one.cell.acquire()) throw new StateException(s"$what: number $held has been closed", what)
          made(held) = one.cell.address
        }
        held += 1
      }
      call(made)
    } finally {
      while (held > 0) {
        held -= 1
        if (list(held) != null) list(held).cell.drop()
      }
    }
  }

  /** 0 for null. */
  def optional[A](handle: Handle)(call: Long => A): A = if (handle == null) call(0) else handle.hold(call)
}

/** Everything that a thread creates inside a scope is closed at its end, except the result.
  *
  * {{{
  * val sum = Scope {
  *   val a = NDArray.ones(Shape(2, 3)) // closed
  *   a + a                             // given: not closed, but by the scope around this one
  * }
  * }}}
  *
  * Arrays are found in the result itself and inside tuples, case classes, Options and collections.
  */
object Scope {
  private final class Noted {
    var cells = mutable.ArrayBuffer.empty[Closing]
    private var limit = 1024

    // Closed objects are removed, so that a loop inside a scope accumulates nothing.
    def add(cell: Closing): Unit = {
      if (cells.length >= limit) {
        cells = cells.filterNot(_.isClosed)
        limit = math.max(1024, 2 * cells.length)
      }
      cells += cell
    }
  }

  private val open = new ThreadLocal[List[Noted]] {
    override def initialValue(): List[Noted] = Nil
  }

  private[cohort] def note(cell: Closing): Unit = open.get.headOption.foreach(_.add(cell))

  /** Creates the parts of an object that the scope closes as a whole. */
  private[cohort] def outside[A](body: => A): A = {
    val outer = open.get
    open.set(Nil)
    try body
    finally open.set(outer)
  }

  def apply[A](body: => A): A = {
    val outer = open.get
    val noted = new Noted
    open.set(noted :: outer)
    var kept = Set.empty[Closing]
    try {
      val result = body
      kept = cellsOf(result)
      result
    } finally {
      open.set(outer)
      for (cell <- noted.cells.reverseIterator) if (kept(cell)) note(cell) else cell.run()
    }
  }

  private def cellsOf(value: Any): Set[Closing] = value match {
    case whole: Whole     => Set(whole.closing)
    case handle: Handle   => Set(handle.cell)
    case map: Map[_, _]   => map.valuesIterator.flatMap(cellsOf(_).iterator).toSet
    case list: Iterable[_] => list.iterator.flatMap(cellsOf(_).iterator).toSet
    case array: Array[_]  => array.iterator.flatMap(cellsOf(_).iterator).toSet
    case several: Product => several.productIterator.flatMap(cellsOf(_).iterator).toSet
    case _                => Set.empty
  }
}

/** An object made of library objects, and closed with them; at the end of its construction it registers itself with
 * the scope.
  */
abstract class Whole private[cohort] extends AutoCloseable {
  private[cohort] val closing: Closing = new Closing {
    override def isClosed: Boolean = Whole.this.isClosed
    override def run(): Unit = close()
  }

  /** Whether it has been closed. */
  def isClosed: Boolean
}
