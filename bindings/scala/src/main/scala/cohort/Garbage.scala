// SPDX-License-Identifier: Apache-2.0
package cohort

import java.lang.ref.{ReferenceQueue, WeakReference}
import java.util.concurrent.{ConcurrentHashMap, CountDownLatch, TimeUnit}
import java.util.concurrent.atomic.AtomicLong
import java.util.concurrent.locks.ReentrantLock

import cohort.abi.CohortNdarray.cohort_ndarray_bytes

/** Frees the objects that nothing refers to any more.
  *
  * Java's collector sees a few words of an object whose arrays take gigabytes. So this runs it when the memory that the
  * library uses on a context has doubled since the last run, and before a call that creates objects fails for want of memory.
  */
private[cohort] object Garbage {

  /** Below this many bytes of a context, the collector's own pace is good enough. */
  private val least = 64L << 20

  /** The library is asked for its memory once for this many bytes of new arrays, because a call with structs is slow. */
  private val step = least / 16

  /** An object, and what to free when it is unreachable. */
  private final class Watched(handle: Handle, val cell: Closing) extends WeakReference[Handle](handle, unreachable)

  /** A callback waits no longer for another thread that collects, which may wait for work that the callback is part of; and
    * nobody waits longer for the thread that frees.
    */
  private val longestWaitMillis = 1000L

  private val collecting = new ReentrantLock

  private val unreachable = new ReferenceQueue[Handle]
  private val watched = ConcurrentHashMap.newKeySet[Watched]

  private val freeing = new Thread("cohort-garbage") {
    override def run(): Unit = while (true)
      try free(unreachable.remove().asInstanceOf[Watched])
      catch { case error: Throwable => getUncaughtExceptionHandler.uncaughtException(this, error) }
  }
  freeing.setDaemon(true)
  freeing.start()

  /** Frees the cell when the object is unreachable. */
  def watch(handle: Handle, cell: Cell): Unit = watched.add(new Watched(handle, cell))

  private def free(one: Watched): Unit = {
    watched.remove(one)
    one.cell.run()
  }

  private val unasked = new AtomicLong
  private val named = ConcurrentHashMap.newKeySet[Context]
  private val collectAt = new ConcurrentHashMap[Context, java.lang.Long]

  /** Notes a context that the library may have memory on. */
  def name(context: Context): Unit = named.add(context)

  name(Context.cpu(0)) // it is the default

  /** Called with each new handle on an array. */
  def count(array: Long): Unit = {
    val bytes = Native.long(cohort_ndarray_bytes(array, _))
    if (unasked.addAndGet(bytes) >= step) ask()
  }

  /** Collects if there is a context whose memory has doubled. */
  def ask(): Unit = {
    unasked.set(0)
    if (grown().nonEmpty && collecting.tryLock()) // else another thread collects
      try {
        val contexts = grown() // empty if another thread has collected meanwhile
        if (contexts.nonEmpty) {
          collect()
          for (context <- contexts; bytes <- used(context)) collectAt.put(context, 2 * bytes)
        }
      } finally collecting.unlock()
  }

  private def grown(): List[Context] = {
    var found = List.empty[Context]
    val all = named.iterator
    while (all.hasNext) {
      val context = all.next()
      used(context) match {
        case Some(bytes) => if (bytes >= math.max(least, collectAt.getOrDefault(context, 0L))) found ::= context
        case None        => all.remove()
      }
    }
    found
  }

  private def used(context: Context): Option[Long] =
    try Some(context.memory.used)
    catch { case _: CohortException => None }

  /** Runs the collector, and frees what it has found rather than waiting for the thread that does so. Inside a callback
    * nothing may be freed: there it waits as long as that thread is seen to free objects.
    */
  private def collect(): Unit = {
    System.gc()
    if (Native.depth == 0) {
      val all = watched.iterator
      while (all.hasNext) {
        val one = all.next()
        if (one.get == null) free(one)
      }
      waitForFreeing()
    } else {
      var (before, left) = (Long.MaxValue, Cohort.liveHandles)
      while (left < before) {
        Thread.sleep(10)
        before = left
        left = Cohort.liveHandles
      }
    }
  }

  /** Waits until the thread has freed what it had begun to free. */
  private def waitForFreeing(): Unit = {
    val passed = new CountDownLatch(1)
    val last = new Watched(null, new Closing {
      override def isClosed: Boolean = passed.getCount == 0
      override def run(): Unit = passed.countDown()
    })
    last.enqueue()
    passed.await(longestWaitMillis, TimeUnit.MILLISECONDS)
  }

  /** Makes a call that creates objects. If there is no memory for them, it collects and makes the call once more. */
  def withRoom[A](create: => A): A =
    try create
    catch {
      case _: MemoryException =>
        val longest = if (Native.depth == 0) Long.MaxValue else longestWaitMillis
        if (collecting.tryLock(longest, TimeUnit.MILLISECONDS))
          try collect()
          finally collecting.unlock()
        create
    }
}
