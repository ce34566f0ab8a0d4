// SPDX-License-Identifier: Apache-2.0
// Code generated from bindings/abi.json by bindings/tools/abi.pl. DO NOT EDIT.

package cohort

import "strconv"

// Version is that of the library which this was made for.
const Version = "0.1.0"

// Limits.
const (
	MaxAxes      = 32
	UnknownShape = -1
)

// CalibrationMethod: how a calibration gets a range from the numbers that it observes.
type CalibrationMethod int32

// Values of CalibrationMethod.
const (
	CalibrationMethodMinMax  CalibrationMethod = 0
	CalibrationMethodEntropy CalibrationMethod = 1
)

// String gives the name of the constant, without what all have in common.
func (v CalibrationMethod) String() string {
	switch v {
	case CalibrationMethodMinMax:
		return "min max"
	case CalibrationMethodEntropy:
		return "entropy"
	}
	return "CalibrationMethod(" + strconv.Itoa(int(v)) + ")"
}

// DeviceType: kinds of devices.
type DeviceType int32

// Values of DeviceType.
const (
	DeviceTypeCPU       DeviceType = 1
	DeviceTypeGPU       DeviceType = 2
	DeviceTypeCPUPinned DeviceType = 3
	DeviceTypeCPUShared DeviceType = 5
)

// String gives the name of the constant, without what all have in common.
func (v DeviceType) String() string {
	switch v {
	case DeviceTypeCPU:
		return "cpu"
	case DeviceTypeGPU:
		return "gpu"
	case DeviceTypeCPUPinned:
		return "cpu pinned"
	case DeviceTypeCPUShared:
		return "cpu shared"
	}
	return "DeviceType(" + strconv.Itoa(int(v)) + ")"
}

// Dtype: element types, in the byte order of the host.
type Dtype int32

// Values of Dtype.
const (
	DtypeNone     Dtype = -1
	DtypeFloat32  Dtype = 0
	DtypeFloat64  Dtype = 1
	DtypeFloat16  Dtype = 2
	DtypeUint8    Dtype = 3
	DtypeInt32    Dtype = 4
	DtypeInt8     Dtype = 5
	DtypeInt64    Dtype = 6
	DtypeBool     Dtype = 7
	DtypeBfloat16 Dtype = 12
)

// String gives the name of the constant, without what all have in common.
func (v Dtype) String() string {
	switch v {
	case DtypeNone:
		return "none"
	case DtypeFloat32:
		return "float32"
	case DtypeFloat64:
		return "float64"
	case DtypeFloat16:
		return "float16"
	case DtypeUint8:
		return "uint8"
	case DtypeInt32:
		return "int32"
	case DtypeInt8:
		return "int8"
	case DtypeInt64:
		return "int64"
	case DtypeBool:
		return "bool"
	case DtypeBfloat16:
		return "bfloat16"
	}
	return "Dtype(" + strconv.Itoa(int(v)) + ")"
}

// ErrorClass: classes of errors.
type ErrorClass int32

// Values of ErrorClass.
const (
	ErrorClassSuccess         ErrorClass = 0
	ErrorClassInvalidArgument ErrorClass = 1
	ErrorClassName            ErrorClass = 2
	ErrorClassShape           ErrorClass = 3
	ErrorClassDtype           ErrorClass = 4
	ErrorClassState           ErrorClass = 5
	ErrorClassUnsupported     ErrorClass = 6
	ErrorClassDevice          ErrorClass = 7
	ErrorClassFormat          ErrorClass = 8
	ErrorClassIO              ErrorClass = 9
	ErrorClassOutOfMemory     ErrorClass = 10
	ErrorClassExecution       ErrorClass = 11
	ErrorClassInternal        ErrorClass = 12
)

// String gives the name of the constant, without what all have in common.
func (v ErrorClass) String() string {
	switch v {
	case ErrorClassSuccess:
		return "success"
	case ErrorClassInvalidArgument:
		return "invalid argument"
	case ErrorClassName:
		return "name"
	case ErrorClassShape:
		return "shape"
	case ErrorClassDtype:
		return "dtype"
	case ErrorClassState:
		return "state"
	case ErrorClassUnsupported:
		return "unsupported"
	case ErrorClassDevice:
		return "device"
	case ErrorClassFormat:
		return "format"
	case ErrorClassIO:
		return "io"
	case ErrorClassOutOfMemory:
		return "out of memory"
	case ErrorClassExecution:
		return "execution"
	case ErrorClassInternal:
		return "internal"
	}
	return "ErrorClass(" + strconv.Itoa(int(v)) + ")"
}

// ExecutorList: lists of arrays that an executor has.
type ExecutorList int32

// Values of ExecutorList.
const (
	ExecutorListArgs    ExecutorList = 0
	ExecutorListGrads   ExecutorList = 1
	ExecutorListAux     ExecutorList = 2
	ExecutorListOutputs ExecutorList = 3
)

// String gives the name of the constant, without what all have in common.
func (v ExecutorList) String() string {
	switch v {
	case ExecutorListArgs:
		return "args"
	case ExecutorListGrads:
		return "grads"
	case ExecutorListAux:
		return "aux"
	case ExecutorListOutputs:
		return "outputs"
	}
	return "ExecutorList(" + strconv.Itoa(int(v)) + ")"
}

// GradReq: how backward treats the gradient of an argument; "null", "write" and "add" as text.
type GradReq int32

// Values of GradReq.
const (
	GradReqNull  GradReq = 0
	GradReqWrite GradReq = 1
	GradReqAdd   GradReq = 3
)

// String gives the name of the constant, without what all have in common.
func (v GradReq) String() string {
	switch v {
	case GradReqNull:
		return "null"
	case GradReqWrite:
		return "write"
	case GradReqAdd:
		return "add"
	}
	return "GradReq(" + strconv.Itoa(int(v)) + ")"
}

// GroupList: lists of arrays that a group has, each entry once per device.
type GroupList int32

// Values of GroupList.
const (
	GroupListData       GroupList = 0
	GroupListLabels     GroupList = 1
	GroupListParams     GroupList = 2
	GroupListGrads      GroupList = 3
	GroupListAux        GroupList = 4
	GroupListStates     GroupList = 5
	GroupListOutputs    GroupList = 6
	GroupListInputGrads GroupList = 7
	GroupListArgs       GroupList = 8
)

// String gives the name of the constant, without what all have in common.
func (v GroupList) String() string {
	switch v {
	case GroupListData:
		return "data"
	case GroupListLabels:
		return "labels"
	case GroupListParams:
		return "params"
	case GroupListGrads:
		return "grads"
	case GroupListAux:
		return "aux"
	case GroupListStates:
		return "states"
	case GroupListOutputs:
		return "outputs"
	case GroupListInputGrads:
		return "input grads"
	case GroupListArgs:
		return "args"
	}
	return "GroupList(" + strconv.Itoa(int(v)) + ")"
}

// LogLevel: levels of messages.
type LogLevel int32

// Values of LogLevel.
const (
	LogLevelDebug   LogLevel = 0
	LogLevelInfo    LogLevel = 1
	LogLevelWarning LogLevel = 2
	LogLevelError   LogLevel = 3
	LogLevelOff     LogLevel = 4
)

// String gives the name of the constant, without what all have in common.
func (v LogLevel) String() string {
	switch v {
	case LogLevelDebug:
		return "debug"
	case LogLevelInfo:
		return "info"
	case LogLevelWarning:
		return "warning"
	case LogLevelError:
		return "error"
	case LogLevelOff:
		return "off"
	}
	return "LogLevel(" + strconv.Itoa(int(v)) + ")"
}

// PatternMode: where in a name a pattern has to match.
type PatternMode int32

// Values of PatternMode.
const (
	PatternModeAnchored PatternMode = 0
	PatternModeAnywhere PatternMode = 1
)

// String gives the name of the constant, without what all have in common.
func (v PatternMode) String() string {
	switch v {
	case PatternModeAnchored:
		return "anchored"
	case PatternModeAnywhere:
		return "anywhere"
	}
	return "PatternMode(" + strconv.Itoa(int(v)) + ")"
}

// Precision: how an operator works if a network computes in a narrower type than that of its arrays (compute_dtype).
type Precision int32

// Values of Precision.
const (
	PrecisionOwn     Precision = 0
	PrecisionNarrow  Precision = 1
	PrecisionFollows Precision = 2
)

// String gives the name of the constant, without what all have in common.
func (v Precision) String() string {
	switch v {
	case PrecisionOwn:
		return "own"
	case PrecisionNarrow:
		return "narrow"
	case PrecisionFollows:
		return "follows"
	}
	return "Precision(" + strconv.Itoa(int(v)) + ")"
}

// Rounding: how a share of the batch becomes a whole number of samples.
type Rounding int32

// Values of Rounding.
const (
	RoundingHalfUp   Rounding = 0
	RoundingHalfEven Rounding = 1
	RoundingBalanced Rounding = 2
)

// String gives the name of the constant, without what all have in common.
func (v Rounding) String() string {
	switch v {
	case RoundingHalfUp:
		return "half up"
	case RoundingHalfEven:
		return "half even"
	case RoundingBalanced:
		return "balanced"
	}
	return "Rounding(" + strconv.Itoa(int(v)) + ")"
}

// SpanKind: kinds of events.
type SpanKind int32

// Values of SpanKind.
const (
	SpanKindOperator SpanKind = 0
	SpanKindPass     SpanKind = 1
	SpanKindCopy     SpanKind = 2
	SpanKindExchange SpanKind = 3
	SpanKindUpdate   SpanKind = 4
	SpanKindWait     SpanKind = 5
	SpanKindCall     SpanKind = 6
	SpanKindUser     SpanKind = 7
)

// String gives the name of the constant, without what all have in common.
func (v SpanKind) String() string {
	switch v {
	case SpanKindOperator:
		return "operator"
	case SpanKindPass:
		return "pass"
	case SpanKindCopy:
		return "copy"
	case SpanKindExchange:
		return "exchange"
	case SpanKindUpdate:
		return "update"
	case SpanKindWait:
		return "wait"
	case SpanKindCall:
		return "call"
	case SpanKindUser:
		return "user"
	}
	return "SpanKind(" + strconv.Itoa(int(v)) + ")"
}

// StorageType: storage types.
type StorageType int32

// Values of StorageType.
const (
	StorageTypeUndefined StorageType = -1
	StorageTypeDefault   StorageType = 0
	StorageTypeRowSparse StorageType = 1
	StorageTypeCSR       StorageType = 2
)

// String gives the name of the constant, without what all have in common.
func (v StorageType) String() string {
	switch v {
	case StorageTypeUndefined:
		return "undefined"
	case StorageTypeDefault:
		return "default"
	case StorageTypeRowSparse:
		return "row sparse"
	case StorageTypeCSR:
		return "csr"
	}
	return "StorageType(" + strconv.Itoa(int(v)) + ")"
}

// SymbolList: lists of names that a symbol has.
type SymbolList int32

// Values of SymbolList.
const (
	SymbolListArguments SymbolList = 0
	SymbolListAux       SymbolList = 1
	SymbolListOutputs   SymbolList = 2
	SymbolListInputs    SymbolList = 3
	SymbolListLabels    SymbolList = 4
)

// String gives the name of the constant, without what all have in common.
func (v SymbolList) String() string {
	switch v {
	case SymbolListArguments:
		return "arguments"
	case SymbolListAux:
		return "aux"
	case SymbolListOutputs:
		return "outputs"
	case SymbolListInputs:
		return "inputs"
	case SymbolListLabels:
		return "labels"
	}
	return "SymbolList(" + strconv.Itoa(int(v)) + ")"
}

// TotalsBy: how totals are summed.
type TotalsBy int32

// Values of TotalsBy.
const (
	TotalsByName     TotalsBy = 0
	TotalsByOperator TotalsBy = 1
)

// String gives the name of the constant, without what all have in common.
func (v TotalsBy) String() string {
	switch v {
	case TotalsByName:
		return "name"
	case TotalsByOperator:
		return "operator"
	}
	return "TotalsBy(" + strconv.Itoa(int(v)) + ")"
}

// UpdateMode: how cohort_group_update() puts the devices' gradients together.
type UpdateMode int32

// Values of UpdateMode.
const (
	UpdateModeOnStore   UpdateMode = 0
	UpdateModePerDevice UpdateMode = 1
	UpdateModeNoStore   UpdateMode = 2
)

// String gives the name of the constant, without what all have in common.
func (v UpdateMode) String() string {
	switch v {
	case UpdateModeOnStore:
		return "on store"
	case UpdateModePerDevice:
		return "per device"
	case UpdateModeNoStore:
		return "no store"
	}
	return "UpdateMode(" + strconv.Itoa(int(v)) + ")"
}
