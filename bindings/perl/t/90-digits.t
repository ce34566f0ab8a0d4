# SPDX-License-Identifier: Apache-2.0
# The example learns handwritten digits over two devices.
use strict;
use warnings;
use File::Temp qw(tempdir);
use FindBin;
use Test::More;

my $root = "$FindBin::Bin/..";
my $data = "$root/../../examples/data/digits.params";
plan skip_all => "there is no $data here" unless -e $data;    # in the separate distribution

my $prefix = tempdir(CLEANUP => 1) . '/digits';
local $SIG{ALRM} = sub { die "the example takes longer than a minute\n" };
alarm 60;
my @lines = qx{$^X -I$root/lib $root/examples/train_digits.pl --epochs 20 --out $prefix};
alarm 0;
is($?, 0, 'the example ends well');
is(scalar(grep {/^epoch/} @lines), 20, 'a line for each epoch');
my ($accuracy) = $lines[-1] =~ /^test accuracy: ([\d.]+)$/;
cmp_ok($accuracy // 0, '>=', 0.97, 'at least 97 % of the digits are read right');
ok(-s "$prefix-symbol.json" && -s "$prefix-0020.params", 'a checkpoint is left');
open my $file, '<', "$root/examples/train_digits.pl" or die $!;
cmp_ok(scalar(() = <$file>), '<', 100, 'in less than 100 lines');
done_testing;
