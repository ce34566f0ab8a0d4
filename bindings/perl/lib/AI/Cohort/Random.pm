# SPDX-License-Identifier: Apache-2.0
package AI::Cohort::Random;
use strict;
use warnings;
use AI::Cohort::FFI;
use AI::Cohort::Operator;
use Scalar::Util qw(looks_like_number);

# Restarts the sequence that operators without a seed draw from.
sub seed {
    my ($class, $seed) = @_;
    invalid('seed: expected a whole number from 0 to 2147483647, found ' . ($seed // 'undef'), 'seed')
        unless defined $seed && $seed =~ /^\d{1,10}$/ && $seed < 2**31;
    $AI::Cohort::Operator::draws = $seed << 32;
    return;
}

# Numbers first, then names and values.
sub _draw {
    my ($op, $names, $class, @given) = @_;
    my %given;
    for my $name (@$names) { $given{$name} = shift @given if @given && looks_like_number($given[0]) }
    @given = %{$given[0]} if ref($given[0] // '') eq 'HASH';
    return AI::Cohort::Operator::invoke($op, %given, @given);
}

sub uniform { _draw('_random_uniform', [qw(low high)], @_) }
sub normal { _draw('_random_normal', [qw(loc scale)], @_) }

1;

__END__

=encoding UTF-8

=head1 NAME

AI::Cohort::Random - random numbers

=head1 SYNOPSIS

    use AI::Cohort qw(mx);
    mx->random->seed(42);
    my $x = mx->random->uniform(-1, 1, shape => [2, 3]);
    my $y = mx->random->normal(loc => 5, scale => 0.1, shape => [4]);

=head1 DESCRIPTION

Operators without a C<seed> draw random numbers from a sequence of the process, which starts the same way in each process.

=head1 CLASS METHODS

=head2 seed($number)

Restarts the sequence: the same calls then give the same numbers.

=head2 uniform($low, $high, shape => [...]), normal($loc, $scale, shape => [...])

Arrays of random numbers: the arguments of the operators C<_random_uniform> and C<_random_normal>, as names and values or in a
hash ref.

=cut
