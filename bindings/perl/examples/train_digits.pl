#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# Trains LeNet on handwritten digits over several devices, saves it, and tests the saved network in a second group.
use strict;
use warnings;
use AI::Cohort qw(mx);
use File::Temp qw(tempdir);
use FindBin;
use Getopt::Long;
use List::Util qw(shuffle);
use PDL;
use Time::HiRes qw(time);

my %option = (contexts => 'cpu(0),cpu(1)', workload => '', epochs => 20, batch => 32, lr => 0.05, seed => 1,
    data => "$FindBin::Bin/../../../examples/data/digits.params", out => tempdir(CLEANUP => 1) . '/digits');
GetOptions(\%option, qw(contexts=s workload=s epochs=i batch=i lr=f seed=i data=s out=s)) or exit 2;
my ($batch, $epochs, $num_test) = (@option{qw(batch epochs)}, 360);
$| = 1;

# The images as a PDL of 8 x 8 x 1 x 1797, shuffled; the last of them are for the test.
my $file = mx->nd->load($option{data});
CORE::srand($option{seed});    # PDL has its own srand
my @order = shuffle 0 .. 1796;
my ($images, $labels) = (pick($file->{images}->aspdl, @order), pick($file->{labels}->aspdl, @order));
my $num_train = 1797 - $num_test;
my $test = make_batch($num_train .. 1796);

sub pick { my ($pdl, @rows) = @_; $pdl->dice_axis(-1, long(@rows)) }

sub make_batch {
    my @rows = @_;
    return AI::Cohort::DataBatch->new(map { $_->[0] => [mx->nd->array(pick($_->[1], @rows))] } [data => $images], [label => $labels]);
}

sub lenet {
    my $sym = mx->sym;
    my $net = $sym->Variable('data');
    for my $layer ([1, 20], [2, 50]) {
        my ($i, $filters) = @$layer;
        $net = $sym->Convolution($net, kernel => [3, 3], pad => [1, 1], num_filter => $filters, name => "conv$i");
        $net = $sym->Activation($net, act_type => 'tanh', name => "tanh$i");
        $net = $sym->Pooling($net, kernel => [2, 2], stride => [2, 2], pool_type => 'max', name => "pool$i");
    }
    $net = $sym->FullyConnected($sym->Flatten($net), num_hidden => 128, name => 'fc1');
    $net = $sym->FullyConnected($sym->Activation($net, act_type => 'tanh', name => 'tanh3'), num_hidden => 10, name => 'fc2');
    return $sym->SoftmaxOutput($net, name => 'softmax');
}

sub group {
    my ($symbol, $size, $for_training) = @_;
    return AI::Cohort::Executor::Group->new(
        symbol => $symbol,
        contexts => [split /(?<=\)),/, $option{contexts}],
        workload => [split /,/, $option{workload}],
        data_shapes => [[data => [$size, 1, 8, 8]]],
        label_shapes => [[softmax_label => [$size]]],
        param_names => [grep { !/^(?:data|softmax_label)$/ } @{$symbol->list_arguments}],
        for_training => $for_training,
    );
}

my $symbol = lenet();
my $group = group($symbol, $batch, 1);
$group->init_params(mx->init->Xavier(seed => $option{seed}));
my $steps = int($num_train / $batch);
my $sgd = mx->opt->create('sgd', learning_rate => $option{lr}, momentum => 0.9, wd => 0.0001, rescale_grad => 1 / $batch,
    lr_scheduler => [cosine => max_update => $epochs * $steps]);
my $metric = mx->metric->create(['accuracy', 'cross-entropy']);
for my $epoch (1 .. $epochs) {
    my ($started, @rows) = (time, shuffle 0 .. $num_train - 1);
    $metric->reset;
    for (1 .. $steps) {
        my $next = make_batch(splice @rows, 0, $batch);
        $group->forward($next);
        $group->backward;
        $group->update($sgd);
        $group->update_metric($metric, $next->label);
    }
    printf "epoch %3d/%d %8.0f samples/s   accuracy %.4f  loss %.4f\n", $epoch, $epochs, $steps * $batch / (time - $started),
        @{$metric->value};
}

mx->model->save_checkpoint($option{out}, $epochs, $symbol, $group->get_params);
my ($saved, @params) = mx->model->load_checkpoint($option{out}, $epochs);
my $tester = group($saved, $num_test, 0);
$tester->set_params(@params);
$tester->forward($test);
my $accuracy = mx->metric->create('accuracy');
$tester->update_metric($accuracy, $test->label);
printf "test accuracy: %.4f\n", $accuracy->value;
