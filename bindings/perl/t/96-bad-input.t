# SPDX-License-Identifier: Apache-2.0
# With any arguments a method works or dies with an AI::Cohort::Error, and the object stays usable.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use CohortTest;
use File::Temp qw(tempdir);
use Test::More;

chdir tempdir(CLEANUP => 1) or die $!;    # for files saved under odd names
$SIG{ALRM} = sub { die "it takes longer than a minute\n" };
alarm 60;

my @odd = (
    sub {undef}, sub {''}, sub {'text'}, sub {-1}, sub {'NaN'}, sub {1e30}, sub {[]}, sub {[undef]}, sub {[[]]}, sub {['a', 2]}, sub { {} },
    sub { {a => 1} }, sub { sub {1} }, sub { \my $scalar }, sub { nd([1, 2]) }, sub { [nd([1])] }, sub { mlp() }, sub { mx->cpu },
    sub { {fc_weight => nd([1])} }, sub { {fc_weight => undef} }, sub { mx->metric->create('acc') }, sub { bless [], 'Odd::Object' },
    sub { batch([nd([1])], undef) }, sub { [[data => [4]]] }, sub { [[data => 'four']] },
);

@OddProp::ISA = ('AI::Cohort::CustomOpProp');

# Calls a method with each odd value in each position, and with no and with two of them; returns the calls that did not die
# properly.
sub try_method {
    my ($make, $method) = @_;
    my @wrong;
    my $object = $make->();
    for my $arguments ([], map({ my $value = $_; ([$value], [sub {undef}, $value], [$value, $value], [sub {'data'}, $value]) } @odd)) {
        my @given = map { $_->() } @$arguments;
        my @warned;
        local $SIG{__WARN__} = sub { push @warned, @_ };
        my $lived = eval { my @got = $object->$method(@given); 1 };
        my $error = $@;
        my $text = join ', ', map { defined ? "'$_'" : 'undef' } @given;
        push @wrong, "$method($text) died of: $error" if !$lived && !(ref $error && eval { $error->isa('AI::Cohort::Error') });
        push @wrong, "$method($text) warned: @warned" if @warned;
        $object = $make->() if ref $object && !defined eval { $object->handle };
    }
    return @wrong;
}

my $group = sub {
    AI::Cohort::Executor::Group->new(symbol => mlp(), contexts => [mx->cpu(0), mx->cpu(1)], data_shapes => [[data => [4, 4]]],
        label_shapes => [[softmax_label => [4]]], param_names => [qw(fc_weight fc_bias)], for_training => 1, inputs_need_grad => 1);
};
my %objects = (
    group => [$group, qw(decide_slices _sliced_shape bind_exec reshape set_params assign_params get_params init_params forward load run backward update
        get_outputs get_input_grads get_states set_states update_metric install_monitor set_monitor_callback memory)],
    executor => [sub { mlp()->simple_bind(data => [4, 4]) }, qw(forward partial_forward backward reshape copy_params_from
        set_monitor_callback)],
    symbol => [\&mlp, qw(call slice output attr _set_attr infer_shape infer_shape_partial infer_type simple_bind bind FullyConnected)],
    'class of symbols' => [sub { mx->sym }, qw(Variable Group load_json load Activation Concat)],
    array => [sub { nd([[1, 2], [3, 4]]) }, qw(set copyto as_in_context astype slice at slice_axis reshape read_into sum uniform normal
        attach_grad backward save_npy)],
    'recorded array' => [sub { my $x = nd([[1, 2], [3, 4]]); $x->attach_grad; mx->autograd->record(sub { $x * 2 }) }, qw(backward attach_grad)],
    'class of gradients' => [sub { mx->autograd }, qw(record pause train_mode predict_mode mark_variables backward grad grad_and_loss
        get_symbol function compute_gradient)],
    'class of random numbers' => [sub { mx->random }, qw(seed uniform normal)],
    'class of custom operators' => [sub {'OddProp'}, qw(register unregister)],
    'class of arrays' => [sub { mx->nd }, qw(array zeros full wrap from_bytes concatenate load save FullyConnected)],
    metric => [sub { mx->metric->create('acc') }, qw(update update_dict add get_metric set_names)],
    'class of metrics' => [sub { mx->metric }, qw(create custom CustomMetric composite)],
    optimizer => [sub { mx->opt->create('sgd') }, qw(get set set_lr_schedule use_symbol set_mult mult update load_states set_states)],
    'class of optimizers' => [sub { mx->opt }, qw(create)],
    initializer => [sub { mx->init->One }, qw(apply fill)],
    'class of initializers' => [sub { mx->init }, qw(create Uniform Xavier)],
    monitor => [sub { mx->mon->new(1) }, qw(install values)],
    'class of monitors' => [sub { mx->mon }, qw(new)],
    'class of contexts' => [sub { mx->context }, qw(new parse of all cpu num_devices)],
    'class of descriptors' => [sub {'AI::Cohort::DataDesc'}, qw(new of get_batch_axis)],
    model => [sub { mx->model }, qw(save_checkpoint load_checkpoint)],
    manager => [sub { mx->manager->new(symbol => mlp(), contexts => ['cpu(0)'], data_shapes => [[data => [4, 4]]],
        label_shapes => [[softmax_label => [4]]], param_names => ['fc_weight']) }, qw(load_data_batch forward backward update update_metric
        set_params assign_params copy_to init_params set_states install_monitor)],
);

for my $what (sort keys %objects) {
    my ($make, @methods) = @{$objects{$what}};
    test "of a $what" => sub {
        for my $method (@methods) {
            my @wrong = try_method($make, $method);
            is(scalar @wrong, 0, $method) or diag(join "\n", @wrong[0 .. ($#wrong < 2 ? $#wrong : 2)]);
        }
    };
}

test 'of the constructors, option by option' => sub {
    my %good = (symbol => mlp(), contexts => [mx->cpu(0), mx->cpu(1)], data_shapes => [[data => [4, 4]]],
        label_shapes => [[softmax_label => [4]]], param_names => [qw(fc_weight fc_bias)], for_training => 1);
    for my $option (qw(symbol contexts workload data_shapes label_shapes param_names for_training inputs_need_grad shared_group logger
        fixed_param_names state_names grad_req rounding slices input_types group2ctxs num_threads gradient_bucket_bytes seed)) {
        my @wrong;
        for my $odd (@odd) {
            my $value = $odd->();
            my @warned;
            local $SIG{__WARN__} = sub { push @warned, @_ };
            my $lived = eval { AI::Cohort::Executor::Group->new(%good, $option => $value); 1 };
            my $error = $@;
            my $known = $lived || ref $error && eval { $error->isa('AI::Cohort::Error') };
            push @wrong, ($value // 'undef') . ": $error @warned" if !$known || @warned;
        }
        is(scalar @wrong, 0, $option) or diag(join "\n", @wrong[0 .. ($#wrong < 2 ? $#wrong : 2)]);
    }
};

alarm 0;
finish();
