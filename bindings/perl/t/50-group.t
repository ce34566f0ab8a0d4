# SPDX-License-Identifier: Apache-2.0
# The executor group: constructor, slices, running, outputs, gradients.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use CohortTest;
use Test::More;

sub group {
    my (%given) = @_;
    return AI::Cohort::Executor::Group->new(
        symbol => mlp(),
        contexts => [mx->cpu(0), mx->cpu(1)],
        workload => undef,
        data_shapes => [[data => [5, 4]]],
        label_shapes => [[softmax_label => [5]]],
        param_names => [qw(fc_weight fc_bias)],
        for_training => 1,
        %given,
    );
}

sub regression_group {
    my (%given) = @_;
    return group(
        symbol => regression(),
        data_shapes => [[data => [4, 2]]],
        label_shapes => undef,
        param_names => ['fc_weight'],
        %given,
    );
}

my @rows = map { [$_, 1] } 1 .. 4;    # data of the regression

test 'training that is saved goes on with the same bits' => sub {
    my $fc = mx->sym->FullyConnected(mx->sym->Variable('data'), num_hidden => 4, name => 'fc');
    my $drop = mx->sym->Dropout(mx->sym->BatchNorm($fc, name => 'bn'), p => 0.5, name => 'drop');
    my $net = mx->sym->SoftmaxOutput(mx->sym->FullyConnected($drop, num_hidden => 3, name => 'out'), name => 'softmax');
    my $bound = sub {
        return group(symbol => $net, param_names => [qw(fc_weight fc_bias bn_gamma bn_beta out_weight out_bias)], keep_device_aux => 1, seed => $_[0]);
    };
    my $adam = sub { mx->opt->create('adam', learning_rate => 0.1) };
    my $steps = sub {
        my ($group, $rule, $num) = @_;
        for (1 .. $num) {
            $group->forward(batch([nd([map { [$_, 1, 2, $_ * $_] } 1 .. 5])], [nd([0, 1, 2, 0, 1])]), 1);
            $group->backward;
            $group->update($rule);
        }
    };
    my $bits = sub {
        my ($args, $aux) = $_[0]->get_params;
        my %all = (%$args, %$aux);
        return join ';', map { "$_: @{$all{$_}->aslist}" } sort keys %all;
    };
    my ($whole, $part, $rest) = ($bound->(4), $bound->(4), $bound->(5));
    $_->init_params(mx->init->Xavier(seed => 3)) for $whole, $part;
    my ($one, $two, $three) = map { $adam->() } 1 .. 3;
    $steps->($whole, $one, 5);
    $steps->($part, $two, 2);
    $three->set_states($two->states);
    $rest->set_params($part->get_params);
    $rest->resume($three);
    $steps->($rest, $three, 3);
    is($bits->($rest), $bits->($whole));
    fails { group(strict_names => 1, fixed_param_names => ['fc_wieght']) } 'name', qr/nearest name is 'fc_weight'/;
    my $stops = group(stop_if_not_finite => 1);
    $stops->init_params(mx->init->Xavier(seed => 3));
    my $infinite = batch([nd([map { [9**9**9, 1, 2, 3] } 1 .. 5])], [nd([0 .. 4])]);
    fails { $stops->forward($infinite, 0) } 'execution', qr/'fc_output'/;
    my $watched = group();
    $watched->init_params(mx->init->Xavier(seed => 3));
    $watched->forward($infinite, 0);
    my $monitor = mx->mon->new(interval => 1, pattern => 'nothing', stop_if_not_finite => 1);
    $monitor->install($watched);
    $monitor->tic;
    fails { $watched->forward($infinite, 0); $watched->wait } 'execution', qr/'fc_output'/;
};

test 'a random state is read and set' => sub {
    my $drop = mx->sym->Dropout(mx->sym->Variable('data'), name => 'drop');
    my $group = group(symbol => $drop, label_shapes => undef, param_names => []);
    my $batch = batch([nd([map { [1, 1, 1, 1] } 1 .. 5])]);
    my $exec = $drop->simple_bind(data => [8, 8]);
    $exec->arg_dict->{data}->set([map { [(1) x 8] } 1 .. 8]);
    for (
        [$group, sub { $group->forward($batch, 1); $group->get_outputs->[0]->aslist }],
        [$exec, sub { $exec->forward(1)->[0]->aslist }],
    ) {
        my ($object, $draw) = @$_;
        my $state = $object->random_state;
        my @drawn = map { $object->set_random_state($state); $draw->() } 1 .. 2;
        is_deeply(@drawn);
        fails { $object->set_random_state(substr $state, 1) } 'format', qr/./;
        fails { $object->set_random_state("\x{263a}") } 'invalid_argument', qr/bytes/;
    }
};

test 'a network trains over two devices' => sub {
    my $group = group();
    my $sgd = mx->opt->create('sgd', learning_rate => 0.5, rescale_grad => 1 / 5);
    $group->init_params(mx->init->Xavier(seed => 3));
    my $batch = batch([nd([map { my $k = $_ % 3; [map { $_ == $k ? 1 : 0 } 0 .. 3] } 0 .. 4])], [nd([map { $_ % 3 } 0 .. 4])]);
    for (1 .. 100) {
        $group->forward($batch);
        $group->backward;
        $group->update($sgd);
    }
    my $metric = mx->metric->create('acc');
    $group->forward($batch, 0);
    $group->update_metric($metric, $batch->label);
    is_deeply([$metric->get], ['accuracy', 1]);
    my ($args, $aux) = $group->get_params;
    is_deeply([sort keys %$args], [qw(fc_bias fc_weight)]);
    is_deeply($aux, {});
};

test 'a group without a workload shares equally, halves rounded up' => sub {    # WRK-02, DIF-01, DIF-02
    is_deeply(group()->slices, [[0, 3], [3, 5]]);
    is_deeply(group(workload => [])->slices, [[0, 3], [3, 5]]);
    is_deeply(group(workload => [1, 4])->slices, [[0, 1], [1, 5]]);
    is_deeply(group(rounding => 'half_even')->slices, [[0, 2], [2, 5]]);
    is_deeply(group(slices => [[0, 4], [4, 5]])->slices, [[0, 4], [4, 5]]);
    is(group()->batch_size, 5);
    is_deeply(AI::Cohort::Executor::Group::_split_input_slice(10, [1, 1, 1, 1]), [[0, 3], [3, 6], [6, 9], [9, 10]]);
    is_deeply(AI::Cohort::Executor::Group::_split_input_slice(64, [3, 1, 1, 1]), [[0, 32], [32, 43], [43, 54], [54, 64]]);
};

test 'a split that leaves a device without samples is refused' => sub {    # WRK-04 to WRK-06
    fails { group(data_shapes => [[data => [1, 4]]], label_shapes => undef) } 'invalid_argument', qr/batch of 1 over 2 contexts/;
    fails { group(workload => [1, 0]) } 'invalid_argument', qr/workload/;
    fails { group(workload => [1]) } 'invalid_argument', qr/1/;
    fails { AI::Cohort::Executor::Group::_split_input_slice(6, [1, 1, 1, 1]) } 'invalid_argument', qr/6/;
};

test 'descriptors are pairs or objects, and all have one batch size' => sub {    # DSC-01 to DSC-09
    my $group = group(
        data_shapes => [AI::Cohort::DataDesc->new(name => 'data', shape => [6, 4], layout => 'NC')],
        label_shapes => [[softmax_label => [6], 'float32', 'N']],
    );
    is($group->batch_size, 6);
    my ($desc) = @{$group->data_shapes};
    is_deeply([$desc->name, $desc->shape, $desc->dtype, $desc->layout], ['data', [6, 4], 'float32', 'NC']);
    fails { group(label_shapes => [[softmax_label => [4]]]) } 'shape', qr/softmax_label.*5/;
    fails { group(data_shapes => []) } 'invalid_argument', qr/data/;
    fails { group(data_shapes => [[nothing => [5, 4]]]) } 'name', qr/nothing/;
    fails { group(data_shapes => ['data']) } 'invalid_argument', qr/descriptor/;
    fails { group(data_shapes => [[data => ['five', 4]]]) } 'invalid_argument', qr/five/;
    is(group(label_shapes => [])->label_shapes, undef, 'no labels are none');
    is(AI::Cohort::DataDesc->get_batch_axis('TNC'), 1);
    is(AI::Cohort::DataDesc->get_batch_axis(undef), 0);
    is(AI::Cohort::DataDesc->get_batch_axis('TC'), -1);
};

test 'decide_slices gives batch axes, _sliced_shape what a device has' => sub {    # DSC-05, DSC-06
    my $group = group();
    my $descs = [[data => [5, 4]], AI::Cohort::DataDesc->new(name => 't', shape => [7, 5], layout => 'TN'), [c => [9], 'int32', 'C']];
    is_deeply($group->decide_slices($descs), [0, 1, -1]);
    my $sliced = $group->_sliced_shape($descs, 1, [0, 1, -1]);
    is_deeply([map { [$_->name, $_->shape, $_->dtype, $_->layout] } @$sliced],
        [['data', [2, 4], 'float32', 'NCHW'], ['t', [7, 2], 'float32', 'TN'], ['c', [9], 'int32', 'C']]);
    is_deeply($group->_sliced_shape($descs, 0)->[0]->shape, [3, 4]);
    fails { $group->decide_slices([[data => [6, 4]]]) } 'shape', qr/data.*5/;
    fails { $group->decide_slices([]) } 'invalid_argument', qr/./;
    fails { $group->_sliced_shape($descs, 2) } 'invalid_argument', qr/2/;
};

test 'what the constructor needs is asked for, what it does not know refused' => sub {
    fails { AI::Cohort::Executor::Group->new(contexts => ['cpu(0)']) } 'invalid_argument', qr/symbol is missing/;
    fails { group(workloads => [1, 1]) } 'name', qr/workloads/;
    fails { group(contexts => []) } 'invalid_argument', qr/context/;
    fails { group(contexts => ['tpu(0)']) } 'invalid_argument', qr/tpu/;
    fails { group(symbol => nd([1])) } 'invalid_argument', qr/symbol/;
    fails { group(rounding => 'up') } 'invalid_argument', qr/rounding/;
    my $texts = group(contexts => ['cpu(0)', 'cpu(3)']);
    is("@{$texts->contexts}", 'cpu(0) cpu(3)');
    is(group()->isa('AI::Cohort::Executor::Group'), 1);
    my $named = AI::Cohort::DataParallelExecutorGroup->new(symbol => regression(), contexts => [mx->cpu], data_shapes => [[data => [2, 2]]],
        param_names => ['fc_weight'], for_training => 0);
    is($named->isa('AI::Cohort::DataParallelExecutorGroup'), 1, 'the name of the class in AI::MXNet');
    is($named->grad_arrays, undef);
};

test 'outputs are merged or come device by device' => sub {    # OUT-01 to OUT-08
    my $group = regression_group();
    $group->set_params({fc_weight => nd([[2, 1]])}, undef);
    is_deeply([map { [$_->name, $_->shape] } @{$group->get_output_shapes}], [['fc_output', [4, 1]]]);
    near($group->get_outputs->[0], [0, 0, 0, 0], 'zeros before the first pass');
    $group->forward(batch([nd(\@rows)]));
    my $merged = $group->get_outputs;
    is(scalar @$merged, 1);
    near($merged->[0], [3, 5, 7, 9]);
    my $apart = $group->get_outputs(0);
    is_deeply([map { "" . $_->context } @{$apart->[0]}], ['cpu(0)', 'cpu(1)']);
    near($apart->[0][0], [3, 5]);
    near($apart->[0][1], [7, 9]);
    is_deeply($group->output_layouts, [0]);
};

test 'head gradients are one array or a list, and are cut like the output' => sub {    # BWD-01 to BWD-07
    my $group = regression_group();
    $group->set_params({fc_weight => nd([[2, 1]])});
    fails { $group->backward(nd([[1], [1], [1], [1]])) } 'state', qr/forward/;
    $group->forward(batch([nd(\@rows)]));
    for my $given (nd([[1], [2], [3], [4]]), [nd([[1], [2], [3], [4]])]) {
        $group->backward($given);
        near($group->grad_arrays->[0][0], [5, 3]);
        near($group->grad_arrays->[0][1], [25, 7]);
    }
    fails { $group->backward } 'invalid_argument', qr/fc_output|output/;
    fails { $group->backward(nd([[1], [2]])) } 'shape', qr/4/;
    fails { $group->backward([(nd([[1], [1], [1], [1]])) x 2]) } 'invalid_argument', qr/./;
    my $inference = regression_group(for_training => 0);
    $inference->forward(batch([nd(\@rows)]));
    fails { $inference->backward(nd([[1], [1], [1], [1]])) } 'state', qr/training/;
};

test 'gradients of the inputs are there when asked for' => sub {    # IGR-01 to IGR-03
    my $group = regression_group(inputs_need_grad => 1);
    $group->set_params({fc_weight => nd([[2, 1]])});
    near($group->get_input_grads->[0], [(0) x 8], 'zeros before the first pass');
    $group->forward(batch([nd(\@rows)]));
    $group->backward(nd([[1], [2], [3], [4]]));
    near($group->get_input_grads->[0], [2, 1, 4, 2, 6, 3, 8, 4]);
    near($group->get_input_grads(0)->[0][1], [6, 3, 8, 4]);
    fails { regression_group()->get_input_grads } 'state', qr/./;
    fails { regression_group(inputs_need_grad => 1, for_training => 0)->get_input_grads } 'state', qr/./;
};

test 'grad_req is a word, a list or a hash' => sub {    # GRQ-01 to GRQ-09
    my $reqs = sub { group(@_)->grad_req_map };
    my %written = (data => 'null', fc_weight => 'write', fc_bias => 'write', softmax_label => 'null');
    is_deeply($reqs->(), \%written);
    is_deeply($reqs->(grad_req => undef), \%written);
    is_deeply($reqs->(grad_req => 'add'), {%written, fc_weight => 'add', fc_bias => 'add'});
    is_deeply($reqs->(grad_req => 'add', inputs_need_grad => 1, fixed_param_names => ['fc_bias', 'other']),
        {%written, data => 'add', fc_weight => 'add', fc_bias => 'null'});
    is_deeply($reqs->(grad_req => [qw(add write null null)], fixed_param_names => ['fc_weight']),
        {data => 'add', fc_weight => 'write', fc_bias => 'null', softmax_label => 'null'});
    is_deeply($reqs->(grad_req => {fc_bias => 'add', data => 'write', elsewhere => 'add'}),
        {%written, fc_bias => 'add', data => 'write'});
    is_deeply($reqs->(grad_req => {}), \%written);
    is_deeply($reqs->(grad_req => 'add', for_training => 0), {map { $_ => 'null' } keys %written});
    fails { group(grad_req => 'sum') } 'invalid_argument', qr/sum/;
    fails { group(grad_req => ['write']) } 'invalid_argument', qr/grad_req/;
    my $group = regression_group(grad_req => 'add');
    $group->forward(batch([nd(\@rows)]));
    $group->backward(nd([[1], [1], [1], [1]])) for 1 .. 3;
    near($group->grad_arrays->[0][0], [9, 6], 'three passes backward add up');
};

test 'batches that do not fit are refused, and the group stays usable' => sub {    # FWD-03 to FWD-06
    my $group = group();
    my $data = nd([map { [1, 2, 3, 4] } 1 .. 5]);
    my $label = nd([0, 1, 2, 0, 1]);
    fails { $group->forward(batch([nd([map { [1, 2, 3, 4] } 1 .. 6])], [$label])) } 'shape', qr/data.*\(6, 4\)/;
    fails { $group->forward(batch([$data, $data], [$label])) } 'invalid_argument', qr/data/;
    fails { $group->forward(batch([$data])) } 'invalid_argument', qr/label/;
    fails { $group->forward('data') } 'invalid_argument', qr/batch/;
    $group->forward(batch([$data]), 0);
    $group->forward(batch([$data], [$label]), 1);
    $group->forward(batch($data->aspdl, [[0, 1, 2, 0, 1]]), 1);
    near([map { $_->aslist->[0] } $group->get_outputs->[0]->slice(0)], [1 / 3], 'PDLs and array refs will do');
    $group->forward(batch([$data->astype('int32')], [$label->astype('float64')]));
};

test 'a batch may be any object, or come split already' => sub {    # DSC-13, FWD-07
    my $group = regression_group();
    $group->set_params({fc_weight => nd([[2, 1]])});
    { package Any::Batch; sub new { bless {}, shift } sub data { [CohortTest::nd([map { [$_, 1] } 1 .. 4])] } sub label {undef} }
    $group->forward(Any::Batch->new);
    near($group->get_outputs->[0], [3, 5, 7, 9]);
    $group->forward([batch([nd([[1, 0], [2, 0]])]), batch([nd([[3, 0], [4, 0]])])]);
    near($group->get_outputs->[0], [2, 4, 6, 8]);
    fails { $group->forward([batch([nd([[1, 0], [2, 0]])])]) } 'invalid_argument', qr/2/;
    $group->load(batch([nd([map { [0, $_] } 1 .. 4])]));
    $group->run(0);
    near($group->get_outputs->[0], [1, 2, 3, 4]);
};

test 'layouts choose the batch axis' => sub {    # FWD-01, FWD-02, OUT-02
    my $data = mx->sym->Variable('data');
    my $twice = mx->sym->_mul_scalar($data, scalar => 2, name => 'twice', attr => {__layout__ => 'TN'});
    my $group = group(symbol => $twice, data_shapes => [AI::Cohort::DataDesc->new(name => 'data', shape => [2, 4], layout => 'TN')],
        label_shapes => undef, param_names => []);
    $group->forward(batch([nd([[1, 2, 3, 4], [5, 6, 7, 8]], dtype => 'int32')]));
    is_deeply($group->data_layouts, [1]);
    is_deeply($group->get_outputs->[0]->asarray, [[2, 4, 6, 8], [10, 12, 14, 16]]);
    near($group->get_outputs(0)->[0][1], [6, 8, 14, 16]);
};

finish();
