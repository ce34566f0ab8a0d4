# SPDX-License-Identifier: Apache-2.0
package AI::Cohort::DataDesc;
use strict;
use warnings;
use AI::Cohort::FFI;
use Scalar::Util qw(blessed);

use overload
    '""' => sub { "DataDesc[$_[0]{name}, (" . join(', ', @{$_[0]{shape} || ['?']}) . "), $_[0]{dtype}, $_[0]{layout}]" },
    bool => sub {1},
    fallback => 1;

sub new {
    my ($class, @given) = @_;
    @given = (name => shift @given, shape => shift @given, @given) if @given > 1 && ref $given[1] eq 'ARRAY';
    my %given = settings_of('DataDesc', [qw(name shape dtype layout)], @given);
    for my $needed (qw(name shape)) {
        invalid("DataDesc: $needed is missing", $needed) unless defined $given{$needed};
    }
    my ($shape) = shape_of($given{shape}, $given{name});
    return bless {
        name => $given{name},
        shape => $shape,
        dtype => $given{dtype} // 'float32',
        layout => exists $given{layout} ? $given{layout} : 'NCHW',
    }, $class;
}

# A descriptor, from a descriptor, [name, shape], [name, shape, dtype] or [name, shape, dtype, layout].
sub of {
    my ($class, $what) = @_;
    return $what if blessed $what && $what->can('name') && $what->can('shape');
    invalid('descriptor: expected [name, shape] or a DataDesc, found ' . ($what // 'undef'), 'descriptor')
        unless ref $what eq 'ARRAY' && @$what >= 2;
    my ($name, $shape, $dtype, $layout) = @$what;
    return $class->new(name => $name, shape => $shape, dtype => $dtype, @$what > 3 ? (layout => $layout) : ());
}

sub name   { $_[0]{name} }
sub shape  { $_[0]{shape} }
sub dtype  { $_[0]{dtype} }
sub layout { $_[0]{layout} }

sub get_batch_axis {
    my ($class, $layout) = @_;
    cohort_layout_batch_axis($layout, \my $axis);
    return $axis;
}

# ---- the library's lists of descriptors -----------------------------------------------------------------------------

package AI::Cohort::Descs;
use AI::Cohort::FFI;
our @ISA = ('AI::Cohort::Handle');

sub free_handle { cohort_descs_free($_[1]) }

sub make {
    my ($class) = @_;
    cohort_descs_create(\my $handle);
    return $class->adopt($handle);
}

# Makes a list from descriptors or pairs; undef for undef.
sub of {
    my ($class, $list, $what) = @_;
    return undef unless defined $list;
    invalid("$what: expected an array of descriptors, found $list", $what) unless ref $list eq 'ARRAY';
    my $descs = $class->make;
    for my $desc (map { AI::Cohort::DataDesc->of($_) } @$list) {
        my $dtype = $desc->can('dtype') ? $desc->dtype : undef;
        my $layout = $desc->can('layout') ? $desc->layout : 'NCHW';
        $descs->add($desc->name, $desc->shape, $dtype, $layout);
    }
    return $descs;
}

sub of_batch {
    my ($class, $data_shapes, $label_shapes) = @_;
    return ($class->of($data_shapes, 'data_shapes'), $class->of($label_shapes, 'label_shapes'));
}

# A list that a callback was given, owned by the library.
sub of_lent { AI::Cohort::Descs::Lent->adopt($_[1]) }

# Makes a list from shapes by name and dtypes by name: {data => [4, 3]}, {data => 'float32'}.
sub of_known {
    my ($class, $shapes, $dtypes) = @_;
    my $descs = $class->make;
    my %names = map { $_ => 1 } keys %{$shapes || {}}, keys %{$dtypes || {}};
    for my $name (sort keys %names) {
        $descs->add($name, $shapes->{$name}, defined $dtypes->{$name} ? $dtypes->{$name} : 'none');
    }
    return $descs;
}

sub add {
    my ($self, $name, $shape, $dtype, $layout) = @_;
    my ($lengths, $num) = defined $shape ? shape_of($shape, $name // 'shape') : (undef, COHORT_UNKNOWN_SHAPE);
    cohort_descs_add($self->{handle}, $name, $lengths, $num, AI::Cohort::NDArray::dtype_code($dtype // 'float32'), $layout);
    return $self;
}

# [name, shape, dtype, layout] each; shape and dtype undef where not known.
sub num {
    my ($self) = @_;
    cohort_descs_num($self->{handle}, \my $num);
    return $num;
}

sub entries {
    my ($self) = @_;
    return map {
        my @shape = (0) x COHORT_MAX_AXES;
        cohort_descs_get($self->{handle}, $_, \my $name, \@shape, COHORT_MAX_AXES, \my $axes, \my $dtype, \my $layout);
        [$name, $axes < 0 ? undef : [@shape[0 .. $axes - 1]], AI::Cohort::NDArray::dtype_name($dtype), $layout];
    } 0 .. $self->num - 1;
}

sub shapes { [map { $_->[1] } $_[0]->entries] }
sub dtypes { [map { $_->[2] } $_[0]->entries] }

sub descs {
    my ($self) = @_;
    my @fields = qw(name shape dtype layout);
    return [map { my %desc; @desc{@fields} = @$_; AI::Cohort::DataDesc->new(%desc) } $self->entries];
}

package AI::Cohort::Descs::Lent;
our @ISA = ('AI::Cohort::Descs');
sub free_handle { }

1;

__END__

=encoding UTF-8

=head1 NAME

AI::Cohort::DataDesc - name, shape, dtype and layout of data or labels

=head1 SYNOPSIS

    use AI::Cohort qw(mx);
    my $desc = AI::Cohort::DataDesc->new(name => 'data', shape => [20, 32, 100], layout => 'TNC');
    print AI::Cohort::DataDesc->get_batch_axis($desc->layout), "\n";    # 1

=head1 DESCRIPTION

Where descriptors are expected, C<[name, shape]>, C<[name, shape, dtype]> and C<[name, shape, dtype, layout]> are accepted.

=head1 METHODS

=head2 new(name => ..., shape => [...], dtype => 'float32', layout => 'NCHW')

A descriptor. Name and shape may also come first, without their names. The batch axis is the position of the first capital N in
the layout; a layout without one means that the data are not split. The layout need not be as long as the shape.

=head2 of($what)

Class method: a descriptor, from a descriptor or an array ref as above.

=head2 name, shape, dtype, layout

The fields.

=head2 get_batch_axis($layout)

Class method: the batch axis of a layout; -1 if it has none, 0 for C<undef>.

=head1 LISTS OF DESCRIPTORS

C<AI::Cohort::Descs>, in the same file, is the library's list of descriptors.

=cut
