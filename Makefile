# SPDX-License-Identifier: Apache-2.0
# Builds, tests and installs Cohort. `make help` lists the targets. GNU Make 4.
# Sources are found by their place (see README.md, "Where things are"): a new file needs no line here.

BUILD ?= build
PREFIX ?= /usr/local
BINDIR ?= $(PREFIX)/bin
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
DATADIR ?= $(PREFIX)/share
MANDIR ?= $(DATADIR)/man
DESTDIR ?=
CXXFLAGS ?= -O2
CFLAGS ?= -O2
# Kernels of the CPU backend; no -march here: what a processor has is found out when the library runs.
# Nobody reads errno or the floating-point flags after a kernel; loops vectorise better without. No contraction: the compiler
# fuses multiply and add differently in the vector part of a loop and in the rest of it.
KERNEL_CXXFLAGS ?= -O3 -fno-math-errno -fno-trapping-math -ffp-contract=off
IS_CLANG := $(findstring clang,$(shell $(CXX) --version 2>/dev/null))
# Flags of one file. GCC's partial redundancy elimination turns the clamps in exp and the like into branches.
FLAGS_src/cpu/op/pointwise_float_cpu.cc := $(if $(IS_CLANG),,-fno-tree-pre)
FLAGS_src/cpu/op/pointwise_fused_multiply_cpu.cc := $(if $(IS_CLANG),,-fno-tree-pre)
# Products that are sums in vectors all along: fused the same everywhere.
FLAGS_src/cpu/op/gemm_cpu.cc := -ffp-contract=fast
# clang warns of vectors between functions of the file where it does not inline them.
FLAGS_src/cpu/op/winograd_cpu.cc := -ffp-contract=fast $(if $(IS_CLANG),-Wno-psabi)
FLAGS_src/cpu/op/image_convolution_cpu.cc := -ffp-contract=fast
FLAGS_src/ndarray/cast.cc := -O3 -fno-trapping-math
# Means over devices of all parameters.
FLAGS_src/group/group_params.cc := -O3 -fno-trapping-math
# A fuzzer is led by what it reaches in the rooms that read files and attributes.
ifeq ($(SANITIZER),fuzz)
$(foreach s,$(shell find src/base src/ndarray src/symbol src/optimizer -name '*.cc'),$(eval FLAGS_$(s) += -O1 -fsanitize=fuzzer-no-link))
endif
CUDA ?= auto
CUDA_ARCHS ?= 80 90
GOLDEN ?=
# The system's own, for which it has NumPy; another one may be first in PATH.
PYTHON ?= $(firstword $(wildcard /usr/bin/python3) python3)
CARGO ?= $(firstword $(wildcard /usr/bin/cargo) cargo)
GO ?= $(firstword $(wildcard /usr/bin/go /usr/lib/go-1.19/bin/go) go)
OBJCOPY ?= objcopy
# Compilers run behind ccache where it is there; CCACHE= leaves it out. A clone in another folder finds the same entries.
CCACHE ?= $(if $(findstring ccache,$(CXX)),,$(shell command -v ccache))
export CCACHE_NOHASHDIR := 1
# Without this ccache takes no file that includes a precompiled header.
export CCACHE_SLOPPINESS := pch_defines,time_macros
# Standard headers are compiled once for each set of flags; PCH= leaves that out.
PCH ?= 1
CLANG_FORMAT ?= $(firstword $(shell command -v clang-format-14) clang-format)

SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -ec
.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules

Q := $(if $(V),,@)
say = $(if $(V),@:,@printf '  %-8s%s\n' $(1) $(2))
find = $(sort $(shell find $(1) -name '$(2)' -type f 2>/dev/null))
# A sub-make takes the parent's jobs, or as many as there are processors.
sub_make = $(MAKE) --no-print-directory $(if $(filter -j%,$(MAKEFLAGS)),,-j$(shell nproc))

# ---- version, written once in include/cohort/version.h -----------------------------------------------------------

version_of = $(shell sed -n 's/^\#define COHORT_$(1)  *\([0-9][0-9]*\).*/\1/p' include/cohort/version.h)
VERSION := $(call version_of,VERSION_MAJOR).$(call version_of,VERSION_MINOR).$(call version_of,VERSION_PATCH)
SONAME := libcohort.so.$(call version_of,SOVERSION)

# ---- what there is ------------------------------------------------------------------------------------------------

TOOL_SRCS := $(call find,src/tool,*.cc)
LIB_SRCS := $(filter-out $(TOOL_SRCS),$(call find,src,*.cc))
LIB_OBJS := $(LIB_SRCS:%.cc=$(BUILD)/obj/%.o)
CUDA_SRCS := $(strip $(call find,cuda,*.cu) $(call find,cuda,*.cc))
CUDA_OBJS := $(patsubst %,$(BUILD)/obj/%.o,$(basename $(CUDA_SRCS)))
HEADERS := $(call find,include/cohort,*.h) $(call find,include/cohort,*.hpp)
CAPI_SRCS := $(sort $(wildcard tests/capi/*.c))
CAPI_SUPPORT := $(sort $(wildcard tests/capi/support/*.c))
UNIT_SRCS := $(sort $(wildcard tests/unit/*.cc))
CXX_TEST_SRCS := $(sort $(wildcard tests/cpp/test_*.cc))
GOLDEN_SRCS := $(sort $(wildcard tests/golden/*.cc))
BENCH_SRCS := $(sort $(wildcard tests/bench/*.cc tests/bench/*.c))
EXAMPLE_SRCS := $(sort $(wildcard examples/*.c))
MXNET_SRCS := $(sort $(wildcard bindings/libmxnet/*.cc))
MXNET_TEST_SRCS := $(sort $(wildcard tests/libmxnet/*.c))
EXAMPLE_SUPPORT := $(sort $(wildcard examples/support/*.c))

SO := $(BUILD)/libcohort.so.$(VERSION)
SO_LINKS := $(BUILD)/$(SONAME) $(BUILD)/libcohort.so
A := $(BUILD)/libcohort.a
# Objects show all their names, and src/cohort.map hides them in libcohort.so. Tests of the inside share a library of the
# same objects that hides none. Under a sanitizer, where a library is hundreds of megabytes, that one is all there is.
ifeq ($(SANITIZER),)
SO_MAP := -Wl,--version-script=src/cohort.map -Wl,--no-undefined
LIBRARY := $(if $(LIB_SRCS),$(SO_LINKS) $(A))
INSIDE := $(BUILD)/libcohort_inside.so
else
LIBRARY := $(SO_LINKS)
INSIDE := $(BUILD)/libcohort.so
endif
TOOL := $(BUILD)/cohort
TOOL_OBJS := $(TOOL_SRCS:%.cc=$(BUILD)/obj/%.o)
CAPI_TESTS := $(CAPI_SRCS:tests/capi/%.c=$(BUILD)/tests/capi/%)
LONG_SRCS := $(sort $(wildcard tests/long/*.c))
LONG_TESTS := $(LONG_SRCS:tests/long/%.c=$(BUILD)/tests/long/%)
PAGES := $(sort $(wildcard bindings/from-mxnet/*.md))
PAGES_TEST := $(if $(PAGES),$(BUILD)/tests/pages)
UNIT_TESTS := $(UNIT_SRCS:tests/unit/%.cc=$(BUILD)/tests/unit/%)
CXX_TESTS := $(CXX_TEST_SRCS:tests/cpp/%.cc=$(BUILD)/tests/cpp/%)
MXNET_OBJS := $(MXNET_SRCS:%.cc=$(BUILD)/obj/%.o)
MXNET_SO := $(if $(MXNET_SRCS),$(BUILD)/libmxnet.so)
MXNET_TESTS := $(MXNET_TEST_SRCS:tests/libmxnet/%.c=$(BUILD)/tests/libmxnet/%)
MXNET_EXAMPLES := $(patsubst bindings/libmxnet/examples/%.c,$(BUILD)/examples/%,$(sort $(wildcard bindings/libmxnet/examples/*.c)))
FAKE_BACKEND := $(BUILD)/tests/unit/fake/libcohort_cuda.so
SLOW_BACKEND := $(BUILD)/tests/unit/slow/libcohort_cuda.so
LACKING_BACKEND := $(BUILD)/tests/unit/lacking/libcohort_cuda.so
EXAMPLES := $(EXAMPLE_SRCS:examples/%.c=$(BUILD)/examples/%)
GOLDEN_RUNNER := $(if $(GOLDEN_SRCS),$(BUILD)/cohort-golden)
BENCH := $(if $(BENCH_SRCS),$(BUILD)/cohort-bench)

# ---- flags --------------------------------------------------------------------------------------------------------

# clang says where a loop is not vectorised as it was asked to; without optimisation none is.
WARNINGS := -Wall -Wextra -Werror $(if $(IS_CLANG),-Wno-pass-failed)
DEPFLAGS = -MMD -MP
# Calls between the library's own functions are direct ones, for nobody may put others in their place.
OWN_NAMES := -fno-semantic-interposition $(if $(IS_CLANG),,-fno-gnu-unique)
LIB_CXXFLAGS := -std=c++17 -fPIC $(OWN_NAMES) $(WARNINGS) -Iinclude -Isrc
# The main library and a backend in a shared object of its own must have been compiled from the same headers.
BUILD_ID := $(shell cat /dev/null $(call find,src/base src/device src/op,*.hpp) | cksum | tr -d ' ')
BUILD_ID_FLAG := -DCOHORT_BUILD_ID='"$(VERSION)-$(BUILD_ID)"'
# The files that use it: only they are compiled anew when it changes.
BUILD_ID_SRCS := src/device/device.cc cuda/cuda_device.cc
build_id_flag = $(if $(filter $(BUILD_ID_SRCS),$<),$(BUILD_ID_FLAG))
ROOM_FLAGS = $(build_id_flag) $(if $(filter src/cpu/%,$<),-fopenmp) $(if $(filter src/cpu/op/%,$<),$(KERNEL_CXXFLAGS)) $(FLAGS_$<)
# Each compiler brings an OpenMP library of its own; libomp stands in for oneDNN's libgomp, too.
LIBS := -ldnnl -lre2 -lminizip -ljpeg -lpng $(if $(IS_CLANG),-fopenmp,-lgomp) -lpthread -ldl
C99 := -std=c99 -pedantic -D_POSIX_C_SOURCE=200809L $(WARNINGS) -Iinclude

# A deleter takes a struct that each library declares for itself.
FLAGS_tests/unit/test_dlpack.cc := $(if $(and $(IS_CLANG),$(SANITIZER)),-fno-sanitize=function)
FLAGS_tests/bench/cohort_bench.cc := -DCOHORT_BENCH_SYMBOLS='"$(CURDIR)/tests/bench/symbols"'

# Programs find libcohort.so beside them or at the given place relative to them.
link_cohort = -L$(BUILD) -lcohort -Wl,-rpath,'$$ORIGIN/$(1)' -Wl,-rpath-link,$(BUILD)

# ---- CUDA, where there is a compiler for it ---------------------------------------------------------------------------

ifneq ($(CUDA),no)
NVCC ?= $(firstword $(wildcard $(addsuffix /bin/nvcc,$(CUDA_HOME))) $(shell command -v nvcc) $(wildcard /usr/local/cuda/bin/nvcc))
endif
ifneq ($(NVCC),)
CUDA_ROOT := $(or $(CUDA_HOME),$(patsubst %/bin/nvcc,%,$(shell readlink -f $(lastword $(NVCC)))))
CUDA_INCLUDE := $(firstword $(wildcard $(CUDA_ROOT)/include $(CUDA_ROOT)/targets/x86_64-linux/include))
CUDA_LIB := $(firstword $(wildcard $(CUDA_ROOT)/lib64 $(CUDA_ROOT)/lib))
cuda_header = $(firstword $(wildcard $(CUDA_INCLUDE)/$(1) /usr/include/$(1) /usr/include/x86_64-linux-gnu/$(1) /usr/local/include/$(1)))
CUDA_MISSING := $(if $(call cuda_header,cublasLt.h),,cuBLASLt)
else
CUDA_MISSING := $(if $(filter no,$(CUDA)),CUDA (CUDA=no was given),nvcc (CUDA_HOME names the folder of a CUDA Toolkit))
endif
ifneq ($(CUDA_SRCS),)
ifeq ($(CUDA_MISSING),)
CUDA_SO := $(BUILD)/libcohort_cuda.so
else
LEFT_OUT := $(CUDA_MISSING)
endif
endif

NVCC_ARCHS = $(foreach a,$(CUDA_ARCHS),-gencode arch=compute_$(a),code=sm_$(a)) \
  -gencode arch=compute_$(lastword $(CUDA_ARCHS)),code=compute_$(lastword $(CUDA_ARCHS))
empty :=
comma := ,
host_flags = $(subst $(empty) $(empty),$(comma),$(strip -fPIC -fvisibility=hidden -Wall -Wextra -Werror))
# No contraction: the device is to round as the host's kernels do.
NVCC_OPTIONS = -std=c++17 -O3 -fmad=false --extended-lambda --expt-relaxed-constexpr -ccbin $(lastword $(CXX)) -Werror all-warnings \
  -Xcompiler $(host_flags) -Iinclude -Isrc -I.
# Drivers for CUDA 13 unpack compressed code, which takes a quarter of the space.
NVCC_MAJOR := $(if $(NVCC),$(shell $(lastword $(NVCC)) --version | sed -n 's/.*release \([0-9]*\)\..*/\1/p'))
NVCC_FLAGS = $(NVCC_OPTIONS) $(NVCC_ARCHS) $(if $(filter-out 11 12,$(NVCC_MAJOR)),--compress-mode=size)
CUDA_CXXFLAGS = $(LIB_CXXFLAGS) -I. -isystem $(CUDA_INCLUDE)
CUDA_LIBS = -L$(CUDA_LIB) -Wl,-rpath,'$$ORIGIN' -Wl,-rpath,$(CUDA_LIB) -lcudart_static -lrt -lcublasLt -lpthread -ldl
# The objects of the rooms below, of which the linker takes what the backend uses.
CUDA_SHARED := $(filter $(foreach d,base device op kernels,$(BUILD)/obj/src/$(d)/%),$(LIB_OBJS))

# ---- the library --------------------------------------------------------------------------------------------------

.PHONY: all
all: $(LIBRARY) $(CUDA_SO) $(TOOL)
	@$(if $(LEFT_OUT),echo "left out: libcohort_cuda.so for want of $(LEFT_OUT)",:)

# Rebuilds what depends on it when the flags or the list of files change, and only then.
STAMPS := $(foreach s,flags cflags cuda link build_id,$(BUILD)/$(s).stamp)
$(BUILD)/flags.stamp: CONTENT = $(CXX) $(CXXFLAGS) $(CPPFLAGS) $(LIB_CXXFLAGS) $(KERNEL_CXXFLAGS)
$(BUILD)/cflags.stamp: CONTENT = $(CC) $(CFLAGS) $(CPPFLAGS) $(C99)
$(BUILD)/cuda.stamp: CONTENT = $(NVCC) $(NVCC_FLAGS)
$(BUILD)/build_id.stamp: CONTENT = $(BUILD_ID_FLAG)
$(BUILD)/link.stamp: CONTENT = $(CXX) $(LDFLAGS) $(LIBS) $(VERSION) $(LIB_SRCS) $(TOOL_SRCS) $(CUDA_SRCS) $(MXNET_SRCS)
$(STAMPS): FORCE | $(BUILD)/
	@printf '%s\n' '$(subst ','\'',$(CONTENT))' | cmp -s - $@ || printf '%s\n' '$(subst ','\'',$(CONTENT))' > $@
.PHONY: FORCE
FORCE:

$(BUILD)/:
	@mkdir -p $@

$(BUILD)/obj/src/device/device.o $(BUILD)/obj/cuda/cuda_device.o $(BUILD)/cudasim/obj/cuda/cuda_device.o: $(BUILD)/build_id.stamp

# Precompiled headers: one for each set of flags, of which the file to compile must have the same. Files with flags of their
# own do without.
pch_flags_lib = $(LIB_CXXFLAGS) $(CPPFLAGS) $(CXXFLAGS)
pch_flags_cpu = $(pch_flags_lib) -fopenmp
pch_flags_kernels = $(pch_flags_cpu) $(KERNEL_CXXFLAGS)
pch_flags_unit = $(UNIT_CXXFLAGS) $(CPPFLAGS) $(CXXFLAGS)
pch_flags_simulated = $(CUDASIM_CXXFLAGS) $(CPPFLAGS) $(CXXFLAGS) $(CUDASIM_OPTIMIZE)
PCH_END := $(if $(IS_CLANG),pch,gch)
PCHS := $(if $(PCH),$(foreach set,lib cpu kernels unit simulated,$(BUILD)/pch/$(set).hpp.$(PCH_END)))
pch_file = $(if $(PCH),$(BUILD)/pch/$(1).hpp.$(PCH_END))
# Before the flags that include other headers.
pch = $(if $(PCH),-include $(BUILD)/pch/$(1).hpp $(if $(IS_CLANG),,-fpch-preprocess -Winvalid-pch))
room_pch = $(if $(filter src/cpu/op/%,$<),kernels,$(if $(filter src/cpu/%,$<),cpu,lib))
$(PCHS): $(BUILD)/pch/%.hpp.$(PCH_END): src/base/precompiled.hpp $(BUILD)/flags.stamp
	@mkdir -p $(@D)
	@cp $< $(BUILD)/pch/$*.hpp
	$(Q)$(CCACHE) $(CXX) $(pch_flags_$*) $(if $(IS_CLANG),-Xclang -fno-pch-timestamp) -x c++-header $(BUILD)/pch/$*.hpp -o $@
$(filter $(BUILD)/obj/src/cpu/op/%,$(LIB_OBJS)): | $(call pch_file,kernels)
$(filter $(BUILD)/obj/src/cpu/%,$(filter-out $(BUILD)/obj/src/cpu/op/%,$(LIB_OBJS))): | $(call pch_file,cpu)
$(filter-out $(BUILD)/obj/src/cpu/%,$(LIB_OBJS)) $(TOOL_OBJS): | $(call pch_file,lib)

$(BUILD)/obj/src/%.o: src/%.cc $(BUILD)/flags.stamp
	@mkdir -p $(@D)
	$(call say,CXX,$<)
	$(Q)$(CCACHE) $(CXX) $(if $(FLAGS_$<),,$(call pch,$(room_pch))) $(LIB_CXXFLAGS) $(CPPFLAGS) $(CXXFLAGS) $(ROOM_FLAGS) $(DEPFLAGS) -c $< -o $@

$(SO): $(LIB_OBJS) src/cohort.map $(BUILD)/link.stamp
	$(call say,LINK,$@)
	$(Q)$(CXX) -shared -o $@ $(LIB_OBJS) -Wl,-soname,$(SONAME) $(SO_MAP) \
	  -Wl,--as-needed -Wl,-z,relro,-z,now,-z,nodelete $(CXXFLAGS) $(LDFLAGS) $(LIBS)

$(BUILD)/libcohort_inside.so: $(LIB_OBJS) $(BUILD)/link.stamp
	$(call say,LINK,$@)
	$(Q)$(CXX) -shared -o $@ $(LIB_OBJS) -Wl,-soname,$(@F) -Wl,--as-needed $(CXXFLAGS) $(LDFLAGS) $(LIBS)

$(BUILD)/$(SONAME): $(SO)
	$(Q)ln -sfn $(<F) $@
$(BUILD)/libcohort.so: $(BUILD)/$(SONAME)
	$(Q)ln -sfn $(<F) $@

# One object in the archive: operators and kernels register themselves when they are linked in, and nothing refers to them
# by name, so that a linker taking single objects would leave them out. Its own names are local: they cannot clash with a
# program's. Inline functions must leave their groups for that, which are found by name.
$(A): $(LIB_OBJS) $(BUILD)/link.stamp
	$(call say,AR,$@)
	$(Q)$(CXX) -r -nostdlib -Wl,--force-group-allocation -o $(BUILD)/obj/cohort.o $(LIB_OBJS)
	$(Q)$(OBJCOPY) --wildcard --keep-global-symbol='cohort_*' $(BUILD)/obj/cohort.o
	$(Q)rm -f $@ && $(AR) rcs $@ $(BUILD)/obj/cohort.o

# The command line tool, a program like any other's, and as it is installed, where the library is in a folder of its own.
tool_to_lib = $(shell realpath -ms --relative-to='$(BINDIR)' '$(LIBDIR)')
$(TOOL): $(TOOL_OBJS) $(BUILD)/link.stamp | $(SO_LINKS)
	$(call say,LINK,$@)
	$(Q)$(CXX) -o $@ $(TOOL_OBJS) $(CXXFLAGS) $(LDFLAGS) $(call link_cohort,.)
$(BUILD)/install/cohort: $(TOOL_OBJS) $(BUILD)/link.stamp FORCE | $(SO_LINKS)
	@mkdir -p $(@D)
	$(Q)$(CXX) -o $@ $(TOOL_OBJS) $(CXXFLAGS) $(LDFLAGS) $(call link_cohort,$(tool_to_lib))

# ---- MXNet's C interface, over Cohort's -------------------------------------------------------------------------------

.PHONY: libmxnet
libmxnet: $(MXNET_SO)
# It sees the public headers alone, as any program does.
$(MXNET_OBJS): $(BUILD)/obj/bindings/%.o: bindings/%.cc $(BUILD)/flags.stamp
	@mkdir -p $(@D)
	$(call say,CXX,$<)
	$(Q)$(CCACHE) $(CXX) -std=c++17 -fPIC $(OWN_NAMES) $(WARNINGS) -Iinclude $(CPPFLAGS) $(CXXFLAGS) $(DEPFLAGS) -c $< -o $@
$(MXNET_SO): $(MXNET_OBJS) bindings/libmxnet/libmxnet.map $(BUILD)/link.stamp | $(SO_LINKS)
	$(call say,LINK,$@)
	$(Q)$(CXX) -shared -o $@ $(MXNET_OBJS) -Wl,-soname,$(@F) -Wl,--version-script=bindings/libmxnet/libmxnet.map \
	  -Wl,--no-undefined -Wl,-z,relro,-z,now,-z,nodelete $(CXXFLAGS) $(LDFLAGS) $(call link_cohort,.) -lpthread -ldl

# ---- the CUDA backend -----------------------------------------------------------------------------------------------

$(BUILD)/obj/cuda/%.o: cuda/%.cu $(BUILD)/cuda.stamp
	@mkdir -p $(@D)
	$(call say,NVCC,$<)
	$(Q)$(CCACHE) $(NVCC) $(NVCC_FLAGS) $(FLAGS_$<) -MMD -MP -MF $(@:.o=.d) -c $< -o $@

# Their text is part of it.
$(BUILD)/obj/cuda/cuda_source_headers.o $(BUILD)/cudasim/obj/cuda/cuda_source_headers.o: src/op/pointwise_math.hpp src/op/float_math.hpp
$(BUILD)/obj/cuda/%.o: cuda/%.cc $(BUILD)/cuda.stamp $(BUILD)/flags.stamp
	@mkdir -p $(@D)
	$(call say,CXX,$<)
	$(Q)$(CCACHE) $(CXX) $(CUDA_CXXFLAGS) $(build_id_flag) $(CPPFLAGS) $(CXXFLAGS) $(FLAGS_$<) $(DEPFLAGS) -c $< -o $@

$(BUILD)/obj/backend_shared.a: $(CUDA_SHARED) $(BUILD)/link.stamp
	@mkdir -p $(@D)
	$(Q)rm -f $@ && $(AR) rcs $@ $(CUDA_SHARED)

$(BUILD)/libcohort_cuda.so: $(CUDA_OBJS) $(BUILD)/obj/backend_shared.a cuda/backend.map $(BUILD)/link.stamp
	$(call say,LINK,$@)
	$(Q)$(CXX) -shared -o $@ $(CUDA_OBJS) $(BUILD)/obj/backend_shared.a -Wl,-soname,$(@F) \
	  -Wl,--version-script=cuda/backend.map -Wl,--no-undefined -Wl,--as-needed -Wl,-z,relro,-z,now,-z,nodelete \
	  $(LDFLAGS) $(CUDA_LIBS)

# ---- the CUDA backend on a simulated runtime --------------------------------------------------------------------------
# All of cuda/ compiled by g++ against NVIDIA's headers, and linked to tests/cudasim: for tests, where there is no GPU.

CUDASIM_INCLUDE := $(firstword $(foreach d,$(CUDA_HOME)/include $(CUDA_INCLUDE) /usr/local/cuda/include \
  /usr/local/cuda/targets/x86_64-linux/include,$(if $(and $(wildcard $(d)/cuda_runtime.h),$(wildcard $(d)/cublasLt.h)),$(d))))
CUDASIM := $(if $(and $(CUDASIM_INCLUDE),$(filter x86_64,$(shell uname -m)),$(if $(IS_CLANG),,gcc)),$(BUILD)/cudasim/libcohort_cuda.so)
CUDASIM_SRCS := $(sort $(wildcard tests/cudasim/sim_*.cc))
CUDASIM_OBJS := $(patsubst %,$(BUILD)/cudasim/obj/%.o,$(basename $(CUDA_SRCS) $(CUDASIM_SRCS)))
CUDASIM_CXXFLAGS = $(LIB_CXXFLAGS) -I. -isystem $(CUDASIM_INCLUDE)
# The double of the device is to round as the host's kernels do. Under a sanitizer hours of its loops pay for optimisation.
CUDASIM_KERNEL_FLAGS := -include tests/cudasim/sim_kernel.hpp -ffp-contract=off
CUDASIM_OPTIMIZE = $(if $(SANITIZER),-O1)

$(CUDASIM_OBJS): $(BUILD)/flags.stamp | $(call pch_file,simulated)
$(BUILD)/cudasim/obj/cuda/%.o: cuda/%.cu
	@mkdir -p $(@D)
	$(call say,CUDASIM,$<)
	$(Q)$(CCACHE) $(CXX) -x c++ $(call pch,simulated) $(CUDASIM_CXXFLAGS) $(CUDASIM_KERNEL_FLAGS) $(CPPFLAGS) $(CXXFLAGS) $(CUDASIM_OPTIMIZE) $(DEPFLAGS) -c $< -o $@
$(BUILD)/cudasim/obj/cuda/%.o: cuda/%.cc
	@mkdir -p $(@D)
	$(call say,CUDASIM,$<)
	$(Q)$(CCACHE) $(CXX) $(call pch,simulated) $(CUDASIM_CXXFLAGS) $(CUDASIM_KERNEL_FLAGS) $(build_id_flag) $(CPPFLAGS) $(CXXFLAGS) $(CUDASIM_OPTIMIZE) $(DEPFLAGS) -c $< -o $@
$(BUILD)/cudasim/obj/tests/%.o: tests/%.cc
	@mkdir -p $(@D)
	$(call say,CXX,$<)
	$(Q)$(CCACHE) $(CXX) $(call pch,simulated) $(CUDASIM_CXXFLAGS) $(CPPFLAGS) $(CXXFLAGS) $(CUDASIM_OPTIMIZE) $(DEPFLAGS) -c $< -o $@

$(BUILD)/cudasim/libcohort_cuda.so: $(CUDASIM_OBJS) $(BUILD)/obj/backend_shared.a tests/cudasim/cudasim.map $(BUILD)/link.stamp
	$(call say,LINK,$@)
	$(Q)$(CXX) -shared -o $@ $(CUDASIM_OBJS) $(BUILD)/obj/backend_shared.a -Wl,-soname,$(@F) \
	  -Wl,--version-script=tests/cudasim/cudasim.map -Wl,--no-undefined -Wl,-z,relro,-z,now,-z,nodelete $(CXXFLAGS) $(LDFLAGS) -lpthread -ldl

CUDASIM_TESTS := $(if $(CUDASIM),$(patsubst tests/%.cc,$(BUILD)/tests/%,$(sort $(wildcard tests/cudasim/test_*.cc))))
# Those that are hosts of CUDA themselves, with kernels of their own, and the others, which look into the library.
CUDASIM_SELF := $(filter %/test_simulator %/test_simulated_cudnn,$(CUDASIM_TESTS))
$(CUDASIM_SELF): $(BUILD)/tests/%: $(BUILD)/cudasim/obj/tests/%.o $(BUILD)/cudasim/obj/cuda/cuda_context.o $(patsubst %.cc,$(BUILD)/cudasim/obj/%.o,$(CUDASIM_SRCS))
	@mkdir -p $(@D)
	$(Q)$(CXX) -o $@ $^ $(CXXFLAGS) $(LDFLAGS) -lpthread -ldl
$(CUDASIM_SELF:$(BUILD)/%=$(BUILD)/cudasim/obj/%.o): | $(call pch_file,simulated)
$(CUDASIM_SELF:$(BUILD)/%=$(BUILD)/cudasim/obj/%.o): CUDASIM_CXXFLAGS += $(CUDASIM_KERNEL_FLAGS) -Itests/unit
$(BUILD)/tests/cudasim/test_simulated_cudnn: $(patsubst %,$(BUILD)/cudasim/obj/cuda/%.o,cuda_cudnn op/convolution_plan)
$(filter-out $(CUDASIM_SELF),$(CUDASIM_TESTS)): $(BUILD)/tests/%: $(BUILD)/obj/tests/%.o $(INSIDE) | $(CUDASIM)
	@mkdir -p $(@D)
	$(Q)$(CXX) -o $@ $^ $(CXXFLAGS) -Wl,-rpath,'$$ORIGIN/../..' $(LDFLAGS) $(LIBS)
# They call libraries themselves, too, which lie beside the headers: NVRTC and cuDNN.
$(BUILD)/tests/cudasim/test_fused_programs: $(patsubst %,$(BUILD)/cudasim/obj/cuda/%.o,cuda_source cuda_source_headers op/fused_source)
$(BUILD)/tests/cudasim/test_cudnn_plans: $(patsubst %,$(BUILD)/cudasim/obj/cuda/%.o,cuda_cudnn op/convolution_plan)
$(BUILD)/obj/tests/cudasim/test_cudnn_plans.o: CPPFLAGS += -isystem $(CUDASIM_INCLUDE)
$(BUILD)/tests/cudasim/test_fused_programs $(BUILD)/tests/cudasim/test_cudnn_plans: LDFLAGS += -Wl,-rpath,$(CUDASIM_INCLUDE:%/include=%/lib64):$(CUDASIM_INCLUDE:%/include=%/lib)

# ---- programs -----------------------------------------------------------------------------------------------------

$(BUILD)/obj/%.o: %.c $(BUILD)/cflags.stamp
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CCACHE) $(CC) $(C99) $(if $(filter tests/capi/% tests/long/%,$<),-Itests/capi) $(CPPFLAGS) $(CFLAGS) $(FLAGS_$<) $(DEPFLAGS) -c $< -o $@

# Tests of the inside see what the library's sources see.
UNIT_CXXFLAGS := -std=c++17 $(WARNINGS) -Iinclude -Isrc -Itests/unit -fopenmp
INSIDE_OBJS := $(patsubst %.cc,$(BUILD)/obj/%.o,$(UNIT_SRCS)) $(filter-out $(CUDASIM_SELF:$(BUILD)/%=$(BUILD)/obj/%.o),$(CUDASIM_TESTS:$(BUILD)/%=$(BUILD)/obj/%.o))
$(INSIDE_OBJS): $(BUILD)/obj/tests/%.o: tests/%.cc $(BUILD)/flags.stamp | $(call pch_file,unit)
	@mkdir -p $(@D)
	$(call say,CXX,$<)
	$(Q)$(CCACHE) $(CXX) $(call pch,unit) $(UNIT_CXXFLAGS) $(if $(filter tests/cudasim/%,$<),-I.) $(CPPFLAGS) $(CXXFLAGS) $(FLAGS_$<) $(DEPFLAGS) -c $< -o $@
$(BUILD)/obj/tests/%.o: tests/%.cc $(BUILD)/flags.stamp
	@mkdir -p $(@D)
	$(call say,CXX,$<)
	$(Q)$(CCACHE) $(CXX) -std=c++17 $(WARNINGS) -Iinclude $(if $(filter tests/cpp/%,$<),-pedantic -Itests/unit) $(CPPFLAGS) $(CXXFLAGS) $(FLAGS_$<) $(DEPFLAGS) -c $< -o $@

# Calls that name no context go through tests/capi/support/contexts.c; but where addresses of functions are compared.
CAPI_WRAPPED := ndarray_zeros ndarray_empty ndarray_full ndarray_from_host ndarray_copy arrays_load_memory executor_bind executor_simple_bind operator_invoke
$(CAPI_TESTS) $(LONG_TESTS): $(BUILD)/tests/%: $(BUILD)/obj/tests/%.o $(CAPI_SUPPORT:%.c=$(BUILD)/obj/%.o) | $(SO_LINKS)
	@mkdir -p $(@D)
	$(Q)$(CC) -o $@ $^ $(CFLAGS) $(if $(filter %/test_function_table,$@),,$(CAPI_WRAPPED:%=-Wl,--wrap=cohort_%)) $(LDFLAGS) $(call link_cohort,../..) -lcmocka -lpthread -ldl -lm

# Programs in C against MXNet's headers. Some look at what Cohort itself says, such as its count of live handles.
$(MXNET_TESTS): $(BUILD)/tests/%: $(BUILD)/obj/tests/%.o | $(MXNET_SO)
	@mkdir -p $(@D)
	$(Q)$(CC) -o $@ $^ $(CFLAGS) $(LDFLAGS) -L$(BUILD) -lmxnet $(call link_cohort,../..) -lcmocka -lpthread -ldl -lm

# They link to libmxnet.so as programs do that were written for MXNet.
$(MXNET_EXAMPLES): $(BUILD)/examples/%: $(BUILD)/obj/bindings/libmxnet/examples/%.o | $(MXNET_SO)
	@mkdir -p $(@D)
	$(Q)$(CC) -o $@ $^ $(CFLAGS) $(LDFLAGS) -L$(BUILD) -lmxnet -Wl,-rpath,'$$ORIGIN/..' -Wl,-rpath-link,$(BUILD)

# The examples in the pages for users, each a test. The README there declares the names they use, and so comes first.
$(BUILD)/obj/tests/pages.c: tests/check/pages.awk bindings/from-mxnet/README.md tests/check/pages_setup.c $(PAGES)
	@mkdir -p $(@D)
	$(Q)awk -f $< $(filter-out $<,$^) > $@
$(PAGES_TEST): $(BUILD)/obj/tests/pages.c $(BUILD)/cflags.stamp $(HEADERS) | $(SO_LINKS)
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(C99) $(CPPFLAGS) $(CFLAGS) -o $@ $< $(LDFLAGS) $(call link_cohort,..)

# A backend without hardware, which test_backend loads.
$(FAKE_BACKEND): tests/unit/support/fake_backend.cc $(BUILD)/flags.stamp $(BUILD)/build_id.stamp
	@mkdir -p $(@D)
	$(Q)$(CXX) -shared $(LIB_CXXFLAGS) $(BUILD_ID_FLAG) $(CPPFLAGS) $(CXXFLAGS) $(DEPFLAGS) -o $@ $< $(LDFLAGS)

# A backend with queues that are out of step, which test_hazards loads.
$(SLOW_BACKEND): tests/unit/support/slow_backend.cc $(LIB_OBJS) cuda/backend.map $(BUILD)/flags.stamp $(BUILD)/build_id.stamp
	@mkdir -p $(@D)
	$(Q)$(CXX) -shared $(LIB_CXXFLAGS) $(BUILD_ID_FLAG) $(CPPFLAGS) $(CXXFLAGS) $(DEPFLAGS) -o $@ $< $(LIB_OBJS) \
	  -Wl,--version-script=cuda/backend.map $(LDFLAGS) $(LIBS)

# One that is linked to a library which is not there, as the backend is where cuBLASLt is missing.
$(LACKING_BACKEND): $(BUILD)/cflags.stamp
	@mkdir -p $(@D)
	$(Q)echo 'int cublasLtCreate(void) { return 0; }' | $(CC) -shared -fPIC -Wl,-soname,libcublasLt.so.0 -o $(@D)/library.so -x c -
	$(Q)echo 'int cublasLtCreate(void); int made(void) { return cublasLtCreate(); }' | \
	  $(CC) -shared -fPIC -Wl,--no-as-needed $(@D)/library.so -o $@ -x c -
	@rm $(@D)/library.so

$(UNIT_TESTS): $(BUILD)/tests/unit/%: $(BUILD)/obj/tests/unit/%.o $(INSIDE) | $(FAKE_BACKEND) $(SLOW_BACKEND) $(LACKING_BACKEND)
	@mkdir -p $(@D)
	$(Q)$(CXX) -o $@ $^ $(CXXFLAGS) -Wl,-rpath,'$$ORIGIN/../..' $(LDFLAGS) $(LIBS)

# These include cohort.hpp in two objects each.
$(CXX_TESTS): $(BUILD)/tests/cpp/%: $(BUILD)/obj/tests/cpp/%.o $(BUILD)/obj/tests/cpp/cpp_support.o | $(SO_LINKS)
	@mkdir -p $(@D)
	$(Q)$(CXX) -o $@ $^ $(CXXFLAGS) $(LDFLAGS) $(call link_cohort,../..) -lpthread

$(EXAMPLES): $(BUILD)/examples/%: $(BUILD)/obj/examples/%.o $(EXAMPLE_SUPPORT:%.c=$(BUILD)/obj/%.o) | $(SO_LINKS)
	@mkdir -p $(@D)
	$(Q)$(CC) -o $@ $^ $(CFLAGS) $(LDFLAGS) $(call link_cohort,..) -lm

$(BUILD)/cohort-golden: $(patsubst %,$(BUILD)/obj/%.o,$(basename $(GOLDEN_SRCS))) | $(SO_LINKS)
	$(call say,LINK,$@)
	$(Q)$(CXX) -o $@ $^ $(CXXFLAGS) $(LDFLAGS) $(call link_cohort,.) -lpthread

$(BUILD)/cohort-bench: $(patsubst %,$(BUILD)/obj/%.o,$(basename $(BENCH_SRCS))) | $(SO_LINKS)
	$(call say,LINK,$@)
	$(Q)$(CXX) -o $@ $^ $(CXXFLAGS) $(LDFLAGS) $(call link_cohort,.) -lm -ldl

# ---- the two commands of the README ---------------------------------------------------------------------------------

.PHONY: deps build-deps
deps:
	@tests/check/deps.sh
build-deps:
	@tests/check/deps.sh --build

.PHONY: run
run: build-deps
	+@$(sub_make) $(BUILD)/examples/train_digits
	@mkdir -p $(BUILD)/digits
	@$(BUILD)/examples/train_digits --out $(BUILD)/digits $(ARGS)

.PHONY: char-lm
char-lm: build-deps
	+@$(sub_make) $(BUILD)/examples/char_lm
	@$(BUILD)/examples/char_lm $(ARGS)

.PHONY: test
test: deps
	+@$(sub_make) all test-programs
	@$(run_tests) layers headers abi capi libmxnet unit cpp golden cudasim pages tool docs perl python rust go scala examples install contract

# ---- tests ----------------------------------------------------------------------------------------------------------

run_tests = BUILD='$(BUILD)' CC='$(CC)' CXX='$(CXX)' PYTHON='$(PYTHON)' CARGO='$(CARGO)' GO='$(GO)' CAPI='$(CAPI_TESTS)' LIBMXNET='$(MXNET_TESTS)' LONG='$(LONG_TESTS)' UNIT='$(UNIT_TESTS)' CXX_TESTS='$(CXX_TESTS)' CUDASIM='$(CUDASIM_TESTS)' PAGES='$(PAGES_TEST)' \
  GOLDEN_RUNNER='$(GOLDEN_RUNNER)' MAKE='$(MAKE)' tests/check/run_tests.sh

.PHONY: test-libmxnet
test-libmxnet: $(LIBRARY) $(MXNET_SO) $(MXNET_TESTS) $(MXNET_EXAMPLES)
	@$(run_tests) libmxnet
.PHONY: test-programs test-capi test-unit test-cpp test-cudasim test-tool test-perl test-python test-rust test-go test-scala
test-programs: $(LIBRARY) $(MXNET_SO) $(MXNET_TESTS) $(CAPI_TESTS) $(UNIT_TESTS) $(CXX_TESTS) $(CUDASIM) $(CUDASIM_TESTS) $(PAGES_TEST) $(EXAMPLES) $(MXNET_EXAMPLES) $(GOLDEN_RUNNER) $(BENCH)
test-capi: $(LIBRARY) $(CUDA_SO) $(CAPI_TESTS)
	@$(run_tests) capi
test-unit: $(LIBRARY) $(UNIT_TESTS)
	@$(run_tests) unit
test-cpp: $(LIBRARY) $(CXX_TESTS)
	@$(run_tests) cpp
# After a change of one operator: make test-op OP=softmax.
.PHONY: test-op
test-op: $(SO_LINKS) $(GOLDEN_RUNNER) $(CUDASIM) $(BUILD)/tests/capi/test_operator_types $(BUILD)/tests/unit/test_finite_differences
	$(if $(OP),,$(error make test-op OP=NAME: NAME is an operator))
	@BUILD='$(BUILD)' tests/check/test_op.sh '$(OP)'

# Tests that take too long for make test, and those that check-tsan leaves out.
.PHONY: check-long check-cudasim-long check-asan-long check-tsan-long
check-long:
	+@$(sub_make) all $(LONG_TESTS) $(CUDASIM) $(CAPI_TESTS) $(GOLDEN_RUNNER)
	@$(run_tests) long cudasim-long
	@$(MAKE) --no-print-directory check-asan-long
	@$(MAKE) --no-print-directory check-tsan-long
test-cudasim check-cudasim-long: $(LIBRARY) $(CUDASIM) $(CUDASIM_TESTS) $(CAPI_TESTS) $(EXAMPLES) $(GOLDEN_RUNNER)
	@SANITIZER=$(SANITIZER) $(run_tests) $(patsubst check-%,%,$(@:test-%=%))
test-tool: all
	@$(run_tests) tool
test-perl: deps
	+@$(sub_make) all
	@$(run_tests) perl
test-python:
	@tests/check/deps.sh --python
	+@$(sub_make) all
	@$(run_tests) python
test-rust:
	@tests/check/deps.sh --rust
	+@$(sub_make) all
	@$(run_tests) rust
test-go:
	@tests/check/deps.sh --go
	+@$(sub_make) all
	@$(run_tests) go
test-scala:
	@tests/check/deps.sh --scala
	+@$(sub_make) all
	@$(run_tests) scala

# Writes the list of what CUDA has no kernels for anew, after an operator was added; reasons are kept.
.PHONY: lacking
lacking: $(LIBRARY) $(CUDASIM) $(CUDASIM_TESTS)
	@COHORT_BACKEND_PATH=$(abspath $(BUILD)/cudasim) $(BUILD)/tests/cudasim/test_lacking --list >$(BUILD)/lacking.tsv
	@cp $(BUILD)/lacking.tsv tests/cudasim/lacking.tsv

# On a machine with a GPU that was handed the build folder, or the archive: builds nothing.
.PHONY: check-cuda check-cuda-archive
check-cuda:
	@BUILD='$(BUILD)' PYTHON='$(PYTHON)' CUDA_HOME='$(CUDA_HOME)' tests/check/cuda.sh
check-cuda-archive: deps
	$(if $(CUDA_SO),,$(error check-cuda-archive: libcohort_cuda.so cannot be built for want of $(CUDA_MISSING)))
	+@$(sub_make) $(LIBRARY) $(CUDA_SO) $(CAPI_TESTS) $(GOLDEN_RUNNER) $(BENCH) $(TOOL)
	@BUILD='$(BUILD)' tests/check/cuda_archive.sh

# Whether nvcc takes the kernels, as far as PTX: it reads those that have changed.
NVCC_SEEN := $(if $(NVCC),$(patsubst %.cu,$(BUILD)/nvcc/%.ptx,$(filter %.cu,$(CUDA_SRCS))))
.PHONY: check-nvcc nvcc-seen
check-nvcc:
	+@$(if $(NVCC),$(sub_make) nvcc-seen && echo "check-nvcc: $(words $(NVCC_SEEN)) files passed",echo "check-nvcc: skipped for want of $(CUDA_MISSING)")
nvcc-seen: $(NVCC_SEEN)
$(BUILD)/nvcc/%.ptx: %.cu $(BUILD)/cuda.stamp
	@mkdir -p $(@D)
	$(call say,NVCC,$<)
	$(Q)$(CCACHE) $(NVCC) $(NVCC_OPTIONS) -arch=compute_$(lastword $(CUDA_ARCHS)) -MMD -MP -MF $@.d -ptx $< -o $@
-include $(NVCC_SEEN:%=%.d)

.PHONY: check-cuda-static cuda-static-list
# Without a GPU: what the compiler knows of the kernels, whether NVRTC takes all that may be given to it, and whether the
# real cuDNN, where it is found, has engines for our convolutions.
cuda_static = $(PYTHON) tests/check/cuda_static.py $(1) --out $(BUILD)/cuda-static --list tests/check/cuda_static.tsv --include $(CUDA_INCLUDE) \
  $(NVCC) $(NVCC_OPTIONS)
ifneq ($(NVCC),)
check-cuda-static: $(BUILD)/tests/cudasim/test_fused_programs $(BUILD)/tests/cudasim/test_cudnn_plans
	@$(call cuda_static)
	@$< nvrtc_takes_each_functor_for_each_gpu
	@$(BUILD)/tests/cudasim/test_cudnn_plans
cuda-static-list:
	@$(call cuda_static,--write)
else
check-cuda-static cuda-static-list:
	@echo "$@: skipped, there is no nvcc here"
endif

.PHONY: golden
golden: $(LIBRARY) $(GOLDEN_RUNNER)
	$(if $(GOLDEN),,$(error make golden GOLDEN=DIR: DIR is a folder of golden cases))
	@$(BUILD)/cohort-golden $(GOLDEN)

.PHONY: bench bench-peers
bench: $(LIBRARY) $(CUDA_SO) $(BENCH)
# Beside MXNet and PyTorch, which it installs into environments of their own; ARGS="--only W1 --rounds 1", "--help".
bench-peers: bench
	@PYTHON='$(PYTHON)' tests/bench/peers/install.sh
	@$(PYTHON) tests/bench/peers/bench_peers.py --bench $(BENCH) --out $(BUILD)/peers.jsonl --chart $(BUILD)/peers.svg $(ARGS)

.PHONY: check-layers check-words
check-layers:
	@tests/check/layers.sh
check-words:
	@tests/check/words.sh

# Whether the tests of the last run prove what tests/contract says.
.PHONY: check-contract
check-contract:
	@tests/check/contract.sh tests/contract tests/abi/symbols.txt $(BUILD)/tests/results

# The reference as HTML, from the library's registry and the headers.
.PHONY: docs
docs: $(LIBRARY)
	@COHORT_LIB='$(BUILD)' PYTHONDONTWRITEBYTECODE=1 $(PYTHON) bindings/tools/reference.py '$(BUILD)/docs'
	+@if [ -x /usr/bin/scaladoc ] && [ -e /usr/share/java/jna.jar ] && [ -e /usr/share/java/junit4.jar ]; then \
	  $(sub_make) $(BUILD)/scala/cohort_2.11.jar && bindings/scala/doc.sh '$(BUILD)/scala' '$(BUILD)/docs'; \
	else echo "docs: without those of Scala and Java, for want of scaladoc, JNA and JUnit (make test-scala installs them)"; fi

.PHONY: abi
abi:
	@BUILD='$(BUILD)' CC='$(CC)' tests/check/abi.sh --write
	@perl bindings/tools/abi.pl

.PHONY: check-format format
FORMATTED = $(foreach d,include src cuda bindings/libmxnet tests examples,$(foreach e,h hpp c cc cu cuh,$(call find,$(d),*.$(e))))
check-format:
	@if command -v $(CLANG_FORMAT) >/dev/null && $(CLANG_FORMAT) --version | grep -q 'version 14\.'; then \
	  $(CLANG_FORMAT) --dry-run -Werror $(FORMATTED) && echo "check-format: $(words $(FORMATTED)) files passed"; \
	else echo "check-format: skipped, there is no clang-format 14 here"; fi
format:
	@$(CLANG_FORMAT) -i $(FORMATTED)

# The tests under a sanitizer, each in a build folder of its own. Kernels are built as the rest: -O3 hides what is looked for.
# AddressSanitizer with UBSan takes two to four times as long to compile for with optimisation as without. It is built by
# clang where clang has what that needs, so that clang has seen all sources, too.
# lld, where it is there, takes a quarter of the time to link a hundred programs to a library of 400 MB.
check_under = BUILD=$(BUILD)/$(1) CUDA=no CXXFLAGS='$(SANITIZER_FLAGS)' CFLAGS='$(SANITIZER_FLAGS)' KERNEL_CXXFLAGS= SANITIZER=$(1) \
  LDFLAGS='$(if $(shell command -v ld.lld),-fuse-ld=lld) $(SANITIZER_LIBS)'
CLANG ?= $(firstword $(shell command -v clang-14 clang))
ASAN_BY = $(if $(CLANG),$(shell printf '\043include <omp.h>\nint main() { return 0; }' | \
  $(CLANG) -xc++ -fopenmp -fsanitize=address,undefined - -lstdc++ -o /dev/null 2>/dev/null && echo clang))
# A program in C needs clang's runtime of UBSan for C++, too.
asan_compilers = $(if $(ASAN_BY),CC='$(CLANG)' CXX='$(subst clang,clang++,$(CLANG))')
check-asan: SANITIZER_LIBS = $(if $(ASAN_BY),-fsanitize-link-c++-runtime -lstdc++)
check-asan check-asan-long check-cudasim-asan: SANITIZER_FLAGS = -O0 -g1 -DUNDER_ASAN -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=undefined
check-tsan check-tsan-long: SANITIZER_FLAGS = -O1 -g1 -DUNDER_TSAN -fno-omit-frame-pointer -fsanitize=thread
.PHONY: check-asan check-tsan check-under check-cudasim-asan
check-asan:
	@$(if $(ASAN_BY),:,echo 'check-asan: built by $(CXX); left out: whether clang takes the sources, for want of clang with OpenMP and its sanitizers')
	+@$(sub_make) $(call check_under,asan) $(asan_compilers) check-under
check-cudasim-asan:
	+@$(sub_make) $(call check_under,asan) test-cudasim
check-tsan:
	+@$(sub_make) $(call check_under,tsan) check-under
# By GCC, whose builds have the versions for AVX2 and AVX-512.
check-asan-long:
	+@$(sub_make) $(call check_under,asan) UNDER='golden-ops sanitizers-long' check-under
check-tsan-long:
	+@$(sub_make) $(call check_under,tsan) UNDER=sanitizers-long check-under
UNDER ?= capi unit cpp $(if $(filter asan,$(SANITIZER)),golden-ops)
check-under: $(LIBRARY) $(CAPI_TESTS) $(UNIT_TESTS) $(CXX_TESTS) $(if $(filter asan,$(SANITIZER)),$(GOLDEN_RUNNER))
	@SANITIZER=$(SANITIZER) $(run_tests) $(UNDER)

# ---- fuzzing ----------------------------------------------------------------------------------------------------------
# make fuzz TARGET=params SECONDS=600 goes on from what earlier runs have found; tests/fuzz/README.md has the targets.

FUZZERS := $(patsubst tests/fuzz/%.cc,$(BUILD)/tests/fuzz/%,$(sort $(wildcard tests/fuzz/fuzz_*.cc)))
TARGET ?= params
SECONDS ?= 60
fuzz fuzzers: SANITIZER_LIBS = -fsanitize-link-c++-runtime -lstdc++
fuzz fuzzers: SANITIZER_FLAGS = -O0 -g1 -DUNDER_ASAN -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=undefined
.PHONY: fuzz fuzzers run-fuzzer
fuzz:
	+@$(sub_make) $(call check_under,fuzz) CC='$(CLANG)' CXX='$(subst clang,clang++,$(CLANG))' TARGET=$(TARGET) SECONDS=$(SECONDS) run-fuzzer
fuzzers:
	+@$(sub_make) $(call check_under,fuzz) CC='$(CLANG)' CXX='$(subst clang,clang++,$(CLANG))' $(FUZZERS:$(BUILD)/%=$(BUILD)/fuzz/%)
run-fuzzer: $(BUILD)/tests/fuzz/fuzz_$(TARGET)
	@tests/fuzz/run.sh $(BUILD)/tests/fuzz/fuzz_$(TARGET) $(BUILD)/corpus/$(TARGET) $(SECONDS)
$(FUZZERS): $(BUILD)/tests/fuzz/%: tests/fuzz/%.cc tests/fuzz/fuzz.hpp $(BUILD)/flags.stamp | $(SO_LINKS)
	@mkdir -p $(@D)
	$(call say,FUZZER,$@)
	$(Q)$(CXX) -std=c++17 $(WARNINGS) -Iinclude $(CXXFLAGS) -O1 -fsanitize=fuzzer -o $@ $< $(LDFLAGS) $(call link_cohort,../..)

# ---- install ----------------------------------------------------------------------------------------------------------

$(BUILD)/cohort.pc: cohort.pc.in $(wildcard include/cohort/version.h) FORCE | $(BUILD)/
	@sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' -e 's|@INCLUDEDIR@|$(INCLUDEDIR)|' \
	  -e 's|@VERSION@|$(VERSION)|' -e 's|@LIBS@|$(LIBS)|' $< > $@

$(BUILD)/cohort.1: src/tool/cohort.1 include/cohort/version.h | $(BUILD)/
	@sed 's|@VERSION@|$(VERSION)|' $< > $@

COMPLETIONS := $(DATADIR)/bash-completion/completions

.PHONY: install uninstall
install: all $(BUILD)/cohort.pc $(BUILD)/install/cohort $(BUILD)/cohort.1
	install -d '$(DESTDIR)$(MANDIR)/man1' '$(DESTDIR)$(COMPLETIONS)' '$(DESTDIR)$(BINDIR)' '$(DESTDIR)$(INCLUDEDIR)/cohort' '$(DESTDIR)$(LIBDIR)/pkgconfig'
	install -m 644 $(HEADERS) '$(DESTDIR)$(INCLUDEDIR)/cohort'
	install -m 755 $(BUILD)/install/cohort '$(DESTDIR)$(BINDIR)'
	install -m 644 $(BUILD)/cohort.1 '$(DESTDIR)$(MANDIR)/man1'
	install -m 644 src/tool/cohort.bash '$(DESTDIR)$(COMPLETIONS)/cohort'
	install -m 755 $(SO) $(CUDA_SO) '$(DESTDIR)$(LIBDIR)'
	ln -sfn $(notdir $(SO)) '$(DESTDIR)$(LIBDIR)/$(SONAME)'
	ln -sfn $(SONAME) '$(DESTDIR)$(LIBDIR)/libcohort.so'
	install -m 644 $(A) '$(DESTDIR)$(LIBDIR)'
	install -m 644 $(BUILD)/cohort.pc '$(DESTDIR)$(LIBDIR)/pkgconfig'
uninstall:
	rm -rf '$(DESTDIR)$(INCLUDEDIR)/cohort'
	rm -f '$(DESTDIR)$(BINDIR)/cohort' '$(DESTDIR)$(MANDIR)/man1/cohort.1' '$(DESTDIR)$(COMPLETIONS)/cohort'
	rm -f '$(DESTDIR)$(LIBDIR)'/libcohort.so* '$(DESTDIR)$(LIBDIR)'/libcohort_cuda.so '$(DESTDIR)$(LIBDIR)/libcohort.a' \
	  '$(DESTDIR)$(LIBDIR)/pkgconfig/cohort.pc'

# Bindings, to where their languages look; libcohort itself is another matter.
.PHONY: install-perl install-python install-rust install-go install-scala
install-perl:
	@rm -rf $(BUILD)/install/perl && mkdir -p $(BUILD)/install && cp -r bindings/perl $(BUILD)/install/perl
	cd $(BUILD)/install/perl && perl Makefile.PL && $(MAKE) --no-print-directory && $(MAKE) --no-print-directory install DESTDIR='$(DESTDIR)'
PYTHON_LIB = $(shell $(PYTHON) -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
install-python:
	@rm -rf $(BUILD)/install/python && mkdir -p $(BUILD)/install && cp -r bindings/python $(BUILD)/install/python
	cd $(BUILD)/install/python && $(PYTHON) -m build --wheel --no-isolation
	install -d '$(DESTDIR)$(PYTHON_LIB)'
	$(PYTHON) -m zipfile -e $(BUILD)/install/python/dist/*.whl '$(DESTDIR)$(PYTHON_LIB)'
# Sources, as Debian's packages of crates have them: a program's .cargo/config names the folder as a [source] of kind "directory".
install-rust:
	@for crate in cohort-sys cohort; do \
	  to='$(DESTDIR)$(PREFIX)/share/cargo/registry/'$$crate-$(VERSION) && rm -rf "$$to" && mkdir -p "$$to" && \
	  cp -r bindings/rust/$$crate/Cargo.toml bindings/rust/$$crate/src bindings/rust/README.md "$$to" && \
	  { [ ! -e bindings/rust/$$crate/build.rs ] || cp bindings/rust/$$crate/build.rs "$$to"; } && \
	  sed -i -e 's|path = "[^"]*", ||' -e 's|"../README.md"|"README.md"|' "$$to/Cargo.toml" && \
	  sed -i 's|"../../README.md"|"../README.md"|' "$$to/src/lib.rs" && \
	  echo '{"files":{}}' >"$$to/.cargo-checksum.json" || exit 1; done
# Sources, where Debian's Go packages are: a module names the folder with a replace directive.
install-go:
	@rm -rf '$(DESTDIR)$(PREFIX)/share/gocode/src/cohort.example/cohort' && mkdir -p '$(DESTDIR)$(PREFIX)/share/gocode/src/cohort.example/cohort'
	@cd bindings/go && cp go.mod README.md $(filter-out %_test.go,$(notdir $(wildcard bindings/go/*.go))) '$(DESTDIR)$(PREFIX)/share/gocode/src/cohort.example/cohort'
# scalac is slow: it runs when something has changed.
SCALA_SRCS := $(foreach e,scala java sh pl md,$(call find,bindings/scala,*.$(e)))
$(BUILD)/scala/cohort_2.11.jar: $(SCALA_SRCS)
	@bindings/scala/build.sh $(BUILD)/scala
# As Debian's packages have it: a jar by version, and a link without.
install-scala: $(BUILD)/scala/cohort_2.11.jar
	install -d '$(DESTDIR)/usr/share/java'
	for jar in cohort-abi cohort_2.11; do \
	  install -m 644 $(BUILD)/scala/$$jar.jar '$(DESTDIR)'/usr/share/java/$$jar-$(VERSION).jar; \
	  ln -sfn $$jar-$(VERSION).jar '$(DESTDIR)'/usr/share/java/$$jar.jar; \
	  to='$(DESTDIR)'/usr/share/maven-repo/cohort/$$jar/$(VERSION); install -d "$$to"; \
	  install -m 644 $(BUILD)/scala/$$jar.pom "$$to/$$jar-$(VERSION).pom"; \
	  ln -sfn ../../../../java/$$jar-$(VERSION).jar "$$to/$$jar-$(VERSION).jar"; \
	done

.PHONY: clean
clean:
	rm -rf $(BUILD)

.PHONY: help
help:
	@echo 'make                    libcohort.so, libcohort.a and the command line tool in $(BUILD)/, libcohort_cuda.so where nvcc is found'
	@echo 'make run [ARGS=...]     install what is missing, build, and train LeNet on handwritten digits'
	@echo 'make char-lm [ARGS=...] the same, and train a language model of characters in buckets'
	@echo 'make test               install what is missing, build, and run every test'
	@echo 'make deps               install what is missing of g++, oneDNN, RE2, nlohmann-json; CMocka, Perl with FFI::Platypus and PDL, Python with NumPy (apt)'
	@echo 'make golden GOLDEN=DIR  replay the golden cases in DIR'
	@echo 'make bench              $(BUILD)/cohort-bench: fixed workloads, one JSON line each'
	@echo 'make bench-peers        the same beside MXNet and PyTorch, installed for it; ARGS="--only W1 --rounds 1"'
	@echo 'make install            the tool with its page for man and completion for bash, headers, libraries and cohort.pc; PREFIX=$(PREFIX) DESTDIR='
	@echo 'make uninstall          removes what make install put there, with the same PREFIX and DESTDIR'
	@echo 'make install-perl       the Perl binding to where Perl looks; make install-python: the one for Python; make install-scala: of Java and Scala; make install-rust, install-go: sources, below PREFIX; DESTDIR='
	@echo 'make libmxnet           $(BUILD)/libmxnet.so: the C interface of MXNet over Cohort, for its frontends'
	@echo 'make test-capi          only the tests over the C ABI; make test-unit: only those of the inside; make test-cpp: only those of cohort.hpp'
	@echo 'make test-perl          install what is missing, and run the tests of the Perl binding; make test-python: of Python; make test-rust: of Rust; make test-go: of Go; make test-scala: of Java and Scala'
	@echo 'make test-op OP=softmax one operator: its golden cases on the CPU and a simulated GPU, its types, finite differences'
	@echo 'make test-tool          only those of the command line tool'
	@echo 'make test-cudasim       CUDA on the simulated runtime of tests/cudasim, where there are headers of CUDA'
	@echo 'make docs               the reference of operators, of the C interface and of the classes for Scala and Java, as HTML in $(BUILD)/docs; wants NumPy'
	@echo 'make check-words        comments, names of types and commit subjects that would have to be read twice'
	@echo 'make check-layers       includes go down the rooms only; names of files'
	@echo 'make check-contract     whether the tests of the last make test prove each rule of tests/contract'
	@echo 'make check-long         what takes longer than make test has time for: networks trained to their end in bfloat16, check-cudasim-long, check-asan-long, check-tsan-long'
	@echo 'make check-cudasim-long  the programs and models there for which make test has no time: minutes each'
	@echo 'make lacking            write tests/cudasim/lacking.tsv anew, after adding an operator or a CUDA kernel'
	@echo 'make abi                write the lists in tests/abi, bindings/abi.json and what bindings declare anew, after changing headers'
	@echo 'make check-format       clang-format 14, where it is there; make format applies it'
	@echo 'make check-asan         the tests under AddressSanitizer and UBSan; make check-tsan: ThreadSanitizer'
	@echo 'make fuzz TARGET=params SECONDS=600  a fuzzer of tests/fuzz, under AddressSanitizer and UBSan'
	@echo 'make check-cuda         all that only a GPU can show, from a build folder that is there: tests, goldens, compute-sanitizer, speed'
	@echo 'make check-cuda-archive all that check-cuda takes in $(BUILD)/check-cuda.tar.xz, for a machine on which nothing is installed'
	@echo 'make check-nvcc         whether nvcc takes the kernels, as far as PTX'
	@echo 'make check-cuda-static  what nvcc knows of the kernels without a GPU: registers, stack, spills, occupancy, vector loads; NVRTC, cuDNN'
	@echo 'make check-cudasim-asan cuda/ on the simulated runtime of tests/cudasim under AddressSanitizer and UBSan'
	@echo 'make clean              remove $(BUILD)/'
	@echo 'Variables: BUILD, CXX, CC, PYTHON, CARGO, GO, CXXFLAGS, CFLAGS, LDFLAGS, CUDA_HOME, CUDA_ARCHS="$(CUDA_ARCHS)", CUDA=no, V=1 (commands)'

-include $(MXNET_OBJS:.o=.d) $(MXNET_TESTS:$(BUILD)/%=$(BUILD)/obj/%.d) $(MXNET_EXAMPLES:$(BUILD)/%=$(BUILD)/obj/bindings/libmxnet/%.d)
-include $(LIB_OBJS:.o=.d) $(TOOL_OBJS:.o=.d) $(CUDA_OBJS:.o=.d) $(CUDASIM_OBJS:.o=.d) $(CUDASIM_TESTS:$(BUILD)/%=$(BUILD)/obj/%.d) \
  $(CUDASIM_SELF:$(BUILD)/%=$(BUILD)/cudasim/obj/%.d) $(FAKE_BACKEND:.so=.d) $(SLOW_BACKEND:.so=.d)
-include $(patsubst %,$(BUILD)/obj/%.d,$(basename $(CAPI_SRCS) $(CAPI_SUPPORT) $(LONG_SRCS) $(UNIT_SRCS) $(CXX_TEST_SRCS) tests/cpp/cpp_support.cc $(GOLDEN_SRCS) $(BENCH_SRCS) $(EXAMPLE_SRCS) \
  $(EXAMPLE_SUPPORT)))
