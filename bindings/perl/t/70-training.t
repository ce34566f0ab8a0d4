# SPDX-License-Identifier: Apache-2.0
# Optimizers, initializers, checkpoints.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use CohortTest;
use File::Temp qw(tempdir);
use Test::More;

test 'an optimizer updates a parameter from its gradient' => sub {
    my ($weight, $grad) = (nd([1, 2]), nd([10, -10]));
    my $sgd = mx->opt->create('sgd', learning_rate => 0.1, momentum => 0.5);
    $sgd->update('w', $weight, $grad);
    near($weight, [0, 3]);
    $sgd->update('w', $weight, $grad);
    near($weight, [-1.5, 4.5]);
    is($sgd->num_update, 2);
    is($sgd->lr, 0.1);
    $sgd->set(learning_rate => 0, momentum => 0);
    $sgd->update('w', $weight, $grad);
    near($weight, [-1.5, 4.5]);
    is_deeply([$sgd->set_mult('w', 2, 0)->mult('w')], [2, 0]);
    is_deeply([$sgd->use_symbol(mx->sym->Variable('v_weight', lr_mult => 3))->mult('v_weight')], [3, 1]);
    fails { mx->opt->create('luck') } 'name', qr/luck/;
    fails { mx->opt->create('sgd', momentun => 1) } 'name', qr/momentun/;
    fails { $sgd->update('w', $weight, nd([1])) } 'shape', qr/./;
    fails { $sgd->get('nothing') } 'name', qr/nothing/;
};

test 'optimizers go by the names of their classes in AI::MXNet' => sub {
    for my $name (qw(SGD ccSGD NAG Signum Adam AdamW Adamax Nadam AdaDelta RMSProp AdaGrad GroupAdaGrad Ftrl FTML DCASGD LAMB LARS LBSGD SGLD Test)) {
        my ($made, $weight) = (mx->opt->$name(learning_rate => 0.5), nd([[1, 2], [3, 4]]));
        $made->update('w_weight', $weight, nd([[1, -1], [2, 0.5]]));
        is($made->num_update, 1, $name);
        isnt("@{$weight->aslist}", '1 2 3 4', "$name makes a step");
    }
    is(mx->opt->LBSGD(warmup_strategy => 'lars')->get('warmup_strategy'), 3);
    fails { mx->opt->GroupAdaGrad(wd => 0.1) } 'invalid_argument', qr/no weight decay/;
};

test 'a schedule decides the learning rate' => sub {
    my $sgd = mx->opt->create('sgd', learning_rate => 1, lr_scheduler => [multifactor => step => [1, 2], factor => 0.5]);
    my $weight = nd([0]);
    my @rates = ($sgd->lr, map { $sgd->update('w', $weight, nd([0])); $sgd->lr } 1 .. 3);
    is_deeply(\@rates, [1, 0.5, 0.25, 0.25]);
    fails { $sgd->set(learning_rate => 2) } 'state', qr/learning_rate/;
    $sgd->set_lr_schedule(undef);
    $sgd->set(learning_rate => 2);
    is($sgd->lr, 2);
};

test 'states of an optimizer are saved and go on' => sub {
    my $folder = tempdir(CLEANUP => 1);
    my $make = sub { mx->opt->create('adam', learning_rate => 0.1) };
    my ($one, $weight) = ($make->(), nd([1, 2]));
    $one->update('w', $weight, nd([1, -3]));
    my ($two, $copy) = ($make->(), $weight->copy);
    $one->save_states("$folder/states");
    $two->load_states("$folder/states");
    my ($three, $other) = ($make->(), $weight->copy);
    $three->set_states($one->states);
    $_->[0]->update('w', $_->[1], nd([5, 5])) for [$one, $weight], [$two, $copy], [$three, $other];
    is_deeply($copy->aslist, $weight->aslist);
    is_deeply($other->aslist, $weight->aslist);
    fails { mx->opt->create('sgd')->load_states("$folder/states") } 'format', qr/./;
    fails { $one->set_states('nonsense') } 'format', qr/./;
};

test 'a group is updated in three ways' => sub {
    my $weights = sub {
        my ($mode) = @_;
        my $group = AI::Cohort::Executor::Group->new(symbol => regression(), contexts => [mx->cpu(0), mx->cpu(1)],
            data_shapes => [[data => [2, 1]]], param_names => ['fc_weight'], for_training => 1);
        $group->forward(batch([nd([[1], [2]])]));
        $group->backward(nd([[1], [1]]));
        $group->update(mx->opt->create('sgd', learning_rate => 1), $mode);
        return [map { $_->asscalar } @{$group->param_arrays->[0]}];
    };
    is_deeply([map { $weights->($_) } undef, qw(store device none)], [[-3, -3], [-3, -3], [-3, -3], [-1, -2]]);
    fails { $weights->('somehow') } 'invalid_argument', qr/somehow/;
};

test 'initializers fill by name, by rule and by attribute' => sub {    # SYM-08
    my $uniform = mx->init->Uniform(0.5, seed => 4);
    my %params = (fc_weight => nd([[9, 9]]), fc_bias => nd([9]), bn_gamma => nd([9]));
    $uniform->apply(\%params);
    near($params{fc_bias}, [0]);
    near($params{bn_gamma}, [1]);
    is_deeply([grep { abs > 0.5 } @{$params{fc_weight}->aslist}], []);
    my $symbol = mx->sym->FullyConnected(mx->sym->Variable('data'), mx->sym->Variable('fc_weight', init => mx->init->Constant(3)),
        num_hidden => 1, name => 'fc');
    $uniform->apply(\%params, $symbol);
    near($params{fc_weight}, [3, 3]);
    my $array = nd([1, 2]);
    mx->init->One->fill('whatever', $array);
    near($array, [1, 1]);
    mx->init->Constant(value => 4)->('whatever', $array);
    near($array, [4, 4]);
    ok(mx->init->$_) for qw(Zero Normal Xavier MSRAPrelu Orthogonal);
    fails { $uniform->apply({mystery => nd([1])}) } 'name', qr/mystery/;
    fails { mx->init->create('luck') } 'name', qr/luck/;
    fails { mx->init->Xavier('uniform') } 'invalid_argument', qr/Xavier/;
};

test 'a checkpoint is two files' => sub {    # PAR-08
    my $prefix = tempdir(CLEANUP => 1) . '/net';
    my $symbol = mlp();
    mx->model->save_checkpoint($prefix, 7, $symbol, {fc_weight => nd([[1, 2]])}, {mean => nd([3])});
    ok(-s "$prefix-symbol.json" && -s "$prefix-0007.params");
    my ($loaded, $args, $aux) = mx->model->load_checkpoint($prefix, 7);
    is_deeply($loaded->list_arguments, $symbol->list_arguments);
    near($args->{fc_weight}, [1, 2]);
    near($aux->{mean}, [3]);
    is_deeply([sort keys %{mx->nd->load("$prefix-0007.params")}], ['arg:fc_weight', 'aux:mean']);
    fails { mx->model->load_checkpoint($prefix, 8) } 'io', qr/0008/;
};

finish();
