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

sub free_handle {
    my ($self, $handle) = @_;
    cohort_executor_free($handle);
    forget_callback($self->{monitor_id});
}

# ---- binding ---------------------------------------------------------------------------------------------------------

# Contexts of node groups, as fields of a struct of options.
sub ctx_groups {
    my ($given) = @_;
    return () unless $given && %$given;
    my @names = sort keys %$given;
    return (
        ctx_group_names => \@names,
        ctx_group_contexts => AI::Cohort::Context->list(@$given{@names}),
        num_ctx_groups => scalar @names,
    );
}

# What backward does with gradients, in one of three forms, as fields of a struct of options.
sub grad_reqs {
    my ($grad_req) = @_;
    return () unless defined $grad_req;
    if (ref $grad_req eq 'HASH') {
        my @names = sort keys %$grad_req;
        my @values = @$grad_req{@names};
        # An empty list still is one.
        return (grad_req_list => nonempty(\@values), grad_req_names => nonempty(\@names), num_grad_reqs => scalar @names);
    }
    return (grad_req_list => nonempty($grad_req), num_grad_reqs => scalar @$grad_req) if ref $grad_req eq 'ARRAY';
    my $text = "$grad_req\0";
    return (grad_req => \$text);
}

sub nonempty { @{$_[0]} ? [map { $_ // '' } @{$_[0]}] : texts_of(['']) }

sub shapes_and_rest {
    my ($given, @own) = @_;
    my %own = map { $_ => 1 } @own;
    my %shapes = (%{delete $given->{shapes} || {}}, map { $_ => delete $given->{$_} } grep { !$own{$_} } keys %$given);
    return \%shapes;
}

sub simple_bind {
    my ($class, $symbol, %given) = @_;
    my $shapes = shapes_and_rest(\%given, qw(ctx grad_req type_dict group2ctx shapes shared_arg_names shared_exec shared_buffer seed num_threads));
    my $known = AI::Cohort::Descs->of_known($shapes, $given{type_dict});
    my $pool = $given{shared_buffer} && AI::Cohort::Arrays->of($given{shared_buffer});
    my $options = struct(
        cohort_executor_options => ctx_groups($given{group2ctx}),
        grad_reqs($given{grad_req} // 'write'),
        shared_executor => $given{shared_exec},
        num_threads => $given{num_threads},
        seed => $given{seed},
        shared_arg_names => $given{shared_arg_names} || [],
        num_shared_arg_names => scalar @{$given{shared_arg_names} || []},
        shared_data => $pool,
    );
    cohort_executor_simple_bind(handle_of($symbol, 'symbol'), AI::Cohort::Context->pointer_to($given{ctx}), $known->{handle},
        $options->{pointer}, \my $handle);
    %{$given{shared_buffer}} = %{$pool->hash} if $pool;
    return $class->adopt($handle);
}

# Arrays in the order of names, given so or by name. What is missing is undef.
sub in_order {
    my ($given, $names, $what, $needed) = @_;
    my @arrays = ref $given eq 'HASH' ? @$given{@$names} : @{$given || []};
    for my $i (0 .. $#$names) {
        AI::Cohort::Error->throw(name => "$what: there is no array for '$names->[$i]'", $names->[$i])
            if $needed && ref $given eq 'HASH' && !defined $arrays[$i];
    }
    return handles_of(\@arrays, $what);
}

my %grad_code = (null => COHORT_GRAD_NULL, write => COHORT_GRAD_WRITE, add => COHORT_GRAD_ADD);

sub grad_codes {
    my ($grad_req, $names) = @_;
    my @words = ref $grad_req eq 'HASH' ? map { $_ // 'null' } @$grad_req{@$names}
        : ref $grad_req ? @$grad_req : ($grad_req) x @$names;
    invalid('grad_req: expected ' . @$names . ' words, found ' . @words, 'grad_req') if @words != @$names;
    return [map { $grad_code{$_} // invalid("grad_req: expected null, write or add, found '$_'", 'grad_req') } @words];
}

sub bind {
    my ($class, $symbol, %given) = @_;
    my $names = $symbol->list_arguments;
    my $args = in_order($given{args}, $names, 'args', 1);
    my $aux = in_order($given{aux_states}, $symbol->list_auxiliary_states, 'aux_states', 1);
    my $grads = $given{args_grad} && in_order($given{args_grad}, $names, 'args_grad');
    invalid('args_grad: expected ' . @$names . ' arrays, found ' . @$grads, 'args_grad') if $grads && @$grads != @$names;
    my $options = struct(cohort_executor_options => ctx_groups($given{group2ctx}), shared_executor => $given{shared_exec},
        num_threads => $given{num_threads}, seed => $given{seed});
    cohort_executor_bind($symbol->{handle}, AI::Cohort::Context->pointer_to($given{ctx}), $args, scalar @$args, $grads,
        $grads && grad_codes($given{grad_req} // 'write', $names), $aux, scalar @$aux, $options->{pointer}, \my $handle);
    return $class->adopt($handle);
}

# A new executor for other shapes, which shares the memory of this one.
sub reshape {
    my ($self, $shapes, %given) = @_;
    my $known = AI::Cohort::Descs->of_known($shapes, {});
    my $options = struct(cohort_reshape_options => partial_shaping => $given{partial_shaping} ? 1 : 0,
        allow_up_sizing => $given{allow_up_sizing} ? 1 : 0, context => AI::Cohort::Context->pointer_to($given{ctx}),
        ctx_groups($given{group2ctx}));
    cohort_executor_reshape($self->{handle}, $known->{handle}, $options->{pointer}, \my $handle);
    # The monitor's function goes with the executor: this one must stay for as long as it is called.
    return (ref $self)->adopt($handle, $self->{monitor_id} ? (parent => $self) : ());
}

# ---- arrays ----------------------------------------------------------------------------------------------------------

sub lists {
    my ($self, $list) = @_;
    cohort_executor_arrays($self->{handle}, $list, \my $handle);
    return AI::Cohort::Arrays->adopt($handle);
}

# By name; names that come twice cannot be.
sub by_name {
    my ($self, $list) = @_;
    my $arrays = $self->lists($list);
    my (%seen, %hash);
    for (@{$arrays->names}) { AI::Cohort::Error->throw(name => "two arrays are called '$_'", $_) if $seen{$_}++ }
    @hash{@{$arrays->names}} = @{$arrays->list};
    return \%hash;
}

sub arg_arrays { $_[0]->lists(COHORT_EXECUTOR_ARGS)->list }
sub grad_arrays { $_[0]->lists(COHORT_EXECUTOR_GRADS)->list }
sub aux_arrays { $_[0]->lists(COHORT_EXECUTOR_AUX)->list }
sub outputs { $_[0]->lists(COHORT_EXECUTOR_OUTPUTS)->list }
sub arg_dict { $_[0]->by_name(COHORT_EXECUTOR_ARGS) }
sub grad_dict { $_[0]->by_name(COHORT_EXECUTOR_GRADS) }
sub aux_dict { $_[0]->by_name(COHORT_EXECUTOR_AUX) }
sub output_dict { $_[0]->by_name(COHORT_EXECUTOR_OUTPUTS) }

sub copy_params_from {
    my ($self, $arg_params, $aux_params, $allow_extra) = @_;
    my ($args, $aux) = (AI::Cohort::Arrays->of($arg_params || {}), AI::Cohort::Arrays->of($aux_params));
    cohort_executor_copy_params_from($self->{handle}, $args->{handle}, handle_of($aux), $allow_extra ? 1 : 0);
    return;
}

# ---- running ---------------------------------------------------------------------------------------------------------

sub forward {
    my ($self, $is_train, %inputs) = @_;
    if (%inputs) {
        my $arrays = AI::Cohort::Arrays->of(\%inputs);
        cohort_executor_set_inputs($self->{handle}, $arrays->{handle});
    }
    cohort_executor_forward($self->{handle}, $is_train ? 1 : 0);
    return $self->outputs;
}

# Runs one node; how many are left.
sub partial_forward {
    my ($self, $is_train, $step) = @_;
    cohort_executor_partial_forward($self->{handle}, $is_train ? 1 : 0, $step, \my $left);
    return $left;
}

# One array, a list, or a hash by output name.
sub head_grads {
    my ($given, $names) = @_;
    return [] unless defined $given;
    return [$given] if blessed $given;
    return $given if ref $given ne 'HASH';
    for (@$names) { AI::Cohort::Error->throw(name => "head gradients: there is none for '$_'", $_) unless exists $given->{$_} }
    return [@$given{@$names}];
}

sub backward {
    my ($self, $out_grads, $is_train) = @_;
    my $grads = head_grads($out_grads, ref $out_grads eq 'HASH' ? $self->lists(COHORT_EXECUTOR_OUTPUTS)->names : undef);
    cohort_executor_backward($self->{handle}, handles_of($grads, 'out_grads'), scalar @$grads, $is_train // 1 ? 1 : 0);
    return;
}

sub wait { cohort_executor_wait($_[0]{handle}) }

# The function is called with name and array while a pass runs; undef: none.
sub set_monitor_callback {
    my ($self, $sub, $monitor_all) = @_;
    my ($function, $id) = $sub ? callback('(string,opaque,opaque)->void', monitor_of($sub)) : ();
    cohort_executor_set_monitor($self->{handle}, $function, $id, $monitor_all ? 1 : 0);
    forget_callback($self->{monitor_id});
    $self->{monitor_id} = $id;
    return;
}

sub monitor_of {
    my ($sub) = @_;
    return sub { $sub->(AI::Cohort::FFI::decode_text($_[0]), AI::Cohort::NDArray->share($_[1])) };
}

# ---- what an executor is ---------------------------------------------------------------------------------------------

sub symbol {
    my ($self) = @_;
    cohort_executor_symbol($self->{handle}, \my $handle);
    return AI::Cohort::Symbol->adopt($handle);
}

sub context { AI::Cohort::Context->from_call(\&cohort_executor_context, $_[0]{handle}) }

sub debug_str {
    my ($self) = @_;
    cohort_executor_debug_text($self->{handle}, \my $text);
    return $text;
}

# Bytes by kind.
sub memory { memory_from(\&cohort_executor_memory, $_[0]{handle}) }

sub memory_from {
    my ($function, @arguments) = @_;
    my $info = struct('cohort_memory_info');
    $function->(@arguments, $info->{pointer});
    my @fields = grep {/_bytes$/} @{$AI::Cohort::FFI::Declarations::STRUCTS{cohort_memory_info}};
    my %memory;
    (undef, @memory{@fields}) = unpack 'J*', ${$info->{bytes}};
    return \%memory;
}

1;
