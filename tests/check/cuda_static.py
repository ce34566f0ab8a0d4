#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the kernels in cuda/ without a GPU, from the compiler's output: registers, stack, spills, occupancy, vector loads.

    cuda_static.py [--write] --out DIR --list tests/check/cuda_static.tsv --arch 90 --include DIR NVCC FLAG...

Compiles each file of cuda/ for one kind of GPU and compares, kernel by kernel, what ptxas says with what the list allows:
more registers or stack than there, or a spill, fails. The list has a line for each file: its name, how many kernels it
has, the most registers, the most bytes of stack and of spills of any of them, and the least occupancy of a multiprocessor
with blocks of 256 threads. --write makes it anew.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

OCCUPANCY = r"""
#include <cuda_occupancy.h>
#include <cstdio>
#include <cstdlib>
int main(int argc, char **argv) {  // capability, then lines of: registers, bytes of shared memory
  cudaOccDeviceProp device;
  if (argc < 2) return 1;
  const int capability = std::atoi(argv[1]);
  device.computeMajor = capability / 10, device.computeMinor = capability % 10;
  device.maxThreadsPerBlock = 1024, device.maxThreadsPerMultiprocessor = 2048;
  device.regsPerBlock = device.regsPerMultiprocessor = 65536, device.warpSize = 32;
  device.sharedMemPerBlock = 49152, device.reservedSharedMemPerBlock = 1024;
  device.sharedMemPerMultiprocessor = capability >= 90 ? 233472 : 167936;
  device.sharedMemPerBlockOptin = device.sharedMemPerMultiprocessor - 1024;
  device.numSms = 132;
  int registers, shared;
  while (std::scanf("%d %d", &registers, &shared) == 2) {
    cudaOccFuncAttributes kernel;
    kernel.maxThreadsPerBlock = 1024, kernel.numRegs = registers, kernel.sharedSizeBytes = size_t(shared);
    kernel.partitionedGCConfig = PARTITIONED_GC_OFF, kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_DEFAULT;
    kernel.maxDynamicSharedSizeBytes = 0;
    cudaOccDeviceState state;
    cudaOccResult result;
    if (cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &kernel, &state, 256, 0) != CUDA_OCC_SUCCESS) return 1;
    std::printf("%d\n", result.activeBlocksPerMultiprocessor * 256 * 100 / 2048);
  }
  return 0;
}
"""

KERNEL = re.compile(
    r"Compiling entry function '(?P<name>[^']+)' for.*?"
    r"(?P<stack>\d+) bytes stack frame, (?P<stores>\d+) bytes spill stores, (?P<loads>\d+) bytes spill loads.*?"
    r"Used (?P<registers>\d+) registers(?P<rest>[^\n]*)",
    re.S,
)


def run(command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)


def newest_source():
    return max(path.stat().st_mtime for room in ("cuda", "src") for path in pathlib.Path(room).rglob("*.*"))


def compiled(source, options):
    """What ptxas says of a file, from the last time if nothing has changed since."""
    log = options.out / (source.stem + ".log")
    if log.exists() and log.stat().st_mtime > newest_source():
        return log.read_text()
    arch = f"arch=compute_{options.arch},code=sm_{options.arch}"
    command = [*options.nvcc, "-gencode", arch, "-Xptxas", "-v", "-c", str(source), "-o", str(log.with_suffix(".o"))]
    done = run(command)
    if done.returncode != 0:
        sys.exit(f"{source}: nvcc refuses it\n{done.stdout}")
    log.write_text(done.stdout)
    return done.stdout


def kernels_of(said):
    found = []
    for match in KERNEL.finditer(said):
        shared = re.search(r"(\d+) bytes smem", match["rest"])
        spills = int(match["stores"]) + int(match["loads"])
        found.append((int(match["registers"]), int(match["stack"]), spills, int(shared[1]) if shared else 0))
    return found


def occupancies(kernels, options):
    program = options.out / "occupancy"
    if not program.exists():
        (options.out / "occupancy.cc").write_text(OCCUPANCY)
        made = run(["g++", "-w", "-I", options.include, "-o", str(program), str(options.out / "occupancy.cc")])
        if made.returncode != 0:
            sys.exit(made.stdout)
    lines = "".join(f"{registers} {shared}\n" for registers, _, _, shared in kernels)
    said = subprocess.run([str(program), options.arch], input=lines, capture_output=True, text=True, check=True)
    return [int(word) for word in said.stdout.split()]


def line_of(source, options):
    kernels = kernels_of(compiled(source, options))
    if not kernels:
        return None
    least = min(occupancies(kernels, options))
    return [len(kernels), *(max(kernel[i] for kernel in kernels) for i in range(3)), least]


def has_vector_loads(source, options):
    ptx = options.out / (source.stem + ".ptx")
    if not ptx.exists() or ptx.stat().st_mtime < newest_source():
        done = run(
            [
                *options.nvcc,
                "-gencode",
                f"arch=compute_{options.arch},code=compute_{options.arch}",
                "-ptx",
                str(source),
                "-o",
                str(ptx),
            ]
        )
        if done.returncode != 0:
            sys.exit(f"{source}: nvcc refuses it\n{done.stdout}")
    return re.search(r"\bld(\.global)?(\.nc)?\.(v4\.[bfu]32|v2\.[bfu]64)", ptx.read_text()) is not None


def read_list(path):
    allowed = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        if line and not line.startswith("#"):
            name, *numbers = line.split("\t")
            allowed[name] = [int(number) for number in numbers]
    return allowed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--list", type=pathlib.Path, required=True)
    parser.add_argument("--arch", default="90")
    parser.add_argument("--include", required=True)
    parser.add_argument("nvcc", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    sources = sorted(pathlib.Path("cuda").rglob("*.cu"))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        lines = dict(zip((str(source) for source in sources), pool.map(lambda s: line_of(s, options), sources)))
    lines = {name: numbers for name, numbers in lines.items() if numbers}
    if options.write:
        head = "# Kernels of each file for one kind of GPU: file, how many, then of any of them the most registers, bytes\n"
        head += (
            "# of stack and of spills, and the least occupancy in percent. `make cuda-static-list` writes it anew.\n"
        )
        body = "".join("\t".join([name, *map(str, numbers)]) + "\n" for name, numbers in lines.items())
        options.list.write_text(head + body)
    allowed = read_list(options.list)
    wrong = []
    for name, (_, registers, stack, spills, occupancy) in lines.items():
        if name not in allowed:
            wrong.append(f"{name}: not in {options.list}")
            continue
        _, most_registers, most_stack, most_spills, least = allowed[name]
        for what, found, most in (
            ("registers", registers, most_registers),
            ("bytes of stack", stack, most_stack),
            ("bytes of spills", spills, most_spills),
            ("percent of a multiprocessor unused", 100 - occupancy, 100 - least),
        ):
            if found > most:
                wrong.append(f"{name}: at most {most} {what} expected, found {found}")
    vectors = [source for source in sources if re.search(r"\bload_vector[<(]", source.read_text())]
    wrong += [
        f"{source}: no load of 16 bytes in its PTX" for source in vectors if not has_vector_loads(source, options)
    ]
    for line in wrong:
        print(line)
    num_kernels = sum(numbers[0] for numbers in lines.values())
    spilling = sum(numbers[3] > 0 for numbers in lines.values())
    print(
        f"check-cuda-static: {num_kernels} kernels of {len(lines)} files for sm_{options.arch}; "
        f"files with spills: {spilling}; with vector loads: {len(vectors)}; wrong: {len(wrong)}"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
