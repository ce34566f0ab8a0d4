# SPDX-License-Identifier: Apache-2.0
# The example with gradients and a custom operator learns.
use strict;
use warnings;
use FindBin;
use Test::More;

my $root = "$FindBin::Bin/..";
local $SIG{ALRM} = sub { die "the example takes longer than a minute\n" };
alarm 60;
my @lines = qx{$^X -I$root/lib $root/examples/train_rings.pl};
alarm 0;
is($?, 0, 'the example ends well');
my @losses = map { /^epoch \d+: loss ([\d.]+)$/ ? $1 : () } @lines;
is(scalar @losses, 6, 'a line for each ten epochs');
is_deeply(\@losses, [sort { $b <=> $a } @losses], 'the loss falls');
my ($accuracy) = $lines[-1] =~ /^accuracy: ([\d.]+)$/;
cmp_ok($accuracy // 0, '>=', 0.97, 'at least 97 % of the points are told apart');
done_testing;
