# SPDX-License-Identifier: Apache-2.0
package AI::Cohort;
use strict;
use warnings;
use AI::Cohort::FFI ();
use AI::Cohort::AutoGrad;
use AI::Cohort::Calibration;
use AI::Cohort::Context;
use AI::Cohort::CustomOp;
use AI::Cohort::CustomOpProp;
use AI::Cohort::DataBatch;
use AI::Cohort::DataDesc;
use AI::Cohort::Error;
use AI::Cohort::Executor;
use AI::Cohort::Executor::Group;
use AI::Cohort::Executor::Manager;
use AI::Cohort::Initializer;
use AI::Cohort::Logging;
use AI::Cohort::Metric;
use AI::Cohort::Model;
use AI::Cohort::Monitor;
use AI::Cohort::NDArray;
use AI::Cohort::Operator;
use AI::Cohort::Optimizer;
use AI::Cohort::Predictor;
use AI::Cohort::Random;
use AI::Cohort::Symbol;
use AI::Cohort::Trace;

our $VERSION = '0.001000';

# `use AI::Cohort qw(mx)` imports a function of this name that returns the class.
sub import {
    my ($class, @words) = @_;
    AI::Cohort::FFI::_word_for($class, scalar caller, @words);
}

sub cpu { AI::Cohort::Context->cpu($_[1]) }
sub gpu { AI::Cohort::Context->gpu($_[1]) }

my %classes = (
    context => 'Context', ctx => 'Context', nd => 'NDArray', ndarray => 'NDArray', sym => 'Symbol', symbol => 'Symbol',
    metric => 'Metric', opt => 'Optimizer', optimizer => 'Optimizer', init => 'Initializer', initializer => 'Initializer',
    mon => 'Monitor', monitor => 'Monitor', model => 'Model', logging => 'Logging', executor => 'Executor',
    autograd => 'AutoGrad', random => 'Random', rnd => 'Random', group => 'Executor::Group', manager => 'Executor::Manager',
);
for my $word (keys %classes) {
    no strict 'refs';
    *$word = sub { "AI::Cohort::$classes{$word}" };
}

# Attributes of symbols created while it is in $mx::AttrScope, including those of the enclosing scope.
sub AttrScope {
    my ($class, @given) = @_;
    return {%{$mx::AttrScope || {}}, AI::Cohort::FFI::settings_of('AttrScope', undef, @given)};
}

# For programs that call mx->io, AI::MXNet::IO's place in MXNet.
sub io { $_[0] }

sub version { AI::Cohort::FFI::cohort_version() }
sub library { $AI::Cohort::FFI::LIBRARY }
sub live_handles { AI::Cohort::FFI::cohort_live_handles() }
sub waitall { AI::Cohort::FFI::cohort_wait_all() }
sub has_feature { AI::Cohort::FFI::cohort_has_feature($_[1]) }

# Methods that are called like classes. If they were functions of AI::Cohort, Perl would take AI::Cohort::DataDesc->new for a
# call of one.
package AI::Cohort::Named;

sub Context { shift; AI::Cohort::Context->new(@_) }
sub DataDesc { shift; AI::Cohort::DataDesc->new(@_) }
sub DataBatch { shift; AI::Cohort::DataBatch->new(@_) }

@AI::Cohort::ISA = (__PACKAGE__);

1;

__END__

=encoding UTF-8

=head1 NAME

AI::Cohort - data-parallel training and inference on libcohort

=head1 SYNOPSIS

    use AI::Cohort qw(mx);

    # what to compute
    my $sym = mx->sym;
    my $net = $sym->FullyConnected($sym->Variable('data'), num_hidden => 8, name => 'fc1');
    $net = $sym->Activation($net, act_type => 'tanh');
    $net = $sym->FullyConnected($net, num_hidden => 2, name => 'fc2');
    $net = $sym->SoftmaxOutput($net, name => 'softmax');

    # where: each batch of 6 is split over two devices
    my $group = AI::Cohort::Executor::Group->new(
        symbol       => $net,
        contexts     => [mx->cpu(0), mx->cpu(1)],
        workload     => undef,
        data_shapes  => [[data => [6, 3]]],
        label_shapes => [[softmax_label => [6]]],
        param_names  => [qw(fc1_weight fc1_bias fc2_weight fc2_bias)],
        for_training => 1,
    );
    $group->init_params(mx->init->Xavier(seed => 1));

    # training
    my $sgd    = mx->opt->create('sgd', learning_rate => 0.1, rescale_grad => 1 / 6);
    my $metric = mx->metric->create('accuracy');
    my $batch  = AI::Cohort::DataBatch->new(
        data  => [mx->nd->array([map { [$_, 1, -$_] } 1 .. 6])],
        label => [mx->nd->array([0, 0, 0, 1, 1, 1])],
    );
    for my $step (1 .. 20) {
        $group->forward($batch);
        $group->backward;
        $group->update($sgd);
        $group->update_metric($metric, $batch->label);
    }
    printf "%s: %.2f\n", $metric->get;
    print $group->get_outputs->[0]->aspdl;

=head1 DESCRIPTION

Cohort trains and runs networks on a group of devices: each batch is split over them, outputs are merged, gradients are summed.
It loads the networks (symbol JSON) and parameters (F<.params>) of MXNet. These modules have the interface of AI::MXNet's
executor group and of the classes it uses, and call F<libcohort.so> through L<FFI::Platypus>: there is nothing to compile.

    AI::Cohort::Executor::Group    the group: one executor a device
    AI::Cohort::Executor::Manager  groups of several sequence lengths (buckets) over one set of parameters
    AI::Cohort::Executor           a symbol bound to arrays of its own
    AI::Cohort::Symbol             networks: composed, or loaded from JSON
    AI::Cohort::NDArray            arrays, from and to PDLs; operators at once
    AI::Cohort::Context            devices
    AI::Cohort::DataBatch, AI::Cohort::DataDesc   batches, and what they look like
    AI::Cohort::Optimizer, AI::Cohort::Initializer, AI::Cohort::Metric
    AI::Cohort::Model              checkpoints
    AI::Cohort::Predictor          a network for inference
    AI::Cohort::Calibration        ranges of a network's values, for inference in bytes
    AI::Cohort::Trace              what takes how long
    AI::Cohort::AutoGrad           gradients of what is computed with arrays
    AI::Cohort::CustomOp, AI::Cohort::CustomOpProp   operators of the program's own
    AI::Cohort::Random             random numbers
    AI::Cohort::Monitor            statistics of arrays while a network runs
    AI::Cohort::Logging            where messages go
    AI::Cohort::Operator           the registry of operators
    AI::Cohort::Error              what every call that fails dies with

=head2 Coming from AI::MXNet

Write C<use AI::Cohort qw(mx)> for C<use AI::MXNet qw(mx)>, and C<AI::Cohort::Executor::Group> (or
C<AI::Cohort::DataParallelExecutorGroup>) for C<AI::MXNet::DataParallelExecutorGroup>. Constructor, methods, argument forms and
defaults are the same, including C<< $group->_p->param_arrays >>. The differences: C<workload> may be left out, as MXNet always
documented; mistakes that MXNet does not notice (a batch larger than the bound one, too few arrays, a C<grad_req> list of the
wrong length) are errors; parameters are paired by name, in whatever order C<param_names> has them; a failed C<reshape> changes
nothing. Modules, iterators and Gluon do not exist here.

=head2 Where the library is

The environment variable C<COHORT_LIB> names F<libcohort.so> or the folder it is in; without it the library is searched for on
the linker's path, see L<FFI::CheckLib>.

=head2 Memory

Objects own their handles and free them when the last reference is gone, in any order; an object keeps the objects it uses
alive. C<< mx->live_handles >> returns their number. Objects belong to the interpreter thread that created them. After a C<fork>
the child must not use them.

=head1 IMPORT

C<use AI::Cohort qw(mx)> imports C<mx>, a function that returns this class; any other name works, too.

=head1 CLASS METHODS

=head2 cpu($id = 0), gpu($id = 0)

A context: see L<AI::Cohort::Context>.

=head2 nd, ndarray

The class L<AI::Cohort::NDArray>.

=head2 sym, symbol

The class L<AI::Cohort::Symbol>.

=head2 context, ctx

The class L<AI::Cohort::Context>.

=head2 metric

The class L<AI::Cohort::Metric>.

=head2 opt, optimizer

The class L<AI::Cohort::Optimizer>.

=head2 init, initializer

The class L<AI::Cohort::Initializer>.

=head2 mon, monitor

The class L<AI::Cohort::Monitor>.

=head2 model

The class L<AI::Cohort::Model>.

=head2 logging

The class L<AI::Cohort::Logging>.

=head2 random, rnd

The class L<AI::Cohort::Random>.

=head2 autograd

The class L<AI::Cohort::AutoGrad>.

=head2 executor, group, manager

The classes L<AI::Cohort::Executor>, L<AI::Cohort::Executor::Group> and L<AI::Cohort::Executor::Manager>.

=head2 Context($type, $id)

A context of any type.

=head2 io

This class, for C<< mx->io->DataDesc(...) >> and C<< mx->io->DataBatch(...) >>.

=head2 DataDesc(...), DataBatch(...)

Creates an L<AI::Cohort::DataDesc>, an L<AI::Cohort::DataBatch>.

=head2 AttrScope(%attributes)

Attributes for all symbols that are created while it is in C<$mx::AttrScope>:

    {
        local $mx::AttrScope = mx->AttrScope(ctx_group => 'first');
        $net = mx->sym->FullyConnected($net, num_hidden => 10);
    }

Likewise C<< local $mx::Context = mx->cpu(1) >> sets the default context of arrays and executors.

=head2 version

The version of the loaded library, as text.

=head2 library

The path of the loaded library.

=head2 has_feature($name)

1 if the library has a feature: C<cpu>, C<onednn>, C<dlpack>, C<cuda>; otherwise 0.

=head2 live_handles

The number of library handles that are alive in this process.

=head2 waitall

Waits for all work on all devices.

=head1 LICENCE

Apache-2.0

=cut
