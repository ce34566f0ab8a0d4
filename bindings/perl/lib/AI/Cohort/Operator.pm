# SPDX-License-Identifier: Apache-2.0
package AI::Cohort::Operator;
use strict;
use warnings;
use AI::Cohort::FFI;
use AI::Cohort::Arrays;
use AI::Cohort::AutoGrad;
use Scalar::Util qw(blessed looks_like_number);

# ---- the registry ------------------------------------------------------------------------------------------------------

sub names {
    cohort_operator_num(\my $num);
    return map { cohort_operator_name($_, \my $name); $name } 0 .. $num - 1;
}

my @precisions = qw(own narrow follows);

# Facts about an operator: canonical name, doc, inputs, attributes, outputs, precision.
sub info {
    my ($op) = @_;
    cohort_operator_info($op, \my $canonical, \my $doc, \my $attrs, \my $inputs, \my $outputs, \my $count_attr);
    cohort_operator_precision($op, \my $precision);
    my %info = (name => $canonical, doc => $doc, count_attr => $count_attr, precision => $precisions[$precision], inputs => [], attrs => [], outputs => []);
    for my $i (0 .. $inputs - 1) {
        cohort_operator_input($op, $i, \my $name, \my $text, \my $is_aux);
        cohort_operator_input_gradient($op, $i, \my $has_gradient);
        push @{$info{inputs}}, {name => $name, doc => $text, is_aux => $is_aux, has_gradient => $has_gradient};
    }
    for my $i (0 .. $attrs - 1) {
        cohort_operator_attr($op, $i, \my $name, \my $type, \my $default, \my $text);
        cohort_operator_attr_range($op, $i, \my $low, \my $high);
        push @{$info{attrs}}, {name => $name, type => $type, default => $default, doc => $text, low => $low, high => $high};
    }
    for my $i (0 .. $outputs - 1) {
        cohort_operator_output($op, $i, \my $name);
        push @{$info{outputs}}, $name;
    }
    return \%info;
}

my %input_names;

sub _input_names {
    my ($op, $settings) = @_;
    if ($op eq 'Custom' && (my $names = AI::Cohort::CustomOpProp::_inputs_of($settings))) { return @$names }
    return @{$input_names{$op} //= [map { $_->{name} } @{info($op)->{inputs}}]};
}

# Gives a class a method for each operator for which it has no method yet.
sub _install {
    my ($class, $apply) = @_;
    no strict 'refs';
    for my $op (names()) {
        next if defined &{"${class}::$op"};
        *{"${class}::$op"} = sub {
            my $self = shift;
            return $apply->($op, ref $self ? $self : (), @_);
        };
    }
}

# ---- arguments of an operator's function -------------------------------------------------------------------------------

# Inputs come first, one by one or in array refs; then names and values, as a list or a hash ref. Values of the inputs'
# class are inputs by name, the rest are settings.
sub _arguments {
    my ($op, $class, @arguments) = @_;
    my (@inputs, %named, %settings);
    my $is_input = sub { blessed $_[0] && $_[0]->isa($class) };
    while (@arguments) {
        if ($is_input->($arguments[0])) { push @inputs, shift @arguments }
        elsif (ref $arguments[0] eq 'ARRAY' && !grep { !$is_input->($_) } @{$arguments[0]}) { push @inputs, @{shift @arguments} }
        else { last }
    }
    @arguments = map { ref eq 'HASH' ? %$_ : $_ } @arguments if ref($arguments[0] // '') eq 'HASH';
    invalid("$op: expected inputs, then names and values; found one value without a name", $op) if @arguments % 2;
    while (my ($name, $value) = splice @arguments, 0, 2) {
        invalid("$op: found a name that is " . (ref $name || 'undef'), $op) if !defined $name || ref $name;
        if ($is_input->($value)) { $named{$name} = $value }
        else { $settings{$name} = $value }
    }
    return (\@inputs, \%named, \%settings);
}

# Inputs given by position and by name, and their names.
sub _with_names {
    my ($op, $inputs, $named, @all) = @_;
    my %pairs = %$named;
    for my $i (0 .. $#$inputs) {
        invalid("$op: expected at most " . @all . ' inputs, found ' . @$inputs, $op) if $i > $#all;
        AI::Cohort::Error->throw(name => "$op: input '$all[$i]' is given twice", $all[$i]) if $pairs{$all[$i]};
        $pairs{$all[$i]} = $inputs->[$i];
    }
    my %known = map { $_ => 1 } @all;
    my @names = ((grep { $pairs{$_} } @all), sort grep { !$known{$_} } keys %pairs);
    return ([@pairs{@names}], \@names);
}

our $draws = 0;    # the seed of operators that are given none: see AI::Cohort::Random

# Applies an operator to arrays at once: settings of the operator, and out, ctx, seed, is_train.
sub invoke {
    my ($op, @arguments) = @_;
    my ($inputs, $named, $settings) = _arguments($op, 'AI::Cohort::NDArray', @arguments);
    my @outputs = delete $named->{out} // ();
    if (defined(my $out = delete $settings->{out})) { @outputs = @{list_of($out, 'out')} }
    if (%$named) {
        my $names;
        my @all = _input_names($op, $settings);
        ($inputs, $names) = _with_names($op, $inputs, $named, @all);
        my %known = map { $_ => 1 } @all;
        for (@$names) { AI::Cohort::Error->throw(name => "$op: there is no input '$_'", $_) unless $known{$_} }
    }
    my %options = (context => AI::Cohort::Context->_pointer_to(delete $settings->{ctx}), seed => delete $settings->{seed} // $draws++);
    my $is_train = delete $settings->{is_train} // $AI::Cohort::AutoGrad::training;
    my $made = AI::Cohort::AutoGrad::_applied($op, $settings, handles_of($inputs, $op), handles_of(\@outputs, 'out'), $is_train, %options);
    return @$made == 1 ? $made->[0] : $made;
}

# Creates a node of a symbol: settings of the operator, and name, attr.
sub create {
    my ($op, @arguments) = @_;
    my ($inputs, $named, $settings) = _arguments($op, 'AI::Cohort::Symbol', @arguments);
    my $name = delete $settings->{name};
    my $attr = delete $settings->{attr};
    my $names;
    ($inputs, $names) = _with_names($op, $inputs, $named, _input_names($op, $settings)) if %$named;
    cohort_symbol_create($op, $name, attributes_of({%{$mx::AttrScope || {}}, %$settings, %{hash_of($attr, 'attr')}}), handles_of($inputs, $op), $names,
        scalar @$inputs, \my $handle);
    return AI::Cohort::Symbol->adopt($handle);
}

# ---- + - * / and the like ----------------------------------------------------------------------------------------------

# name => [for two arrays, for two symbols, with a number, with a number on the left]
my %arithmetic = (
    plus => [qw(broadcast_add _Plus _PlusScalar _PlusScalar)],
    minus => [qw(broadcast_sub _Minus _MinusScalar _RMinusScalar)],
    mul => [qw(broadcast_mul _Mul _MulScalar _MulScalar)],
    div => [qw(broadcast_div _Div _DivScalar _RDivScalar)],
    mod => [qw(broadcast_mod _Mod _ModScalar _RModScalar)],
    power => [qw(broadcast_power _Power _PowerScalar _RPowerScalar)],
    maximum => [qw(broadcast_maximum _Maximum _MaximumScalar _MaximumScalar)],
    minimum => [qw(broadcast_minimum _Minimum _MinimumScalar _MinimumScalar)],
    hypot => [qw(broadcast_hypot _Hypot _HypotScalar _HypotScalar)],
    equal => [qw(broadcast_equal _equal _equal_scalar _equal_scalar)],
    not_equal => [qw(broadcast_not_equal _not_equal _not_equal_scalar _not_equal_scalar)],
    greater => [qw(broadcast_greater _greater _greater_scalar _lesser_scalar)],
    greater_equal => [qw(broadcast_greater_equal _greater_equal _greater_equal_scalar _lesser_equal_scalar)],
    lesser => [qw(broadcast_lesser _lesser _lesser_scalar _greater_scalar)],
    lesser_equal => [qw(broadcast_lesser_equal _lesser_equal _lesser_equal_scalar _greater_equal_scalar)],
);

# Perl's operators on arrays and symbols, in the form of `use overload`.
sub _overloads {
    my %function = (
        '+' => 'plus',
        '-' => 'minus',
        '*' => 'mul',
        '/' => 'div',
        '%' => 'mod',
        '**' => 'power',
        '==' => 'equal',
        '!=' => 'not_equal',
        '>' => 'greater',
        '>=' => 'greater_equal',
        '<' => 'lesser',
        '<=' => 'lesser_equal',
    );
    return (neg => sub { $_[0] * -1 }, map { my $name = $function{$_}; ($_ => sub { _arithmetic($name, @_) }) } keys %function);
}

# += and the like write into the array itself, as in MXNet, so that other references to it and its views see the change.
sub _overloads_in_place {
    my %function = ('+=' => 'plus', '-=' => 'minus', '*=' => 'mul', '/=' => 'div', '%=' => 'mod');
    return map {
        my $name = $function{$_};
        ($_ => sub { $_[0]->_replace($name, $_[1]); $_[0] })
    } keys %function;
}

# Further settings, such as out, may follow.
sub _arithmetic {
    my ($what, $self, $other, $swapped, @more) = @_;
    my ($arrays, $symbols, $scalar, $reversed) = @{$arithmetic{$what}};
    my $is_array = $self->isa('AI::Cohort::NDArray');
    my $apply = $is_array ? \&invoke : \&create;
    if (blessed $other && $other->isa($is_array ? 'AI::Cohort::NDArray' : 'AI::Cohort::Symbol')) {
        return $apply->($is_array ? $arrays : $symbols, $swapped ? ($other, $self) : ($self, $other), @more);
    }
    invalid("$what: expected a number or an object of the same kind, found " . ($other // 'undef'), $what)
        if ref $other || !looks_like_number($other);
    return $apply->($swapped ? $reversed : $scalar, $self, scalar => $other, @more);
}

1;

__END__

=encoding UTF-8

=head1 NAME

AI::Cohort::Operator - the registry of operators

=head1 SYNOPSIS

    use AI::Cohort qw(mx);
    my $info = AI::Cohort::Operator::info('Activation');
    print "$info->{doc}\n";
    print "$_->{name}, $_->{type}: $_->{doc}\n" for @{$info->{attrs}};
    my $array = AI::Cohort::Operator::invoke('relu', mx->nd->array([-1, 1]));

=head1 DESCRIPTION

The operator methods of L<AI::Cohort::NDArray> and L<AI::Cohort::Symbol> are made from the library's registry.

=head1 FUNCTIONS

=head2 names

The names of all operators, aliases included.

=head2 info($name)

A hash: C<name> (the canonical one), C<doc>, C<inputs> (each with C<name>, C<doc>, C<is_aux>, and C<has_gradient>: whether a
gradient flows to it), C<attrs> (each with C<name>, C<type>, C<default>, which is C<undef> if a value is required, C<doc>, and
C<low> and C<high>, the least and the largest number, infinite if there is no bound), C<outputs> (names), C<count_attr> (the
attribute that counts the inputs, if their number is variable), C<precision>: its behaviour in a network that computes in a
narrower type, C<narrow> (computes in it), C<follows> (keeps the type of its inputs) or C<own> (keeps the types of the network).

=head2 invoke($name, @arguments)

Applies an operator to arrays: see L<AI::Cohort::NDArray/OPERATORS>.

=head2 create($name, @arguments)

Makes a symbol: see L<AI::Cohort::Symbol/OPERATORS>.

=cut
