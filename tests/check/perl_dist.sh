#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Packs the Perl distribution, builds and installs it, and runs its first example from there; the library is found on the
# linker's path.
set -euo pipefail
library=$(cd "$BUILD" && pwd)
work=$library/tests/perl_dist
rm -rf "$work"
mkdir -p "$work"
cp -r bindings/perl "$work/source"
cd "$work/source"
{
  perl Makefile.PL
  make dist
} >../pack.txt 2>&1 || { cat ../pack.txt && exit 1; }
tar -xf AI-Cohort-*.tar.gz -C "$work"
cd "$work"/AI-Cohort-*/
{
  COHORT_LIB=$library perl Makefile.PL INSTALL_BASE="$work/installed" NO_PERLLOCAL=1
  make
  make install
} >../build.txt 2>&1 || { cat ../build.txt && exit 1; }
cd "$work"
export PERL5LIB=$work/installed/lib/perl5 LD_LIBRARY_PATH=$library
unset COHORT_LIB
perl -MAI::Cohort=mx -e 'print mx->library, "\n", mx->nd->ones([2, 3])->sum->asscalar, "\n"' >said.txt
grep -q "^$library/libcohort\.so" said.txt
grep -qx 6 said.txt
if LD_LIBRARY_PATH='' COHORT_LIB=/nowhere perl -MAI::Cohort -e 1 2>said.txt; then echo "perl-dist: a library that is not there was found" && exit 1; fi
grep -q 'Tried /nowhere: /nowhere: cannot open shared object file' said.txt
echo "perl-dist: packed, built, installed, and run from there"
