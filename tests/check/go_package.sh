#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the Go package into a staging folder, and builds and runs a program on it from there, as the package's README says.
#   go_package.sh GO
set -euo pipefail
library=$(cd "$BUILD" && pwd)
work=$library/tests/go_package
rm -rf "$work" && mkdir -p "$work/program"
${MAKE:-make} --no-print-directory BUILD="$BUILD" PREFIX=/usr/local DESTDIR="$work/stage" install-go >"$work/install.txt"
cd "$work/program"
cat >main.go <<PROGRAM
package main

import (
	"fmt"

	"cohort.example/cohort"
)

func main() {
	array, err := cohort.FromSlice([]float32{1, 2})
	fmt.Println(cohort.LibraryVersion(), err, array.Close())
}
PROGRAM
"$1" mod init program 2>>"$work/install.txt"
"$1" mod edit -require cohort.example/cohort@v0.1.0 -replace "cohort.example/cohort=$work/stage/usr/local/share/gocode/src/cohort.example/cohort"
said=$("$1" run .)
if [[ $said != *" <nil> <nil>" ]]; then echo "go-package: found $said" && exit 1; fi
echo "go-package: installed, and used from there"
