# SPDX-License-Identifier: Apache-2.0
package AI::Cohort::Symbol;
use strict;
use warnings;
use AI::Cohort::FFI;
use AI::Cohort::DataDesc;
use AI::Cohort::Executor;
use AI::Cohort::NDArray;
use AI::Cohort::Operator;
use Scalar::Util qw(blessed refaddr);

our @ISA = ('AI::Cohort::Handle');

use overload
    '""' => sub { $_[0]->_stringify },
    bool => sub {1},
    AI::Cohort::Operator::_overloads(),
    'eq' => sub { ref $_[1] && refaddr($_[0]) == refaddr($_[1]) },
    'ne' => sub { !ref $_[1] || refaddr($_[0]) != refaddr($_[1]) },
    '&{}' => sub { my $self = shift; sub { $self->call(@_) } },
    '@{}' => sub { my ($self) = @_; [map { $self->output($_) } 0 .. $self->num_outputs - 1] },
    fallback => undef;

sub free_handle { cohort_symbol_free($_[1]) }

# ---- making symbols --------------------------------------------------------------------------------------------------

sub Variable {
    my ($class, $name, @given) = @_;
    my %given = settings_of('Variable', undef, @given);
    my %attributes = %{hash_of(delete $given{attr}, 'attr')};
    my $dtype = delete $given{dtype};
    $attributes{__dtype__} = AI::Cohort::NDArray::dtype_code($dtype) if defined $dtype;
    my $init = delete $given{init};
    $attributes{__init__} = blessed $init && $init->can('dumps') ? $init->dumps : $init if defined $init;
    $attributes{__shape__} = delete $given{shape} if exists $given{shape};
    %attributes = (%{$mx::AttrScope || {}}, %attributes, %given);    # lr_mult, wd_mult and the like, and __any__
    cohort_symbol_variable($name, attributes_of(\%attributes), \my $handle);
    return $class->adopt($handle);
}

sub var { shift->Variable(@_) }

sub Group {
    my ($class, @symbols) = @_;
    @symbols = @{$symbols[0]} if ref($symbols[0] // '') eq 'ARRAY';
    cohort_symbol_group(handles_of(\@symbols, 'symbols'), scalar @symbols, \my $handle);
    return $class->adopt($handle);
}

sub load_json {
    my ($class, $json) = @_;
    invalid('load_json: expected text, found ' . ($json // 'undef'), 'json') if !defined $json || ref $json;
    cohort_symbol_from_json($json, length AI::Cohort::FFI::encode_text($json), \my $handle);
    return $class->adopt($handle);
}

sub fromjson { shift->load_json(@_) }

sub load {
    my ($class, $path) = @_;
    cohort_symbol_load($path, \my $handle);
    return $class->adopt($handle);
}

sub save { cohort_symbol_save($_[0]{handle}, $_[1]) }

sub tojson {
    my ($self) = @_;
    cohort_symbol_to_json($self->{handle}, \my $json);
    return $json;
}

# A symbol that a library function makes from this one; undef if it returns none.
sub _made_by {
    my ($self, $function, @arguments) = @_;
    $function->($self->{handle}, @arguments, \my $handle);
    return (ref $self)->adopt($handle);
}

sub maximum { AI::Cohort::Operator::_arithmetic('maximum', @_[0, 1]) }
sub minimum { AI::Cohort::Operator::_arithmetic('minimum', @_[0, 1]) }
sub hypot { AI::Cohort::Operator::_arithmetic('hypot', @_[0, 1]) }

sub deepcopy { $_[0]->_made_by(\&cohort_symbol_copy) }
sub get_internals { $_[0]->_made_by(\&cohort_symbol_internals) }
sub get_children { $_[0]->_made_by(\&cohort_symbol_children) }
sub output { $_[0]->_made_by(\&cohort_symbol_output, $_[1]) }

# A copy with other symbols instead of variables: in order, or by name.
sub call {
    my ($self, @arguments) = @_;
    my ($inputs, $named, $settings) = AI::Cohort::Operator::_arguments('call', __PACKAGE__, @arguments);
    my $name = delete $settings->{name};
    invalid("call: expected symbols, found a value for '@{[sort keys %$settings]}'", 'call') if %$settings;
    invalid('call: expected symbols either in order or by name, found both', 'call') if @$inputs && %$named;
    my @names = sort keys %$named;
    my $handles = handles_of(@names ? [@$named{@names}] : $inputs, 'call');
    return $self->_made_by(\&cohort_symbol_compose, @names ? \@names : undef, $handles, scalar @$handles, $name);
}

# One head, by index or by output name.
sub slice {
    my ($self, @which) = @_;
    return AI::Cohort::Operator::create('slice', ref $self ? $self : (), @which) if !ref $self || @which != 1 || ref $which[0];
    return $self->output($which[0]) if ($which[0] // '') =~ /^-?\d+$/;
    return $self->_made_by(\&cohort_symbol_output_named, $which[0]);
}

# ---- properties --------------------------------------------------------------------------------------------------------

sub _name_list { list_of_names(\&cohort_symbol_num_names, \&cohort_symbol_name_at, $_[0]{handle}, $_[1]) }
sub list_arguments { $_[0]->_name_list(COHORT_SYMBOL_ARGUMENTS) }
sub list_auxiliary_states { $_[0]->_name_list(COHORT_SYMBOL_AUX) }
sub list_outputs { $_[0]->_name_list(COHORT_SYMBOL_OUTPUTS) }
sub list_inputs { $_[0]->_name_list(COHORT_SYMBOL_INPUTS) }
sub list_labels { $_[0]->_name_list(COHORT_SYMBOL_LABELS) }

sub num_outputs {
    my ($self) = @_;
    cohort_symbol_num_names($self->{handle}, COHORT_SYMBOL_OUTPUTS, \my $num);
    return $num;
}

sub num_nodes {
    my ($self) = @_;
    cohort_symbol_num_nodes($self->{handle}, \my $num);
    return $num;
}

sub name {
    my ($self) = @_;
    cohort_symbol_name($self->{handle}, \my $name);
    return $name;
}

sub attr {
    my ($self, $key) = @_;
    cohort_symbol_attr($self->{handle}, $key, \my $value);
    return $value;
}

sub _set_attr {
    my ($self, @given) = @_;
    my %attributes = settings_of('_set_attr', undef, @given);
    cohort_symbol_set_attrs($self->{handle}, attributes_of(\%attributes));
    return;
}

# [node, key, value] of the head's node, or of all nodes.
sub _attr_triples {
    my ($self, $all) = @_;
    cohort_symbol_num_attrs($self->{handle}, $all, \my $num);
    return map {
        cohort_symbol_attr_at($self->{handle}, $all, $_, \my $node, \my $key, \my $value);
        [$node, $key, $value];
    } 0 .. $num - 1;
}

sub list_attr { return {map { $_->[1] => $_->[2] } $_[0]->_attr_triples(0)} }

sub attr_dict {
    my ($self) = @_;
    my %attributes;
    $attributes{$_->[0]}{$_->[1]} = $_->[2] for $self->_attr_triples(1);
    return \%attributes;
}

sub _stringify {
    my ($self) = @_;
    return sprintf '<%s %s>', ref $self, $self->name // 'group [' . join(', ', @{$self->list_outputs}) . ']';
}

# ---- inference -------------------------------------------------------------------------------------------------------

# Known shapes or types are given by name, as a list or a hash ref, or in the order of the arguments.
sub _infer {
    my ($self, $function, $add, $take, $partial, @known) = @_;
    my $descs = AI::Cohort::Descs->make;
    if (@known == 1 && ref $known[0] eq 'HASH') { @known = %{$known[0]} }
    my $by_name = @known && defined $known[0] && !ref $known[0] && !AI::Cohort::Symbol::_is_dtype($known[0]);
    if ($by_name) {
        my %known = settings_of('inference', undef, @known);
        $add->($descs, $_, $known{$_}) for sort keys %known;
    }
    else { $add->($descs, undef, $_) for @known }
    $function->($self->{handle}, $descs->{handle}, $partial, \my $complete, \my $args, \my $outputs, \my $aux);
    my @found = map { AI::Cohort::Descs->adopt($_) } $args, $outputs, $aux;
    return map { $_ && $_->$take } @found;
}

sub _is_dtype { my ($text) = @_; scalar grep { $_ eq $text } AI::Cohort::NDArray::dtype_names() }

sub _infer_shape_or_part {
    my ($self, $partial, @known) = @_;
    my $add = sub { $_[0]->add($_[1], $_[2], 'none') };
    return $self->_infer(\&cohort_symbol_infer_shape, $add, 'shapes', $partial, @known);
}

sub infer_shape { my $self = shift; $self->_infer_shape_or_part(0, @_) }

# Shapes that stay unknown are empty.
sub infer_shape_partial {
    my ($self, @known) = @_;
    return map { [map { $_ // [] } @$_] } $self->_infer_shape_or_part(1, @known);
}

sub infer_type {
    my ($self, @known) = @_;
    my $add = sub { $_[0]->add($_[1], undef, $_[2] // 'none') };
    return $self->_infer(\&cohort_symbol_infer_dtype, $add, 'dtypes', 0, @known);
}

# ---- binding ---------------------------------------------------------------------------------------------------------

sub simple_bind { my $self = shift; AI::Cohort::Executor->simple_bind($self, @_) }
sub bind { my $self = shift; AI::Cohort::Executor->bind($self, @_) }

# The outputs for given arrays.
sub eval {
    my ($self, @given) = @_;
    my %given = settings_of('eval', [qw(ctx args)], @given);
    return $self->bind(ctx => $given{ctx}, args => $given{args} // {})->forward(0);
}

# ---- Storable --------------------------------------------------------------------------------------------------------

sub STORABLE_freeze { $_[0]->tojson }

sub STORABLE_thaw {
    my ($self, $cloning, $json) = @_;
    my $other = (ref $self)->load_json($json);
    $self->{handle} = delete $other->{handle};
}

AI::Cohort::Operator::_install(__PACKAGE__, \&AI::Cohort::Operator::create);

1;

__END__

=encoding UTF-8

=head1 NAME

AI::Cohort::Symbol - networks as graphs of operators

=head1 SYNOPSIS

    use AI::Cohort qw(mx);
    my $sym  = mx->sym;
    my $data = $sym->Variable('data');
    my $net  = $sym->FullyConnected(data => $data, num_hidden => 10, name => 'fc');
    $net = $sym->SoftmaxOutput($sym->Activation($net, act_type => 'relu') * 0.5 + 1, name => 'softmax');
    print "@{$net->list_arguments}\n";           # data fc_weight fc_bias softmax_label
    my ($args, $outputs, $aux) = $net->infer_shape(data => [4, 20]);
    my $again = $sym->load_json($net->tojson);
    print $net->get_internals->slice('fc_output')->name, "\n";

=head1 MAKING SYMBOLS

=head2 Variable($name, %attributes), var($name, %attributes)

Class methods: C<shape>, C<dtype>, C<init> (an L<AI::Cohort::Initializer>), C<lr_mult>, C<wd_mult>, C<ctx_group>, any
C<__name__>, and C<< attr => {...} >> with such.

=head2 Group(@symbols)

Class method: a symbol of all their heads.

=head2 load($path), load_json($json), fromjson($json)

Class methods: from JSON of MXNet 0.8 to 1.9.

=head2 save($path), tojson

Writes JSON in the form of MXNet 1.9.

=head2 call(@symbols), call(name => $symbol, ...)

A copy with other symbols instead of variables, in order or by name. C<< $net->(data => $other) >> is the same.

=head2 deepcopy

A copy.

=head2 get_internals, get_children

Symbols of all outputs of all nodes; of the inputs of the head nodes (C<undef> if there are none).

=head2 slice($index_or_name), output($index)

A symbol of one head, by index or by output name. C<@$symbol> is a list of them all. With other arguments C<slice> is the
operator.

=head1 OPERATORS

C<+>, C<->, C<*>, C</>, C<%>, C<**> and comparisons, between symbols and with numbers. C<eq> compares objects.

Each operator in the library's registry is a class method, C<< mx->sym->Convolution(...) >>, and a method, C<<
$net->Convolution(...) >>. Inputs come first, one by one or in lists, or by name; missing ones become variables. Then come
settings as names and values, or in a hash ref: the operator's own, C<name>, and C<< attr => {...} >>. Lists become C<(3, 3)>.

=head1 WHAT A SYMBOL IS

=head2 list_arguments, list_auxiliary_states, list_outputs, list_inputs, list_labels

Names, in the order of all other lists. Labels are the arguments whose values inference does not need: they affect the outputs
only as the label of a loss.

=head2 num_outputs, num_nodes

The number of heads, and of nodes, variables included.

=head2 name

The name of the head's node; C<undef> for several heads.

=head2 attr($key), list_attr, attr_dict

One attribute of the head's node; all of them; those of all nodes by name.

=head2 _set_attr(%attributes)

Sets attributes of the head's node.

=head2 infer_shape(name => [...], ...), infer_shape_partial, infer_type(name => $dtype, ...)

Infers shapes or dtypes of arguments, outputs and auxiliary states from known ones, given by name, as a hash ref, or in the
order of the arguments. Returns three array refs; C<undef> three times if something stays unknown. C<infer_shape_partial>
returns what could be inferred.

=head1 BINDING

=head2 simple_bind(%options), bind(%options)

An L<AI::Cohort::Executor>.

=head2 eval(args => ..., ctx => ...)

The outputs for arrays given in order or by name.

=head2 maximum($other), minimum($other), hypot($other)

Element by element, with another symbol or a number.

=cut
