// SPDX-License-Identifier: Apache-2.0
package cohort

import java.io.{IOException, UncheckedIOException}

/** The exceptions of the library and of these classes: one for each class of errors, each also derived from a Java
  * exception. `subject` names the operator, argument, array or file concerned; it may be empty.
  */
sealed trait CohortException extends RuntimeException {
  def subject: String
}

/** A wrong count, range or constant; contradictory options. */
final class InvalidArgumentException(message: String, val subject: String)
    extends IllegalArgumentException(message)
    with CohortException

/** An unknown, missing, duplicate or ambiguous name. */
final class UnknownNameException(message: String, val subject: String)
    extends NoSuchElementException(message)
    with CohortException

/** Shapes that differ or cannot be inferred. */
final class ShapeException(message: String, val subject: String)
    extends IllegalArgumentException(message)
    with CohortException

/** Element types that differ or cannot be inferred. */
final class DTypeException(message: String, val subject: String)
    extends IllegalArgumentException(message)
    with CohortException

/** A valid call at the wrong time, for example on a closed object. */
final class StateException(message: String, val subject: String)
    extends IllegalStateException(message)
    with CohortException

/** A feature that this build or device does not have. */
final class UnsupportedException(message: String, val subject: String)
    extends UnsupportedOperationException(message)
    with CohortException

/** No such device or backend. */
final class DeviceException(message: String, val subject: String) extends RuntimeException(message) with CohortException

/** Invalid contents of a file, of JSON or of a buffer. */
final class FormatException(message: String, val subject: String)
    extends IllegalArgumentException(message)
    with CohortException

/** A failed operation of the file system. */
final class FileException(message: String, val subject: String)
    extends UncheckedIOException(message, new IOException(message))
    with CohortException

/** No memory left on the host or a device. */
final class MemoryException(message: String, val subject: String) extends RuntimeException(message) with CohortException

/** Failed work on a device; thrown by the call that waited for it. */
final class ExecutionException(message: String, val subject: String)
    extends RuntimeException(message)
    with CohortException

/** A defect in the library. */
final class DefectException(message: String, val subject: String) extends RuntimeException(message) with CohortException

private[cohort] object CohortException {
  import abi.Constants.ErrorClass._

  def apply(code: Int, message: String, subject: String): RuntimeException = code match {
    case ERROR_INVALID_ARGUMENT => new InvalidArgumentException(message, subject)
    case ERROR_NAME             => new UnknownNameException(message, subject)
    case ERROR_SHAPE            => new ShapeException(message, subject)
    case ERROR_DTYPE            => new DTypeException(message, subject)
    case ERROR_STATE            => new StateException(message, subject)
    case ERROR_UNSUPPORTED      => new UnsupportedException(message, subject)
    case ERROR_DEVICE           => new DeviceException(message, subject)
    case ERROR_FORMAT           => new FormatException(message, subject)
    case ERROR_IO               => new FileException(message, subject)
    case ERROR_OUT_OF_MEMORY    => new MemoryException(message, subject)
    case ERROR_EXECUTION        => new ExecutionException(message, subject)
    case _                      => new DefectException(message, subject)
  }
}
