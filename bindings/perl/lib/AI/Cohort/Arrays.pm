# SPDX-License-Identifier: Apache-2.0
package AI::Cohort::Arrays;
use strict;
use warnings;
use AI::Cohort::FFI;

our @ISA = ('AI::Cohort::Handle');

sub free_handle { cohort_arrays_free($_[1]) }

sub make {
    my ($class) = @_;
    cohort_arrays_create(\my $handle);
    return $class->adopt($handle);
}

# Of a hash of arrays by name, or of a list; undef of undef.
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

sub add {
    my ($self, $name, $array, $what) = @_;
    $array = AI::Cohort::NDArray->array($array) if ref $array && !(Scalar::Util::blessed($array) && $array->isa('AI::Cohort::Handle'));
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

# As .params files have it: by name if there are names.
sub content {
    my ($self) = @_;
    return (grep {length} @{$self->names}) ? $self->hash : $self->list;
}

1;
