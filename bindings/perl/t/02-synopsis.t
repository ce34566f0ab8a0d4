# SPDX-License-Identifier: Apache-2.0
# The examples of the documentation run.
use strict;
use warnings;
use File::Find qw(find);
use FindBin;
use Test::More;
use AI::Cohort;

my $lib = "$FindBin::Bin/../lib";
my @files;
find({wanted => sub { push @files, $File::Find::name if /\.(?:pm|pod)$/ }, no_chdir => 1}, $lib);
my $number = 0;
for my $file (sort @files) {
    open my $handle, '<', $file or die "$file: $!";
    my $text = do { local $/; <$handle> };
    my ($synopsis) = $text =~ /^=head1 SYNOPSIS\n(.*?)^=/ms or next;
    next if $file =~ /Error\.pm$/;    # needs a group and a batch
    my $said = '';
    my $lived = do {
        local (*STDOUT, *STDERR);
        open STDOUT, '>', \$said or die $!;
        open STDERR, '>', \$said or die $!;
        $number++;
        eval "package Synopsis$number; use strict; use warnings;\n$synopsis; 1";
    };
    ok($lived, substr($file, 1 + length $lib) =~ s{/}{::}gr =~ s/\.\w+$//r) or diag($@);
    # A comment after a print gives its output.
    my @promised = $synopsis =~ /^\s*print\s[^\n]*;\s+# ([\d ]+)(?:$|,)/mg;
    my @missing = grep { index($said, $_) < 0 } @promised;
    is("@missing", '', '... and prints what it says') if @promised;
}
is(AI::Cohort->live_handles, 0, 'no handle is left');
done_testing;
