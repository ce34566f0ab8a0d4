# SPDX-License-Identifier: Apache-2.0
# Compares with MXNet 1.9.1, scenario by scenario: all but those of the level "module", which this interface does not have.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use CohortTest;
use Golden;
use Test::More;

my $golden = "$FindBin::Bin/../../../tests/golden/group";
plan skip_all => "there is no $golden here" unless -d $golden;    # in the separate distribution

for my $folder (sort glob "$golden/*/") {
    my ($name) = $folder =~ m{([^/]+)/$};
    my $scenario = Golden->new($folder);
    next if $scenario->level eq 'module';
    my @wrong = $scenario->run;
    ok(!@wrong, $name) or diag(join "\n", $scenario->title, @wrong[0 .. ($#wrong < 4 ? $#wrong : 4)]);
}
finish();
