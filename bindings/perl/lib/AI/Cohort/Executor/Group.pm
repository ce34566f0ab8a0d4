# SPDX-License-Identifier: Apache-2.0
package AI::Cohort::Executor::Group;
use strict;
use warnings;
use AI::Cohort::FFI;
use AI::Cohort::Arrays;
use AI::Cohort::Context;
use AI::Cohort::DataBatch;
use AI::Cohort::DataDesc;
use AI::Cohort::Executor;
use AI::Cohort::Logging;
use AI::Cohort::Metric;
use AI::Cohort::NDArray;
use AI::Cohort::Symbol;
use Scalar::Util qw(blessed looks_like_number);

our @ISA = ('AI::Cohort::Handle');
# The name of the class in AI::MXNet.
@AI::Cohort::DataParallelExecutorGroup::ISA = (__PACKAGE__);

my @required = qw(symbol contexts data_shapes param_names for_training);
my %default = (
    workload => undef, label_shapes => undef, inputs_need_grad => 0, shared_group => undef, logger => undef,
    fixed_param_names => undef, state_names => undef, grad_req => 'write',
    # Further options of the C interface.
    rounding => 'half_up', slices => undef, input_types => undef, group2ctxs => undef, num_threads => 0,
    gradient_bucket_bytes => 0, seed => 0, arg_params => undef, aux_params => undef,
    strict_names => 0, stop_if_not_finite => 0,
);
my %rounding = (half_up => COHORT_ROUNDING_HALF_UP, half_even => COHORT_ROUNDING_HALF_EVEN, balanced => COHORT_ROUNDING_BALANCED);

for my $field (@required, keys %default) {
    next if $field =~ /_shapes$|^slices$|^grad_req$|_params$/;    # these fields read the bound values, not the given ones
    no strict 'refs';
    *$field = sub { $_[0]{$field} };
}

sub new {
    my ($class, @given) = @_;
    my %given = settings_of('group', [@required, keys %default, @AI::Cohort::Executor::GROUP_PRECISION], @given);
    for (@required) { invalid("group: $_ is missing", $_) unless defined $given{$_} }
    my $self = bless {%default, %given}, $class;
    $self->{contexts} = [AI::Cohort::Context->all($given{contexts})];
    $self->{logger} //= AI::Cohort::Logging->get_logger;
    $self->{$_} = list_of($self->{$_}, $_) for qw(param_names fixed_param_names state_names);
    $self->_create;
    return $self;
}

sub free_handle { cohort_group_free($_[1]) }

sub _create {
    my ($self) = @_;
    my $contexts = AI::Cohort::Context->_list(@{$self->{contexts}});
    my ($data, $label) = AI::Cohort::Descs->of_batch(@$self{qw(data_shapes label_shapes)});
    (my $log, $self->{log_id}) = callback('(sint32,string,opaque)->void', AI::Cohort::Logging::_sink($self->{logger}));
    # From now on the group holds the arrays, not the lists.
    my %lists = map { $_ => AI::Cohort::Arrays->of(delete $self->{$_}, $_) } qw(arg_params aux_params);
    my $options = struct(
        cohort_group_options => $self->_split_options,
        %lists,
        AI::Cohort::Executor::_grad_reqs($self->{grad_req}),
        $self->_ctx_group_options,
        inputs_need_grad => $self->{inputs_need_grad} ? 1 : 0,
        fixed_param_names => $self->{fixed_param_names},
        num_fixed_param_names => scalar @{$self->{fixed_param_names}},
        state_names => $self->{state_names},
        num_state_names => scalar @{$self->{state_names}},
        $self->_input_type_options,
        shared_group => $self->{shared_group},
        (map { $_ => $self->{$_} } qw(num_threads gradient_bucket_bytes seed)),
        (map { $_ => $self->{$_} ? 1 : 0 } qw(strict_names stop_if_not_finite)),
        AI::Cohort::Executor::_group_precision($self),
        log => $log,
        log_user_data => $self->{log_id},
    );
    my $params = $self->{param_names};
    cohort_group_create(handle_of($self->{symbol}, 'symbol'), $contexts->{pointer}, scalar @{$self->{contexts}}, handle_of($data),
        handle_of($label), $params, scalar @$params, $self->{for_training} ? 1 : 0, $options->{pointer}, \$self->{handle});
}

# How the batch is split: by workload, or into given slices.
sub _split_options {
    my ($self) = @_;
    my $mode = $self->{rounding} // 'half_up';
    my $rounding = $rounding{$mode} // invalid("rounding: expected half_up, half_even or balanced, found '$mode'", 'rounding');
    my @weights = @{list_of($self->{workload}, 'workload')};
    my @slices = @{list_of($self->{slices}, 'slices')};
    my @ends = map { @{list_of($_, 'slices')} } @slices;
    for ([workload => @weights], [slices => @ends]) {
        my ($what, @numbers) = @$_;
        for (@numbers) { invalid("$what: expected a number, found '" . ($_ // 'undef') . "'", $what) unless looks_like_number($_) }
    }
    invalid('slices: expected pairs of begin and end', 'slices') if @ends != 2 * @slices;
    my ($weights, $slices) = (pack('d*', @weights), pack('q*', @ends));
    return (
        @weights ? (workload => \$weights, num_workloads => scalar @weights) : (),
        @slices ? (slices => \$slices, num_slices => scalar @slices) : (),
        rounding => $rounding,
    );
}

sub _input_type_options {
    my ($self) = @_;
    my $types = hash_of($self->{input_types}, 'input_types');
    my @names = sort keys %$types;
    my $codes = pack 'l*', map { AI::Cohort::NDArray::dtype_code($_) } @$types{@names};
    return (input_dtype_names => \@names, input_dtypes => \$codes, num_input_dtypes => scalar @names);
}

# Contexts of node groups: one hash for all devices, whose values are a context or a list with one per device; or a list of
# hashes, one per device.
sub _ctx_group_options {
    my ($self) = @_;
    my $given = $self->{group2ctxs} // return ();
    $given = hash_of($given, 'group2ctxs') if ref $given ne 'ARRAY';
    my $num = @{$self->{contexts}};
    my @maps = ref $given eq 'ARRAY' ? @$given : map {
        my $i = $_;
        +{map { $_ => ref $given->{$_} eq 'ARRAY' ? $given->{$_}[@{$given->{$_}} == 1 ? 0 : $i] : $given->{$_} } keys %$given};
    } 0 .. $num - 1;
    my @lists = ref $given eq 'HASH' ? grep { ref eq 'ARRAY' && @$_ != 1 } values %$given : ();
    for (scalar @maps, map { scalar @$_ } @lists) {
        invalid("group2ctxs: expected 1 or $num contexts, found $_", 'group2ctxs') if $_ != $num;
    }
    my %names = map { $_ => 1 } map { keys %{hash_of($_, 'group2ctxs')} } @maps;
    return () unless my @names = sort keys %names;
    my $contexts = join '', map {
        my $name = $_;
        map { defined $_->{$name} ? ${AI::Cohort::Context->_list($_->{$name})->{bytes}} : pack 'll', 0, 0 } @maps;
    } @names;
    return (
        ctx_group_names => \@names,
        ctx_group_contexts => \$contexts,
        num_ctx_groups => scalar @names,
        contexts_per_ctx_group => $num,
    );
}

# ---- shapes and slices -----------------------------------------------------------------------------------------------

sub _bound_descs {
    my ($self, $list) = @_;
    cohort_group_descs($self->{handle}, $list, \my $handle);
    return AI::Cohort::Descs->adopt($handle)->descs;
}

sub data_shapes { $_[0]->_bound_descs(COHORT_GROUP_DATA) }

sub label_shapes {
    my $descs = $_[0]->_bound_descs(COHORT_GROUP_LABELS);
    return @$descs ? $descs : undef;
}

# undef if nothing has a batch axis.
sub batch_size {
    my ($self) = @_;
    cohort_group_batch_size($self->{handle}, \my $size);
    return $size || undef;
}

# [begin, end) of each device; undef if nothing has a batch axis.
sub slices {
    my ($self) = @_;
    return undef unless $self->batch_size;
    return [map { cohort_group_slice($self->{handle}, $_, \my $begin, \my $end); [$begin, $end] } 0 .. $#{$self->{contexts}}];
}

sub decide_slices {
    my ($self, $data_shapes) = @_;
    my $descs = AI::Cohort::Descs->of(list_of($data_shapes, 'data_shapes'), 'data_shapes');
    my @axes = (0) x $descs->num;
    cohort_group_decide_slices($self->{handle}, handle_of($descs), \@axes);
    return \@axes;
}

sub _sliced_shape {
    my ($self, $shapes, $i, $major_axis) = @_;
    my $descs = AI::Cohort::Descs->of(list_of($shapes, 'shapes'), 'shapes');
    for (@{list_of($major_axis, 'major_axis')}) {
        invalid('major_axis: expected numbers', 'major_axis') unless looks_like_number($_);
    }
    invalid('_sliced_shape: expected ' . @$shapes . ' axes, found ' . @$major_axis, 'major_axis')
        if $major_axis && @$major_axis != $descs->num;
    cohort_group_sliced_shape($self->{handle}, handle_of($descs), $i, $major_axis, \my $handle);
    return AI::Cohort::Descs->adopt($handle)->descs;
}

sub bind_exec {
    my ($self, $data_shapes, $label_shapes, $shared_group, $reshape) = @_;
    return $self->reshape($data_shapes, $label_shapes) if $reshape;
    my ($data, $label) = AI::Cohort::Descs->of_batch($data_shapes, $label_shapes);
    cohort_group_bind($self->{handle}, handle_of($data), handle_of($label), handle_of($shared_group, 'shared_group'), 0);
    return;
}

sub reshape {
    my ($self, $data_shapes, $label_shapes) = @_;
    my ($data, $label) = AI::Cohort::Descs->of_batch($data_shapes, $label_shapes);
    cohort_group_reshape($self->{handle}, handle_of($data), handle_of($label));
    return;
}

# ---- parameters ------------------------------------------------------------------------------------------------------

sub set_params {
    my ($self, $arg_params, $aux_params, $allow_extra) = @_;
    my ($args, $aux) = AI::Cohort::Arrays->of_params($arg_params, $aux_params);
    cohort_group_set_params($self->{handle}, $args->{handle}, handle_of($aux), $allow_extra ? 1 : 0);
    return;
}

# All parameters: missing ones are an error, or their names are returned.
sub assign_params {
    my ($self, @given) = @_;
    return _assign(\&cohort_group_assign_params, $self->{handle}, @given);
}

sub _assign {
    my ($function, $handle, $arg_params, $aux_params, @given) = @_;
    my %allow = settings_of('assign_params', [qw(allow_missing allow_extra)], @given);
    my ($args, $aux) = AI::Cohort::Arrays->of_params($arg_params, $aux_params);
    $function->($handle, $args->{handle}, handle_of($aux), (map { $allow{$_} ? 1 : 0 } qw(allow_missing allow_extra)), \my $missing);
    return [map { $_->name } @{AI::Cohort::Descs->adopt($missing)->descs}];
}

# Writes into given arrays. Without any, creates them and returns two hashes.
sub get_params {
    my ($self, $arg_params, $aux_params) = @_;
    if (!defined $arg_params) {
        cohort_group_copy_params($self->{handle}, \my $args, \my $aux);
        return map { AI::Cohort::Arrays->adopt($_)->hash } $args, $aux;
    }
    my ($args, $aux) = (AI::Cohort::Arrays->of($arg_params, 'arg_params'), AI::Cohort::Arrays->of($aux_params, 'aux_params'));
    cohort_group_get_params($self->{handle}, $args->{handle}, handle_of($aux));
    return;
}

# Fills all parameters with an initializer, equally on every device.
sub init_params {
    my ($self, $initializer) = @_;
    invalid('init_params: expected an initializer, found ' . ($initializer // 'undef'), 'initializer')
        unless blessed $initializer && $initializer->can('apply');
    cohort_group_copy_params($self->{handle}, \my $args, \my $aux);
    ($args, $aux) = map { AI::Cohort::Arrays->adopt($_) } $args, $aux;
    $initializer->apply($_, $self->{symbol}) for $args, $aux;
    cohort_group_set_params($self->{handle}, $args->{handle}, $aux->{handle}, 0);
    return;
}

# ---- running ---------------------------------------------------------------------------------------------------------

# A field of a batch as a list of arrays; undef if it has none.
sub _arrays_of_batch {
    my ($given) = @_;
    return undef unless defined $given;
    my @list = ref $given eq 'ARRAY' ? @$given : $given;
    return undef unless @list;
    return [map {
        blessed $_ && $_->isa('AI::Cohort::NDArray') ? $_
            : blessed $_ && $_->isa('PDL') ? AI::Cohort::NDArray->from_pdl($_) : AI::Cohort::NDArray->array($_);
    } @list];
}

sub _check_batch {
    my ($batch) = @_;
    return if blessed $batch && $batch->can('data');
    invalid('expected a batch with data and label, found ' . ($batch // 'undef'), 'data_batch');
}

sub forward {
    my ($self, $batch, $is_train) = @_;
    $is_train = defined $is_train ? ($is_train ? 1 : 0) : -1;
    return $self->_forward_presliced($batch, $is_train) if ref $batch eq 'ARRAY';
    _check_batch($batch);
    my $data = handles_of(_arrays_of_batch($batch->data), 'data');
    my $labels = $batch->can('label') && _arrays_of_batch($batch->label);
    my $label = $labels ? handles_of($labels, 'label') : undef;
    cohort_group_forward($self->{handle}, $data, scalar @$data, $label, scalar @{$label || []}, $is_train);
    return;
}

# One batch for each device, sliced already.
sub _forward_presliced {
    my ($self, $batches, $is_train) = @_;
    _check_batch($_) for @$batches;
    my @data = map { _arrays_of_batch($_->data) || [] } @$batches;
    my @label = map { $_->can('label') && _arrays_of_batch($_->label) || [] } @$batches;
    my ($num_data, $num_label) = map { _same_count($_) } \@data, \@label;
    my ($data, $label) = map { handles_of([map {@$_} @$_], 'batch') } \@data, \@label;
    cohort_group_forward_presliced($self->{handle}, scalar @$batches, $data, $num_data, $num_label ? $label : undef, $num_label,
        $is_train);
    return;
}

sub _same_count {
    my ($lists) = @_;
    my $num = @{list_of($lists->[0], 'list')};
    for (map { list_of($_, 'list') } @$lists) {
        invalid("batches: expected $num arrays in each, found " . @$_, 'data_batch') if @$_ != $num;
    }
    return $num;
}

sub load {
    my ($self, $batch) = @_;
    _check_batch($batch);
    my ($data, $label) = map { handles_of(_arrays_of_batch($_), 'batch') } $batch->data, $batch->label;
    cohort_group_load($self->{handle}, $data, scalar @$data, @$label ? $label : undef, scalar @$label);
    return;
}

sub run {
    my ($self, $is_train) = @_;
    cohort_group_run($self->{handle}, defined $is_train ? ($is_train ? 1 : 0) : -1);
    return;
}

sub backward {
    my ($self, $out_grads) = @_;
    my $grads = AI::Cohort::Executor::_head_grads($out_grads, ref $out_grads eq 'HASH' ? $self->{symbol}->list_outputs : undef);
    cohort_group_backward($self->{handle}, handles_of($grads, 'out_grads'), scalar @$grads);
    return;
}

my %update_mode = (store => COHORT_UPDATE_ON_STORE, device => COHORT_UPDATE_PER_DEVICE, none => COHORT_UPDATE_NO_STORE);

sub _update_code {
    my ($mode) = @_;
    $mode //= 'store';
    return $update_mode{$mode} // invalid("update: expected store, device or none, found '$mode'", 'mode');
}

sub update {
    my ($self, $optimizer, $mode) = @_;
    cohort_group_update($self->{handle}, handle_of($optimizer, 'optimizer'), _update_code($mode));
    return;
}

sub loss_scale { AI::Cohort::Executor::_loss_scale_from(\&cohort_group_loss_scale, $_[0]{handle}) }
sub set_loss_scale { cohort_group_set_loss_scale($_[0]{handle}, $_[1], $_[2] // 0) }

sub resume {
    my ($self, $optimizer) = @_;
    cohort_group_resume($self->{handle}, handle_of($optimizer, 'optimizer'));
    return;
}

sub random_state { AI::Cohort::FFI::_bytes_from(\&cohort_group_random_state, $_[0]{handle}) }
sub set_random_state { AI::Cohort::FFI::_bytes_to(\&cohort_group_set_random_state, $_[0]{handle}, $_[1], 'random_state') }

sub wait { cohort_group_wait($_[0]{handle}) }

# ---- outputs ---------------------------------------------------------------------------------------------------------

sub _num_arrays {
    my ($self, $list) = @_;
    cohort_group_num_arrays($self->{handle}, $list, \my $num);
    return $num;
}

sub _names_of { list_of_names(\&cohort_group_num_arrays, \&cohort_group_name, $_[0]{handle}, $_[1]) }

# The devices' arrays, for each entry of a list.
sub _arrays {
    my ($self, $list) = @_;
    my @devices = map {
        cohort_group_arrays($self->{handle}, $list, $_, \my $handle);
        AI::Cohort::Arrays->adopt($handle)->list;
    } 0 .. $#{$self->{contexts}};
    return [map { my $i = $_; [map { $_->[$i] } @devices] } 0 .. $#{$devices[0]}];
}

sub _merged {
    my ($self, $list) = @_;
    return [map { cohort_group_merged($self->{handle}, $list, $_, \my $array); AI::Cohort::NDArray->adopt($array) }
        0 .. $self->_num_arrays($list) - 1];
}

sub get_output_shapes {
    my ($self) = @_;
    cohort_group_output_shapes($self->{handle}, \my $handle);
    return AI::Cohort::Descs->adopt($handle)->descs;
}

sub get_outputs {
    my ($self, $merge_multi_context) = @_;
    return $merge_multi_context // 1 ? $self->_merged(COHORT_GROUP_OUTPUTS) : $self->_arrays(COHORT_GROUP_OUTPUTS);
}

sub get_input_grads {
    my ($self, $merge_multi_context) = @_;
    cohort_group_array($self->{handle}, COHORT_GROUP_INPUT_GRADS, 0, 0, \my $first);    # always an error, which says why
    AI::Cohort::NDArray->adopt($first);
    return $merge_multi_context // 1 ? $self->_merged(COHORT_GROUP_INPUT_GRADS) : $self->_arrays(COHORT_GROUP_INPUT_GRADS);
}

sub get_states {
    my ($self, $merge_multi_context) = @_;
    return $merge_multi_context // 1 ? $self->_merged_states : $self->_arrays(COHORT_GROUP_STATES);
}

sub _merged_states {
    my ($self) = @_;
    cohort_group_merged($self->{handle}, COHORT_GROUP_STATES, 0, \my $array);    # always an error
    return [AI::Cohort::NDArray->adopt($array)];
}

# (states, value), or either by name: returns states, number of devices and a reference to the value.
sub _states {
    my ($states, $value) = @_;
    ($states, $value) = $states eq 'states' ? ($value, undef) : (undef, $value) if ($states // '') =~ /^(?:states|value)$/;
    $states = [map { handles_of($_, 'states') } @{list_of($states, 'states')}] if defined $states;
    invalid("set_states: expected a number, found '$value'", 'value') if defined $value && !looks_like_number($value);
    return ($states, $states ? _same_count($states) : 0, defined $value ? \$value : undef);
}

sub set_states {
    my ($self, @given) = @_;
    my ($states, $num_devices, $value) = _states(@given);
    cohort_group_set_states($self->{handle}, $states && [map {@$_} @$states], scalar @{$states || []}, $num_devices, $value);
    return;
}

# ---- metrics and monitors --------------------------------------------------------------------------------------------

sub update_metric {
    my ($self, $given, $labels, $pre_sliced) = @_;
    my $metric = AI::Cohort::Metric->_of($given);
    return $self->_update_metric_presliced($metric, $labels) if $pre_sliced;
    my $arrays = handles_of(_arrays_of_batch($labels) || [], 'labels');
    cohort_group_update_metric($self->{handle}, $metric->{handle}, $arrays, scalar @$arrays);
    return;
}

sub _update_metric_presliced {
    my ($self, $metric, $labels) = @_;
    my @devices = map { _arrays_of_batch($_) || [] } @{list_of($labels, 'labels')};
    my $num = _same_count(\@devices);
    cohort_group_update_metric_presliced($self->{handle}, $metric->{handle}, scalar @devices,
        handles_of([map {@$_} @devices], 'labels'), $num);
    return;
}

sub _slice_of {
    my ($array, $axis, $range) = @_;
    return $axis < 0 || !$range ? $array : $array->slice_axis(axis => $axis, begin => $range->[0], end => $range->[1]);
}

sub install_monitor {
    my ($self, $monitor) = @_;
    invalid('install_monitor: expected a monitor, found ' . ($monitor // 'undef'), 'monitor')
        unless blessed $monitor && $monitor->can('install');
    $monitor->install($self);
    return;
}

sub set_monitor_callback {
    my ($self, $sub, $monitor_all) = @_;
    invalid("monitor: expected a function, found '$sub'", 'callback') if defined $sub && ref $sub ne 'CODE';
    my ($function, $id) = $sub ? callback('(string,opaque,opaque)->void', AI::Cohort::Executor::_monitor_of($sub)) : ();
    cohort_group_set_monitor($self->{handle}, $function, $id, $monitor_all ? 1 : 0);
    forget_callback($self->{monitor_id});
    $self->{monitor_id} = $id;
    return;
}

# ---- what a group has inside -----------------------------------------------------------------------------------------

# AI::MXNet keeps the rest in a separate object.
sub _p { $_[0] }

sub execs {
    my ($self) = @_;
    return [map { cohort_group_executor($self->{handle}, $_, \my $handle); AI::Cohort::Executor->adopt($handle, parent => $self) }
        0 .. $#{$self->{contexts}}];
}

sub arg_names { $_[0]{symbol}->list_arguments }
sub aux_names { $_[0]{symbol}->list_auxiliary_states }

sub _axes {
    my ($self, $list) = @_;
    return [map { cohort_group_axis($self->{handle}, $list, $_, \my $axis); $axis } 0 .. $self->_num_arrays($list) - 1];
}

sub data_layouts { $_[0]->_axes(COHORT_GROUP_DATA) }
sub output_layouts { $_[0]->_axes(COHORT_GROUP_OUTPUTS) }

sub label_layouts {
    my $axes = $_[0]->_axes(COHORT_GROUP_LABELS);
    return @$axes ? $axes : undef;
}

# [slice, array] for each device.
sub _with_slices {
    my ($self, $list) = @_;
    my $slices = $self->slices || [map {undef} @{$self->{contexts}}];
    return [map { my $devices = $_; [map { [$slices->[$_], $devices->[$_]] } 0 .. $#$devices] } @{$self->_arrays($list)}];
}

sub data_arrays { $_[0]->_with_slices(COHORT_GROUP_DATA) }

sub label_arrays {
    my $arrays = $_[0]->_with_slices(COHORT_GROUP_LABELS);
    return @$arrays ? $arrays : undef;
}

sub param_arrays { $_[0]->_arrays(COHORT_GROUP_PARAMS) }
sub grad_arrays { $_[0]{for_training} ? $_[0]->_arrays(COHORT_GROUP_GRADS) : undef }
sub aux_arrays { $_[0]->_arrays(COHORT_GROUP_AUX) }
sub state_arrays { $_[0]->_arrays(COHORT_GROUP_STATES) }
sub input_grad_arrays { $_[0]{inputs_need_grad} && $_[0]{for_training} ? $_[0]->_arrays(COHORT_GROUP_INPUT_GRADS) : undef }

# In the order of param_arrays, which is that of the symbol's arguments.
sub param_array_names { $_[0]->_names_of(COHORT_GROUP_PARAMS) }

sub shared_data_arrays {
    my ($self) = @_;
    return [map { cohort_group_shared_data($self->{handle}, $_, \my $handle); AI::Cohort::Arrays->adopt($handle)->hash }
        0 .. $#{$self->{contexts}}];
}

sub memory { AI::Cohort::Executor::_memory_from(\&cohort_group_memory, $_[0]{handle}, $_[1] // 0) }

# ---- functions of AI::MXNet's file -----------------------------------------------------------------------------------

sub _split_input_slice {
    my ($batch_size, $work_load_list) = @_;
    my $num = @$work_load_list;
    my (@begin, @end) = ();
    @begin = @end = (0) x $num;
    cohort_split_slices($batch_size, $work_load_list, $num, COHORT_ROUNDING_HALF_UP, \@begin, \@end);
    return [map { [$begin[$_], $end[$_]] } 0 .. $num - 1];
}

sub _load_general {
    my ($data, $targets, $major_axis) = @_;
    invalid('_load_general: expected ' . @$targets . ' arrays, found ' . @$data, 'data') if @$data != @$targets;
    for my $i (0 .. $#$data) {
        my ($source, $target) = ($data->[$i], $targets->[$i]);
        if (blessed $target) { $source->copyto($target) }
        elsif (blessed $target->[0]) { $source->[$_]->copyto($target->[$_]) for 0 .. $#$target }
        else { _slice_of($source, $major_axis->[$i], $_->[0])->copyto($_->[1]) for @$target }
    }
    return;
}

sub _load_data { my ($batch, $targets, $major_axis) = @_; _load_general($batch->data, $targets, $major_axis) }
sub _load_label { my ($batch, $targets, $major_axis) = @_; _load_general($batch->label, $targets, $major_axis) }

sub _merge_multi_context {
    my ($outputs, $major_axis) = @_;
    return [map {
        my ($arrays, $axis) = ($outputs->[$_], $major_axis->[$_]);
        $axis < 0 || @$arrays == 1 ? $arrays->[0] : AI::Cohort::NDArray->concatenate($arrays, axis => $axis);
    } 0 .. $#$outputs];
}

# A separate executor for one device, on the group's pool of input arrays.
sub _bind_ith_exec {
    my ($self, $i, $data_shapes, $label_shapes, $shared_group) = @_;
    my @descs = map { AI::Cohort::DataDesc->of($_) } @$data_shapes, @{$label_shapes || []};
    return $self->{symbol}->simple_bind(
        ctx => $self->{contexts}[$i],
        grad_req => $self->grad_req_map,
        type_dict => {map { $_->name => $_->dtype } @descs},
        shared_arg_names => $self->{param_names},
        shared_exec => $shared_group && $shared_group->execs->[$i],
        shared_buffer => $self->shared_data_arrays->[$i],
        shapes => {map { $_->name => $_->shape } @descs},
    );
}

my @grad_words = ('null', 'write', '', 'add');

# The request of each argument, whatever form it was given in.
sub grad_req { $_[0]->grad_req_map }

sub grad_req_map {
    my ($self) = @_;
    my $exec = $self->execs->[0];
    my $names = $self->arg_names;
    return {map { cohort_executor_grad_req($exec->{handle}, $_, \my $code); $names->[$_] => $grad_words[$code] } 0 .. $#$names};
}

1;

