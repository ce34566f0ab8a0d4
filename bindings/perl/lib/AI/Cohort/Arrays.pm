# SPDX-License-Identifier: Apache-2.0
package AI::Cohort::Arrays;
use strict;
use warnings;
use AI::Cohort::FFI;
use Scalar::Util qw(blessed);

our @ISA = ('AI::Cohort::Handle');

sub free_handle { cohort_arrays_free($_[1]) }

sub make {
    my ($class) = @_;
    cohort_arrays_create(\my $handle);
    return $class->adopt($handle);
}

# A list that a callback was given, owned by the library.
sub of_lent { AI::Cohort::Arrays::Lent->adopt($_[1]) }

# Makes a list from a hash of arrays by name, or from a list; undef for undef.
sub of {
    my ($class, $arrays, $what) = @_;
    return undef unless defined $arrays;
    $what //= 'arrays';
    my $list = $class->make;
    if (ref $arrays eq 'HASH') { $list->add($_, $arrays->{$_}, "$what: $_") for sort keys %$arrays }
    elsif (ref $arrays eq 'ARRAY') { $list->add(undef, $_, $what) for @$arrays }
    else { invalid("$what: expected arrays by name or a list of them, found $arrays", $what) }
    return $list;
}

# Lists of parameters and auxiliary states; undef for undef.
sub of_params {
    my ($class, $arg_params, $aux_params) = @_;
    return ($class->of($arg_params || {}, 'arg_params'), $class->of($aux_params, 'aux_params'));
}

sub add {
    my ($self, $name, $array, $what) = @_;
    my $is_object = blessed $array && $array->isa('AI::Cohort::Handle');
    $array = AI::Cohort::NDArray->array($array) if ref $array && !$is_object;
    cohort_arrays_add($self->{handle}, $name, handle_of($array, $what));
    return $self;
}

sub num {
    my ($self) = @_;
    cohort_arrays_num($self->{handle}, \my $num);
    return $num;
}

sub names { list_of_names(\&cohort_arrays_num, \&cohort_arrays_name, $_[0]{handle}) }

# The arrays in order, undef where an entry has none.
sub list {
    my ($self) = @_;
    return [map { cohort_arrays_get($self->{handle}, $_, \my $array); AI::Cohort::NDArray->adopt($array) } 0 .. $self->num - 1];
}

sub hash {
    my ($self) = @_;
    my %hash;
    @hash{@{$self->names}} = @{$self->list};
    return \%hash;
}

# The form that .params files have: by name if there are names.
sub content {
    my ($self) = @_;
    return (grep {length} @{$self->names}) ? $self->hash : $self->list;
}

package AI::Cohort::Arrays::Lent;
our @ISA = ('AI::Cohort::Arrays');
sub free_handle { }

1;

__END__

=encoding UTF-8

=head1 NAME

AI::Cohort::Arrays - the library's lists of arrays, with or without names

=head1 DESCRIPTION

Other modules convert hashes and lists to these, and back. Programs need them only to save copies of handles: wherever a hash of
arrays is expected, such a list is accepted.

=head1 METHODS

=head2 of($arrays, $what)

Class method: a list from a hash of arrays by name, or from a list; C<undef> for C<undef>. C<$what> is its name in errors.

=head2 of_params($arg_params, $aux_params)

Class method: two lists.

=head2 make

Class method: an empty list.

=head2 of_lent($address)

Class method: a list that a callback was given, to be read and added to in it.

=head2 add($name, $array)

Appends an entry; either may be C<undef>. An array ref or a PDL becomes an array.

=head2 num

The number of entries.

=head2 names, list, hash

The names in order, the arrays in order (C<undef> where there is none), the arrays by name.

=head2 content

A hash ref if there are names, else an array ref.

=cut
