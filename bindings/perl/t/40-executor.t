# SPDX-License-Identifier: Apache-2.0
# Executors: binding, running, arrays, reshaping.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use CohortTest;
use Test::More;

sub product { mx->sym->Variable('x') * mx->sym->Variable('y') }

test 'arrays that are given are used as they are' => sub {    # EXE-01 to EXE-04
    my ($a, $b, $da) = (nd([1, 2]), nd([3, 4]), mx->nd->zeros([2]));
    my $exec = product()->bind(ctx => mx->cpu, args => [$a, $b], args_grad => {x => $da});
    near($exec->forward(1)->[0], [3, 8]);
    $exec->backward(nd([1, 10]));
    near($da, [3, 40]);
    $a->set([5, 5]);
    near($exec->forward(0)->[0], [15, 20]);
    is_deeply([map { defined } @{$exec->grad_arrays}], [1, '']);
    my $adding = product()->bind(args => {x => $a, y => $b}, args_grad => [$da, mx->nd->zeros([2])], grad_req => {x => 'add'});
    $adding->forward(1);
    $adding->backward([nd([1, 1])]) for 1 .. 2;
    near($da, [9, 48]);
    near($adding->grad_dict->{y}, [0, 0], 'null: never written');
    fails { product()->bind(args => {x => $a}) } 'name', qr/y/;
    fails { product()->bind(args => [$a]) } 'invalid_argument', qr/./;
    fails { product()->bind(args => [$a, nd([1])]) } 'shape', qr/./;
    fails { product()->bind(args => [$a, $b], args_grad => [$da]) } 'invalid_argument', qr/args_grad/;
    fails { product()->bind(args => [$a, $b], args_grad => [$da, $da], grad_req => 'sum') } 'invalid_argument', qr/sum/;
};

test 'arrays are made where shapes are given' => sub {    # EXE-12 to EXE-15
    my $net = mlp();
    my $exec = $net->simple_bind(ctx => mx->cpu(1), data => [2, 4]);
    is_deeply([map { [@{$_->shape}] } @{$exec->arg_arrays}], [[2, 4], [3, 4], [3], [2]]);
    is("" . $exec->context, 'cpu(1)');
    is_deeply([sort keys %{$exec->arg_dict}], [qw(data fc_bias fc_weight softmax_label)]);
    is_deeply([sort keys %{$exec->output_dict}], ['softmax_output']);
    is(scalar(grep {defined} @{$exec->grad_arrays}), 4, 'write');
    my $half = $net->simple_bind(shapes => {data => [2, 4]}, type_dict => {data => 'float64'}, grad_req => 'null');
    is($half->arg_dict->{fc_weight}->dtype, 'float64');
    is(scalar(grep {defined} @{$half->grad_arrays}), 0);
    my $some = $net->simple_bind(data => [2, 4], grad_req => {fc_weight => 'write'});
    is_deeply([map { defined } @{$some->grad_arrays}], ['', 1, '', '']);
    fails { $net->simple_bind } 'shape', qr/data/;
    fails { $net->simple_bind(data => [2, 4], grad_req => []) } 'invalid_argument', qr/./;
    fails { $net->simple_bind(data => [2, 4], grad_req => {}) } 'invalid_argument', qr/./;
};

test 'forward takes inputs by name, backward head gradients in three forms' => sub {    # EXE-19, EXE-23
    my $exec = regression()->simple_bind(data => [2, 2]);
    $exec->copy_params_from({fc_weight => nd([[1, 2]])});
    near($exec->forward(1, data => nd([[1, 1], [2, 0]], dtype => 'int32'))->[0], [3, 2]);
    near($exec->forward(0, data => [[0, 1], [0, 2]])->[0], [2, 4]);
    for my $given (nd([[1], [2]]), [nd([[1], [2]])], {fc_output => nd([[1], [2]])}) {
        $exec->backward($given);
        near($exec->grad_dict->{fc_weight}, [0, 5]);
    }
    fails { $exec->forward(0, other => nd([1])) } 'name', qr/other/;
    fails { $exec->forward(0, data => nd([1])) } 'shape', qr/data/;
    fails { $exec->backward({other => nd([1])}) } 'name', qr/fc_output/;
    fails { $exec->copy_params_from({other => nd([1])}) } 'name', qr/other/;
    $exec->copy_params_from({other => nd([1])}, {}, 1);
};

test 'a pass can go node by node' => sub {    # EXE-21, EXE-22
    my $exec = mlp()->simple_bind(data => [2, 4]);
    my @left = map { $exec->partial_forward(0, $_) } 0 .. 5;
    is_deeply(\@left, [5, 4, 3, 2, 1, 0]);
    near([map {@$_} @{$exec->outputs->[0]->asarray}], [(1 / 3) x 6]);
};

test 'a reshaped executor shares the memory' => sub {    # EXE-27 to EXE-31
    my $exec = regression()->simple_bind(data => [4, 2]);
    $exec->copy_params_from({fc_weight => nd([[1, 2]])});
    my $small = $exec->reshape({data => [2, 2]});
    near($small->forward(0, data => nd([[1, 0], [0, 1]]))->[0], [1, 2]);
    fails { $exec->reshape({data => [8, 2]}) } 'shape', qr/data/;
    my $large = $exec->reshape({data => [8, 2]}, allow_up_sizing => 1);
    is_deeply($large->outputs->[0]->shape, [8, 1]);
    fails { $exec->reshape({data => [4, 3]}) } 'shape', qr/fc_weight|data/;
    undef $exec;
    near($small->forward(0)->[0], [1, 2]);
};

test 'executors share arrays and pools' => sub {    # EXE-17
    my %pool;
    my $first = regression()->simple_bind(data => [4, 2], shared_buffer => \%pool);
    is_deeply([grep {/data/} sort keys %pool], ['data', 'grad of data']);
    my $second = regression()->simple_bind(data => [2, 2], shared_buffer => \%pool, shared_exec => $first, shared_arg_names => ['fc_weight']);
    $first->arg_dict->{fc_weight}->set([[3, 4]]);
    near($second->arg_dict->{fc_weight}, [3, 4]);
};

test 'a callback sees what is computed, and stays over a reshape' => sub {    # EXE-36
    my $exec = regression()->simple_bind(data => [4, 2]);
    my @seen;
    $exec->set_monitor_callback(sub { push @seen, [$_[0], $_[1]->shape] });
    $exec->forward(1);
    my $small = $exec->reshape({data => [2, 2]});
    undef $exec;
    $small->forward(0);
    is_deeply(\@seen, [['fc_output', [4, 1]], ['fc_output', [2, 1]]]);
};

test 'a loop around a call is not left by what the call runs' => sub {
    my $exec = mx->sym->exp(mx->sym->Variable('x'))->simple_bind(x => [1]);
    my $rounds = 0;
    ROUND: for (1 .. 2) {
        no warnings 'exiting';
        $exec->set_monitor_callback(sub { $_[0] eq 'none' or next });
        throws_text(sub { $exec->forward }, qr/outside a loop block|Label not found/);
        $exec->set_monitor_callback(sub { last ROUND });
        throws_text(sub { $exec->forward }, qr/outside a loop block|Label not found/);
        $exec->set_monitor_callback(undef);
        $exec->forward;
        ++$rounds;
    }
    is($rounds, 2);
};

sub throws_text {
    my ($code, $pattern) = @_;
    eval { $code->() };
    like("$@", $pattern);
}

test 'layers are placed by their group' => sub {    # EXE-10
    my $net = mx->sym->_mul_scalar(mx->sym->Variable('x'), scalar => 2, name => 'far', attr => {ctx_group => 'g'});
    my $exec = $net->simple_bind(ctx => mx->cpu(0), x => [2], group2ctx => {g => mx->cpu(4)});
    is("" . $exec->outputs->[0]->context, 'cpu(4)');
    near($exec->forward(0, x => [1, 2])->[0], [2, 4]);
};

test 'an executor says what it is' => sub {    # EXE-37
    my $exec = mlp()->simple_bind(data => [2, 4]);
    like($exec->debug_str, qr/Total \d+ MB allocated\nTotal 11 TempSpace resource requested\s*$/);
    is_deeply($exec->symbol->list_arguments, mlp()->list_arguments);
    is($exec->memory->{argument_bytes}, 4 * (8 + 12 + 3 + 2));
    $exec->wait;
};

finish();
