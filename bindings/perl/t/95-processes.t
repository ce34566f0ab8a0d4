# SPDX-License-Identifier: Apache-2.0
# Processes and threads other than the one that created the objects.
use strict;
use warnings;
use threads;
use FindBin;
use lib "$FindBin::Bin/lib";
use CohortTest;
use Test::More;

test 'a child may end, and compute by itself, beside its parent' => sub {
    my $exec = regression()->simple_bind(data => [2, 2]);
    $exec->copy_params_from({fc_weight => nd([[1, 2]])});
    $exec->forward(0, data => [[1, 1], [2, 2]]);
    defined(my $child = fork) or die "fork: $!";
    if (!$child) {
        my $own = eval { (nd([1, 2]) + 1)->aslist->[1] } // 0;
        my $of_parent = eval { $exec->forward(0); 1 };
        undef $exec;
        $SIG{ALRM} = 'DEFAULT';
        alarm 20;
        require POSIX;
        POSIX::_exit($own == 3 && !$of_parent ? 7 : 1);
    }
    waitpid $child, 0;
    is($? >> 8, 7, 'the child used arrays of its own, and was refused its parent\'s');
    near($exec->outputs->[0], [3, 6], 'the parent goes on');
};

test 'a child ends as any program' => sub {
    my $array = nd([1, 2]);
    my @command = ($^X, (map {"-I$_"} @INC), '-MAI::Cohort=mx', '-e');
    my $program = 'my $a = mx->nd->ones([2]); my $pid = fork // die; exit 5 if !$pid; waitpid $pid, 0; exit $? >> 8';
    is(system(@command, $program) >> 8, 5);
    $program = 'our $e = (mx->sym->Variable("x") * 2)->simple_bind(x => [1000, 1000]); $e->forward(0); exit 6';
    is(system(@command, $program) >> 8, 6, 'with work queued and objects alive');
    $program = 'use PDL; our $p = ones(float, 1000000); our $a = mx->nd->wrap($p); our $b = ($a + 1) * $a; exit 4';
    is(system(@command, $program) >> 8, 4, 'with lent memory in use');
};

test 'objects stay with the thread that made them' => sub {
    my $array = nd([1, 2]);
    my $seen = threads->create(sub { eval { $array->aslist; 1 } ? 'used' : 'not there' })->join;
    is($seen, 'not there');
    near($array, [1, 2], 'and are not freed by another');
};

finish();
