#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# Fine-tunes a checkpoint of MXNet on handwritten digits, over three devices that take 5, 2 and 1 of 8 samples. Once it trains
# without a stop; once it stops half-way, saves parameters and optimizer states, and goes on from the files, as a later process
# would. Both end with the same bits.
#   fine_tune.pl PREFIX EPOCH [--contexts 'cpu(0),cpu(1),cpu(2)'] [--workload 5,2,1] [--epochs 6] [--out FOLDER]
use strict;
use warnings;
use AI::Cohort qw(mx);
use File::Temp qw(tempdir);
use FindBin;
use Getopt::Long;

my %option = (contexts => 'cpu(0),cpu(1),cpu(2)', workload => '5,2,1', epochs => 6, batch => 64,
    data => "$FindBin::Bin/../../../examples/data/digits.params", out => tempdir(CLEANUP => 1));
GetOptions(\%option, qw(contexts=s workload=s epochs=i batch=i data=s out=s)) && @ARGV == 2
    or die "usage: fine_tune.pl PREFIX EPOCH [options]\n";
my ($prefix, $epoch) = @ARGV;
my $batch = $option{batch};
my $digits = mx->nd->load($option{data});
my $num_batches = int($digits->{labels}->size / $batch);

sub group {
    my ($symbol) = @_;
    return AI::Cohort::Executor::Group->new(
        symbol => $symbol,
        contexts => [split /(?<=\)),/, $option{contexts}],
        workload => [split /,/, $option{workload}],
        data_shapes => [[data => [$batch, 1, 8, 8]]],
        label_shapes => [[softmax_label => [$batch]]],
        param_names => [grep { !/^(?:data|softmax_label)$/ } @{$symbol->list_arguments}],
        fixed_param_names => ['conv1_weight', 'conv1_bias'],    # the first layer stays as it is
        for_training => 1,
        strict_names => 1,
        keep_device_aux => 1,
    );
}

# Trains from one checkpoint, and the states beside it if there are any, to another; returns the accuracy.
sub tune {
    my ($from, $epoch, $to, $num_epoch) = @_;
    my ($symbol, $args, $aux) = mx->model->load_checkpoint($from, $epoch);
    my ($sgd, $group) = (mx->opt->create('sgd', learning_rate => 0.05, momentum => 0.9, rescale_grad => 1 / $batch), group($symbol));
    $group->assign_params($args, $aux);
    my $states = sprintf '%s-%04d.states', $from, $epoch;
    $sgd->load_states($states) if -e $states;
    $group->resume($sgd);
    my $metric = mx->metric->create('accuracy');
    for (1 .. $num_epoch) {
        $metric->reset;
        for my $i (0 .. $num_batches - 1) {
            my @rows = map { $digits->{$_}->slice([$i * $batch, ($i + 1) * $batch - 1]) } qw(images labels);
            my $next = AI::Cohort::DataBatch->new(data => [$rows[0]], label => [$rows[1]]);
            $group->forward($next);
            $group->backward;
            $group->update($sgd);
            $group->update_metric($metric, $next->label);
        }
    }
    mx->model->save_checkpoint($to, $epoch + $num_epoch, $symbol, $group->get_params);
    $sgd->save_states(sprintf '%s-%04d.states', $to, $epoch + $num_epoch);
    return $metric->value;
}

sub bytes_of { local (@ARGV, $/) = sprintf '%s-%04d.params', @_; return scalar <> }

my ($half, $end) = (int($option{epochs} / 2), $epoch + $option{epochs});
my $accuracy = tune($prefix, $epoch, "$option{out}/whole", $option{epochs});
tune($prefix, $epoch, "$option{out}/parts", $half);
tune("$option{out}/parts", $epoch + $half, "$option{out}/parts", $option{epochs} - $half);
my $same = bytes_of("$option{out}/whole", $end) eq bytes_of("$option{out}/parts", $end);
printf "accuracy %.4f, %s after the stop\n", $accuracy, $same ? 'the same bits' : 'OTHER BITS';
