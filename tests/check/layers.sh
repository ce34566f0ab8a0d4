#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Reads every #include under src/ and cuda/ against the order of the rooms, and the names of all source files.
# Includes of our own are written from src/ or include/ ("plan/memory.hpp", "cohort/types.h"), or within the same folder.
# With an argument: the folder to check in place of this tree (layers_test.sh uses it).
set -eu
cd "${1:-$(dirname "$0")/../..}"

for folder in include src cuda tests examples; do
  [[ ! -d $folder ]] || find "$folder" -type f \( -name '*.h' -o -name '*.hpp' -o -name '*.c' -o -name '*.cc' \
    -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' \)
done | LC_ALL=C sort | awk '
BEGIN {
  # A room sees the rooms of a smaller number; rooms of one number do not see each other.
  split("base device ndarray op symbol plan executor tape group api", order, " ")
  for (i in order) rank[order[i]] = i + 0
  rank["kernels"] = rank["op"] + 0.5  # of backends, all alike: nobody else sees them
  rank["optimizer"] = rank["metric"] = rank["executor"]
  backend["cpu"] = backend["cuda"] = 1
  split("base device op kernels", below_backend, " ")
  for (i in below_backend) backend_sees[below_backend[i]] = 1
  program["tool"] = 1  # hosts of the library: they see include/cohort and themselves
  split("types.h error.h log.h version.h", public_words, " ")  # of the public headers, what every room may use
  for (i in public_words) for_all[public_words[i]] = 1
}

function complain(line, text) { print path ":" (line ? line ":" : "") " " text; ++num_wrong }

function may_see(from, to) {
  if (from == to) return 1
  if (from in program || to in program) return 0
  if (from in backend) return to in backend_sees
  if (to in backend || to == "kernels") return 0
  return rank[to] < rank[from]
}

function check_own(line, target, room_to) {
  if (!(room_to in rank) && !(room_to in backend) && !(room_to in program)) complain(line, "includes " target ", which is in no room")
  else if (!may_see(room, room_to)) complain(line, room " must not include " target ": calls go down the rooms only")
}

function check_include(line, quote, target,    part) {
  split(target, part, "/")
  if (target ~ /^cohort\//) {
    if (room != "api" && !(room in program) && !(part[2] in for_all)) complain(line, room " must not include the public " target ": it belongs to api")
  } else if (quote == "\"") {
    if (target ~ /^\.\.?\//) complain(line, "writes " target "; own includes are written from src/")
    else if (target !~ /\//) check_beside(line, target)
    else check_own(line, target, part[1])
  } else check_foreign(line, target)
}

function check_beside(line, target,    folder) {  # a name alone: in the same folder, or it would depend on the search path
  folder = path
  sub(/[^\/]*$/, "", folder)
  if ((getline ignored < (folder target)) < 0) complain(line, "includes " target ", which is not beside it")
  close(folder target)
}

function check_foreign(line, target) {
  if (target ~ /^(oneapi\/)?dnnl/ && room != "cpu") complain(line, "only src/cpu includes oneDNN (" target ")")
  if (target ~ /^re2\// && path !~ /\/name_pattern\.cc$/) complain(line, "only name_pattern.cc includes RE2 (" target ")")
  if (target ~ /^minizip\// && path !~ /\/npz\.cc$/) complain(line, "only npz.cc includes minizip (" target ")")
  if (target ~ /^(jpeglib|jerror|png)\.h$/ && path !~ /\/image_file\.cc$/) complain(line, "only image_file.cc includes libjpeg and libpng (" target ")")
  if (target == "omp.h" && path !~ /\/cpu\/parallel\.hpp$/) complain(line, "only parallel.hpp includes OpenMP")
  if (target ~ /^(cuda|cublas|cudnn|nccl|nvtx|nvrtc|cub\/|thrust\/)/ && room != "cuda") complain(line, "only cuda/ includes " target)
  if (target ~ /^nlohmann\// && target !~ /_fwd\.hpp$/ && path !~ /\.cc$/) complain(line, "headers do not include nlohmann/json: it is slow to compile")
}

function check_name(    name, stem, count) {
  count = split(path, part, "/")
  name = part[count]
  stem = name
  sub(/\.[a-z]+$/, "", stem)
  if (stem !~ /^[a-z][a-z0-9_]*$/) complain(0, "file names are lower_snake")
  if (name in place) complain(0, "is named like " place[name] "; file names are unique in the tree")
  place[name] = path
  if (path ~ /^src\/.*\.(h|c|cpp|cu|cuh)$/) complain(0, "src/ holds .hpp and .cc files")
  if (path ~ /^include\// && path !~ /^include\/(cohort\/([a-z_]*\.h|(cohort|cpp_[a-z]*)\.hpp)|mxnet\/c_[a-z_]*\.h)$/) complain(0, "include/ holds include/cohort/*.h, cohort.hpp and its parts cpp_*.hpp, and include/mxnet/c_*.h")
  if (path ~ /^src\/api\/.*\.cc$/ && stem !~ /^api/) complain(0, "files of the boundary are called api_*.cc")
  if (path ~ /^src\/cpu\/op\/.*\.cc$/ && stem !~ /_cpu$/) complain(0, "kernel files carry their backend: *_cpu.cc")
  if (path ~ /^cuda\/op\/.*\.cu$/ && stem !~ /_cuda$/) complain(0, "kernel files carry their backend: *_cuda.cu")
}

{
  path = $0
  ++num_files
  split(path, part, "/")
  check_name()
  room = part[1] == "src" ? part[2] : part[1] == "cuda" ? "cuda" : ""
  if (part[1] == "src" && !(room in rank) && !(room in backend) && !(room in program)) {
    complain(0, "src/" room " is no room; the rooms are listed in this check")
    room = ""
  }
  line = 0
  spdx = 0
  while ((getline text < path) > 0) {
    ++line
    if (line <= 3 && text ~ /SPDX-License-Identifier: Apache-2\.0/) spdx = 1
    if (room != "" && match(text, /^[ \t]*#[ \t]*include[ \t]*[<"][^>"]*[>"]/)) {
      target = substr(text, RSTART, RLENGTH)
      sub(/^[^<"]*/, "", target)
      check_include(line, substr(target, 1, 1), substr(target, 2, length(target) - 2))
    }
  }
  close(path)
  if (!spdx) complain(0, "has no SPDX line at its top")
}

END {
  if (num_wrong) { print "check-layers: " num_wrong " wrong in " num_files " files"; exit 1 }
  print "check-layers: " num_files + 0 " files passed"
}'
