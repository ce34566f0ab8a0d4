# SPDX-License-Identifier: Apache-2.0
package AI::Cohort::Executor::Manager;
use strict;
use warnings;
use AI::Cohort::FFI;
use AI::Cohort::Executor::Group;
use AI::Cohort::Metric;
use Scalar::Util qw(blessed);

our @ISA = ('AI::Cohort::Handle');

sub free_handle { cohort_manager_free($_[1]) }

sub new {
    my ($class, @given) = @_;
    my %given = settings_of('manager', [qw(symbol contexts batch_size data_shapes label_shapes param_names workload logger sym_gen
        default_bucket_key buckets state_names num_threads seed), grep { $_ ne 'calibration' } @AI::Cohort::Executor::GROUP_PRECISION], @given);
    for (qw(symbol contexts data_shapes param_names)) { invalid("manager: $_ is missing", $_) unless defined $given{$_} }
    my $self = bless {%given}, $class;
    $self->{contexts} = [AI::Cohort::Context->all($given{contexts})];
    $self->{$_} = list_of($self->{$_}, $_) for qw(param_names state_names workload);
    $self->{logger} //= AI::Cohort::Logging->get_logger;
    $self->_create;
    return $self;
}

sub _create {
    my ($self) = @_;
    my $contexts = AI::Cohort::Context->_list(@{$self->{contexts}});
    my ($data, $label) = AI::Cohort::Descs->of_batch(@$self{qw(data_shapes label_shapes)});
    my $weights = pack 'd*', @{$self->{workload} || []};
    my %buckets = %{$self->{buckets} || {}};
    my @keys = sort keys %buckets;
    my $symbols = pack 'J*', map { handle_of($buckets{$_}, "buckets: $_") } @keys;
    my $sym_gen = $self->{sym_gen};
    (my $generate, $self->{bucket_id}) = $sym_gen ? callback('(string,opaque,opaque)->sint32', _symbol_of_bucket($sym_gen)) : ();
    (my $log, $self->{log_id}) = callback('(sint32,string,opaque)->void', AI::Cohort::Logging::_sink($self->{logger}));
    my $default = $self->{default_bucket_key};
    $default = AI::Cohort::FFI::encode_text("$default") . "\0" if defined $default;
    my $options = struct(
        cohort_manager_options => length $weights ? (workload => \$weights, num_workloads => scalar @{$self->{workload}}) : (),
        defined $default ? (default_bucket_key => \$default) : (),
        bucket_keys => \@keys,
        bucket_symbols => \$symbols,
        num_buckets => scalar @keys,
        bucket_symbol => $generate,
        bucket_symbol_user_data => $self->{bucket_id},
        state_names => $self->{state_names} || [],
        num_state_names => scalar @{$self->{state_names} || []},
        (map { $_ => $self->{$_} } qw(num_threads seed)),
        AI::Cohort::Executor::_group_precision($self),
        log => $log,
        log_user_data => $self->{log_id},
    );
    my $batch_size = $self->{batch_size} // AI::Cohort::DataDesc->of($self->{data_shapes}[0])->shape->[0];
    my $params = $self->{param_names};
    cohort_manager_create(handle_of($self->{symbol}, 'symbol'), $contexts->{pointer}, scalar @{$self->{contexts}}, $batch_size,
        handle_of($data), handle_of($label), $params, scalar @$params, $options->{pointer}, \$self->{handle});
}

# The library frees the handle it is given, so it gets a copy.
sub _symbol_of_bucket {
    my ($sym_gen) = @_;
    return sub {
        my ($key, $out) = @_;
        my ($symbol) = $sym_gen->(AI::Cohort::FFI::decode_text($key));
        invalid("sym_gen: expected a symbol for '$key', found " . ($symbol // 'undef'), $key)
            unless blessed $symbol && $symbol->isa('AI::Cohort::Symbol');
        cohort_symbol_copy($symbol->{handle}, \my $copy);
        AI::Cohort::FFI::write_at($out, pack 'J', $copy);
        return 0;
    };
}

sub load_data_batch {
    my ($self, $batch) = @_;
    AI::Cohort::Executor::Group::_check_batch($batch);
    my @given = map { $batch->can($_) && $batch->$_ } qw(data label);
    my ($data, $label) = map { AI::Cohort::Executor::Group::_arrays_of_batch($_) || [] } @given;
    handles_of($_, 'data_batch') for $data, $label;
    my ($key, @descs) = map { $batch->can($_) ? $batch->$_ : undef } qw(bucket_key provide_data provide_label);
    my ($data_descs, $label_descs) = map { AI::Cohort::Descs->of($_, 'data_batch') } @descs;
    cohort_manager_load_data_batch($self->{handle}, $data, scalar @$data, @$label ? $label : undef, scalar @$label, $key,
        handle_of($data_descs), handle_of($label_descs));
    return;
}

sub forward {
    my ($self, $is_train) = @_;
    cohort_manager_forward($self->{handle}, $is_train ? 1 : 0);
    return;
}

sub backward { cohort_manager_backward($_[0]{handle}) }

sub update {
    my ($self, $optimizer, $mode) = @_;
    cohort_manager_update($self->{handle}, handle_of($optimizer, 'optimizer'), AI::Cohort::Executor::Group::_update_code($mode));
    return;
}

sub update_metric {
    my ($self, $given, $labels, $pre_sliced) = @_;
    my $metric = AI::Cohort::Metric->_of($given);
    my $handle = $metric->{handle};
    if ($pre_sliced) {
        my @devices = map { AI::Cohort::Executor::Group::_arrays_of_batch($_) || [] } @{list_of($labels, 'labels')};
        my $num = AI::Cohort::Executor::Group::_same_count(\@devices);
        return cohort_manager_update_metric_presliced($self->{handle}, $handle, scalar @devices,
            handles_of([map {@$_} @devices], 'labels'), $num);
    }
    my $arrays = handles_of(AI::Cohort::Executor::Group::_arrays_of_batch($labels) || [], 'labels');
    return cohort_manager_update_metric($self->{handle}, $handle, $arrays, scalar @$arrays);
}

sub get_outputs {
    my ($self) = @_;
    cohort_manager_num_arrays($self->{handle}, COHORT_GROUP_OUTPUTS, \my $num);
    return [map {
        cohort_manager_merged($self->{handle}, COHORT_GROUP_OUTPUTS, $_, \my $array);
        AI::Cohort::NDArray->adopt($array);
    } 0 .. $num - 1];
}

sub set_params {
    my ($self, $arg_params, $aux_params) = @_;
    my ($args, $aux) = AI::Cohort::Arrays->of_params($arg_params, $aux_params);
    cohort_manager_set_params($self->{handle}, $args->{handle}, handle_of($aux));
    return;
}

sub assign_params {
    my ($self, @given) = @_;
    return AI::Cohort::Executor::Group::_assign(\&cohort_manager_assign_params, $self->{handle}, @given);
}

sub copy_to {
    my ($self, $arg_params, $aux_params) = @_;
    my ($args, $aux) = AI::Cohort::Arrays->of_params($arg_params, $aux_params);
    cohort_manager_copy_to($self->{handle}, $args->{handle}, handle_of($aux));
    return;
}

sub install_monitor {
    my ($self, $monitor) = @_;
    invalid('install_monitor: expected a monitor, found ' . ($monitor // 'undef'), 'monitor')
        unless blessed $monitor && $monitor->can('install');
    $monitor->install($self);
    return;
}

# The devices' arrays, for each entry of a list.
sub _arrays {
    my ($self, $list) = @_;
    my @devices = map {
        cohort_manager_arrays($self->{handle}, $list, $_, \my $handle);
        AI::Cohort::Arrays->adopt($handle)->list;
    } 0 .. $#{$self->{contexts}};
    return [map { my $i = $_; [map { $_->[$i] } @devices] } 0 .. $#{$devices[0]}];
}

sub param_arrays { $_[0]->_arrays(COHORT_GROUP_PARAMS) }
sub grad_arrays { $_[0]->_arrays(COHORT_GROUP_GRADS) }
sub aux_arrays { $_[0]->_arrays(COHORT_GROUP_AUX) }

sub slices {
    my ($self) = @_;
    return [map { cohort_manager_slice($self->{handle}, $_, \my $begin, \my $end); [$begin, $end] } 0 .. $#{$self->{contexts}}];
}

sub num_buckets {
    my ($self) = @_;
    cohort_manager_num_buckets($self->{handle}, \my $num);
    return $num;
}

# Fills all parameters with an initializer, equally on every device and in every bucket.
sub init_params { $_[0]->main_group->init_params($_[1]) }
sub get_params { $_[0]->main_group->get_params }

# States of the current group, which all buckets share.
sub get_states { $_[0]->_arrays(COHORT_GROUP_STATES) }

sub set_states {
    my ($self, @given) = @_;
    my ($states, $num_devices, $value) = AI::Cohort::Executor::Group::_states(@given);
    cohort_manager_set_states($self->{handle}, $states && [map {@$_} @$states], scalar @{$states || []}, $num_devices, $value);
    return;
}

# ---- groups ----------------------------------------------------------------------------------------------------------

sub _group {
    my ($self, $handle) = @_;
    my %fields = (contexts => $self->{contexts}, param_names => $self->{param_names}, logger => $self->{logger}, for_training => 1,
        inputs_need_grad => 0, grad_req => 'write', parent => $self);
    my $group = AI::Cohort::Executor::Group->adopt($handle, %fields);
    $group->{symbol} = $group->execs->[0]->symbol;
    return $group;
}

sub main_group {
    my ($self) = @_;
    cohort_manager_main_group($self->{handle}, \my $handle);
    return $self->_group($handle);
}

sub current_group {
    my ($self) = @_;
    cohort_manager_current_group($self->{handle}, \my $handle);
    return $self->_group($handle);
}

# The groups of the buckets made so far, by key.
sub groups {
    my ($self) = @_;
    return {map {
        cohort_manager_bucket($self->{handle}, $_, \my $key, \my $handle);
        ($key => $self->_group($handle));
    } 0 .. $self->num_buckets - 1};
}

sub loss_scale { AI::Cohort::Executor::_loss_scale_from(\&cohort_manager_loss_scale, $_[0]{handle}) }
sub set_loss_scale { cohort_manager_set_loss_scale($_[0]{handle}, $_[1], $_[2] // 0) }

sub resume {
    my ($self, $optimizer) = @_;
    cohort_manager_resume($self->{handle}, handle_of($optimizer, 'optimizer'));
    return;
}

sub memory { AI::Cohort::Executor::_memory_from(\&cohort_manager_memory, $_[0]{handle}) }

1;

__END__

=encoding UTF-8

=head1 NAME

AI::Cohort::Executor::Manager - a group for each bucket of a bucketing network

=head1 SYNOPSIS

    use AI::Cohort qw(mx);

    sub network {    # the same parameters for every length
        my ($length) = @_;
        my $mean = mx->sym->mean(mx->sym->Variable('data'), axis => 1, keepdims => 1);
        return mx->sym->LinearRegressionOutput(mx->sym->FullyConnected($mean, num_hidden => 1, name => 'fc'), name => 'out');
    }
    my $manager = AI::Cohort::Executor::Manager->new(
        symbol             => network(8),
        contexts           => [mx->cpu(0), mx->cpu(1)],
        batch_size         => 4,
        data_shapes        => [[data => [4, 8]]],
        label_shapes       => [[out_label => [4, 1]]],
        param_names        => [qw(fc_weight fc_bias)],
        sym_gen            => \&network,
        default_bucket_key => 8,
    );
    $manager->init_params(mx->init->Uniform(0.1, seed => 1));
    my $sgd = mx->opt->create('sgd', learning_rate => 0.1);
    for my $length (8, 5, 3) {
        $manager->load_data_batch(AI::Cohort::DataBatch->new(
            data => [mx->nd->ones([4, $length])], label => [mx->nd->ones([4, 1])], bucket_key => $length,
            provide_data => [[data => [4, $length]]], provide_label => [[out_label => [4, 1]]],
        ));
        $manager->forward(1);
        $manager->backward;
        $manager->update($sgd);
    }

=head1 DESCRIPTION

A bucket is created when its key first occurs with a batch, and shares parameters and memory with the main group, which is that
of C<symbol>. The group of the batch loaded last is current. Slices are the same in all buckets, halves rounded to even numbers,
along axis 0.

=head1 METHODS

=head2 new(%options)

C<symbol>, C<contexts>, C<data_shapes> and C<param_names> are required, as for L<AI::Cohort::Executor::Group>; C<label_shapes>,
C<workload>, C<logger>, C<num_threads>, C<seed> and the precision options as there. Further options:

=over

=item batch_size

The size of every batch; by default the length of the data's first axis.

=item sym_gen

A function from a key to the symbol of that bucket. If it dies, C<load_data_batch> dies with the same error.

=item buckets

A hash of symbols by key, given in advance.

=item state_names

Arguments that are states, one memory in all buckets.

=item default_bucket_key

The key of C<symbol>; required with the two options before.

=back

=head2 load_data_batch($batch)

Makes the bucket of the batch current and copies each slice to its device; runs nothing. C<bucket_key> names the bucket; for a
new bucket, C<provide_data> and C<provide_label> are required.

=head2 forward($is_train = 0), backward, update($optimizer, $mode = 'store')

Run or update the current group.

=head2 update_metric($metric, $labels, $pre_sliced = 0)

As for a group.

=head2 get_outputs

The merged outputs of the current group.

=head2 set_params(\%arg_params, \%aux_params), copy_to(\%arg_params, \%aux_params)

Copies parameters in by name; writes their means over the devices into given arrays.

=head2 assign_params(\%arg_params, \%aux_params, allow_missing => 0, allow_extra => 0)

As for a group.

=head2 get_params, init_params($initializer)

As for a group.

=head2 param_arrays, grad_arrays, aux_arrays

For each entry a list of the devices' live arrays, which all buckets share.

=head2 get_states, set_states($states, $value)

As for a group; works on the current group.

=head2 main_group, current_group, groups

The main group, that of the batch loaded last, and those of all buckets by key; they can be read and run, not reshaped.

=head2 loss_scale, set_loss_scale($scale, $num_good = 0)

As for a group; all buckets share one.

=head2 resume($optimizer)

As for a group, for all buckets, those too that are made later.

=head2 memory

The memory of all buckets together in bytes, as for an executor.

=head2 install_monitor($monitor)

Installs a monitor; only for a manager without buckets.

=head2 slices, num_buckets

The C<[begin, end)> of each device; the number of buckets made so far.

=cut
