# SPDX-License-Identifier: Apache-2.0
package AI::Cohort::Executor;
use strict;
use warnings;
use AI::Cohort::FFI;
use AI::Cohort::Arrays;
use AI::Cohort::Context;
use AI::Cohort::DataDesc;
use Scalar::Util qw(blessed);

our @ISA = ('AI::Cohort::Handle');

sub free_handle { cohort_executor_free($_[1]) }

# ---- binding ---------------------------------------------------------------------------------------------------------

# Contexts of node groups, as fields of an options struct.
sub _ctx_groups {
    my $given = hash_of($_[0], 'group2ctx');
    return () unless %$given;
    my @names = sort keys %$given;
    return (
        ctx_group_names => \@names,
        ctx_group_contexts => AI::Cohort::Context->_list(@$given{@names}),
        num_ctx_groups => scalar @names,
    );
}

# Gradient requests in one of three forms, as fields of an options struct.
sub _grad_reqs {
    my ($grad_req) = @_;
    return () unless defined $grad_req;
    if (ref $grad_req eq 'HASH') {
        my @names = sort keys %$grad_req;
        my @values = @$grad_req{@names};
        # An empty list counts as given.
        return (grad_req_list => _nonempty(\@values), grad_req_names => _nonempty(\@names), num_grad_reqs => scalar @names);
    }
    return (grad_req_list => _nonempty($grad_req), num_grad_reqs => scalar @$grad_req) if ref $grad_req eq 'ARRAY';
    $grad_req = AI::Cohort::FFI::encode_text("$grad_req");
    my $text = "$grad_req\0";
    return (grad_req => \$text);
}

sub _nonempty { @{$_[0]} ? [map { $_ // '' } @{$_[0]}] : texts_of(['']) }

sub _shapes_and_rest {
    my ($given, @own) = @_;
    my %own = map { $_ => 1 } @own;
    my %shapes = (%{hash_of(delete $given->{shapes}, 'shapes')}, map { $_ => delete $given->{$_} } grep { !$own{$_} } keys %$given);
    return \%shapes;
}

# Precision options of executors; further ones of groups and managers.
our @PRECISION = qw(compute_dtype float32_names narrow_names tf32 backward_once recompute calibration);
our @GROUP_PRECISION = (@PRECISION, qw(loss_scale loss_scale_window gradient_sum_dtype keep_device_aux));

sub _precision {
    my ($given) = @_;
    my %lists = map { $_ => list_of($given->{$_}, $_) } qw(float32_names narrow_names);
    return (%lists, (map { ("num_$_" => scalar @{$lists{$_}}) } keys %lists), (map { $_ => $given->{$_} ? 1 : 0 } qw(tf32 backward_once recompute)),
        (defined $given->{calibration} ? (calibration => $given->{calibration}) : ()),
        compute_dtype => AI::Cohort::NDArray::dtype_code($given->{compute_dtype} // 'float32'));
}

sub _group_precision {
    my ($given) = @_;
    return (_precision($given), (map { $_ => $given->{$_} // 0 } qw(loss_scale loss_scale_window)),
        keep_device_aux => $given->{keep_device_aux} ? 1 : 0,
        gradient_sum_dtype => AI::Cohort::NDArray::dtype_code($given->{gradient_sum_dtype} // 'float32'));
}

sub simple_bind {
    my ($class, $symbol, @given) = @_;
    my %given = settings_of('simple_bind', undef, @given);
    my $shapes = _shapes_and_rest(\%given, qw(ctx grad_req type_dict group2ctx shapes shared_arg_names shared_exec shared_buffer
        seed num_threads), @PRECISION);
    my $known = AI::Cohort::Descs->of_known($shapes, hash_of($given{type_dict}, 'type_dict'));
    my $pool = $given{shared_buffer} && AI::Cohort::Arrays->of(hash_of($given{shared_buffer}, 'shared_buffer'), 'shared_buffer');
    my $shared = list_of($given{shared_arg_names}, 'shared_arg_names');
    my $options = struct(
        cohort_executor_options => _ctx_groups($given{group2ctx}),
        _grad_reqs($given{grad_req} // 'write'),
        shared_executor => $given{shared_exec},
        num_threads => $given{num_threads},
        seed => $given{seed},
        _precision(\%given),
        shared_arg_names => $shared,
        num_shared_arg_names => scalar @$shared,
        shared_data => $pool,
    );
    cohort_executor_simple_bind(handle_of($symbol, 'symbol'), AI::Cohort::Context->_pointer_to($given{ctx}), $known->{handle},
        $options->{pointer}, \my $handle);
    %{$given{shared_buffer}} = %{$pool->hash} if $pool;
    return $class->adopt($handle);
}

# Arrays in the order of names, given in order or by name. Missing ones are undef.
sub _in_order {
    my ($given, $names, $what, $needed) = @_;
    my @arrays = ref $given eq 'HASH' ? @$given{@$names} : @{list_of($given, $what)};
    for my $i (0 .. $#$names) {
        AI::Cohort::Error->throw(name => "$what: there is no array for '$names->[$i]'", $names->[$i])
            if $needed && ref $given eq 'HASH' && !defined $arrays[$i];
    }
    return handles_of(\@arrays, $what);
}

my %grad_code = (null => COHORT_GRAD_NULL, write => COHORT_GRAD_WRITE, add => COHORT_GRAD_ADD);

sub _grad_codes {
    my ($grad_req, $names) = @_;
    my @words = ref $grad_req eq 'HASH' ? map { $_ // 'null' } @$grad_req{@$names}
        : ref $grad_req ? @$grad_req : ($grad_req) x @$names;
    invalid('grad_req: expected ' . @$names . ' words, found ' . @words, 'grad_req') if @words != @$names;
    return [map { $grad_code{$_} // invalid("grad_req: expected null, write or add, found '$_'", 'grad_req') } @words];
}

sub bind {
    my ($class, $symbol, @given) = @_;
    my %given = settings_of('bind', [qw(ctx args args_grad grad_req aux_states group2ctx shared_exec seed num_threads), @PRECISION], @given);
    my $names = $symbol->list_arguments;
    my $args = _in_order($given{args}, $names, 'args', 1);
    my $aux = _in_order($given{aux_states}, $symbol->list_auxiliary_states, 'aux_states', 1);
    my $grads = $given{args_grad} && _in_order($given{args_grad}, $names, 'args_grad');
    invalid('args_grad: expected ' . @$names . ' arrays, found ' . @$grads, 'args_grad') if $grads && @$grads != @$names;
    my $options = struct(cohort_executor_options => _ctx_groups($given{group2ctx}), shared_executor => $given{shared_exec},
        num_threads => $given{num_threads}, seed => $given{seed}, _precision(\%given));
    cohort_executor_bind($symbol->{handle}, AI::Cohort::Context->_pointer_to($given{ctx}), $args, scalar @$args, $grads,
        $grads && _grad_codes($given{grad_req} // 'write', $names), $aux, scalar @$aux, $options->{pointer}, \my $handle);
    return $class->adopt($handle);
}

# A new executor for other shapes that shares this one's memory.
sub reshape {
    my ($self, $shapes, @given) = @_;
    my %given = settings_of('reshape', [qw(partial_shaping allow_up_sizing ctx group2ctx)], @given);
    my $known = AI::Cohort::Descs->of_known(hash_of($shapes, 'shapes'), {});
    my $options = struct(cohort_reshape_options => partial_shaping => $given{partial_shaping} ? 1 : 0,
        allow_up_sizing => $given{allow_up_sizing} ? 1 : 0, context => AI::Cohort::Context->_pointer_to($given{ctx}),
        _ctx_groups($given{group2ctx}));
    cohort_executor_reshape($self->{handle}, $known->{handle}, $options->{pointer}, \my $handle);
    # The new executor calls the monitor's function, so this object must stay alive with it.
    return (ref $self)->adopt($handle, $self->{monitor_id} ? (parent => $self) : ());
}

# ---- arrays ----------------------------------------------------------------------------------------------------------

sub _lists {
    my ($self, $list) = @_;
    cohort_executor_arrays($self->{handle}, $list, \my $handle);
    return AI::Cohort::Arrays->adopt($handle);
}

# By name; names that occur twice are refused.
sub _by_name {
    my ($self, $list) = @_;
    my $arrays = $self->_lists($list);
    my (%seen, %hash);
    for (@{$arrays->names}) { AI::Cohort::Error->throw(name => "two arrays are called '$_'", $_) if $seen{$_}++ }
    @hash{@{$arrays->names}} = @{$arrays->list};
    return \%hash;
}

sub arg_arrays { $_[0]->_lists(COHORT_EXECUTOR_ARGS)->list }
sub grad_arrays { $_[0]->_lists(COHORT_EXECUTOR_GRADS)->list }
sub aux_arrays { $_[0]->_lists(COHORT_EXECUTOR_AUX)->list }
sub outputs { $_[0]->_lists(COHORT_EXECUTOR_OUTPUTS)->list }
sub arg_dict { $_[0]->_by_name(COHORT_EXECUTOR_ARGS) }
sub grad_dict { $_[0]->_by_name(COHORT_EXECUTOR_GRADS) }
sub aux_dict { $_[0]->_by_name(COHORT_EXECUTOR_AUX) }
sub output_dict { $_[0]->_by_name(COHORT_EXECUTOR_OUTPUTS) }

sub copy_params_from {
    my ($self, $arg_params, $aux_params, $allow_extra) = @_;
    my ($args, $aux) = (AI::Cohort::Arrays->of($arg_params || {}), AI::Cohort::Arrays->of($aux_params));
    cohort_executor_copy_params_from($self->{handle}, $args->{handle}, handle_of($aux), $allow_extra ? 1 : 0);
    return;
}

# ---- running ---------------------------------------------------------------------------------------------------------

sub forward {
    my ($self, $is_train, @inputs) = @_;
    my %inputs = settings_of('forward', undef, @inputs);
    if (%inputs) {
        my $arrays = AI::Cohort::Arrays->of(\%inputs);
        cohort_executor_set_inputs($self->{handle}, $arrays->{handle});
    }
    cohort_executor_forward($self->{handle}, $is_train ? 1 : 0);
    return $self->outputs;
}

# Runs one node; returns how many are left.
sub partial_forward {
    my ($self, $is_train, $step) = @_;
    cohort_executor_partial_forward($self->{handle}, $is_train ? 1 : 0, $step, \my $left);
    return $left;
}

# One array, a list, or a hash by output name.
sub _head_grads {
    my ($given, $names) = @_;
    return [] unless defined $given;
    return [$given] if blessed $given;
    return list_of($given, 'out_grads') if ref $given ne 'HASH';
    for (@$names) { AI::Cohort::Error->throw(name => "head gradients: there is none for '$_'", $_) unless exists $given->{$_} }
    return [@$given{@$names}];
}

sub backward {
    my ($self, $out_grads, $is_train) = @_;
    my $grads = _head_grads($out_grads, ref $out_grads eq 'HASH' ? $self->_lists(COHORT_EXECUTOR_OUTPUTS)->names : undef);
    cohort_executor_backward($self->{handle}, handles_of($grads, 'out_grads'), scalar @$grads, $is_train // 1 ? 1 : 0);
    return;
}

sub random_state { AI::Cohort::FFI::_bytes_from(\&cohort_executor_random_state, $_[0]{handle}) }
sub set_random_state { AI::Cohort::FFI::_bytes_to(\&cohort_executor_set_random_state, $_[0]{handle}, $_[1], 'random_state') }
sub wait { cohort_executor_wait($_[0]{handle}) }

# The function is called with name and array during a pass; undef removes it.
sub set_monitor_callback {
    my ($self, $sub, $monitor_all) = @_;
    invalid("monitor: expected a function, found '$sub'", 'callback') if defined $sub && ref $sub ne 'CODE';
    my ($function, $id) = $sub ? callback('(string,opaque,opaque)->void', _monitor_of($sub)) : ();
    cohort_executor_set_monitor($self->{handle}, $function, $id, $monitor_all ? 1 : 0);
    forget_callback($self->{monitor_id});
    $self->{monitor_id} = $id;
    return;
}

sub _monitor_of {
    my ($sub) = @_;
    return sub { $sub->(AI::Cohort::FFI::decode_text($_[0]), AI::Cohort::NDArray->share($_[1])) };
}

# ---- what an executor is ---------------------------------------------------------------------------------------------

sub symbol {
    my ($self) = @_;
    cohort_executor_symbol($self->{handle}, \my $handle);
    return AI::Cohort::Symbol->adopt($handle);
}

sub context { AI::Cohort::Context->_from_call(\&cohort_executor_context, $_[0]{handle}) }

sub debug_str {
    my ($self) = @_;
    cohort_executor_debug_text($self->{handle}, \my $text);
    return $text;
}

# Bytes by kind.
sub memory { _memory_from(\&cohort_executor_memory, $_[0]{handle}) }

# The state of the loss scale.
sub _loss_scale_from {
    my ($function, $handle) = @_;
    $function->($handle, \my $scale, \my $good, \my $skipped);
    return {scale => $scale, num_good => $good, num_skipped => $skipped};
}

sub _memory_from {
    my ($function, @arguments) = @_;
    my $info = struct('cohort_memory_info');
    $function->(@arguments, $info->{pointer});
    my @fields = grep {/_bytes$/} @{$AI::Cohort::FFI::Declarations::STRUCTS{cohort_memory_info}};
    my %memory;
    (undef, @memory{@fields}) = unpack 'J*', ${$info->{bytes}};
    return \%memory;
}

1;

__END__

=encoding UTF-8

=head1 NAME

AI::Cohort::Executor - a symbol bound to arrays

=head1 SYNOPSIS

    use AI::Cohort qw(mx);
    my $net = mx->sym->FullyConnected(mx->sym->Variable('data'), num_hidden => 1, name => 'fc');
    my $exec = $net->simple_bind(ctx => mx->cpu, data => [2, 3]);
    $exec->copy_params_from({fc_weight => mx->nd->array([[1, 2, 3]]), fc_bias => mx->nd->array([1])});
    my ($out) = @{$exec->forward(1, data => [[1, 0, 0], [0, 1, 0]])};
    print "@{$out->aslist}\n";    # 2 3
    $exec->backward(mx->nd->array([[1], [1]]));
    print "@{$exec->grad_dict->{fc_weight}->aslist}\n";    # 1 1 0

=head1 DESCRIPTION

Passes are queued; reading an array waits for it. Executors made from one another (C<reshape>, C<shared_exec>) share memory:
their outputs are valid until the next pass of any of them.

=head1 BINDING

=head2 simple_bind($symbol, %options)

Class method, better called as C<< $symbol->simple_bind(%options) >>: binds to arrays of zeros for the known shapes. Options,
all of them optional:

=over

=item shapes => {name => [...]}

Known shapes. Names that are not options may also be given directly, as in C<< data => [2, 3] >>.

=item ctx

The context, C<cpu(0)>.

=item grad_req

The gradient request: C<write> (the default), C<add> or C<null> for all arguments, a list in the order of the arguments, or a
hash by name, in which missing ones have none.

=item type_dict => {name => dtype}

Known dtypes.

=item group2ctx => {group => context}

Contexts of the nodes with a C<ctx_group>.

=item shared_exec, shared_arg_names, shared_buffer

An executor to share memory with; names of the arguments to share; a hash of input arrays by name, read and updated.

=item seed, num_threads

The seed of random operators; the number of threads of a CPU context.

=item compute_dtype, float32_names, narrow_names, calibration

C<bfloat16>: matrix products of float32 arrays, and operators that follow them, are computed in it; C<float16> on GPUs; C<int8>:
inference in int8, with an L<AI::Cohort::Calibration>. Names of nodes and operators that stay in the network's types, and of
further ones that do not.

=item tf32, backward_once, recompute

1: on GPUs, float32 products may round their factors; backward reuses the memory of the forward pass, so that there can be only
one; backward recomputes cheap results instead of keeping them: less memory, a little more time, the same numbers.

=back

=head2 bind($symbol, args => ..., args_grad => ..., grad_req => 'write', aux_states => ...)

Class method, better called as C<< $symbol->bind(...) >>: binds to given arrays, in order or by name, without copying them.
C<ctx>, C<group2ctx>, C<shared_exec>, C<seed>, C<num_threads> and the precision options as above.

=head2 reshape(\%shapes, partial_shaping => 0, allow_up_sizing => 0, ctx => ..., group2ctx => ...)

A new executor for other shapes that shares this one's memory. Arguments that are not named may change shape with
C<partial_shaping>, and grow, into new memory, with C<allow_up_sizing>.

=head1 RUNNING

=head2 forward($is_train = 0, name => array, ...)

Copies given arrays into arguments, and queues a forward pass. Returns the outputs.

=head2 partial_forward($is_train, $step)

Runs one node of the symbol; returns how many are left.

=head2 backward($out_grads, $is_train = 1)

Queues a backward pass. Head gradients are one array, a list in the order of the outputs, or a hash by output name; losses need
none.

=head2 wait

Waits for all queued work.

=head2 set_monitor_callback($sub, $monitor_all = 0)

Calls C<< $sub->($name, $array) >> for each output of each operator during a pass, with C<$monitor_all> for inputs too. C<undef>
removes it. If the function dies, the pass dies with the same error.

=head1 ARRAYS

=head2 arg_arrays, grad_arrays, aux_arrays, outputs

Live arrays in order; a gradient that does not exist is C<undef>.

=head2 arg_dict, grad_dict, aux_dict, output_dict

The same by name. An error if two have the same name.

=head2 copy_params_from(\%arg_params, \%aux_params, $allow_extra = 0)

Copies parameters in by name. All are checked first: on an error nothing is copied. Unknown names are errors, unless
C<$allow_extra>.

=head2 random_state, set_random_state($bytes)

The state of the random operators, which numbers they draw next, as a string of bytes. Set again, they draw the same numbers.

=head1 WHAT AN EXECUTOR IS

=head2 symbol

A copy of the symbol that was bound.

=head2 context

The context.

=head2 debug_str

The plan as text: the nodes, then the steps of the latest pass, each with its operations and bytes, the least time that the
machine needs for them, and the mean time it took while an L<AI::Cohort::Trace> was running.

=head2 memory

A hash of bytes: C<planned_bytes>, C<intermediate_bytes>, C<argument_bytes>, C<gradient_bytes>, C<output_bytes>, C<value_bytes>.

=cut
