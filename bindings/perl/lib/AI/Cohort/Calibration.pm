# SPDX-License-Identifier: Apache-2.0
package AI::Cohort::Calibration;
use strict;
use warnings;
use AI::Cohort::Arrays;
use AI::Cohort::FFI;

our @ISA = ('AI::Cohort::Handle');

my %method = (min_max => COHORT_CALIBRATION_MIN_MAX, entropy => COHORT_CALIBRATION_ENTROPY);

sub free_handle { cohort_calibration_free($_[1]) }

sub new {
    my ($class, $method) = @_;
    $method //= 'min_max';
    my $code = $method{$method} // invalid("method: expected min_max or entropy, found '$method'", 'method');
    cohort_calibration_create($code, \my $handle);
    return $class->adopt($handle);
}

sub observe {
    my ($self, $executor) = @_;
    cohort_calibration_observe($self->{handle}, handle_of($executor, 'executor'));
    return $self;
}

# (the least, the largest)
sub range {
    my ($self, $name) = @_;
    cohort_calibration_range($self->{handle}, $name, \my $low, \my $high);
    return ($low, $high);
}

sub ranges {
    my ($self) = @_;
    cohort_calibration_ranges($self->{handle}, \my $handle);
    return AI::Cohort::Arrays->adopt($handle)->hash;
}

sub from_ranges {
    my ($class, $ranges) = @_;
    my $list = AI::Cohort::Arrays->of($ranges || {}, 'ranges');
    cohort_calibration_create_from($list->{handle}, \my $handle);
    return $class->adopt($handle);
}

1;

__END__

=encoding UTF-8

=head1 NAME

AI::Cohort::Calibration - the ranges of a network's values, for inference in int8

=head1 SYNOPSIS

    use AI::Cohort qw(mx);
    my $net = mx->sym->FullyConnected(mx->sym->Variable('data'), num_hidden => 16, no_bias => 1, name => 'fc');
    my %model = (symbol => $net, arg_params => {fc_weight => mx->nd->ones([16, 16]) * 0.5}, shapes => {data => [4, 16]});
    my $batch = mx->nd->ones([4, 16]) * 0.25;
    my $calibration = AI::Cohort::Calibration->new('entropy');
    AI::Cohort::Predictor->new(%model)->observe($calibration, data => $batch);
    my $narrow = AI::Cohort::Predictor->new(%model, compute_dtype => 'int8', calibration => $calibration);
    my ($scores) = @{$narrow->predict(data => $batch)};    # 2, but for rounding

=head1 DESCRIPTION

Observes a float32 network on batches, and records the range of each of its values. Executors, groups and predictors that are
created with C<< compute_dtype => 'int8' >> and the calibration then compute in int8, if the processor supports that.

=head1 METHODS

=head2 new($method = 'min_max')

Class method. C<min_max> takes the least and the largest number, C<entropy> cuts off the range so that int8 preserves most of
the distribution.

=head2 observe($executor)

Runs a forward pass on the values in the executor's arguments, and records the range of each value. A batch or some hundred
samples are usually enough. Returns the calibration.

=head2 range($name)

The least and the largest number of a value, under its name in monitors, C<conv0_output>, or that of an argument.

=head2 ranges

All ranges, to be saved with C<< mx->nd->save >>: by name an array of the least and the largest number.

=head2 from_ranges($ranges)

Class method. A calibration with these ranges, from C<ranges> of another one; it observes no more.

=cut
