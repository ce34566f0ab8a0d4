# SPDX-License-Identifier: Apache-2.0
# The example fine-tunes a checkpoint that MXNet 1.9.1 wrote.
use strict;
use warnings;
use File::Copy qw(copy);
use File::Temp qw(tempdir);
use FindBin;
use Test::More;

my $root = "$FindBin::Bin/..";
my $golden = "$root/../../tests/golden/group/lenet_2dev";
plan skip_all => "there is no $golden here" unless -e $golden;    # in the separate distribution

my $folder = tempdir(CLEANUP => 1);
copy("$golden/symbol.json", "$folder/net-symbol.json") or die $!;
copy("$golden/init.params", "$folder/net-0007.params") or die $!;
local $SIG{ALRM} = sub { die "the example takes longer than a minute\n" };
alarm 60;
my $said = qx{$^X -I$root/lib $root/examples/fine_tune.pl $folder/net 7 --out $folder};
alarm 0;
is($?, 0, 'the example ends well');
my ($accuracy) = $said =~ /^accuracy ([\d.]+), the same bits after the stop$/;
cmp_ok($accuracy // 0, '>', 0.85, 'it has learnt, and a stop changes no bit') or diag $said;
done_testing;
