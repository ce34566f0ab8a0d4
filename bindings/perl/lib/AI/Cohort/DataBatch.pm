# SPDX-License-Identifier: Apache-2.0
package AI::Cohort::DataBatch;
use strict;
use warnings;
use AI::Cohort::FFI;

my @fields = qw(data label pad index bucket_key provide_data provide_label);

sub new {
    my ($class, @given) = @_;
    my %given = settings_of('DataBatch', \@fields, @given);
    my $self = bless {}, $class;
    $self->{$_} = $given{$_} for @fields;
    return $self;
}

for my $field (@fields) {
    no strict 'refs';
    *$field = sub { $_[0]{$field} = $_[1] if @_ > 1; $_[0]{$field} };
}

1;

__END__

=encoding UTF-8

=head1 NAME

AI::Cohort::DataBatch - the arrays of a batch

=head1 SYNOPSIS

    use AI::Cohort qw(mx);
    my $batch = AI::Cohort::DataBatch->new(data => [mx->nd->zeros([8, 3])], label => [mx->nd->zeros([8])]);

=head1 DESCRIPTION

The argument of groups and managers. Any other object with methods C<data> and C<label> is accepted, too.

=head1 METHODS

=head2 new(data => ..., label => ..., ...)

A batch; the fields are these:

=over

=item data, label

Arrays in the order of the descriptors. PDLs and nested array refs become arrays; a single array is a list of one. C<label> may
be left out.

=item bucket_key

For a manager: the batch's bucket.

=item provide_data, provide_label

For a manager, if the bucket is new: descriptors of the batch.

=item pad, index

Stored only.

=back

Each is a method, too, that reads the field, or sets it to its argument.

=cut
