#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# Makes a Scala source that tests the examples in README.md and in the comments of the classes.
#   examples.pl README.md SOURCE... > Examples.scala
use strict;
use warnings;

my @examples;
for my $path (@ARGV) {
    open my $file, '<', $path or die "$path: $!\n";
    my ($inside, $text) = (0, '');
    while (my $line = <$file>) {
        if ($inside && $line =~ /^(?:```|\s*\*\s*\}\}\})\s*$/) {
            push @examples, ["$path:$inside", $text];
            ($inside, $text) = (0, '');
        } elsif ($line =~ /^(?:```scala|\s*\*\s*\{\{\{)\s*$/) {
            $inside = $.;
        } elsif ($inside) {
            $line =~ s/^\s*\* ?// if $path =~ /\.scala\z/;
            $text .= "    $line";
        }
    }
    die "$path:$inside: the example does not end\n" if $inside;
}
print "package cohort.test\n\nimport cohort._\n\nobject Examples {\n  val all: Vector[(String, () => Any)] = Vector(\n";
print join(",\n", map {"    \"$examples[$_][0]\" -> (() => example$_())"} 0 .. $#examples), ")\n";
print "\n  def example$_(): Any = {\n$examples[$_][1]  }\n" for 0 .. $#examples;
print "}\n";
