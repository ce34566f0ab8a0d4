#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# Makes bindings/abi.json from the public headers and bindings/abi.notes, and from it the declarations of the bindings.
#   abi.pl [--check]     --check: writes nothing, fails if a file is not what the headers say
#   abi.pl --proof       writes to standard output a C program that compiles if the headers are what the description says
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use AbiFiles;
use AbiGo;
use AbiHeaders;
use AbiJava;
use AbiRust;

my $root = "$FindBin::Bin/../..";
my $abi = AbiHeaders->new("$root/include", "$root/bindings/abi.notes")->description;
my $option = shift @ARGV // '';
die "usage: abi.pl [--check | --proof]\n" if @ARGV || $option !~ /^(?:--check|--proof)?$/;
if ($option eq '--proof') { print AbiFiles::c_proof($abi); exit 0 }

my %files = (
    'bindings/abi.json' => AbiFiles::description($abi),
    'include/cohort/cohort_functions.h' => AbiFiles::c_functions($abi),
    'bindings/perl/lib/AI/Cohort/FFI/Declarations.pm' => AbiFiles::perl_declarations($abi),
    'bindings/python/src/cohort/_abi.py' => AbiFiles::python_declarations($abi),
    'bindings/python/src/cohort/_abi_functions.py' => AbiFiles::python_functions($abi),
    'bindings/go/abi_constants.go' => AbiGo::constants($abi),
    'bindings/go/abi_lists.go' => AbiGo::lists($abi),
    'bindings/go/internal/nulls/nulls.go' => AbiGo::nulls($abi),
);
my %rust = AbiRust::declarations($abi);
$files{"bindings/rust/cohort-sys/$_"} = $rust{$_} for keys %rust;
my %java = AbiJava::declarations($abi);
$files{"bindings/scala/src/main/java/cohort/abi/$_"} = $java{$_} for keys %java;
$files{'bindings/scala/src/test/java/cohort/abi/Sweep.java'} = AbiJava::sweep($abi);
my @stale;
for my $path (sort keys %files) {
    my $present = '';
    if (open my $file, '<', "$root/$path") { local $/; $present = <$file> }
    next if $present eq $files{$path};
    push @stale, $path;
    next if $option eq '--check';
    open my $file, '>', "$root/$path" or die "$path: $!\n";
    print $file $files{$path} or die "$path: $!\n";
    close $file or die "$path: $!\n";
}
if ($option eq '--check') {
    die "not what the headers say (make abi writes them): @stale\n" if @stale;
    print 'abi.pl: ', scalar(keys %files), " files as the headers say\n";
}
