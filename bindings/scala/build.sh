#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the Java declarations and the Scala classes into a folder, with Debian's packages: cohort-abi.jar and, where there are
# sources and a compiler of Scala's, cohort_2.11.jar; classes of tests stay in OUT/tests.
#   build.sh OUT [--java]      --java: the Java part alone
set -euo pipefail
out=$(mkdir -p "$1" && cd "$1" && pwd)
cd "$(dirname "$0")"
jars=/usr/share/java
javac=$([[ -x /usr/bin/javac ]] && echo /usr/bin/javac || echo javac)
rm -rf "$out/classes" "$out/tests" "$out"/*.jar
mkdir -p "$out/classes" "$out/tests"
java_to() { "$javac" --release 11 -Xlint:all -Werror -cp "$jars/jna.jar:$out/classes" -d "$out/$1" $(find "$2" -name '*.java'); }
java_to classes src/main/java
java_to tests src/test/java
jar=$(dirname "$(readlink -f "$(command -v "$javac")")")/jar
"$jar" --create --file "$out/cohort-abi.jar" -C "$out/classes" cohort/abi
[[ ${2:-} != --java ]] || { echo "build: cohort-abi.jar" && exit 0; }
