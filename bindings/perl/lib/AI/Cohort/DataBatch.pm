# SPDX-License-Identifier: Apache-2.0
package AI::Cohort::DataBatch;
use strict;
use warnings;

my @fields = qw(data label pad index bucket_key provide_data provide_label);

sub new {
    my ($class, %given) = @_;
    my $self = bless {}, $class;
    $self->{$_} = $given{$_} for @fields;
    return $self;
}

for my $field (@fields) {
    no strict 'refs';
    *$field = sub { $_[0]{$field} = $_[1] if @_ > 1; $_[0]{$field} };
}

1;
