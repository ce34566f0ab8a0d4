#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the jars of the Scala binding into a folder and uses them from there; also checks the messages if there is no
# library, an incomplete one, or an older one.
#   scala_jars.sh JAVA
set -euo pipefail
java=$1
library=$(cd "$BUILD" && pwd)
work=$library/tests/scala_jars
rm -rf "$work"
mkdir -p "$work"
${MAKE:-make} --no-print-directory BUILD="$BUILD" DESTDIR="$work" install-scala >"$work/install.txt" 2>&1 || { cat "$work/install.txt" && exit 1; }
jars=$work/usr/share/java
[[ -L $jars/cohort-abi.jar && -L $jars/cohort_2.11.jar ]]
find_library() { "$java" -cp "$jars/cohort-abi.jar:/usr/share/java/jna.jar" cohort.abi.Loader; }
unset COHORT_LIB
said=$work/said.txt

LD_LIBRARY_PATH=$library find_library >"$said"
grep -q '^libcohort [0-9.]*, .*libcohort\.so' "$said"
COHORT_LIB=$library find_library | grep -q "$library/libcohort.so"

refuses() { # what COHORT_LIB names, words
  if COHORT_LIB=$1 find_library >"$said" 2>&1; then echo "scala-jars: $1 was taken" && exit 1; fi
  grep -q "$2" "$said" || { cat "$said" && echo "scala-jars: '$2' is not said of $1" && exit 1; }
}
refuses /nowhere 'Tried /nowhere: '
echo 'int cohort_version_number(void) { return 1; } const char *cohort_version(void) { return "0.0.1"; }' |
  ${CC:-cc} -shared -fPIC -xc -o "$work/libcohort.so" -
refuses "$work" 'is libcohort 0.0.1; these classes need'
echo 'int cohort_version_number(void) { return 999999; } const char *cohort_version(void) { return "99.99.99"; }' |
  ${CC:-cc} -shared -fPIC -xc -o "$work/libcohort_lacking.so" -
refuses "$work/libcohort_lacking.so" 'lacks a function'

jar=$(dirname "$(readlink -f "${java}c")")/jar
for one in cohort-abi:cohort.abi cohort_2.11:cohort; do
  "$jar" --describe-module --file "$(readlink -f "$jars/${one%:*}.jar")" 2>&1 | grep -q "^${one#*:}@.* automatic" ||
    { echo "scala-jars: ${one%:*}.jar is not the module ${one#*:}" && exit 1; }
  poms=("$work/usr/share/maven-repo/cohort/${one%:*}"/*/*.pom)
  grep -q "<artifactId>${one%:*}</artifactId>" "${poms[0]}" && [[ -e ${poms[0]%.pom}.jar ]]
  (cd "$work" && "$jar" --extract --file "${poms[0]%.pom}.jar" META-INF)
  cmp "$work/META-INF/maven/cohort/${one%:*}/pom.xml" "${poms[0]}"
done
classes=$("$jar" tf "$jars/cohort-abi.jar" && "$jar" tf "$jars/cohort_2.11.jar")
for name in cohort/abi/CohortGroup cohort/DataParallelExecutorGroup 'cohort/DataParallelExecutorGroup\$Builder'; do
  grep -qx "$name.class" <<<"$classes"
done
if grep -E 'cohort/(test|examples)/|AbiTest' <<<"$classes"; then echo 'scala-jars: tests are in them' && exit 1; fi
echo "scala-jars: installed, and the library found from there"
