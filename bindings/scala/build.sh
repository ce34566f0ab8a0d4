#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the Java declarations and the Scala classes with Debian's packages: OUT/cohort-abi.jar and OUT/cohort_2.11.jar. The
# classes of tests and examples stay in OUT/tests and OUT/scala; all Scala sources are compiled together.
#   build.sh OUT [--java]      --java: only the Java part
# With SCALAC=... another compiler builds a jar for its Scala version.
set -euo pipefail
out=$(mkdir -p "$1" && cd "$1" && pwd)
cd "$(dirname "$0")"
jars=/usr/share/java
javac=$([[ -x /usr/bin/javac ]] && echo /usr/bin/javac || echo javac)
jar=$(dirname "$(readlink -f "$(command -v "$javac")")")/jar
rm -rf "$out/classes" "$out/tests" "$out"/*.jar
mkdir -p "$out/classes" "$out/tests"
java_to() { "$javac" --release 11 -Xlint:all -Werror -cp "$jars/jna.jar:$out/classes" -d "$out/$1" $(find "$2" -name '*.java'); }
java_to classes src/main/java
java_to tests src/test/java
"$jar" --create --file "$out/cohort-abi.jar" -C "$out/classes" cohort/abi
[[ ${2:-} != --java ]] || { echo "build: cohort-abi.jar" && exit 0; }

rm -rf "$out/scala"
mkdir -p "$out/scala"
perl examples.pl README.md src/main/scala/cohort/*.scala >"$out/Examples.scala"
scalac=${SCALAC:-/usr/bin/scalac}
version=$("$scalac" -version 2>&1 | sed -n 's/.*version \([0-9]*\.[0-9]*\).*/\1/p')
target=$([[ $version == 2.11 ]] && echo -target:jvm-1.8 || echo -release:11)
"$scalac" -deprecation -feature -unchecked -Xfatal-warnings "$target" \
  -cp "$out/cohort-abi.jar:$jars/jna.jar:$jars/junit4.jar:$jars/hamcrest-core.jar" -d "$out/scala" \
  $(find src examples -name '*.scala') "$out/Examples.scala"
(cd "$out/scala" && find cohort -name '*.class' -not -path 'cohort/test/*' -not -path 'cohort/examples/*' >"$out/classes.txt")
(cd "$out/scala" && "$jar" --create --file "$out/cohort_$version.jar" @"$out/classes.txt")
echo "build: cohort-abi.jar, cohort_$version.jar"
