# SPDX-License-Identifier: Apache-2.0
# The executor group: parameters, states, binding anew, shared groups, metrics, monitors, logger, and what is inside.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use CohortTest;
use Test::More;

my $two = [mx->cpu(0), mx->cpu(1)];

sub group {
    return AI::Cohort::Executor::Group->new(symbol => regression(), contexts => $two, data_shapes => [[data => [4, 2]]],
        param_names => ['fc_weight'], for_training => 1, @_);
}

sub normalised { mx->sym->BatchNorm(mx->sym->Variable('data'), name => 'bn', fix_gamma => 0) }

test 'parameters are copied to every device, and checked before any is' => sub {    # PRM-01 to PRM-05
    my $group = group(symbol => normalised(), param_names => [qw(bn_gamma bn_beta)]);
    $group->set_params({bn_gamma => nd([2, 3], dtype => 'int32')}, {bn_moving_mean => nd([5, 6])});
    near($_, [2, 3]) for @{$group->param_arrays->[0]};
    near($_, [5, 6]) for @{$group->aux_arrays->[0]};
    near($group->param_arrays->[1][0], [0, 0], 'one that is not named stays');
    fails { $group->set_params({bn_beta => nd([9, 9]), bn_gamma => nd([1])}, {}) } 'shape', qr/bn_gamma/;
    near($group->param_arrays->[1][0], [0, 0], 'nothing of it was copied');
    fails { $group->set_params({other => nd([1])}, {}) } 'name', qr/other/;
    fails { $group->set_params({}, {other => nd([1])}) } 'name', qr/other/;
    $group->set_params({other => nd([1]), bn_beta => nd([7, 8])}, {other => nd([1])}, 1);
    near($group->param_arrays->[1][1], [7, 8]);
    $group->set_params({bn_beta => [1, 2]}, undef);
    near($group->param_arrays->[1][1], [1, 2], 'array refs will do');
    fails { $group->set_params({bn_beta => 'one'}, undef) } 'invalid_argument', qr/bn_beta/;
    my %some = (bn_beta => nd([4, 4]));
    fails { $group->assign_params(\%some, {}) } 'name', qr/'bn_gamma', 'bn_moving_mean', 'bn_moving_var'/;
    near($group->param_arrays->[1][1], [1, 2], 'nothing was copied');
    is_deeply($group->assign_params(\%some, {}, allow_missing => 1), [qw(bn_gamma bn_moving_mean bn_moving_var)]);
    near($group->param_arrays->[1][1], [4, 4]);
    fails { $group->assign_params({%some, other => nd([1])}, {}, allow_missing => 1) } 'name', qr/other/;
};

test 'get_params writes the mean over the devices into the arrays given' => sub {    # PRM-06 to PRM-09
    my $group = group(symbol => normalised(), param_names => [qw(bn_beta bn_gamma)]);
    my ($gammas, $betas) = @{$group->param_arrays};
    is_deeply($group->param_array_names, [qw(bn_gamma bn_beta)], 'in the order of the arguments');
    $gammas->[0]->set([1, 2]);
    $gammas->[1]->set([4, 6]);
    $betas->[$_]->set([10, 20]) for 0, 1;
    my %args = (bn_gamma => mx->nd->zeros([2], dtype => 'int32'), bn_beta => mx->nd->zeros([2]), extra => nd([3]));
    my %aux = map { $_ => mx->nd->zeros([2]) } qw(bn_moving_mean bn_moving_var);
    my $kept = $args{bn_gamma};
    $group->get_params(\%args, \%aux);
    near($kept, [2, 4], 'the array itself was written, and 2.5 cut to 2');
    near($args{bn_beta}, [10, 20]);
    near($args{extra}, [3]);
    fails { $group->get_params({bn_gamma => nd([0, 0])}, \%aux) } 'name', qr/bn_beta/;
    fails { $group->get_params(\%args, {}) } 'name', qr/bn_moving/;
    my ($made, $made_aux) = $group->get_params;
    near($made->{bn_gamma}, [2.5, 4]);
    is_deeply([sort keys %$made_aux], [sort keys %aux]);
};

test 'states are read and set on every device' => sub {    # STA-01 to STA-06
    my ($data, $memory) = map { mx->sym->Variable($_) } qw(data memory);
    my $group = group(symbol => mx->sym->elemwise_add($data, $memory, name => 'sum'), state_names => ['memory'], param_names => [],
        for_training => 0);
    is_deeply($group->param_array_names, [], 'an empty list of parameters is none of them');
    my $batch = batch([nd([[1, 1], [2, 2], [3, 3], [4, 4]])]);
    $group->set_states(undef, 10);
    $group->forward($batch);
    near($group->get_outputs->[0], [11, 11, 12, 12, 13, 13, 14, 14]);
    $group->set_states($group->get_outputs(0));
    $group->forward($batch);
    near($group->get_outputs->[0], [12, 12, 14, 14, 16, 16, 18, 18], 'outputs fed back');
    my $states = $group->get_states(0);
    is_deeply([map { scalar @$_ } @$states], [2]);
    $states->[0][1]->set(0);
    $group->forward($batch);
    near($group->get_outputs(0)->[0][1], [3, 3, 4, 4], 'states are live');
    $group->set_states(value => 0);
    near($group->get_states(0)->[0][0], [0, 0, 0, 0]);
    $group->set_states(states => [[nd([[1, 1], [1, 1]], dtype => 'int32'), nd([[2, 2], [2, 2]])]]);
    near($group->state_arrays->[0][0], [1, 1, 1, 1]);
    fails { $group->get_states } 'unsupported', qr/./;
    fails { $group->set_states($states, 1) } 'invalid_argument', qr/./;
    fails { $group->set_states } 'invalid_argument', qr/./;
    fails { $group->set_states([[$states->[0][0]]]) } 'invalid_argument', qr/./;
    fails { $group->set_states([[nd([1]), nd([1])]]) } 'shape', qr/memory/;
    fails { group(state_names => ['none']) } 'name', qr/none/;
};

test 'reshape keeps parameters and changes the batch, or changes nothing' => sub {    # BND-03 to BND-13, DIF-16
    my $group = group();
    $group->set_params({fc_weight => nd([[2, 1]])});
    $group->reshape([[data => [6, 2]]], undef);
    is_deeply($group->slices, [[0, 3], [3, 6]]);
    $group->forward(batch([nd([map { [$_, 0] } 1 .. 6])]));
    near($group->get_outputs->[0], [2, 4, 6, 8, 10, 12]);
    fails { $group->reshape([[data => [6, 3]]]) } 'shape', qr/fc_weight/;
    fails { $group->reshape([[data => [1, 2]]]) } 'invalid_argument', qr/batch of 1/;
    fails { $group->reshape([[data => [6, 2], 'int32']]) } 'dtype', qr/data/;
    is($group->batch_size, 6);
    $group->bind_exec([AI::Cohort::DataDesc->new(name => 'data', shape => [2, 2])], undef, undef, 1);
    is_deeply($group->slices, [[0, 1], [1, 2]]);
    near($group->param_arrays->[0][1], [2, 1]);
    fails { $group->bind_exec([[data => [2, 2]]]) } 'state', qr/./;    # BND-02, DIF-17
    my $labelled = group(symbol => mlp(), data_shapes => [[data => [4, 4]]], label_shapes => [[softmax_label => [4]]], param_names => []);
    $labelled->reshape([[data => [4, 4]]], undef);
    is($labelled->label_arrays, undef);
    is($labelled->label_layouts, undef);
};

test 'a shared group has the same parameters and the same pool of inputs' => sub {    # SHR-01 to SHR-08
    my @said;
    my $big = group(data_shapes => [[data => [8, 2]]]);
    my $small = group(shared_group => $big);
    $big->set_params({fc_weight => nd([[3, 4]])});
    near($small->param_arrays->[0][1], [3, 4]);
    is_deeply([sort keys %{$small->shared_data_arrays->[0]}], ['data']);
    $small->forward(batch([nd([[1, 0], [0, 1], [1, 1], [2, 0]])]));
    near($small->get_outputs->[0], [3, 4, 7, 6]);
    near($big->data_arrays->[0][0][1]->slice([0, 1]), [1, 0, 0, 1], 'one memory');
    my $bigger = group(data_shapes => [[data => [12, 2]]], shared_group => $big, logger => sub { push @said, "@_" });
    like("@said", qr/^warning .*data/, 'a pool that had to grow is told');
    fails { group(shared_group => $big, contexts => [mx->cpu(5), mx->cpu(6)]) } 'invalid_argument', qr/cpu/;
    fails { group(shared_group => $big, symbol => mlp(), data_shapes => [[data => [4, 4]]], param_names => [qw(fc_weight fc_bias)]) }
        'name', qr/fc_bias/;
    undef $big;
    near($small->param_arrays->[0][0], [3, 4], 'the memory outlives the first of the family');
};

test 'groups of a family have the same arrays, of parameters, gradients and inputs' => sub {
    my $network = sub {
        my $net = mx->sym->Variable('data');
        $net = mx->sym->FullyConnected($net, num_hidden => 3, name => "fc$_") for 1 .. $_[0];
        return mx->sym->SoftmaxOutput($net, name => 'softmax');
    };
    my %shapes = (data_shapes => [[data => [4, 3]]], label_shapes => [[softmax_label => [4]]]);
    my $params = [qw(fc1_weight fc1_bias)];
    my $shared = group(symbol => $network->(1), param_names => $params, %shapes);
    my $created = group(symbol => $network->(2), param_names => $params, %shapes, shared_group => $shared);
    # Whether two arrays share memory: values written to one are read from the other.
    my $same = sub { my ($one, $other) = @_; $one->set(rand); "@{$one->aslist}" eq "@{$other->aslist}" };
    for my $i (0, 1) {
        my @pools = map { $_->shared_data_arrays->[$i] } $shared, $created;
        is_deeply([sort keys %{$pools[0]}], [qw(data fc2_bias fc2_weight softmax_label)]);
        is_deeply([sort keys %{$pools[1]}], [sort keys %{$pools[0]}]);
        ok($same->($pools[0]{$_}, $pools[1]{$_}), "pool: $_") for sort keys %{$pools[0]};
        my @execs = map { $_->execs->[$i] } $shared, $created;
        for my $name (@$params) {
            ok($same->(map { $_->arg_dict->{$name} } @execs), $name);
            ok($same->(map { $_->grad_dict->{$name} } @execs), "gradient of $name");
        }
    }
    is_deeply({map { $_ => $created->grad_req->{$_} } keys %{$shared->grad_req}}, $shared->grad_req);
};

test 'precision is what the library takes' => sub {
    my $bind = sub { regression()->simple_bind(data => [1, 2], @_)->forward };
    $bind->(compute_dtype => 'bfloat16', float32_names => ['fc'], tf32 => 1);
    fails { $bind->(compute_dtype => 'int32') } 'invalid_argument', qr/compute_dtype/;
    fails { $bind->(compute_dtype => 'float16') } 'unsupported', qr/float16/;
    fails { $bind->(compute_dtype => 'bfloat16', narrow_names => ['nobody']) } 'name', qr/nobody/;
    fails { regression()->bind(args => {}, loss_scale => 2) } 'name', qr/loss_scale/;
    my $group = group(compute_dtype => 'bfloat16', float32_names => ['FullyConnected'], backward_once => 1, loss_scale => 1024,
        loss_scale_window => 10, gradient_sum_dtype => 'bfloat16');
    $group->set_params({fc_weight => nd([[0, 0]])});
    $group->forward(batch([mx->nd->ones([4, 2])]));
    $group->backward([mx->nd->ones([4, 1])]);
    is_deeply($group->grad_arrays->[0][0]->aslist, [2048, 2048]);
    fails { $group->backward([mx->nd->ones([4, 1])]) } 'state', qr/./;
    $group->update(mx->opt->create('sgd', learning_rate => 1));
    is_deeply($group->param_arrays->[0][0]->aslist, [-4, -4]);
    fails { group(gradient_sum_dtype => 'int8') } 'invalid_argument', qr/gradient_sum_dtype/;
};

test 'cheap values are made again if so said' => sub {
    my $net = mx->sym->var('data');
    $net = mx->sym->LeakyReLU(mx->sym->FullyConnected($net, num_hidden => 8, no_bias => 1, name => $_), act_type => 'gelu') for qw(a b c);
    my ($kept, $again) = map {
        my $executor = $net->simple_bind(data => [512, 8], grad_req => 'write', recompute => $_);
        $executor->forward(1);
        $executor->memory->{planned_bytes};
    } 0, 1;
    ok($again < $kept, "$again bytes in the place of $kept");
};

test 'update_metric goes device by device, by name, split or by any object' => sub {    # MET-01 to MET-08, MET-18
    my $group = group(symbol => mx->sym->LinearRegressionOutput(regression(), name => 'lro'), label_shapes => [[lro_label => [4, 1]]]);
    $group->set_params({fc_weight => nd([[1, 0]])});
    my $labels = [nd([[1], [2], [3], [8]])];
    $group->forward(batch([nd([map { [$_, 0] } 1 .. 4])], $labels));
    my $mse = mx->metric->create('mse');
    $group->update_metric($mse, $labels);
    is_deeply([$mse->get], ['mse', 4], 'the mean of a mean for each device');
    is($mse->num_inst, 2);
    $group->update_metric($mse, [[nd([[1], [2]])], [nd([[3], [4]])]], 1);
    is_deeply([$mse->sum_metric, $mse->num_inst], [8, 4]);
    my $largest = mx->metric->custom(sub { my ($label, $pred) = @_; ($pred - $label)->abs->max }, name => 'largest');
    $group->update_metric($largest, $labels);
    is_deeply([$largest->get], ['largest', 2]);
    { package Any::Metric; sub new { bless {seen => []}, shift } sub update { push @{$_[0]{seen}}, map { $_->[0]->aslist } @_[1, 2] } }
    my $any = Any::Metric->new;
    $group->update_metric($any, $labels);
    is_deeply($any->{seen}, [[1, 2], [1, 2], [3, 8], [3, 4]]);
    $any->{seen} = [];
    $group->update_metric($any, [[nd([[1], [2]])], [nd([[3], [8]])]], 1);
    is_deeply($any->{seen}, [[1, 2], [1, 2], [3, 8], [3, 4]], 'split already');
    { package Dying::Metric; sub update { die {reason => 7} } }
    eval { $group->update_metric(bless({}, 'Dying::Metric'), $labels) };
    is($@->{reason}, 7);
    fails { $group->update_metric($mse, []) } 'invalid_argument', qr/label/;
    fails { $group->update_metric($mse, [nd([[1]])]) } 'shape', qr/label/;
    fails { $group->update_metric('mse', $labels) } 'invalid_argument', qr/metric/;
    fails { group()->update_metric($mse, $labels) } 'state', qr/label/;
    fails { group()->update_metric($any, $labels) } 'state', qr/label/;
    is_deeply([$mse->sum_metric, $mse->num_inst], [8, 4], 'errors add nothing');
};

test 'a function that dies in a metric dies in the call' => sub {
    my $group = group(symbol => mx->sym->LinearRegressionOutput(regression(), name => 'lro'), label_shapes => [[lro_label => [4, 1]]]);
    my $custom = mx->metric->custom(sub { die {reason => 42} });
    eval { $group->update_metric($custom, [nd([[1], [2], [3], [4]])]); fail('it lived') };
    is_deeply($@, {reason => 42}, 'with what it died of');
    is($custom->num_inst, 0);
};

test 'a monitor reports outputs and parameters of the batches on its interval' => sub {    # MON-01 to MON-12
    my $group = group();
    $group->set_params({fc_weight => nd([[3, 4]])});
    my $monitor = mx->mon->new(interval => 2, pattern => qr/(?i:OUTPUT)|weight$/);
    $group->install_monitor($monitor);
    my @reports;
    for (1 .. 3) {
        $monitor->tic;
        $group->forward(batch([nd([map { [1, 0] } 1 .. 4])]));
        push @reports, $monitor->toc;
    }
    is_deeply($reports[1], [], 'the second batch is not on the interval');
    is_deeply([map { [@$_[0, 1]] } @{$reports[0]}],
        [map { [1, $_] } qw(fc_output fc_output data fc_weight data fc_weight)], 'the pattern does not choose what toc appends');
    is($reports[2][0][0], 3);
    like($reports[0][3][2], qr/^3\.5355\d*\t$/, 'the norm over the root of the size');
    $group->reshape([[data => [2, 2]]]);
    $monitor->tic, $monitor->tic;
    $group->forward(batch([nd([[1, 0], [0, 1]])]));
    is(scalar @{$monitor->toc}, 6, 'it stays over a reshape');
};

test 'a statistic is a function of an array' => sub {    # MON-06, MON-08
    my $group = group(contexts => [mx->cpu]);
    my $monitor = AI::Cohort::Monitor->Monitor(1, stat_func => sub { [$_[0]->max, scalar @{$_[0]->shape}] }, sort => 1);
    $group->install_monitor($monitor);
    $group->set_params({fc_weight => nd([[3, 4]])});
    $monitor->tic;
    $group->forward(batch([nd([map { [1, 0] } 1 .. 4])]));
    is_deeply($monitor->toc, [[1, 'data', "1\t2\t"], [1, 'fc_output', "3\t2\t"], [1, 'fc_weight', "4\t2\t"]]);
    near($monitor->values(2)->[0], [4]);
    my $dying = mx->mon->new(interval => 1, stat_func => sub { die "no figure\n" });
    $group->install_monitor($dying);
    $dying->tic;
    eval { $group->forward(batch([nd([map { [1, 0] } 1 .. 4])])) };
    is($@, "no figure\n");
    fails { mx->mon->new(interval => 0) } 'invalid_argument', qr/interval/;
    fails { mx->mon->new(interval => 1, pattern => '(') } 'invalid_argument', qr/pattern/;
    fails { mx->mon->new(interval => 1, patern => '.') } 'name', qr/patern/;
};

test 'a plain callback sees arrays as they are computed' => sub {    # MON-01, MON-04
    my $group = group();
    my (@names, $kept);
    $group->set_monitor_callback(sub { push @names, $_[0]; $kept = $_[1] }, 1);
    $group->forward(batch([nd([map { [1, 2] } 1 .. 4])]));
    is_deeply(\@names, [('data', 'fc_data', 'fc_weight', 'fc_weight', 'fc_output') x 2]);
    near($kept, [0, 0], 'an array may be kept');
    $group->set_monitor_callback(sub { die "seen enough\n" });
    eval { $group->forward(batch([nd([map { [1, 2] } 1 .. 4])])); fail('it lived') };
    is($@, "seen enough\n");
    $group->set_monitor_callback(undef);
    $group->forward(batch([nd([map { [1, 2] } 1 .. 4])]));
};

test 'a group shows its arrays as AI::MXNet does' => sub {    # GRP-17, GRP-18
    my $group = group(symbol => mlp(), data_shapes => [[data => [4, 4]]], label_shapes => [[softmax_label => [4]]],
        param_names => [qw(fc_bias fc_weight)], inputs_need_grad => 1);
    my $p = $group->_p;
    is_deeply($p->arg_names, [qw(data fc_weight fc_bias softmax_label)]);
    is_deeply($p->aux_names, []);
    is_deeply([map { [$_->[0], $_->[1]->shape] } @{$p->data_arrays->[0]}], [[[0, 2], [2, 4]], [[2, 4], [2, 4]]]);
    is_deeply([map { [$_->[0], $_->[1]->shape] } @{$p->label_arrays->[0]}], [[[0, 2], [2]], [[2, 4], [2]]]);
    is_deeply([map { $_->[0]->shape } @{$p->param_arrays}], [[3, 4], [3]]);
    is_deeply([map { $_->[1]->shape } @{$p->grad_arrays}], [[3, 4], [3]]);
    is_deeply($p->input_grad_arrays->[0][1]->shape, [2, 4]);
    is_deeply([$p->data_layouts, $p->label_layouts, $p->output_layouts], [[0], [0], [0]]);
    is_deeply([$p->aux_arrays, $p->state_arrays], [[], []]);
    is_deeply([map { "" . $_->context } @{$group->execs}], ['cpu(0)', 'cpu(1)']);
    cmp_ok($group->memory(1)->{argument_bytes}, '>=', 4 * (8 + 12 + 3 + 2));
    my $fixed = group(fixed_param_names => ['fc_weight']);
    is_deeply($fixed->grad_arrays, [[undef, undef]]);
};

test 'the helpers of the file load, merge and bind' => sub {    # FWD-01, OUT-01, EXE-12
    my $group = group();
    my $batch = batch([nd([map { [$_, $_] } 1 .. 4])]);
    AI::Cohort::Executor::Group::_load_data($batch, $group->data_arrays, $group->data_layouts);
    near($group->data_arrays->[0][1][1], [3, 3, 4, 4]);
    AI::Cohort::Executor::Group::_load_general([$batch->data->[0]], [mx->nd->zeros([4, 2])], [0]);
    my $targets = [map { mx->nd->zeros([4, 1]) } 0, 1];
    AI::Cohort::Executor::Group::_load_general([nd([[1, 2], [3, 4], [5, 6], [7, 8]])], [[[[0, 1], $targets->[0]], [[1, 2], $targets->[1]]]], [1]);
    near($targets->[1], [2, 4, 6, 8]);
    my ($merged) = @{AI::Cohort::Executor::Group::_merge_multi_context([$targets], [1])};
    is_deeply($merged->asarray, [[1, 2], [3, 4], [5, 6], [7, 8]]);
    ok(AI::Cohort::Executor::Group::_merge_multi_context([$targets], [-1])->[0] eq $targets->[0], 'not batched: the first');
    my $exec = $group->_bind_ith_exec(1, [[data => [2, 2]]]);
    is("" . $exec->context, 'cpu(1)');
    is_deeply($exec->arg_dict->{data}->shape, [2, 2]);
    is_deeply([defined $exec->grad_dict->{fc_weight}, defined $exec->grad_dict->{data}], [1, '']);
};

test 'dtypes of inputs follow descriptors and overrides' => sub {    # GRP-14, DIF-05
    my $group = group(data_shapes => [[data => [4, 2], 'float64']]);
    is($group->data_arrays->[0][0][1]->dtype, 'float64');
    is($group->param_arrays->[0][0]->dtype, 'float64');
    is(group(input_types => {data => 'float16'})->param_arrays->[0][0]->dtype, 'float16');
    fails { group(data_shapes => [[data => [4, 2], 'float31']]) } 'dtype', qr/float31/;
};

test 'layers may lie on devices of their own' => sub {    # EXE-11, DIF-21
    my $net = mx->sym->_mul_scalar(mx->sym->Variable('data', ctx_group => 'here'), scalar => 2, name => 'a', attr => {ctx_group => 'here'});
    $net = mx->sym->_plus_scalar($net, scalar => 1, name => 'b', attr => {ctx_group => 'there'});
    for my $map ({here => mx->cpu(0), there => mx->cpu(3)}, {here => ['cpu(0)', 'cpu(1)'], there => ['cpu(2)', 'cpu(3)']},
        [{here => 'cpu(0)', there => 'cpu(2)'}, {here => 'cpu(1)', there => 'cpu(3)'}]) {
        my $group = group(symbol => $net, param_names => [], group2ctxs => $map);
        $group->forward(batch([nd([map { [$_, 0] } 1 .. 4])]));
        near($group->get_outputs->[0], [3, 1, 5, 1, 7, 1, 9, 1]);
        is("" . $group->get_outputs(0)->[0][1]->context, 'cpu(3)');
    }
    fails { group(symbol => $net, param_names => [], group2ctxs => {here => [(mx->cpu) x 3]}) } 'invalid_argument', qr/group2ctxs/;
    fails { group(symbol => $net, param_names => [], group2ctxs => {here => mx->cpu}) } 'device', qr/there/;
};

test 'objects may go in any order' => sub {
    my $group = group();
    my $outputs = do { $group->forward(batch([nd([map { [1, 1] } 1 .. 4])])); $group->get_outputs(0) };
    my $exec = $group->execs->[1];
    my $monitor = mx->mon->new(interval => 1);
    $group->install_monitor($monitor);
    undef $group;
    near($outputs->[0][1], [0, 0]);
    $exec->forward(0);
    undef $monitor;
    $exec->forward(0);
    undef $exec;
    near($outputs->[0][0], [0, 0]);
};

finish();
