# SPDX-License-Identifier: Apache-2.0
# Every module has valid POD, which documents every function whose name does not start with an underscore.
use strict;
use warnings;
use B ();
use File::Find qw(find);
use FindBin;
use Pod::Checker ();
use Test::More;
use AI::Cohort;

my $root = "$FindBin::Bin/..";
my @files;
find({wanted => sub { push @files, $File::Find::name if /\.pm$/ }, no_chdir => 1}, "$root/lib");
my %ours = map { $_ => 1 } qw(import free_handle STORABLE_freeze STORABLE_thaw);    # required by Perl, AI::Cohort::Handle and Storable

sub stash_of {
    my $stash = B::svref_2object($_[0])->STASH;
    return $stash->can('NAME') ? $stash->NAME : '';    # a constant has none
}

# Functions that a package defines itself.
sub functions {
    my ($package) = @_;
    no strict 'refs';
    return grep {
        defined &{"${package}::$_"} && !/^_|^\(|^[A-Z_]+$|^cohort_/ && !$ours{$_}
            && stash_of(\&{"${package}::$_"}) eq $package
    } sort keys %{"${package}::"};
}

for my $file (sort @files) {
    (my $package = $file) =~ s{^\Q$root\E/lib/|\.pm$}{}g;
    $package =~ s{/}{::}g;
    my $beside = $file =~ s/pm$/pod/r;    # of the longer modules
    my $documentation = -e $beside ? $beside : $file;
    open my $handle, '<', $documentation or die "$documentation: $!";
    my $text = do { local $/; <$handle> };
    my $checker = Pod::Checker->new(-warnings => 1);
    my $said = '';
    open my $out, '>', \$said or die $!;
    $checker->parse_from_file($documentation, $out);
    ok($checker->num_errors == 0 && $checker->num_warnings == 0, "$package has POD in order") or diag($said);
    my %documented;
    for my $line ($text =~ /^=(?:head\d|item)\s+(.*)/mg) {
        $documented{$_} = 1 for $line =~ /\w+/g;
    }
    my @missing = grep { !$documented{$_} } functions($package);
    is("@missing", '', "$package says what its functions do");
}
done_testing;
