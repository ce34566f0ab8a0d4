# SPDX-License-Identifier: Apache-2.0
package AI::Cohort::Executor::Manager;
use strict;
use warnings;
use AI::Cohort::FFI;
use AI::Cohort::Executor::Group;
use Scalar::Util qw(blessed);

our @ISA = ('AI::Cohort::Handle');

sub free_handle {
    my ($self, $handle) = @_;
    cohort_manager_free($handle);
    forget_callback(@$self{qw(log_id bucket_id monitor_id)});
}

sub new {
    my ($class, %given) = @_;
    my %known = map { $_ => 1 } qw(symbol contexts batch_size data_shapes label_shapes param_names workload logger sym_gen
        default_bucket_key buckets num_threads seed);
    for (sort keys %given) { AI::Cohort::Error->throw(name => "manager: there is no option '$_'", $_) unless $known{$_} }
    for (qw(symbol contexts data_shapes param_names)) { invalid("manager: $_ is missing", $_) unless defined $given{$_} }
    my $self = bless {%given}, $class;
    $self->{contexts} = [map { AI::Cohort::Context->of($_) } ref $given{contexts} eq 'ARRAY' ? @{$given{contexts}} : $given{contexts}];
    $self->{logger} //= AI::Cohort::Logging->get_logger;
    $self->create;
    return $self;
}

sub create {
    my ($self) = @_;
    my $contexts = AI::Cohort::Context->list(@{$self->{contexts}});
    my $data = AI::Cohort::Descs->of($self->{data_shapes}, 'data_shapes');
    my $label = AI::Cohort::Descs->of($self->{label_shapes}, 'label_shapes');
    my $weights = pack 'd*', @{$self->{workload} || []};
    my %buckets = %{$self->{buckets} || {}};
    my @keys = sort keys %buckets;
    my $symbols = pack 'J*', map { handle_of($buckets{$_}, "buckets: $_") } @keys;
    my $sym_gen = $self->{sym_gen};
    (my $generate, $self->{bucket_id}) = $sym_gen ? callback('(string,opaque,opaque)->sint32', symbol_of_bucket($sym_gen)) : ();
    (my $log, $self->{log_id}) = callback('(sint32,string,opaque)->void', AI::Cohort::Logging::sink($self->{logger}));
    my $default = defined $self->{default_bucket_key} ? AI::Cohort::FFI::encode_text("$self->{default_bucket_key}") . "\0" : undef;
    my $options = struct(
        cohort_manager_options => length $weights ? (workload => \$weights, num_workloads => scalar @{$self->{workload}}) : (),
        defined $default ? (default_bucket_key => \$default) : (),
        bucket_keys => \@keys,
        bucket_symbols => \$symbols,
        num_buckets => scalar @keys,
        bucket_symbol => $generate,
        bucket_symbol_user_data => $self->{bucket_id},
        (map { $_ => $self->{$_} } qw(num_threads seed)),
        log => $log,
        log_user_data => $self->{log_id},
    );
    my $batch_size = $self->{batch_size} // AI::Cohort::DataDesc->of($self->{data_shapes}[0])->shape->[0];
    my $params = $self->{param_names};
    cohort_manager_create(handle_of($self->{symbol}, 'symbol'), $contexts->{pointer}, scalar @{$self->{contexts}}, $batch_size,
        handle_of($data), handle_of($label), $params, scalar @$params, $options->{pointer}, \$self->{handle});
}

# The library frees the handle that it is given: it gets one of its own.
sub symbol_of_bucket {
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
    my ($data, $label) = map { handles_of(AI::Cohort::Executor::Group::arrays_of_batch($_) || [], 'data_batch') } $batch->data, $batch->label;
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
    cohort_manager_update($self->{handle}, handle_of($optimizer, 'optimizer'), AI::Cohort::Executor::Group::update_code($mode));
    return;
}

sub update_metric {
    my ($self, $metric, $labels, $pre_sliced) = @_;
    my $handle = handle_of($metric, 'metric');
    if ($pre_sliced) {
        my @devices = map { AI::Cohort::Executor::Group::arrays_of_batch($_) || [] } @$labels;
        my $num = AI::Cohort::Executor::Group::same_count(\@devices);
        return cohort_manager_update_metric_presliced($self->{handle}, $handle, scalar @devices,
            handles_of([map {@$_} @devices], 'labels'), $num);
    }
    my $arrays = handles_of(AI::Cohort::Executor::Group::arrays_of_batch($labels) || [], 'labels');
    return cohort_manager_update_metric($self->{handle}, $handle, $arrays, scalar @$arrays);
}

sub get_outputs {
    my ($self) = @_;
    cohort_manager_num_arrays($self->{handle}, COHORT_GROUP_OUTPUTS, \my $num);
    return [map { cohort_manager_merged($self->{handle}, COHORT_GROUP_OUTPUTS, $_, \my $array); AI::Cohort::NDArray->adopt($array) } 0 .. $num - 1];
}

sub set_params {
    my ($self, $arg_params, $aux_params) = @_;
    my ($args, $aux) = (AI::Cohort::Arrays->of($arg_params || {}, 'arg_params'), AI::Cohort::Arrays->of($aux_params, 'aux_params'));
    cohort_manager_set_params($self->{handle}, $args->{handle}, handle_of($aux));
    return;
}

sub copy_to {
    my ($self, $arg_params, $aux_params) = @_;
    my ($args, $aux) = (AI::Cohort::Arrays->of($arg_params || {}, 'arg_params'), AI::Cohort::Arrays->of($aux_params, 'aux_params'));
    cohort_manager_copy_to($self->{handle}, $args->{handle}, handle_of($aux));
    return;
}

sub install_monitor {
    my ($self, $monitor) = @_;
    $monitor->install($self);
    return;
}

# For each entry of a list the arrays of the devices.
sub arrays {
    my ($self, $list) = @_;
    my @devices = map {
        cohort_manager_arrays($self->{handle}, $list, $_, \my $handle);
        AI::Cohort::Arrays->adopt($handle)->list;
    } 0 .. $#{$self->{contexts}};
    return [map { my $i = $_; [map { $_->[$i] } @devices] } 0 .. $#{$devices[0]}];
}

sub param_arrays { $_[0]->arrays(COHORT_GROUP_PARAMS) }
sub grad_arrays { $_[0]->arrays(COHORT_GROUP_GRADS) }
sub aux_arrays { $_[0]->arrays(COHORT_GROUP_AUX) }

sub slices {
    my ($self) = @_;
    return [map { cohort_manager_slice($self->{handle}, $_, \my $begin, \my $end); [$begin, $end] } 0 .. $#{$self->{contexts}}];
}

sub num_buckets {
    my ($self) = @_;
    cohort_manager_num_buckets($self->{handle}, \my $num);
    return $num;
}

# Fills all parameters by an initializer, the same on every device and in every bucket.
sub init_params {
    my ($self, $initializer) = @_;
    cohort_manager_main_group($self->{handle}, \my $handle);
    my $group = AI::Cohort::Executor::Group->adopt($handle, symbol => $self->{symbol});
    $group->init_params($initializer);
    return;
}

sub get_params {
    my ($self) = @_;
    cohort_manager_main_group($self->{handle}, \my $handle);
    return AI::Cohort::Executor::Group->adopt($handle)->get_params;
}

1;
