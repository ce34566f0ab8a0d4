#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the pages of the classes, of Scala and of Java, from what build.sh has left: OUT/doc and OUT/javadoc. Warnings are errors.
#   doc.sh OUT [TO]      TO: a folder that gets them as scala and java
set -euo pipefail
out=$(cd "$1" && pwd)
to=${2:+$(mkdir -p "$2" && cd "$2" && pwd)}
cd "$(dirname "$0")"
rm -rf "$out/doc" "$out/javadoc"
mkdir -p "$out/doc"
javadoc -quiet -Xdoclint:all,-missing -Werror -cp /usr/share/java/jna.jar -d "$out/javadoc" $(find src/main/java -name '*.java')
scaladoc -Xfatal-warnings -doc-title Cohort -d "$out/doc" -cp "$out/cohort-abi.jar:/usr/share/java/jna.jar" src/main/scala/cohort/*.scala >"$out/doc.txt" 2>&1 ||
  { cat "$out/doc.txt" && exit 1; }
echo "doc: $(find "$out/doc/cohort" -name '*.html' | wc -l) pages for Scala, $(find "$out/javadoc/cohort" -name '*.html' | wc -l) for Java"
if [[ -n $to ]]; then
  rm -rf "$to/scala" "$to/java"
  cp -r "$out/doc" "$to/scala" && cp -r "$out/javadoc" "$to/java"
fi
