#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the Java declarations and the Scala classes with Debian's packages: OUT/cohort-abi.jar and OUT/cohort_2.11.jar, each
# with the name of its Java module and a pom for Maven, which is also beside it. The classes of tests and examples stay in
# OUT/tests and OUT/scala; all Scala sources are compiled together.
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
version_part() { sed -n "s/^#define COHORT_VERSION_$1 *\([0-9]*\).*/\1/p" ../../include/cohort/version.h; }
release=$(version_part MAJOR).$(version_part MINOR).$(version_part PATCH)

dependency() { # group, artifact, version
  printf '    <dependency>\n      <groupId>%s</groupId>\n      <artifactId>%s</artifactId>\n      <version>%s</version>\n    </dependency>\n' "$@"
}

# Makes OUT/ARTIFACT.jar of the classes that jar's other arguments name, and OUT/ARTIFACT.pom.
package() { # artifact, module, description, dependencies, arguments of jar...
  local artifact=$1 module=$2 description=$3 dependencies=$4 meta=$out/meta/$1
  shift 4
  rm -rf "$meta" && mkdir -p "$meta/META-INF/maven/cohort/$artifact"
  printf 'Automatic-Module-Name: %s\nImplementation-Version: %s\n' "$module" "$release" >"$meta/manifest.txt"
  cat >"$out/$artifact.pom" <<POM
<?xml version="1.0" encoding="UTF-8"?>
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>cohort</groupId>
  <artifactId>$artifact</artifactId>
  <version>$release</version>
  <name>$artifact</name>
  <description>$description</description>
  <licenses>
    <license>
      <name>Apache-2.0</name>
      <url>https://www.apache.org/licenses/LICENSE-2.0.txt</url>
    </license>
  </licenses>
  <dependencies>
$dependencies
  </dependencies>
</project>
POM
  cp "$out/$artifact.pom" "$meta/META-INF/maven/cohort/$artifact/pom.xml"
  "$jar" --create --file "$out/$artifact.jar" --manifest "$meta/manifest.txt" -C "$meta" META-INF/maven "$@"
}

java_to() { "$javac" --release 11 -Xlint:all -Werror -cp "$jars/jna.jar:$out/classes" -d "$out/$1" $(find "$2" -name '*.java'); }
java_to classes src/main/java
java_to tests src/test/java
package cohort-abi cohort.abi 'The C interface of Cohort, data-parallel training and inference, for Java' \
  "$(dependency net.java.dev.jna jna 5.13.0)" -C "$out/classes" cohort/abi
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
library=$("$scalac" -version 2>&1 | sed -n 's/.*version \([0-9.]*[0-9]\).*/\1/p')
(cd "$out/scala" && package "cohort_$version" cohort 'Data-parallel training and inference of MXNet models, for Scala' \
  "$(dependency cohort cohort-abi "$release")
$(dependency org.scala-lang scala-library "$library")" @"$out/classes.txt")
echo "build: cohort-abi.jar, cohort_$version.jar"
