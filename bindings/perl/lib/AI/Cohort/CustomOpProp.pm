# SPDX-License-Identifier: Apache-2.0
package AI::Cohort::CustomOpProp;
use strict;
use warnings;
use AI::Cohort::FFI;
use AI::Cohort::Arrays;
use AI::Cohort::Context;
use AI::Cohort::DataDesc;
use AI::Cohort::NDArray;
use Scalar::Util qw(blessed);

# ---- methods that derived classes may override ------------------------------------------------------------------------

sub new {
    my ($class, %attributes) = @_;
    return bless {%attributes}, $class;
}

sub list_arguments { ['data'] }
sub list_outputs { ['output'] }
sub list_auxiliary_states { [] }
sub need_top_grad {1}

sub infer_shape {
    my ($self, $in) = @_;
    return ($in, [map { $in->[0] } @{$self->list_outputs}], []);
}

sub infer_type {
    my ($self, $in) = @_;
    return map { my $num = @$_; [($in->[0]) x $num] } $in, $self->list_outputs, $self->list_auxiliary_states;
}

sub create_operator {
    my ($self) = @_;
    AI::Cohort::Error->throw(unsupported => ref($self) . ' has no create_operator', 'create_operator');
}

# ---- names ---------------------------------------------------------------------------------------------------------------

my %class_of;    # by op_type

sub register {
    my ($class, $op_type, @given) = @_;
    my %given = settings_of('register', ['need_top_grad'], @given);
    invalid('register: expected a class of its own, made of AI::Cohort::CustomOpProp', 'register') if ref $class || $class eq __PACKAGE__;
    invalid('register: expected a name, found ' . ($op_type // 'undef'), 'op_type') if ref($op_type // []);
    $class->unregister($op_type) if $class_of{$op_type};
    my (%nodes, $last_node);
    my ($functions, $id);
    my $call = sub { my ($sub) = @_; sub { local $AI::Cohort::AutoGrad::recording = 0; $sub->(@_); return 0 } };
    my $made = sub { $class->_made($op_type, @_) };
    my $listed = '(opaque,opaque,size_t,opaque,opaque,opaque,opaque)->sint32';
    my $inferred = '(opaque,opaque,size_t,opaque,opaque,opaque,opaque,opaque)->sint32';
    ($functions, $id) = callbacks(
        declare => [$listed => $call->(sub { $made->(splice @_, 0, 3)->_declare(@_) })],
        infer_shape => [$inferred => $call->(sub { $made->(splice @_, 0, 3)->_infer('infer_shape', 'shapes', @_) })],
        infer_dtype => [$inferred => $call->(sub { $made->(splice @_, 0, 3)->_infer('infer_type', 'dtypes', @_) })],
        create => ['(opaque,opaque,size_t,opaque,opaque,opaque)->sint32' => $call->(sub {
            my $node = {prop => $made->(splice @_, 0, 3), context => AI::Cohort::Context->_from_bytes(AI::Cohort::FFI::read_at($_[0], 8))};
            $nodes{++$last_node} = $node;
            AI::Cohort::FFI::write_at($_[1], pack 'J', $last_node);
        })],
        forward => ['(opaque,opaque,opaque,opaque,sint32,opaque)->sint32' => $call->(sub { _forward($nodes{+shift}, @_) })],
        backward => ['(opaque,opaque,opaque,opaque,opaque,opaque,opaque)->sint32' => $call->(sub { _backward($nodes{+shift}, @_) })],
        release => ['(opaque,opaque)->void' => sub { AI::Cohort::FFI::release(delete $nodes{$_[0]}) }],
        ended => ['(opaque)->void' => sub { AI::Cohort::FFI::release(forget_callback($id)) }],
    );
    my $needed = $given{need_top_grad} // $class->need_top_grad;
    my $table = struct(cohort_custom_op => %$functions, user_data => $id, ignores_head_grads => $needed ? 0 : 1);
    eval { cohort_custom_register($op_type, $table->{pointer}); 1 } or do {
        my $error = $@;
        forget_callback($id);
        die $error;
    };
    $class_of{$op_type} = $class;
    return $class;
}

sub unregister {
    my ($class, $op_type) = @_;
    AI::Cohort::Error->throw(name => "unregister: no operator of Perl's is called '" . ($op_type // 'undef') . "'", $op_type)
        unless defined $op_type && delete $class_of{$op_type};
    cohort_custom_unregister($op_type);
    return;
}

# Names of the inputs of a node with these settings, auxiliary states among them; undef if the operator is not a Perl one.
sub _inputs_of {
    my ($settings) = @_;
    my $class = $class_of{$settings->{op_type} // ''} // return undef;
    my ($keys, $values) = attributes_of($settings);
    my %attributes;
    @attributes{@$keys} = @$values;
    delete $attributes{op_type};
    my $prop = $class->new(%attributes);
    return [@{$prop->list_arguments}, @{$prop->list_auxiliary_states}];
}

# ---- the library's callbacks -------------------------------------------------------------------------------------------

# Creates an object from the attributes of a node.
sub _made {
    my ($class, $op_type, $keys, $values, $num) = @_;
    my %attributes;
    @attributes{@{lent_texts($keys, $num)}} = @{lent_texts($values, $num)};
    my $prop = $class->new(%attributes);
    invalid("operator $op_type: $class->new: expected an object of $class, found " . ($prop // 'undef'), $op_type)
        unless blessed $prop && $prop->isa(__PACKAGE__);
    return $prop;
}

sub _declare {
    my ($self, @targets) = @_;
    for my $method (qw(list_arguments list_auxiliary_states list_outputs)) {
        my $takes = AI::Cohort::Descs->of_lent(shift @targets);
        $takes->add($_, undef, 'none') for @{list_of(scalar $self->$method, $method)};
    }
}

sub _infer {
    my ($self, $method, $read, $known, $inputs, $aux, $outputs) = @_;
    $known = AI::Cohort::Descs->of_lent($known)->$read;
    my @found = $self->$method([map { $_ // ($read eq 'shapes' ? [] : undef) } @$known]);
    push @found, [] if @found == 2;
    my @names = map { $self->$_ } qw(list_arguments list_outputs list_auxiliary_states);
    if (@found != 3 || grep { ref ne 'ARRAY' } @found or grep { @{$found[$_]} != @{$names[$_]} } 0 .. 2) {
        my $expected = join ', ', map { scalar @$_ } @names;
        my $number = join ', ', map { ref eq 'ARRAY' ? scalar @$_ : $_ // 'undef' } @found;
        invalid(ref($self) . "->$method: expected lists of inputs, outputs and auxiliary states of lengths $expected, found $number", $method);
    }
    # An input shape that comes back unchanged is still unknown.
    my @inputs = map { my $is_known = $known->[$_] || ref $found[0][$_] && @{$found[0][$_]}; $is_known ? $found[0][$_] : undef } 0 .. $#$known;
    for ([$inputs, $read eq 'shapes' ? \@inputs : $found[0]], [$outputs, $found[1]], [$aux, $found[2]]) {
        my ($target, $list) = @$_;
        my $takes = AI::Cohort::Descs->of_lent($target);
        $takes->add("$_", $read eq 'shapes' ? ($list->[$_], 'none') : (undef, $list->[$_] // 'none')) for 0 .. $#$list;
    }
}

# Calls a function with lists of arrays that the library owns, which are emptied afterwards.
sub _with_lent {
    my ($sub, @addresses) = @_;
    my @lists = map { AI::Cohort::Arrays->of_lent($_)->list } @addresses;
    my $lived = eval { $sub->(@lists); 1 };
    my $error = $@;
    $_->_close for grep {defined} map {@$_} @lists;
    die $error unless $lived;
}

# Created when the shapes are known.
sub _operator_of {
    my ($node, $inputs) = @_;
    return $node->{operator} //= do {
        my ($prop, @shapes) = ($node->{prop}, map { $_->shape } @$inputs);
        my @dtypes = map { $_->dtype } @$inputs;
        my $made = $prop->create_operator($node->{context}, \@shapes, \@dtypes);
        invalid(ref($prop) . '->create_operator: expected an AI::Cohort::CustomOp, found ' . ($made // 'undef'), 'create_operator')
            unless blessed $made && $made->isa('AI::Cohort::CustomOp');
        $made;
    };
}

sub _forward {
    my ($node, $inputs, $aux, $outputs, $is_train) = @_;
    local $AI::Cohort::AutoGrad::training = $is_train;
    _with_lent(sub {
        my ($in, $states, $out) = @_;
        _operator_of($node, $in)->forward($is_train, [('write') x @$out], $in, $out, $states);
    }, $inputs, $aux, $outputs);
}

sub _backward {
    my ($node, $head_grads, $inputs, $aux, $outputs, $gradients) = @_;
    _with_lent(sub {
        my ($heads, $in, $states, $out, $wanted) = @_;
        my @req = map { defined ? 'write' : 'null' } @$wanted;
        # Operators may write gradients that are not wanted, so each gets an array.
        my @takes = map { $wanted->[$_] // AI::Cohort::NDArray->zeros($in->[$_]->shape, dtype => $in->[$_]->dtype, ctx => $in->[$_]->context) } 0 .. $#req;
        _operator_of($node, $in)->backward(\@req, $heads, $in, $out, \@takes, $states);
    }, $head_grads, $inputs, $aux, $outputs, $gradients);
}

1;

__END__

=encoding UTF-8

=head1 NAME

AI::Cohort::CustomOpProp - description of the nodes of a custom operator

=head1 SYNOPSIS

    use AI::Cohort qw(mx);

    {
        package Joined;
        our @ISA = ('AI::Cohort::CustomOp');
        sub forward {
            my ($self, $is_train, $req, $in, $out, $aux) = @_;
            $self->assign($out->[0], $req->[0], AI::Cohort::NDArray->concatenate($in, axis => 1));
        }

        package JoinedProp;
        our @ISA = ('AI::Cohort::CustomOpProp');
        sub list_arguments { [qw(left right)] }
        sub infer_shape {
            my ($self, $in) = @_;
            my ($rows, $left, $right) = (@{$in->[0]}, $in->[1][1]);
            return ($in, [[$rows, $left + $right]], []);
        }
        sub create_operator { Joined->new }
    }

    JoinedProp->register('joined');
    my $y = mx->nd->Custom(left => mx->nd->array([[1]]), right => mx->nd->array([[2, 3]]), op_type => 'joined');
    print "@{$y->aslist}\n";    # 1 2 3
    JoinedProp->unregister('joined');

=head1 DESCRIPTION

A derived class is registered under a name, the C<op_type> of nodes C<Custom>: see L<AI::Cohort::CustomOp>. Its objects have the
attributes of a node, as text, and are created whenever the library asks something.

=head1 METHODS

=head2 register($op_type, need_top_grad => 1)

Class method: registers the class under a name, for the whole process. A name registered before then refers to the new class;
existing nodes keep the old one. With C<< need_top_grad => 0 >> it is a loss, whose backward needs no head gradient.

=head2 unregister($op_type)

Class method: removes a name. Existing nodes are not affected.

=head1 METHODS TO WRITE

Methods that a derived class may override; only C<create_operator> is required.

=head2 new(%attributes)

Class method: an object with the attributes as fields.

=head2 list_arguments, list_outputs, list_auxiliary_states

Names: C<['data']>, C<['output']> and none.

=head2 infer_shape(\@shapes)

Three lists of shapes, of the inputs, the outputs and the auxiliary states, from the known shapes of the inputs: at least the
first one is known; others may be C<[]>, or have lengths of 0. Default: all have the shape of the first one, and there are no
states.

=head2 infer_type(\@dtypes)

Three lists of dtypes likewise; unknown ones are C<undef>. Default: all have the dtype of the first input.

=head2 create_operator($context, \@shapes, \@dtypes)

The L<AI::Cohort::CustomOp> of a bound node, in its first forward pass.

=head2 need_top_grad

Whether backward needs head gradients, if C<register> does not say so: 1.

=cut
