# SPDX-License-Identifier: Apache-2.0
# Replays scenarios of tests/golden/group, which record results of MXNet 1.9.1, with these modules. tests/golden/README.md
# describes the format.
package Golden;
use strict;
use warnings;
use AI::Cohort qw(mx);
use AI::Cohort::FFI ();
use JSON::PP ();
use PDL;
use Scalar::Util qw(blessed);

my %class_of_word = (
    map({ $_ => 'invalid_argument' } qw(too_many_slices empty_data_shapes bad_grad_req head_grad_required no_such_output
        count_mismatch not_binary bad_arguments)),
    map({ $_ => 'name' } qw(unknown_input unknown_parameter missing_parameter missing_argument missing_target)),
    map({ $_ => 'shape' } qw(batch_size_mismatch shape_mismatch incomplete_shapes unspecified_shape_changed up_sizing_not_allowed)),
    type_mismatch => 'dtype', not_supported => 'unsupported',
    map({ $_ => 'state' } qw(already_bound not_for_training inputs_need_grad_false no_labels)),
);
my %mode = (on_store => 'store', per_device => 'device', no_store => 'none');

sub new {
    my ($class, $folder) = @_;
    open my $file, '<:raw', "$folder/scenario.json" or die "$folder/scenario.json: $!";
    my $head = JSON::PP::decode_json(do { local $/; <$file> });
    return bless {folder => $folder, head => $head, objects => {}}, $class;
}

sub level { $_[0]{head}{level} }
sub title { $_[0]{head}{title} }

# Runs all steps; returns a line for each difference.
sub run {
    my ($self) = @_;
    my ($head, @failures, $number) = ($self->{head});
    for my $step (@{$head->{steps}}) {
        my $place = 'step ' . $number++ . " $step->{op}: ";
        my $run = $self->can("step_$step->{op}") or return "${place}there is no such step";
        my $expected = $step->{expect};
        my $error = ref $expected eq 'HASH' && $expected->{error};
        my $found;
        if (!eval { $found = $self->$run($step); 1 }) {
            my $why = $@;
            return (@failures, $place . $why) if !$error || !ref $why || !$why->isa('AI::Cohort::Error');
            my $class = $class_of_word{$error->{class}} // die "there is no error class $error->{class}";
            push @failures, "${place}expected an error of class $class, found " . $why->class . ": $why" unless $why->is($class);
            next;
        }
        if ($error) { push @failures, "${place}expected an error ($error->{class}), found success" }
        elsif (defined $expected) {
            my %tolerance = map { $_ => $step->{$_} // $head->{$_} // 0 } qw(rtol atol);
            push @failures, map { $place . $_ } $self->differences($expected, $found, '', %tolerance);
        }
    }
    return @failures;
}

# ---- what is expected ------------------------------------------------------------------------------------------------

sub differences {
    my ($self, $expected, $found, $what, %tolerance) = @_;
    if (ref $expected eq 'HASH' && exists $expected->{array}) {
        return "$what: expected an array" unless blessed $found && $found->isa('AI::Cohort::NDArray');
        my $array = $self->array($expected);
        return array_differences($array, $found, $what, %tolerance, exists $expected->{atol} ? (atol => $expected->{atol}) : ());
    }
    if (ref $expected eq 'HASH') {
        return map {
            ref $found eq 'HASH' && exists $found->{$_} ? $self->differences($expected->{$_}, $found->{$_}, "$what.$_", %tolerance)
                : "$what.$_: is not there";
        } sort keys %$expected;
    }
    if (ref $expected eq 'ARRAY') {
        return "$what: expected a list of " . @$expected . ', found ' . (ref $found eq 'ARRAY' ? scalar @$found : $found // 'undef')
            if ref $found ne 'ARRAY' || @$found != @$expected;
        return map { $self->differences($expected->[$_], $found->[$_], "$what\[$_]", %tolerance) } 0 .. $#$expected;
    }
    return defined $found ? "$what: expected nothing, found $found" : () unless defined $expected;
    return "$what: expected $expected, found nothing" unless defined $found;
    return $found eq $expected ? () : "$what: expected $expected, found $found"
        if $expected !~ /^(?:[-+]?[\d.]+(?:e[-+]?\d+)?|nan|-?inf)$/i || $found !~ /^(?:[-+]?[\d.]+(?:e[-+]?\d+)?|nan|-?inf)$/i;
    return () if $found == $expected || $expected != $expected && $found != $found;
    return () if abs($found - $expected) <= $tolerance{atol} + $tolerance{rtol} * abs $expected;
    return "$what: expected $expected, found $found";
}

sub array_differences {
    my ($expected, $found, $what, %tolerance) = @_;
    my ($wanted, $seen) = map { $_->dtype . ' (' . join(', ', @{$_->shape}) . ')' } $expected, $found;
    return "$what: expected $wanted, found $seen" if $wanted ne $seen;
    return () unless $expected->size;
    my ($e, $f) = map { $_->aspdl->double->flat } $expected, $found;
    my $same = ($f == $e) | (($e != $e) & ($f != $f)) | (abs($f - $e) <= $tolerance{atol} + $tolerance{rtol} * abs($e));
    my $num = $same->nelem - $same->sum;
    return $num ? "$what: $num of " . $same->nelem . ' wrong, off by up to ' . abs($f - $e)->max : ();
}

# ---- what a scenario names -------------------------------------------------------------------------------------------

sub path_of {
    my ($self, $name) = @_;
    return "$self->{folder}/$name" unless $name =~ s/^@//;
    my $above = $self->{folder};
    for (1 .. 5) {
        for my $place ("$above/$name", "$above/examples/$name") { return $place if -e $place }
        $above .= '/..';
    }
    die "there is no $name in the folders above $self->{folder}";
}

sub array {
    my ($self, $reference) = @_;
    return undef unless defined $reference;
    my ($key, $name) = $reference->{array} =~ m{^(.*?)/(.*)$};
    my $file = $self->{loaded}{$key} //= mx->nd->load($self->path_of($self->{head}{files}{$key}));
    my $array = $file->{$name} // die "file $key has no array $name";
    my $rows = $reference->{rows} or return $array;
    return $array->slice([$rows->[0], $rows->[1] - 1]);
}

sub arrays { my ($self, $list) = @_; $list && [map { $self->array($_) } @$list] }
sub named { my ($self, $map) = @_; +{map { $_ => $self->array($map->{$_}) } keys %{$map || {}}} }
sub symbol { my ($self, $key) = @_; $self->{symbols}{$key} //= mx->sym->load($self->path_of($self->{head}{symbols}{$key})) }
sub object { my ($self, $step, $kind) = @_; $self->{objects}{$kind}{$step->{$kind}} // die "there is no $kind $step->{$kind}" }
sub keep { my ($self, $kind, $name, $object) = @_; $self->{objects}{$kind}{$name} = $object }

sub group {
    my ($self, $step) = @_;
    return exists $step->{group} ? $self->object($step, 'group') : $self->object($step, 'manager')->main_group;
}

sub descs {
    my ($self, $list) = @_;
    return $list && [map { AI::Cohort::DataDesc->new(name => $_->{name}, shape => $_->{shape},
        dtype => $_->{dtype} // 'float32', defined $_->{layout} ? (layout => $_->{layout}) : ()) } @$list];
}

sub batch {
    my ($self, $data, $label, %more) = @_;
    return AI::Cohort::DataBatch->new(data => $self->arrays($data), label => $self->arrays($label), %more);
}

sub is_true { my ($value) = @_; defined $value ? ($value ? 1 : 0) : undef }

# ---- symbols and slices ----------------------------------------------------------------------------------------------

sub step_symbol_info {
    my ($self, $step) = @_;
    my $symbol = $self->symbol($step->{symbol});
    return {arguments => $symbol->list_arguments, aux => $symbol->list_auxiliary_states, outputs => $symbol->list_outputs,
        num_nodes => $symbol->num_nodes};
}

sub step_split_slices {
    my ($self, $step) = @_;
    my ($weights, $mode) = ($step->{workload}, ($step->{rounding} // '') eq 'half_up' ? 0 : 1);
    return {slices => AI::Cohort::Executor::Group::_split_input_slice($step->{batch_size}, $weights)} if !$mode;
    my (@begin, @end);
    @begin = @end = (0) x @$weights;
    AI::Cohort::FFI::cohort_split_slices($step->{batch_size}, $weights, scalar @$weights, $mode, \@begin, \@end);
    return {slices => [map { [$begin[$_], $end[$_]] } 0 .. $#begin]};
}

# ---- groups ----------------------------------------------------------------------------------------------------------

sub step_create_group {
    my ($self, $step) = @_;
    my $group = AI::Cohort::Executor::Group->new(
        symbol => $self->symbol($step->{symbol}),
        data_shapes => $self->descs($step->{data_shapes}),
        label_shapes => $self->descs($step->{label_shapes}),
        for_training => is_true($step->{for_training} // 1),
        inputs_need_grad => is_true($step->{inputs_need_grad} // 0),
        param_names => $step->{param_names} // [],
        rounding => $step->{rounding} // 'half_even',
        map({ $_ => $step->{$_} } qw(contexts workload fixed_param_names state_names grad_req)),
        shared_group => defined $step->{shared_group} ? $self->{objects}{group}{$step->{shared_group}} : undef,
    );
    $self->keep(group => $step->{group}, $group);
    my @args = map { $_->arg_dict } @{$group->execs};
    return {
        batch_size => $group->batch_size // 0,
        $group->batch_size ? (slices => $group->slices) : (),
        data_axes => $group->data_layouts,
        label_axes => $group->label_layouts,
        output_axes => $group->output_layouts,
        grad_req => $group->grad_req_map,
        arg_shapes => [map { my $device = $_; +{map { $_ => $device->{$_}->shape } keys %$device} } @args],
        arg_types => {map { $_ => $args[0]{$_}->dtype } keys %{$args[0]}},
    };
}

sub step_bind {
    my ($self, $step) = @_;
    $self->group($step)->bind_exec(map { $self->descs($step->{$_}) } qw(data_shapes label_shapes));
}

sub step_reshape {
    my ($self, $step) = @_;
    my $group = $self->group($step);
    $group->reshape(map { $self->descs($step->{$_}) } qw(data_shapes label_shapes));
    return {batch_size => $group->batch_size // 0, $group->batch_size ? (slices => $group->slices) : ()};
}

sub step_forward {
    my ($self, $step) = @_;
    $self->group($step)->forward($self->batch($step->{data}, $step->{label}), is_true($step->{is_train}));
}

sub step_forward_presliced {
    my ($self, $step) = @_;
    my ($data, $label) = @$step{qw(device_data device_label)};
    $self->group($step)->forward([map { $self->batch($data->[$_], $label && $label->[$_]) } 0 .. $#$data], is_true($step->{is_train}));
}

sub step_backward { my ($self, $step) = @_; $self->group($step)->backward($self->arrays($step->{head_grads})) }

sub step_output_shapes {
    my ($self, $step) = @_;
    return {shapes => [map { [$_->name, $_->shape] } @{$self->group($step)->get_output_shapes}]};
}

sub step_get_outputs {
    my ($self, $step) = @_;
    my $all = $self->group($step)->get_outputs(is_true($step->{merge}));
    my ($begin, $end) = ($step->{begin} // 0, $step->{end} // scalar @$all);
    # The class itself has no such range: use the library's error for an output beyond the last.
    AI::Cohort::FFI::cohort_group_merged($self->group($step)->handle, AI::Cohort::FFI::COHORT_GROUP_OUTPUTS(), $end - 1, \my $none)
        if $end > @$all;
    return {values => [@$all[$begin .. $end - 1]]};
}

sub step_get_input_grads { my ($self, $step) = @_; +{values => $self->group($step)->get_input_grads(is_true($step->{merge}))} }

sub step_set_params {
    my ($self, $step) = @_;
    $self->group($step)->set_params($self->named($step->{arg}), $self->named($step->{aux}), $step->{allow_extra});
}

sub step_set_device_params {
    my ($self, $step) = @_;
    $self->group($step)->execs->[$step->{device}]->copy_params_from($self->named($step->{arg}), $self->named($step->{aux}));
}

# Zeros as targets for the means, of the type that the step asks for; only of the names it gives.
sub targets {
    my ($self, $step, $names, $arrays) = @_;
    my %wanted = map { $_ => 1 } @{$step->{targets} // $names};
    return {map {
        my ($name, $array) = ($names->[$_], $arrays->[$_][0]);
        $wanted{$name} ? ($name => mx->nd->zeros($array->shape, dtype => $step->{target_types}{$name} // $array->dtype)) : ();
    } 0 .. $#$names};
}

sub targets_of_group {
    my ($self, $step, $group) = @_;
    return ($self->targets($step, $group->param_array_names, $group->param_arrays),
        $self->targets($step, $group->aux_names, $group->aux_arrays));
}

sub step_get_params {
    my ($self, $step) = @_;
    my $group = $self->group($step);
    my ($args, $aux) = $self->targets_of_group($step, $group);
    $group->get_params($args, $aux);
    return {arg => $args, aux => $aux};
}

sub device_values {
    my ($names, $arrays, $wanted) = @_;
    my %all;
    @all{@$names} = @$arrays;
    return {values => $wanted ? {map { $_ => $all{$_} } @$wanted} : \%all};
}

sub values_of_group {
    my ($self, $step, $names, $arrays) = @_;
    my $group = $self->group($step);
    return device_values($group->$names, $group->$arrays, $step->{names});
}

sub step_param_arrays { my ($self, $step) = @_; $self->values_of_group($step, 'param_array_names', 'param_arrays') }
sub step_param_grads { my ($self, $step) = @_; $self->values_of_group($step, 'param_array_names', 'grad_arrays') }
sub step_aux_arrays { my ($self, $step) = @_; $self->values_of_group($step, 'aux_names', 'aux_arrays') }

sub step_fill_grads {
    my ($self, $step) = @_;
    my $group = $self->group($step);
    $_->set($step->{value}) for grep {defined} map {@$_} @{$group->grad_arrays}, $step->{inputs} ? @{$group->input_grad_arrays} : ();
    return;
}

sub step_get_states { my ($self, $step) = @_; +{values => $self->group($step)->get_states(is_true($step->{merge}))} }

sub step_set_states {
    my ($self, $step) = @_;
    my $group = $self->group($step);
    my $states = $step->{states} && [map { $self->arrays($_) } @{$step->{states}}];
    if (my $outputs = $step->{from_outputs}) { $states = [@{$group->get_outputs(0)}[@$outputs]] }
    $group->set_states($states, $step->{value});
}

# ---- metrics, updates, monitors --------------------------------------------------------------------------------------

sub metric_of {
    my ($step) = @_;
    my %args = %{$step->{args} || {}};
    for (values %args) { $_ = $_ ? 'True' : 'False' if JSON::PP::is_bool($_) }
    for (qw(label_names output_names)) { $args{$_} = [$args{$_}] if defined $args{$_} && !ref $args{$_} }
    my $metric = mx->metric->create($step->{kind}, %args);
    $metric->add(metric_of($_)) for @{$step->{children} || []};
    return $metric;
}

sub figures {
    my ($metric, $global) = @_;
    my ($names, $values) = $global ? $metric->get_global : $metric->get;
    return {metric => ref $names ? [map { [$names->[$_], $values->[$_]] } 0 .. $#$names] : [[$names, $values]]};
}

sub labels {
    my ($self, $step) = @_;
    return $step->{pre_sliced} ? [map { $self->arrays($_) } @{$step->{labels}}] : $self->arrays($step->{labels});
}

sub step_create_metric { my ($self, $step) = @_; $self->keep(metric => $step->{metric}, metric_of($step)); return }
sub step_get_metric { my ($self, $step) = @_; figures($self->object($step, 'metric'), $step->{global}) }

sub step_update_metric {
    my ($self, $step) = @_;
    my $metric = $self->object($step, 'metric');
    $self->group($step)->update_metric($metric, $self->labels($step), $step->{pre_sliced});
    return figures($metric);
}

sub step_metric_update {
    my ($self, $step) = @_;
    my $metric = $self->object($step, 'metric');
    $metric->update($self->arrays($step->{labels}), $self->arrays($step->{preds}));
    return figures($metric);
}

sub step_reset_metric {
    my ($self, $step) = @_;
    my $metric = $self->object($step, 'metric');
    $step->{local} ? $metric->reset_local : $metric->reset;
    return;
}

sub step_create_sgd {
    my ($self, $step) = @_;
    my %settings = map { $_ => $step->{$_} } grep { defined $step->{$_} } qw(learning_rate momentum wd rescale_grad clip_gradient);
    my $sgd = mx->opt->create('sgd', %settings)->use_symbol($self->symbol($step->{symbol}));
    my ($group, $mode) = ($self->group($step), $mode{$step->{mode}});
    my ($names, $arrays) = ($group->param_array_names, $group->param_arrays);
    # The store starts from device 0's parameters, and copies them to all.
    $group->set_params({map { $names->[$_] => $arrays->[$_][0] } 0 .. $#$names}) if $mode eq 'store';
    $self->keep(optimizer => $step->{optimizer}, [$sgd, $mode]);
    my %mults = map { $_ => [$sgd->mult($_)] } @$names;
    return {lr_mult => {map { $_ => $mults{$_}[0] } @$names}, wd_mult => {map { $_ => $step->{wd} ? $mults{$_}[1] : undef } @$names}};
}

sub step_sgd_update {
    my ($self, $step) = @_;
    my ($sgd, $mode) = @{$self->object($step, 'optimizer')};
    $sgd->set(learning_rate => $step->{learning_rate}) if defined $step->{learning_rate};
    ($step->{manager} ? $self->object($step, 'manager') : $self->group($step))->update($sgd, $mode);
}

# As recorded from Python: its pattern is anchored, and also selects among the arguments that toc appends.
sub step_install_monitor {
    my ($self, $step) = @_;
    my $pattern = $step->{pattern} ? qr/^(?:$step->{pattern})/ : qr/^/;
    my $monitor = mx->mon->new(interval => $step->{interval} // 1, pattern => $pattern, sort => is_true($step->{sort}),
        monitor_all => is_true($step->{monitor_all}));
    my ($kind) = grep { exists $step->{$_} } qw(exec manager group);
    my $watched = $self->object($step, $kind);
    $monitor->install($kind eq 'exec' ? $watched->{exec} : $watched);
    $self->keep(monitor => $step->{monitor}, [$monitor, $pattern]);
    return;
}

sub step_monitor_tic { my ($self, $step) = @_; $self->object($step, 'monitor')->[0]->tic }

sub step_monitor_toc {
    my ($self, $step) = @_;
    my ($monitor, $pattern) = @{$self->object($step, 'monitor')};
    my $report = $monitor->toc;
    my @those = grep { $report->[$_][1] =~ $pattern } 0 .. $#$report;
    return {
        names => [map { [@{$report->[$_]}[0, 1]] } @those],
        entries => [map { [@{$report->[$_]}[0, 1], $monitor->values($_)->[0]->aslist->[0]] } @those],
    };
}

# ---- executors -------------------------------------------------------------------------------------------------------

sub exec_of { my ($self, $step) = @_; $self->object($step, 'exec')->{exec} }

sub keep_exec {
    my ($self, $name, $exec, $names) = @_;
    $self->keep(exec => $name, {exec => $exec, names => $names});
    my ($args, $grads, $aux) = ($exec->arg_dict, $exec->grad_dict, $exec->aux_dict);
    return {
        arg_shapes => {map { $_ => $args->{$_}->shape } keys %$args},
        arg_types => {map { $_ => $args->{$_}->dtype } keys %$args},
        has_grad => [grep { defined $grads->{$_} } @{$exec->symbol->list_arguments}],
        aux_shapes => {map { $_ => $aux->{$_}->shape } keys %$aux},
        output_shapes => [map { $_->shape } @{$exec->outputs}],
    };
}

sub step_exec_simple_bind {
    my ($self, $step) = @_;
    my $shared = defined $step->{shared_exec} ? $self->{objects}{exec}{$step->{shared_exec}}{exec} : undef;
    my $exec = $self->symbol($step->{symbol})->simple_bind(
        shapes => $step->{shapes}, type_dict => $step->{types}, grad_req => $step->{grad_req},
        $shared ? (shared_exec => $shared, shared_arg_names => $step->{shared_arg_names}, shared_buffer => {}) : (),
    );
    return $self->keep_exec($step->{exec}, $exec);
}

sub step_exec_bind {
    my ($self, $step) = @_;
    my $copies = sub { my $map = $self->named($_[0]); +{map { $_ => $map->{$_}->copy } keys %$map} };
    my $exec = $self->symbol($step->{symbol})->bind(args => $copies->($step->{args}), args_grad => $copies->($step->{args_grad}),
        aux_states => $copies->($step->{aux}), grad_req => $step->{grad_req});
    return $self->keep_exec($step->{exec}, $exec);
}

sub step_exec_set {
    my ($self, $step) = @_;
    my $exec = $self->exec_of($step);
    my %lists = (arg => $exec->arg_dict, grad => $exec->grad_dict, aux => $exec->aux_dict);
    for my $list (keys %lists) { $self->array($step->{$list}{$_})->copyto($lists{$list}{$_}) for keys %{$step->{$list} || {}} }
    return;
}

sub step_exec_copy_params {
    my ($self, $step) = @_;
    $self->exec_of($step)->copy_params_from($self->named($step->{arg}), $self->named($step->{aux}), $step->{allow_extra});
}

sub step_exec_forward {
    my ($self, $step) = @_;
    return {values => $self->exec_of($step)->forward($step->{is_train}, %{$self->named($step->{inputs})})};
}

sub step_exec_outputs { my ($self, $step) = @_; +{values => $self->exec_of($step)->outputs} }

sub step_exec_partial_forward {
    my ($self, $step) = @_;
    return {step_left => $self->exec_of($step)->partial_forward($step->{is_train}, $step->{step})};
}

sub step_exec_backward {
    my ($self, $step) = @_;
    my $given = $step->{head_grads};
    $self->exec_of($step)->backward(ref $given eq 'HASH' ? $self->named($given) : $self->arrays($given));
}

sub some { my ($all, $names) = @_; +{values => $names ? {map { $_ => $all->{$_} } @$names} : $all} }
sub step_exec_args { my ($self, $step) = @_; some($self->exec_of($step)->arg_dict, $step->{names}) }
sub step_exec_grads { my ($self, $step) = @_; some($self->exec_of($step)->grad_dict, $step->{names}) }
sub step_exec_aux { my ($self, $step) = @_; some($self->exec_of($step)->aux_dict, $step->{names}) }

sub step_exec_reshape {
    my ($self, $step) = @_;
    my $exec = $self->exec_of($step)->reshape($step->{shapes}, map { $_ => $step->{$_} } qw(partial_shaping allow_up_sizing));
    return $self->keep_exec($step->{as}, $exec, $self->object($step, 'exec')->{names});
}

sub step_exec_set_monitor {
    my ($self, $step) = @_;
    my $names = $self->object($step, 'exec')->{names} = [];
    $self->exec_of($step)->set_monitor_callback(sub { push @$names, $_[0] }, $step->{monitor_all});
}

sub step_exec_monitor_names { my ($self, $step) = @_; +{names => [splice @{$self->object($step, 'exec')->{names}}]} }

# ---- managers --------------------------------------------------------------------------------------------------------

sub step_create_manager {
    my ($self, $step) = @_;
    my $buckets = $step->{buckets};
    my $manager = mx->manager->new(
        symbol => $self->symbol($step->{symbol}), data_shapes => $self->descs($step->{data_shapes}),
        label_shapes => $self->descs($step->{label_shapes}), param_names => $step->{param_names} // [],
        map({ $_ => $step->{$_} } qw(contexts batch_size workload default_bucket_key)),
        $buckets ? (buckets => {map { $_ => $self->symbol($buckets->{$_}) } keys %$buckets}) : (),
    );
    $self->keep(manager => $step->{manager}, $manager);
    return {slices => $manager->slices};
}

sub step_manager_set_params {
    my ($self, $step) = @_;
    $self->object($step, 'manager')->set_params($self->named($step->{arg}), $self->named($step->{aux}));
}

sub step_manager_load_data_batch {
    my ($self, $step) = @_;
    $self->object($step, 'manager')->load_data_batch($self->batch($step->{data}, $step->{label}, bucket_key => $step->{bucket_key},
        provide_data => $self->descs($step->{data_shapes}), provide_label => $self->descs($step->{label_shapes})));
}

sub step_manager_forward { my ($self, $step) = @_; $self->object($step, 'manager')->forward($step->{is_train}) }
sub step_manager_backward { my ($self, $step) = @_; $self->object($step, 'manager')->backward }
sub step_manager_outputs { my ($self, $step) = @_; +{values => $self->object($step, 'manager')->current_group->get_outputs(0)} }

sub step_manager_update_metric {
    my ($self, $step) = @_;
    my $metric = $self->object($step, 'metric');
    $self->object($step, 'manager')->update_metric($metric, $self->labels($step), $step->{pre_sliced});
    return figures($metric);
}

sub step_manager_copy_to {
    my ($self, $step) = @_;
    my $manager = $self->object($step, 'manager');
    my ($args, $aux) = $self->targets_of_group($step, $manager->main_group);
    $manager->copy_to($args, $aux);
    return {arg => $args, aux => $aux};
}

1;
