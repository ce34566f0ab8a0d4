#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compiles a public header by itself: header.sh HEADER COMPILER FLAG...
set -eu
# shellcheck disable=SC2048,SC2086  # the compiler may be two words, ccache gcc
header=$1
shift
printf '#include "%s"\n#include "%s"\n' "${header#include/}" "${header#include/}" |
  $* -pedantic-errors -Wall -Wextra -Werror -Iinclude -fsyntax-only -
