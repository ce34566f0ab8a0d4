# SPDX-License-Identifier: Apache-2.0
# Custom operators.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use AI::Cohort::AutoGrad qw(autograd);
use CohortTest;
use Test::More;

our @seen;    # the arguments of the calls
our %dies;    # by method: the error that it dies with

{
    package Affine;    # y = scale * x + shift, and counts its training passes in an auxiliary state
    our @ISA = ('AI::Cohort::CustomOp');

    sub forward {
        my ($self, $is_train, $req, $in, $out, $aux) = @_;
        die $main::dies{forward} if $main::dies{forward};
        push @main::seen, [forward => $is_train, @$req];
        $self->assign($out->[0], $req->[0], $in->[0] * $self->{scale} + $in->[1]);
        $self->assign($aux->[0], 'add', [1]) if $is_train;
    }

    sub backward {
        my ($self, $req, $out_grad, $in, $out, $in_grad, $aux) = @_;
        die $main::dies{backward} if $main::dies{backward};
        push @main::seen, [backward => @$req];
        $self->assign($in_grad->[0], $req->[0], $out_grad->[0] * $self->{scale});
        $self->assign($in_grad->[1], $req->[1], $out_grad->[0]);
        $in_grad->[1] .= 7 if $req->[1] eq 'null';    # not read
    }

    package AffineProp;
    our @ISA = ('AI::Cohort::CustomOpProp');
    sub list_arguments { die $main::dies{declare} if $main::dies{declare}; [qw(data shift)] }
    sub list_auxiliary_states { ['count'] }

    sub infer_shape {
        my ($self, $in) = @_;
        die $main::dies{infer_shape} if $main::dies{infer_shape};
        return $main::dies{lists} if $main::dies{lists};
        return ([$in->[0], $in->[0]], [$in->[0]], [[1]]);
    }

    sub infer_type {
        my ($self, $in) = @_;
        die $main::dies{infer_type} if $main::dies{infer_type};
        return ([($in->[0]) x 2], [$in->[0]], [$in->[0]]);
    }

    sub create_operator {
        my ($self, $ctx, $shapes, $dtypes) = @_;
        die $main::dies{create} if $main::dies{create};
        push @main::seen, [create => "$ctx", $shapes->[0], $dtypes->[0]];
        return $main::dies{no_operator} || Affine->new(scale => $self->{scale} // 1);
    }

    package Loss;    # a loss, which ignores head gradients
    our @ISA = ('AI::Cohort::CustomOp');
    sub forward { my ($self, $is_train, $req, $in, $out) = @_; $self->assign($out->[0], $req->[0], $in->[0]) }

    sub backward {
        my ($self, $req, $out_grad, $in, $out, $in_grad) = @_;
        push @main::seen, [loss => scalar @$out_grad];
        $self->assign($in_grad->[0], $req->[0], $out->[0] - $in->[1]);
    }

    package LossProp;
    our @ISA = ('AI::Cohort::CustomOpProp');
    sub need_top_grad {0}
    sub list_arguments { [qw(data label)] }
    sub infer_shape { my ($self, $in) = @_; ([$in->[0], $in->[0]], [$in->[0]]) }
    sub create_operator { Loss->new }
}

AffineProp->register('affine');
LossProp->register('own_loss');

sub affine { mx->sym->Custom(data => mx->sym->Variable('x'), op_type => 'affine', name => 'a', @_) }

test 'a node has what its class says' => sub {
    my $net = affine(scale => 3);
    is_deeply($net->list_arguments, [qw(x a_shift)]);
    is_deeply($net->list_auxiliary_states, ['a_count']);
    is_deeply($net->list_outputs, ['a_output']);
    is_deeply([$net->infer_shape(x => [2, 3])], [[[2, 3], [2, 3]], [[2, 3]], [[1]]]);
    is_deeply([$net->infer_type(x => 'float64')], [[('float64') x 2], ['float64'], ['float64']]);
    my $again = mx->sym->load_json($net->tojson);
    is_deeply($again->attr_dict->{a}, {op_type => 'affine', scale => 3});
    is_deeply($again->list_arguments, [qw(x a_shift)]);
};

test 'shapes that nobody knows stay unknown' => sub {
    { package TwoProp; our @ISA = ('AI::Cohort::CustomOpProp'); sub list_arguments { [qw(data other)] } }
    TwoProp->register('two');
    my $net = mx->sym->Custom(mx->sym->Variable('x'), op_type => 'two', name => 't');
    is_deeply([$net->infer_shape(x => [2])], [undef, undef, undef]);
    is_deeply([$net->infer_shape_partial(x => [2])], [[[2], []], [[2]], []]);
    is_deeply([$net->infer_shape(x => [2], t_other => [3])], [[[2], [3]], [[2]], []]);
    TwoProp->unregister('two');
};

test 'an executor runs it, forward and backward' => sub {
    @seen = ();
    my $exec = affine(scale => 3)->simple_bind(x => [2], grad_req => {x => 'write', a_shift => 'add'});
    my ($out) = @{$exec->forward(1, x => [1, 2], a_shift => [10, 20])};
    near($out, [13, 26]);
    $exec->backward(nd([1, 2]));
    near($exec->grad_dict->{x}, [3, 6]);
    $exec->backward(nd([1, 2]));
    near($exec->grad_dict->{a_shift}, [2, 4], 'added twice');
    near($exec->aux_dict->{a_count}, [1]);
    is_deeply(\@seen, [[create => 'cpu(0)', [2], 'float32'], [forward => 1, 'write'], ([qw(backward write write)]) x 2]);
    @seen = ();
    my $part = affine(scale => 2)->simple_bind(x => [2], grad_req => {x => 'write'});
    $part->forward(1, x => [1, 2]);
    $part->backward(nd([1, 1]));
    near($part->grad_dict->{x}, [2, 2]);
    is_deeply($seen[-1], [qw(backward write null)]);
};

test 'a group of several devices takes turns with it' => sub {
    @seen = ();
    my $net = mx->sym->Custom(mx->sym->FullyConnected(mx->sym->Variable('data'), num_hidden => 1, no_bias => 1, name => 'fc'), mx->sym->Variable('label'), op_type => 'own_loss', name => 'loss');
    my $group = AI::Cohort::Executor::Group->new(symbol => $net, contexts => [mx->cpu(0), mx->cpu(1)], data_shapes => [[data => [4, 1]]],
        label_shapes => [[label => [4, 1]]], param_names => ['fc_weight'], for_training => 1);
    my $sgd = mx->opt->create('sgd', learning_rate => 0.02);
    my $batch = batch([nd([[1], [2], [3], [4]])], [nd([[2], [4], [6], [8]])]);
    for (1 .. 30) { $group->forward($batch); $group->backward; $group->update($sgd) }
    $group->get_params(my $args = {fc_weight => mx->nd->zeros([1, 1])}, {});
    near([sprintf '%.3f', $args->{fc_weight}->asscalar], [2]);
    is_deeply($seen[0], [loss => 0], 'a loss is given no head gradients');
};

test 'it is applied to arrays, and recorded' => sub {
    my ($x, $shift, $count) = (nd([1, 2]), nd([10, 20]), nd([0]));
    my %how = (op_type => 'affine', scale => 4);
    near(mx->nd->Custom($x, $shift, $count, %how), [14, 28]);
    near(mx->nd->Custom(shift => $shift, data => $x, count => $count, %how), [14, 28], 'inputs by name');
    near(mx->nd->Custom($x, shift => $shift, count => $count, %how, is_train => 1), [14, 28]);
    near($count, [1]);
    $x->attach_grad;
    my $y = autograd->record(sub { mx->nd->Custom($x * 2, $shift, $count, %how)->square });
    near($count, [2]);
    $y->backward;
    near($x->grad, [2 * 18 * 8, 2 * 36 * 8]);
    fails { mx->nd->Custom($x, wrong => $shift, %how) } 'name', qr/wrong/;
    fails { mx->nd->Custom($x, op_type => 'nowhere') } 'name', qr/nowhere/;
};

test 'what a method dies of, the call dies of, and all goes on behind it' => sub {
    my ($x, $shift, $count) = (nd([1, 2]), nd([10, 20]), nd([0]));
    my $exec = affine(scale => 3)->simple_bind(x => [2]);
    my %call = (
        declare => sub { affine() },
        infer_shape => sub { affine()->infer_shape(x => [2]) },
        infer_type => sub { affine()->infer_type(x => 'float32') },
        create => sub { affine()->simple_bind(x => [2])->forward(0)->[0]->aslist },
        forward => sub { $exec->forward(1)->[0]->aslist },
        backward => sub { $exec->forward(1); $exec->backward(nd([1, 1])); $exec->grad_dict->{x}->aslist },
    );
    for my $method (sort keys %call) {
        for my $reason ("no $method\n", {of => $method}) {
            local %dies = ($method => $reason);
            is(eval { $call{$method}->(); 1 }, undef, $method);
            is_deeply($@, $reason, 'as it died');
            $exec->aux_dict->{a_count}->set(0);    # a failed pass has left it invalid
        }
        ok(eval { $call{$method}->(); 1 }, 'and then it works') or diag($@);
    }
    $x->attach_grad;
    for my $method (qw(forward backward)) {
        local %dies = ($method => "no $method\n");
        is(eval { autograd->record(sub { mx->nd->Custom($x, $shift, $count, op_type => 'affine') })->backward; 1 }, undef);
        is($@, "no $method\n", "$method of what is recorded");
        $count->set(0);
    }
    autograd->record(sub { mx->nd->Custom($x, $shift, $count, op_type => 'affine') })->backward;
    near($x->grad, [1, 1]);
    { local %dies = (lists => [[1]]); fails { affine()->infer_shape(x => [2]) } 'invalid_argument', qr/infer_shape: expected lists .* of lengths 2, 1, 1, found 1/ }
    { local %dies = (no_operator => 'none'); fails { mx->nd->Custom($x, $shift, $count, op_type => 'affine') } 'invalid_argument', qr/expected an AI::Cohort::CustomOp, found none/ }
};

test 'arrays are not there any more behind the call' => sub {
    my @kept;
    no warnings 'redefine';
    local *Loss::forward = sub { my ($self, $is_train, $req, $in, $out) = @_; push @kept, @$in; $self->assign($out->[0], 'write', $in->[0]) };
    near(mx->nd->Custom(nd([1]), nd([2]), op_type => 'own_loss'), [1]);
    fails { $kept[0]->aslist } 'invalid_argument', qr/NULL/;
};

test 'names end, go to others, and nodes stay what they are' => sub {
    my $exec = affine(scale => 3)->simple_bind(x => [1]);
    {
        package OtherProp;
        our @ISA = ('AffineProp');
        sub list_auxiliary_states { [] }
        sub infer_shape { my ($self, $in) = @_; ([$in->[0], $in->[0]], [$in->[0]]) }
        sub infer_type { my ($self, $in) = @_; AI::Cohort::CustomOpProp::infer_type($self, $in) }
    }
    OtherProp->register('affine');
    is_deeply(affine()->list_auxiliary_states, []);
    near($exec->forward(0, x => [2])->[0], [6]);
    OtherProp->unregister('affine');
    fails { affine() } 'name', qr/affine/;
    fails { OtherProp->unregister('affine') } 'name', qr/affine/;
    fails { OtherProp->unregister(undef) } 'name', qr/undef/;
    near($exec->forward(0, x => [3])->[0], [9]);
    fails { AI::Cohort::CustomOpProp->register('plain') } 'invalid_argument', qr/class of its own/;
    fails { OtherProp->register(undef) } 'invalid_argument', qr/expected a name/;
    fails { OtherProp->register('') } 'invalid_argument', qr/op_type/;
    fails { OtherProp->register('some', loss => 1) } 'name', qr/loss/;
    AffineProp->register('affine');
};

test 'a loop keeps neither handles nor functions' => sub {
    my ($x, $shift, $count) = (nd([1, 2]), nd([10, 20]), nd([0]));
    $x->attach_grad;
    my $step = sub {
        autograd->record(sub { mx->nd->Custom($x, $shift, $count, op_type => 'affine') })->backward;
        my $exec = affine()->simple_bind(x => [2]);
        $exec->forward(1);
        $exec->backward(nd([1, 1]));
    };
    $step->();
    my ($handles, $functions) = (mx->live_handles, AI::Cohort::FFI::_num_callbacks());
    $step->() for 1 .. 30;
    is(mx->live_handles, $handles);
    is(AI::Cohort::FFI::_num_callbacks(), $functions);
    @seen = ();
};

AffineProp->unregister('affine');
LossProp->unregister('own_loss');
finish();
