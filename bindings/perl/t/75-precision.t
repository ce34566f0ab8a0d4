# SPDX-License-Identifier: Apache-2.0
# The types in which networks compute, predictors, int8 ranges, the loss scale, memory of devices.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use CohortTest;
use File::Temp qw(tempdir);
use List::Util qw(max);
use Test::More;

# Two layers of 16, each large enough for the processor's units for narrow types.
sub wide {
    my $net = mx->sym->Variable('data');
    $net = mx->sym->FullyConnected($net, num_hidden => 16, no_bias => 1, name => $_) for qw(first second);
    return $net;
}

sub noise {
    my ($seed, @shape) = @_;
    my $array = mx->nd->zeros([@shape]);
    AI::Cohort::FFI::cohort_ndarray_fill_uniform($array->handle, -1, 1, $seed);
    return $array;
}

sub model { (symbol => wide(), arg_params => {first_weight => noise(1, 16, 16), second_weight => noise(2, 16, 16)}, shapes => {data => [32, 16]}) }

# The largest difference relative to the largest number.
sub apart {
    my ($found, $expected) = @_;
    my @found = @{$found->aslist};
    return max(map { abs($found[$_] - $expected->[$_]) } 0 .. $#found) / max(map {abs} @$expected);
}

test 'a predictor takes what network and parameters say' => sub {
    my $net = mx->sym->LinearRegressionOutput(regression(), mx->sym->Variable('target'), name => 'near');
    for my $dtype (qw(float32 float64)) {
        my $predictor = AI::Cohort::Predictor->new(symbol => $net, shapes => {data => [1, 2]},
            arg_params => {fc_weight => nd([[1, 10]], dtype => $dtype), of_another_head => nd([1])});
        my ($found) = @{$predictor->predict(data => [[3, 4]])};
        is($found->dtype, $dtype);
        near($found, [43]);
        my ($kept, $other) = ($found, $predictor->predict(data => [[1, 1], [2, 0], [0, 3]])->[0]);
        near($other, [11, 2, 30]);
        near($kept, [43], 'outputs are copies');
    }
    my %given = (symbol => $net, shapes => {data => [1, 2]}, arg_params => {fc_weight => [[1, 10]]});
    near(AI::Cohort::Predictor->new(%given, ctx => mx->cpu(1), num_threads => 1)->predict(data => [[1, 1]])->[0], [11]);
    fails { AI::Cohort::Predictor->new(%given, arg_params => {}) } 'name', qr/found none called fc_weight/;
    fails { AI::Cohort::Predictor->new(%given, shapes => {dat => [1, 2]}) } 'name', qr/no argument 'dat'/;
    fails { AI::Cohort::Predictor->new(%given, backward_once => 1) } 'name', qr/backward_once/;
    fails { AI::Cohort::Predictor->new(%given)->predict } 'name', qr/expected data, found/;
    fails { AI::Cohort::Predictor->new(symbol => 'net', shapes => {}) } 'invalid_argument', qr/expected a symbol/;
};

test 'a calibrated predictor answers in bytes, in every shape' => sub {
    my $batch = noise(3, 32, 16);
    my $plain = AI::Cohort::Predictor->new(model());
    my $expected = $plain->predict(data => $batch)->[0]->aslist;
    for my $method (qw(min_max entropy)) {
        my $calibration = AI::Cohort::Calibration->new($method);
        fails { $calibration->range('data') } 'state', qr/observed/;
        $plain->observe($calibration, data => $batch);
        my ($low, $high) = $calibration->range('data');
        ok(-1 <= $low && $low < 0 && 0 < $high && $high <= 1, "$low to $high");
        fails { $calibration->range('third') } 'name', qr/third/;
        my $kept = $calibration->ranges;
        is_deeply($kept->{data}->aslist, [$low, $high]);
        $calibration = AI::Cohort::Calibration->from_ranges($kept);
        is_deeply([$calibration->range('data')], [$low, $high]);
        my %narrow = (compute_dtype => 'int8', calibration => $calibration);
        my $predictor = AI::Cohort::Predictor->new(model(), %narrow);
        cmp_ok(apart($predictor->predict(data => $batch)->[0], $expected), '<', 0.1);
        cmp_ok(apart($predictor->predict(data => $batch->slice([0, 3]))->[0], $expected), '<', 0.1);
        my $exec = wide()->simple_bind(data => [32, 16], grad_req => 'null', %narrow);
        my $num = () = $exec->debug_str =~ /^Computes in int8$/mg;
        ok($num == 0 || $num == 2, 'each layer, or no units for it');
        my %model = model();
        my $group = AI::Cohort::Executor::Group->new(symbol => $model{symbol}, contexts => [mx->cpu(0), mx->cpu(1)],
            data_shapes => [[data => [32, 16]]], param_names => [qw(first_weight second_weight)], for_training => 0, arg_params => $model{arg_params}, %narrow);
        $group->forward(batch([$batch]));
        cmp_ok(apart($group->get_outputs->[0], $expected), '<', 0.1);
    }
    fails { AI::Cohort::Calibration->new('guess') } 'invalid_argument', qr/min_max or entropy/;
    fails { AI::Cohort::Calibration->from_ranges({data => mx->nd->ones([3])}) } 'shape', qr/'data': expected \(2,\)/;
    fails { AI::Cohort::Predictor->new(model(), compute_dtype => 'int8') } 'invalid_argument', qr/expected a calibration/;
    fails { $plain->observe(undef, data => $batch) } 'invalid_argument', qr/expected a calibration/;
    fails { AI::Cohort::Executor::Manager->new(calibration => AI::Cohort::Calibration->new) } 'name', qr/no option 'calibration'/;
};

test 'a predictor computes in the types that it is told' => sub {
    my $prefix = tempdir(CLEANUP => 1) . '/net';
    my %model = model();
    mx->model->save_checkpoint($prefix, 1, @model{qw(symbol arg_params)}, {});
    my $batch = noise(3, 32, 16);
    my $ask = sub { AI::Cohort::Predictor->load($prefix, 1, shapes => {data => [32, 16]}, @_)->predict(data => $batch)->[0] };
    my $expected = $ask->()->aslist;
    near($ask->(map_file => 1), $expected);
    cmp_ok(apart($ask->(compute_dtype => 'bfloat16'), $expected), '<', 0.05);
    near($ask->(compute_dtype => 'bfloat16', float32_names => ['FullyConnected'], tf32 => 1), $expected);
    fails { $ask->(compute_dtype => 'bfloat16', narrow_names => ['third']) } 'name', qr/narrow_names: 'third'/;
    fails { $ask->(compute_dtype => 'float16') } 'unsupported', qr/./;
};

test 'a loss scale tells where it is, and goes on from there' => sub {
    my %given = (symbol => mlp(), contexts => [mx->cpu(0), mx->cpu(1)], data_shapes => [[data => [4, 4]]],
        label_shapes => [[softmax_label => [4]]], param_names => [qw(fc_weight fc_bias)]);
    my $group = AI::Cohort::Executor::Group->new(%given, for_training => 1, loss_scale => 1024, loss_scale_window => 2);
    my $sgd = mx->opt->SGD(learning_rate => 0.1);
    my $is = sub { is_deeply([@{$_[0]}{qw(scale num_good num_skipped)}], $_[1]) };
    $is->($group->loss_scale, [1024, 0, 0]);
    $is->($sgd->loss_scale, [1, 0, 0]);
    for ([1, [1024, 1, 0]], [9**9**9, [512, 0, 1]], [1, [512, 1, 1]], [1, [1024, 0, 1]]) {
        my ($value, $expected) = @$_;
        $group->forward(batch([mx->nd->ones([4, 4]) * $value], [mx->nd->zeros([4])]), 1);
        $group->backward;
        $group->update($sgd);
        $is->($_->loss_scale, $expected) for $group, $sgd;
    }
    $group->set_loss_scale(64, 1);
    $is->($group->loss_scale, [64, 1, 1]);
    fails { $group->set_loss_scale(-1) } 'invalid_argument', qr/./;
    my $manager = AI::Cohort::Executor::Manager->new(%given, loss_scale => 256);
    $is->($manager->loss_scale, [256, 0, 0]);
    $manager->set_loss_scale(8, 3);
    $is->($manager->loss_scale, [8, 3, 0]);
};

test 'the memory of a device is told and limited' => sub {
    my $here = mx->cpu(9);
    my $before = $here->memory->{used};
    my $array = mx->nd->zeros([1000], ctx => $here);
    $array->wait_to_read;
    my $found = $here->memory;
    ok($found->{used} >= $before + 4000 && $found->{peak} >= $found->{used} && !$found->{limit});
    $here->limit_memory($found->{used} + 100);
    fails { mx->nd->zeros([1000], ctx => $here) } 'out_of_memory', qr/cpu\(9\)/;
    $here->limit_memory(0);
    fails { $here->limit_memory(-1) } 'invalid_argument', qr/-1/;
    undef $array;
    $here->reset_peak_memory;
    cmp_ok($here->memory->{peak}, '<', $found->{peak});
};

finish();
