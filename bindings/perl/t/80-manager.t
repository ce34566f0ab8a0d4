# SPDX-License-Identifier: Apache-2.0
# The executor manager: buckets.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use CohortTest;
use Test::More;

# Sums a sequence of the bucket's length, then multiplies with a weight: the same parameters for every length.
sub bucket {
    my ($length) = @_;
    my $sum = mx->sym->sum(mx->sym->Variable('data'), axis => 1, keepdims => 1);
    return mx->sym->LinearRegressionOutput(mx->sym->FullyConnected($sum, num_hidden => 1, no_bias => 1, name => 'fc'), name => 'lro');
}

sub manager {
    return AI::Cohort::Executor::Manager->new(symbol => bucket(6), contexts => [mx->cpu(0), mx->cpu(1)], batch_size => 2,
        data_shapes => [[data => [2, 6]]], label_shapes => [[lro_label => [2, 1]]], param_names => ['fc_weight'], @_);
}

sub bucket_batch {
    my ($length) = @_;
    return AI::Cohort::DataBatch->new(data => [mx->nd->ones([2, $length])], label => [mx->nd->zeros([2, 1])], bucket_key => $length,
        provide_data => [[data => [2, $length]]], provide_label => [[lro_label => [2, 1]]]);
}

test 'a bucket is made by a Perl function, once, on the same parameters' => sub {    # MGR-05 to MGR-12
    my @asked;
    my $manager = manager(sym_gen => sub { push @asked, $_[0]; bucket($_[0]) }, default_bucket_key => 6);
    $manager->set_params({fc_weight => nd([[2]])}, {});
    for my $length (4, 6, 4, 3) {
        $manager->load_data_batch(bucket_batch($length));
        $manager->forward(1);
        near($manager->get_outputs->[0], [2 * $length, 2 * $length]);
    }
    is_deeply(\@asked, [4, 3]);
    is($manager->num_buckets, 3);
    $manager->backward;
    $manager->update(mx->opt->create('sgd', learning_rate => 0.01));
    my ($args) = $manager->get_params;
    near($args->{fc_weight}, [2 - 0.01 * 2 * 6 * 3]);
    my $target = {fc_weight => mx->nd->zeros([1, 1])};
    $manager->copy_to($target, {});
    near($target->{fc_weight}, [2 - 0.36]);
};

test 'symbols may be given ahead' => sub {
    my $manager = manager(buckets => {4 => bucket(4), 3 => bucket(3)}, default_bucket_key => 6);
    $manager->init_params(mx->init->One);
    $manager->load_data_batch(bucket_batch(3));
    $manager->forward;
    near($manager->get_outputs->[0], [3, 3]);
    fails { $manager->load_data_batch(bucket_batch(5)) } 'name', qr/5/;
};

test 'a function that dies, or gives no symbol, makes no bucket' => sub {
    my $manager = manager(sym_gen => sub { $_[0] == 4 ? die "not four\n" : 'a symbol' }, default_bucket_key => 6);
    eval { $manager->load_data_batch(bucket_batch(4)); fail('it lived') };
    is($@, "not four\n");
    fails { $manager->load_data_batch(bucket_batch(5)) } 'invalid_argument', qr/expected a symbol for '5'/;
    is($manager->num_buckets, 1);
};

test 'buckets show their groups and carry states' => sub {
    my $stateful = sub {
        my $sum = mx->sym->sum(mx->sym->Variable('data'), axis => 1, keepdims => 1);
        return mx->sym->elemwise_add($sum, mx->sym->Variable('memory'), name => 'total');
    };
    my $manager = AI::Cohort::Executor::Manager->new(symbol => $stateful->(), contexts => [mx->cpu(0), mx->cpu(1)],
        data_shapes => [[data => [2, 6]]], param_names => [], sym_gen => $stateful, default_bucket_key => 6, state_names => ['memory']);
    for my $length (6, 4, 2) {
        my $outputs = $length == 6 ? undef : $manager->current_group->get_outputs(0);
        $manager->load_data_batch(AI::Cohort::DataBatch->new(data => [mx->nd->ones([2, $length])], bucket_key => $length,
            provide_data => [[data => [2, $length]]]));
        $manager->set_states($outputs ? ($outputs) : (value => 0));
        $manager->forward;
    }
    near($manager->get_outputs->[0], [12, 12]);
    near($manager->get_states->[0][0], [10]);
    my $groups = $manager->groups;
    is_deeply([sort keys %$groups], [2, 4, 6]);
    is_deeply([map { $groups->{$_}->data_shapes->[0]->shape->[1] } 2, 4, 6], [2, 4, 6]);
    is_deeply($manager->main_group->symbol->list_arguments, ['data', 'memory']);
    cmp_ok($manager->memory->{argument_bytes}, '>', 0);
    fails { $groups->{4}->reshape([[data => [4, 4]]]) } 'state', qr/manager/;
    fails { $manager->set_states } 'invalid_argument', qr/./;
};

test 'without buckets there is one group' => sub {    # MGR-01 to MGR-04, MGR-08, MGR-11
    my $manager = manager(workload => [1, 1]);
    fails { $manager->forward } 'state', qr/./;
    is_deeply($manager->slices, [[0, 1], [1, 2]]);
    is_deeply([map { scalar @$_ } @{$manager->param_arrays}], [2]);
    is_deeply([map { scalar @$_ } @{$manager->grad_arrays}], [2]);
    is_deeply($manager->aux_arrays, []);
    my $monitor = mx->mon->new(interval => 1, pattern => 'lro_output');
    $manager->install_monitor($monitor);
    $manager->set_params({fc_weight => nd([[1]])});
    $monitor->tic;
    $manager->load_data_batch(bucket_batch(6));
    $manager->forward;
    is(scalar(grep { $_->[1] eq 'lro_output' } @{$monitor->toc}), 2);
    my $mae = mx->metric->create('mae');
    $manager->update_metric($mae, [nd([[5], [6]])]);
    is($mae->sum_metric, 1);
    $manager->update_metric($mae, [[nd([[5]])], [nd([[6]])]], 1);
    { package Own::Metric; sub update { push @{$_[0]{seen}}, map { $_->aslist } @{$_[1]} } }
    my $own = bless {}, 'Own::Metric';
    $manager->update_metric($own, [nd([[5], [6]])]);
    $manager->update_metric($own, [[nd([[7]])], [nd([[8]])]], 1);
    is_deeply($own->{seen}, [[5], [6], [7], [8]]);
    fails { $manager->update_metric('mae', [nd([[5], [6]])]) } 'invalid_argument', qr/metric/;
    is($mae->sum_metric, 2);
    fails { manager(workload => [1]) } 'invalid_argument', qr/./;
    fails { manager(sym_gen => sub { bucket(3) }) } 'invalid_argument', qr/default_bucket_key/;
    fails { $manager->set_params({other => nd([1])}) } 'name', qr/other/;
    fails { $manager->load_data_batch(batch([mx->nd->ones([3, 6])], [mx->nd->zeros([3, 1])])) } 'shape', qr/./;
    fails { manager(size => 3) } 'name', qr/size/;
};

finish();
